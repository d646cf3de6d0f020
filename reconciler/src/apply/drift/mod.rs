//! What others do to our objects: seen at once, put right at once, or told and left, as the unit's mode says.
//!
//! In: what watches and comparisons saw. Out: corrections through the stages of a pass, and what a report says field
//! by field. Reading order: `touch` (what was seen is a change of ours) → `mend` (a pass over those objects alone) →
//! `leave` (modes Report and Freeze) → `compare` with `owners` and `same` (which fields differ) → `fight` and
//! `ignore`.
//!
//! What is sent, and what of it others may keep, is deliberately not here: that is `object`'s and `send`'s.

mod compare;
mod fight;
mod ignore;
mod leave;
mod mend;
mod owners;
mod same;
mod tally;
mod touch;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use render::model::DriftMode;
use render::{Digest, ObjectKey, UnitKey};
use tokio::time::Instant;

use self::leave::Left;
use self::mend::Mending;
use self::touch::Touch;

pub(super) use self::compare::{Basis, Live, drift};
pub(super) use self::fight::Fights;
pub(super) use self::ignore::is_ignored;
pub(super) use self::leave::fights as fight_words;
pub(super) use self::tally::Tally;
pub(super) use self::touch::{Observed, is_newer};

/// What a session knows of changes by others.
pub(super) struct Drift {
    begun: Instant,
    /// Changed, and nothing was decided about it yet.
    touches: BTreeMap<ObjectKey, Touch>,
    /// Put right later, since somebody else changes it again and again.
    resting: BTreeMap<ObjectKey, Instant>,
    /// Left as it is: the fields that differ.
    found: BTreeMap<ObjectKey, Left>,
    /// Left as it is, and not looked at since it changed.
    unlooked: BTreeSet<ObjectKey>,
    /// Units that are left as they are, with the content and the mode that their objects were compared for.
    judged: BTreeMap<UnitKey, (Digest, DriftMode)>,
    /// Being put right.
    mending: BTreeMap<ObjectKey, Mending>,
    fights: Fights,
    /// While a pass is over some objects alone: which.
    focus: Option<BTreeSet<ObjectKey>>,
}

impl Default for Drift {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            touches: BTreeMap::new(),
            resting: BTreeMap::new(),
            found: BTreeMap::new(),
            unlooked: BTreeSet::new(),
            judged: BTreeMap::new(),
            mending: BTreeMap::new(),
            fights: Fights::default(),
            focus: None,
        }
    }
}

impl Drift {
    /// When something is to be put right next.
    pub(super) fn next(&self) -> Option<Instant> {
        if self.touches.is_empty() {
            self.resting.values().min().copied()
        } else {
            Some(self.begun)
        }
    }

    /// Whether something is to be put right now.
    pub(super) fn due(&self, now: Instant) -> bool {
        self.next().is_some_and(|next| next <= now)
    }

    /// Whether a pass may send an object: it is one of those that the pass is about, and not left alone for a while.
    pub(super) fn allows(&self, key: &ObjectKey) -> bool {
        let in_focus = self.focus.as_ref().is_none_or(|focus| focus.contains(key));
        in_focus && !self.resting.contains_key(key)
    }

    /// Keeps only what is known of those.
    pub(super) fn retain(&mut self, keep: impl Fn(&ObjectKey) -> bool) {
        self.touches.retain(|key, _| keep(key));
        self.resting.retain(|key, _| keep(key));
        self.mending.retain(|key, _| keep(key));
        self.found.retain(|key, _| keep(key));
        self.unlooked.retain(|key| keep(key));
        let now = self.now();
        self.fights.rest(now);
    }

    /// Git says something new of these objects: what was fought over is begun anew.
    pub(super) fn begin_anew<'a>(&mut self, keys: impl Iterator<Item = &'a ObjectKey>) {
        for key in keys {
            self.resting.remove(key);
            self.fights.forget(key);
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }
}
