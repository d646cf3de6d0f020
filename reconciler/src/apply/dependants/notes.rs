//! What an answer does not say, in words that somebody reads: an account with few rights fails for every kind alike.

use std::collections::{BTreeMap, BTreeSet};

/// Failures of one sort that are told one by one; the rest is counted.
const FAILURES_TOLD_MAX: usize = 3;

/// Lines beside an answer, each once.
#[derive(Debug, Default)]
pub(super) struct Notes {
    lines: Vec<String>,
    failures: BTreeMap<&'static str, Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    told: BTreeSet<String>,
    more: BTreeSet<String>,
}

impl Notes {
    pub(super) fn note(&mut self, line: String) {
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// Something failed, such as `kinds could not be listed`, for one of them, which the words are about.
    pub(super) fn failed(&mut self, what: &'static str, which: String, words: String) {
        let failures = self.failures.entry(what).or_default();
        if failures.told.contains(&which) {
            return;
        }
        if failures.told.len() >= FAILURES_TOLD_MAX {
            failures.more.insert(which);
            return;
        }
        failures.told.insert(which);
        self.note(words);
    }

    pub(super) fn into_lines(mut self) -> Vec<String> {
        for (what, failures) in std::mem::take(&mut self.failures) {
            if !failures.more.is_empty() {
                self.note(format!("and {} more {what}", failures.more.len()));
            }
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_for_every_kind_is_told_three_times_and_counted() {
        let mut notes = Notes::default();
        for namespace in ["a", "b"] {
            for at in 0..60 {
                let words = format!("Kind{at} could not be listed in {namespace}: forbidden");
                notes.failed("kinds could not be listed", format!("Kind{at}"), words);
            }
        }
        notes.note("not all was looked at within 20 s".to_owned());
        let expected = [
            "Kind0 could not be listed in a: forbidden",
            "Kind1 could not be listed in a: forbidden",
            "Kind2 could not be listed in a: forbidden",
            "not all was looked at within 20 s",
            "and 57 more kinds could not be listed",
        ];
        assert_eq!(notes.into_lines(), expected);
    }
}
