//! How often somebody does something: so much at once, and again as time goes by. Time is the monotonic clock's.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant};

/// Who → when all that they did is forgiven. Each time puts that off by `every`.
#[derive(Debug)]
pub(super) struct Pace<K: Ord> {
    every: Duration,
    at_once: u32,
    remembered: usize,
    forgiven: BTreeMap<K, Instant>,
}

impl<K: Ord + Clone> Pace<K> {
    /// `at_once` and then one `every`, of each of so many who are remembered.
    pub(super) fn new(every: Duration, at_once: u32, remembered: usize) -> Self {
        Self {
            every,
            at_once,
            remembered,
            forgiven: BTreeMap::new(),
        }
    }

    /// How long somebody has to wait before they may do it so many times more; `None`: they may now.
    pub(super) fn wait(&self, who: &K, times: u32, now: Instant) -> Option<Duration> {
        let forgiven = self.forgiven.get(who);
        let owed = forgiven.map_or(Duration::ZERO, |forgiven| forgiven.saturating_duration_since(now));
        (owed + self.every * times)
            .checked_sub(self.every * self.at_once)
            .filter(|wait| !wait.is_zero())
    }

    /// Notes that somebody did it so many times. Where the table is full, whoever is forgiven first is forgotten.
    pub(super) fn note(&mut self, who: K, times: u32, now: Instant) {
        self.forgiven.retain(|_, forgiven| *forgiven > now);
        if self.forgiven.len() >= self.remembered && !self.forgiven.contains_key(&who) {
            let first = self.forgiven.iter().min_by_key(|(_, forgiven)| **forgiven);
            if let Some(first) = first.map(|(who, _)| who.clone()) {
                self.forgiven.remove(&first);
            }
        }
        let forgiven = self.forgiven.entry(who).or_insert(now);
        *forgiven += self.every * times;
    }

    /// Notes it where they may; otherwise how long they have to wait.
    pub(super) fn take(&mut self, who: &K, times: u32, now: Instant) -> Result<(), Duration> {
        match self.wait(who, times, now) {
            Some(wait) => Err(wait),
            None => {
                self.note(who.clone(), times, now);
                Ok(())
            }
        }
    }

    /// How many are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.forgiven.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn so_much_is_done_at_once_and_again_as_time_goes_by() {
        let (mut pace, now) = (Pace::new(SECOND, 5, 2), Instant::now());
        assert_eq!(pace.take(&"ada", 3, now), Ok(()));
        assert_eq!(pace.take(&"ada", 3, now), Err(SECOND), "three of five are gone");
        assert_eq!(pace.take(&"ada", 2, now), Ok(()), "what is refused costs nothing");
        assert_eq!(pace.take(&"ada", 1, now), Err(SECOND));
        assert_eq!(pace.take(&"bob", 5, now), Ok(()), "others have theirs");
        assert_eq!(pace.take(&"ada", 1, now + SECOND), Ok(()));
        assert_eq!(
            pace.take(&"ada", 5, now + SECOND * 6),
            Ok(()),
            "all is forgiven in the end"
        );
        pace.note("eve", 1, now);
        assert_eq!(pace.len(), 2, "no more are remembered");
    }
}
