//! How an error is told: in one line, with its causes.

use std::error::Error;

/// An error in one line, with its causes.
pub fn line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        // Wrappers tend to repeat what they wrap.
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
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
}
