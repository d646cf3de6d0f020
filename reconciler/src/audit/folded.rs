//! Audit lines that are alike, of which one is written and the rest is counted: watches that are begun anew again and again
//! would write nothing else.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::limits::{AUDIT_ALIKE_MAX, AUDIT_ALIKE_REST};

/// A line that may have many like it.
pub(crate) trait Alike {
    /// What they have in common.
    type Kind: Ord;

    /// What this one has in common with others; `None`: it is a line of its own.
    fn kind(&self) -> Option<Self::Kind>;

    /// Stands for an earlier one, and for whatever that stood for.
    fn stand_for(&mut self, earlier: &Self);
}

/// Kinds of which a line was written lately.
#[derive(Debug)]
pub(crate) struct Folded<L: Alike>(BTreeMap<L::Kind, Since<L>>);

/// What came of a kind since its last line.
#[derive(Debug)]
struct Since<L> {
    written: Instant,
    /// The newest that was left out, which stands for those before it.
    left_out: Option<L>,
}

impl<L: Alike> Default for Folded<L> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<L: Alike> Folded<L> {
    /// The line, if it is to be written now. Otherwise [`Self::due`] gives what became of it.
    pub(crate) fn fold(&mut self, mut line: L, now: Instant) -> Option<L> {
        let Some(kind) = line.kind() else { return Some(line) };
        if let Some(since) = self.0.get_mut(&kind) {
            if let Some(earlier) = since.left_out.take() {
                line.stand_for(&earlier);
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
    pub(crate) fn due(&mut self, now: Instant) -> Vec<L> {
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
    pub(crate) fn rest(&mut self) -> Vec<L> {
        let all = std::mem::take(&mut self.0);
        all.into_values().filter_map(|since| since.left_out).collect()
    }
}
