//! Audit lines that are alike, of which one is written and the rest is counted: watches that are begun anew again and again,
//! and requests of nobody, would write nothing else.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::audit::Line;
use crate::limits::{AUDIT_ALIKE_MAX, AUDIT_ALIKE_REST};

/// What is alike.
type Kind = [String; 7];

/// Kinds of which a line was written lately.
#[derive(Debug, Default)]
pub(super) struct Folded(BTreeMap<Kind, Since>);

/// What came of a kind since its last line.
#[derive(Debug)]
struct Since {
    written: Instant,
    /// The newest that was left out, with the bytes of all of them, and how many there were before it.
    left_out: Option<Line>,
}

impl Folded {
    /// The line, if it is to be written now. Otherwise [`Self::due`] gives what became of it.
    pub(super) fn fold(&mut self, mut line: Line, now: Instant) -> Option<Line> {
        let Some(kind) = kind(&line) else { return Some(line) };
        if let Some(since) = self.0.get_mut(&kind) {
            if let Some(earlier) = since.left_out.take() {
                line.more = earlier.more + 1;
                line.bytes_up += earlier.bytes_up;
                line.bytes_down += earlier.bytes_down;
            }
            since.left_out = Some(line);
            return None;
        }
        // Where too many kinds are remembered, what is of none of them is written as it comes.
        if self.0.len() < AUDIT_ALIKE_MAX {
            let since = Since {
                written: now,
                left_out: None,
            };
            self.0.insert(kind, since);
        }
        Some(line)
    }

    /// Lines that stand for what was left out for long enough. What was not repeated is forgotten.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Line> {
        let mut due = Vec::new();
        self.0.retain(|_, since| {
            if now.duration_since(since.written) < AUDIT_ALIKE_REST {
                return true;
            }
            since.written = now;
            let line = since.left_out.take();
            let is_repeated = line.is_some();
            due.extend(line);
            is_repeated
        });
        due
    }

    /// What was left out until the end.
    pub(super) fn rest(&mut self) -> Vec<Line> {
        let all = std::mem::take(&mut self.0);
        all.into_values().filter_map(|since| since.left_out).collect()
    }
}

/// `None`: it is a line of its own.
fn kind(line: &Line) -> Option<Kind> {
    let text = str::to_owned;
    if line.user.is_empty() {
        let code = line.code.to_string();
        return Some([
            line.from.clone(),
            code,
            text(""),
            text(""),
            text(""),
            text(""),
            text(""),
        ]);
    }
    let is_watch = line.verb == "watch" && (200..300).contains(&line.code);
    is_watch.then(|| {
        [
            line.user.clone(),
            line.cluster.clone(),
            line.resource.clone(),
            line.namespace.clone(),
            line.name.clone(),
            text(line.stage),
            text(line.verb),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(user: &str, namespace: &str) -> Line {
        Line {
            user: user.to_owned(),
            resource: "secrets".to_owned(),
            namespace: namespace.to_owned(),
            verb: "watch",
            code: 200,
            bytes_down: 10,
            ..Line::default()
        }
    }

    #[test]
    fn watches_that_are_alike_are_one_line_a_minute_that_counts_them() {
        let (mut folded, now) = (Folded::default(), Instant::now());
        assert_eq!(folded.fold(watch("ada", "a"), now), Some(watch("ada", "a")));
        for _ in 0..3 {
            assert_eq!(folded.fold(watch("ada", "a"), now), None);
        }
        for other in [watch("ada", "prod"), watch("ada", ""), watch("bob", "a")] {
            assert_eq!(folded.fold(other.clone(), now), Some(other), "it is another one");
        }
        let read = Line {
            verb: "get",
            ..watch("ada", "a")
        };
        assert_eq!(folded.fold(read.clone(), now), Some(read.clone()));
        assert_eq!(folded.fold(read.clone(), now), Some(read), "each read is a line");
        assert_eq!(folded.due(now), []);
        let later = now + AUDIT_ALIKE_REST;
        let due = folded.due(later);
        let told: Vec<_> = due
            .iter()
            .map(|line| (line.user.as_str(), line.more, line.bytes_down))
            .collect();
        assert_eq!(told, [("ada", 2, 30)], "without a fourth one");
        assert_eq!(folded.fold(watch("ada", "a"), later), None, "a minute from then on");
        assert_eq!(folded.rest().len(), 1);
        assert!(folded.0.is_empty());
    }

    #[test]
    fn nobody_fills_the_log_with_paths() {
        let (mut folded, now) = (Folded::default(), Instant::now());
        let nobody = |number: usize| Line {
            from: "192.0.2.1".to_owned(),
            resource: format!("/{number}"),
            code: 401,
            ..Line::default()
        };
        let written = (0..1_000).filter_map(|number| folded.fold(nobody(number), now)).count();
        assert_eq!(written, 1);
        assert_eq!(folded.due(now + AUDIT_ALIKE_REST)[0].more, 998);
    }
}
