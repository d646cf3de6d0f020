//! How an error is told: in one line, with its causes.

use std::error::Error;

/// What stands before a remedy in the words of an error.
const HINT: &str = "; hint: ";

/// An error in one line, with its causes, and its remedy at the end.
pub fn line(error: &dyn Error) -> String {
    let (said, hint) = told(error);
    match hint {
        Some(hint) => format!("{said}{HINT}{hint}"),
        None => said,
    }
}

/// An error with its causes, and what to do about it where one of them says so.
pub fn told(error: &dyn Error) -> (String, Option<String>) {
    let (mut said, mut remedy) = (String::new(), None);
    let mut next = Some(error);
    while let Some(error) = next {
        let words = error.to_string();
        let (words, hint) = match words.split_once(HINT) {
            Some((words, hint)) => (words, Some(hint.to_owned())),
            None => (words.as_str(), None),
        };
        remedy = remedy.or(hint);
        // Wrappers tend to repeat what they wrap.
        if said.is_empty() {
            said = words.to_owned();
        } else if !said.contains(words) {
            said = format!("{said}: {words}");
        }
        next = error.source();
    }
    (said, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{words}")]
    struct Wrapper {
        words: &'static str,
        source: std::io::Error,
    }

    #[test]
    fn a_cause_is_told_once() {
        let told = |words| {
            line(&Wrapper {
                words,
                source: std::io::Error::other("disk full"),
            })
        };
        assert_eq!(told("failed to write"), "failed to write: disk full");
        assert_eq!(told("failed to write: disk full"), "failed to write: disk full");
    }

    #[test]
    fn a_remedy_stands_at_the_end() {
        let error = Wrapper {
            words: "failed to write a; hint: make room",
            source: std::io::Error::other("disk full"),
        };
        assert_eq!(line(&error), "failed to write a: disk full; hint: make room");
    }
}
