//! How the objects of a release are kept: what its unit says about drift.

use std::sync::Arc;

use render::ObjectKey;
use render::model::{DriftMode, IgnoreRule};

use crate::apply::drift::is_ignored;
use crate::wire::FieldDrift;

/// What is done about what others changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::apply) struct Manner {
    /// Put right, told, or left with all else.
    pub drift: DriftMode,
    /// Fields that are left to others.
    pub ignore: Arc<[IgnoreRule]>,
}

impl Manner {
    /// Whether a field of an object is left to others.
    pub(super) fn ignores(&self, key: &ObjectKey, field: &FieldDrift) -> bool {
        let rules: Vec<_> = self.ignore.iter().filter(|rule| rule.concerns(key)).collect();
        is_ignored(field, &rules)
    }

    /// Whether an object that differs is put right. What is not there any more is made again, unless nothing is to be
    /// changed at all.
    pub(super) fn corrects(&self, is_gone: bool) -> bool {
        match self.drift {
            DriftMode::Correct => true,
            DriftMode::Report => is_gone,
            DriftMode::Freeze => false,
        }
    }
}
