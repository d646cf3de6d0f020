//! Why a cluster has as many as it has, where replicas are divided by room.

use std::sync::Arc;

use super::seats::bounds_text;
use crate::by_object::ByObject;
use crate::name::ObjectKey;
use crate::schedule::known::Known;
use crate::schedule::share::Room;
use crate::shared::Shared;

/// All that the sentence about one cluster's share says. Of thousands of clusters most say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) share: u64,
    pub(super) had: u64,
    pub(super) least: u64,
    pub(super) most: u64,
    /// For how many it has room, which tells most sentences apart before their words do.
    pub(super) fits: Room,
    /// What becomes of what it had.
    pub(super) gone: String,
    /// What room it has, in words.
    pub(super) room: Shared<String>,
    /// What else decided.
    pub(super) begin: Option<String>,
    /// From whom it takes over.
    pub(super) taken_over: String,
    /// The sentences before it.
    pub(super) before: Shared<Vec<String>>,
}

impl Sentence {
    /// All sentences, with this one as the last.
    pub(super) fn reasons(&self, object: &ObjectKey, wanted: u64) -> Shared<Vec<String>> {
        let mut text = format!(
            "replicas of {} {}: {} of {wanted}",
            object.kind, object.name, self.share
        );
        if self.had > 0 {
            text.push_str(&format!(", had {}", self.had));
        }
        text.push_str(&self.gone);
        if !self.room.is_empty() {
            text.push_str(&format!(", {}", *self.room));
        }
        if let Some(begin) = &self.begin {
            text.push_str(&format!(", {begin}"));
        }
        text.push_str(&bounds_text(self.least, self.most));
        text.push_str(&self.taken_over);
        let mut reasons = self.before.clone();
        reasons.push(text);
        reasons
    }
}

/// An object's numbers in many clusters, of which equal ones are the same.
pub(super) struct Numbers {
    object: Arc<ObjectKey>,
    alone: Known<u64, ByObject>,
}

impl Numbers {
    pub(super) fn of(object: &Arc<ObjectKey>) -> Self {
        Self {
            object: Arc::clone(object),
            alone: Known::default(),
        }
    }

    /// Sets the object's number beside those of others.
    pub(super) fn set(&mut self, numbers: &mut ByObject, number: u64) {
        if numbers.is_empty() {
            let alone = |number: &u64| ByObject::from([(Arc::clone(&self.object), *number)]);
            *numbers = self.alone.answer(&number, alone);
        } else {
            numbers.insert(Arc::clone(&self.object), number);
        }
    }
}
