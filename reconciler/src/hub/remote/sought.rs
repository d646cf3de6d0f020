//! Commits that agents named and that the copy's history ends before: for which of them more is fetched, and when.

use std::collections::VecDeque;

use render::Revision;
use tokio::time::Instant;

use crate::limits::{SOUGHT_AGAIN, SOUGHT_MAX, SOUGHT_PAUSE};

/// Agents may name any commit, so that all of this is bounded: how many, how often, and each once in a while.
#[derive(Debug, Default)]
pub(super) struct Sought {
    waiting: Vec<Revision>,
    looked: VecDeque<(Revision, Instant)>,
    last: Option<Instant>,
}

impl Sought {
    /// Asks for one; whether that is new.
    pub(super) fn ask(&mut self, commit: &Revision, now: Instant) -> bool {
        self.looked.retain(|(_, at)| now.duration_since(*at) < SOUGHT_AGAIN);
        let is_known = self.waiting.contains(commit) || self.looked.iter().any(|(looked, _)| looked == commit);
        if is_known || self.waiting.len() >= SOUGHT_MAX {
            return false;
        }
        self.waiting.push(commit.clone());
        true
    }

    /// Those that are to be looked for now, all at once.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Revision> {
        let is_early = self.last.is_some_and(|last| now.duration_since(last) < SOUGHT_PAUSE);
        if self.waiting.is_empty() || is_early {
            return Vec::new();
        }
        self.last = Some(now);
        self.waiting.clone()
    }

    /// These were looked for.
    pub(super) fn looked(&mut self, commits: &[Revision], now: Instant) {
        self.waiting.retain(|waiting| !commits.contains(waiting));
        self.looked.extend(commits.iter().map(|commit| (commit.clone(), now)));
        while self.looked.len() > SOUGHT_MAX {
            self.looked.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(number: usize) -> Revision {
        Revision::parse(format!("{number:040x}")).expect("forty hex digits")
    }

    #[test]
    fn agents_that_name_any_commits_cost_a_bounded_number_of_fetches() {
        let (mut sought, start) = (Sought::default(), Instant::now());
        assert!(sought.due(start).is_empty(), "nobody asked");
        assert!(sought.ask(&commit(0), start));
        assert!(!sought.ask(&commit(0), start), "it waits already");
        assert_eq!(sought.due(start), [commit(0)]);
        // That fetch failed: it waits, and the next one waits for its time.
        assert!(sought.ask(&commit(1), start));
        assert!(sought.due(start + SOUGHT_PAUSE / 2).is_empty());
        let later = start + SOUGHT_PAUSE;
        let due = sought.due(later);
        assert_eq!(due, [commit(0), commit(1)]);
        sought.looked(&due, later);
        assert!(!sought.ask(&commit(1), later), "it was looked for");
        assert!(sought.ask(&commit(1), later + SOUGHT_AGAIN));
        for number in 2..10 * SOUGHT_MAX {
            sought.ask(&commit(number), later);
        }
        let due = sought.due(later + SOUGHT_AGAIN);
        assert_eq!(due.len(), SOUGHT_MAX);
        for _ in 0..3 {
            sought.looked(&due, later);
        }
        assert_eq!(sought.looked.len(), SOUGHT_MAX);
    }
}
