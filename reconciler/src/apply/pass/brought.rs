//! Which delivery a pass applies, as the inventory remembers it.

use render::Revision;

use crate::apply::inventory::Entry;

/// The delivery that a pass applies, as entries of the inventory remember it.
pub(in crate::apply) struct Brought {
    lineage: String,
    sequence: u64,
}

impl Brought {
    pub(in crate::apply) fn new(lineage: &Revision, sequence: u64) -> Self {
        // As many digits as Git shows people; the inventory names it for every object.
        let lineage = lineage.short().to_owned();
        Self { lineage, sequence }
    }

    /// The lineage, shortened as entries have it.
    pub(in crate::apply) fn lineage(&self) -> &str {
        &self.lineage
    }

    /// The sequence.
    pub(in crate::apply) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether an entry was brought by a delivery of another lineage.
    pub(in crate::apply) fn is_other_lineage(&self, entry: &Entry) -> bool {
        entry.lineage != self.lineage
    }

    /// The entry, brought by this delivery.
    pub(in crate::apply) fn stamp(&self, entry: Entry) -> Entry {
        // A delivery that is older than the entry does not make it younger.
        let before = if entry.lineage == self.lineage {
            entry.sequence
        } else {
            0
        };
        Entry {
            lineage: self.lineage.clone(),
            sequence: self.sequence.max(before),
            ..entry
        }
    }
}
