//! What a watch saw, taken in: whether it is a change of what we own, or nothing to us.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use render::{Digest, ObjectKey};

use crate::apply::session::Session;
use crate::apply::watch::{Sighting, Watched};
use crate::limits::DRIFT_TOUCHES_KEPT_WHOLE;

/// A change by somebody else.
pub(super) struct Touch {
    /// Which fields are still ours, as a digest; `None` where the object is gone.
    pub(super) fields: Option<Digest>,
    /// Who owns what; empty where that is not known.
    pub(super) managed: Vec<ManagedFieldsEntry>,
    /// Whether the object is not there any more.
    pub(super) is_gone: bool,
}

/// What a sighting means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(in crate::apply) struct Observed {
    /// Something is to be said.
    pub(in crate::apply) is_news: bool,
    /// Everything is to be looked at: something is gone that no unit has.
    pub(in crate::apply) asks_for_a_pass: bool,
}

impl Session {
    /// Takes in what a watch says. Our own writes, and whatever others do to what is theirs, are nothing to us.
    pub(in crate::apply) fn observe(&mut self, watched: Watched) -> Observed {
        match watched {
            Watched::Seen(sighting) => {
                self.releases.sighted(&sighting);
                self.sighted(*sighting)
            }
            Watched::Gone(key) => {
                self.releases.lost(&key);
                self.gone(key)
            }
            Watched::Listed(scope, told) => {
                self.releases.listed(&scope, &told);
                let missing = self
                    .known
                    .keys()
                    .filter(|key| scope.contains(key) && !told.contains(key));
                let missing: Vec<_> = missing.cloned().collect();
                let mut observed = Observed::default();
                for key in missing {
                    observed = observed.and(self.gone(key));
                }
                observed
            }
            Watched::Failed => {
                self.watches.failed();
                Observed::default()
            }
        }
    }

    fn gone(&mut self, key: ObjectKey) -> Observed {
        self.looks.remove(&key);
        if self.known.remove(&key).is_none() || self.inventory.get(&key).is_none() {
            return Observed::default();
        }
        let asks_for_a_pass = self.removals.contains_key(&key);
        let touch = Touch {
            fields: None,
            managed: Vec::new(),
            is_gone: true,
        };
        self.drift.touches.insert(key, touch);
        Observed {
            is_news: true,
            asks_for_a_pass,
        }
    }

    fn sighted(&mut self, sighting: Sighting) -> Observed {
        let Sighting { key, seen, managed } = sighting;
        let Some(entry) = self.inventory.get(&key).filter(|_| self.known.contains_key(&key)) else {
            return Observed::default();
        };
        let same_object = entry.uid == seen.uid;
        if same_object && !is_newer(seen.resource_version.as_deref(), entry.resource_version.as_deref()) {
            return Observed::default();
        }
        // This watch works, and says the rest as well.
        self.looks.remove(&key);
        let verdict = self.unjudged(&key, seen.verdict);
        let Some(known) = self.known.get_mut(&key) else {
            return Observed::default();
        };
        let is_news = known.verdict != verdict;
        known.verdict = verdict;
        // What is left as it is may be as it should be again, which our own fields do not always tell.
        let is_left = self.drift.found.contains_key(&key);
        let is_touched = known.fresh && (!same_object || known.fields != seen.fields || is_left);
        if is_touched {
            known.fresh = false;
            let whole = self.drift.touches.len() < DRIFT_TOUCHES_KEPT_WHOLE;
            let touch = Touch {
                fields: seen.fields,
                managed: if whole { managed } else { Vec::new() },
                is_gone: false,
            };
            self.drift.touches.insert(key, touch);
        } else if known.fresh {
            self.inventory.note_version(&key, seen.resource_version);
        }
        Observed {
            is_news,
            asks_for_a_pass: false,
        }
    }
}

impl Observed {
    /// Both.
    pub(in crate::apply) fn and(self, other: Self) -> Self {
        Self {
            is_news: self.is_news || other.is_news,
            asks_for_a_pass: self.asks_for_a_pass || other.asks_for_a_pass,
        }
    }
}

/// Whether a version was written after another. Where one is no number nothing is known, and it counts as newer.
pub(in crate::apply) fn is_newer(version: Option<&str>, than: Option<&str>) -> bool {
    let number = |version: Option<&str>| version.and_then(|version| version.parse::<u64>().ok());
    match (number(version), number(than)) {
        (Some(version), Some(than)) => version > than,
        _ => version != than,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_writes_and_news_from_before_them_are_no_news() {
        assert!(!is_newer(Some("7"), Some("7")));
        assert!(!is_newer(Some("9"), Some("10")), "versions are numbers, not texts");
        assert!(is_newer(Some("10"), Some("9")));
        assert!(is_newer(Some("a"), Some("b")), "what cannot be told is looked at");
        assert!(is_newer(Some("7"), None));
    }
}
