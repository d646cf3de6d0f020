//! What a hub cluster holds of ours, whether it is what was written, and whether it may be removed.
//!
//! The proof of a removal has four parts, as the applier's: our label and field manager are on the object,
//! it has the UID that was recorded on it, all that should be there was read, and the release at hand is of
//! the same lineage and not older than the one that it was written with.

use kube::api::DynamicObject;
use render::Digest;
use serde_json::Value;

use super::desired::Release;
use super::name;

/// The field manager of everything that is written to a hub cluster, and a part of the proof that it is
/// ours. Under another name nothing could be removed any more: it never changes. It is not the applier's,
/// whose cluster may be the same.
pub(super) const MANAGER: &str = "flotilla-objects";

/// An object of a hub cluster that has our label.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// Whether our field manager is on it.
    pub(super) managed: bool,
    /// The UID that was recorded on it.
    pub(super) recorded: Option<String>,
    /// Digest of what was written.
    pub(super) written: Option<String>,
    /// The release it was written with.
    pub(super) release: Option<Release>,
    /// Whether somebody changed what was written.
    pub(super) drifted: bool,
    pub(super) deleting: bool,
    pub(super) status: Value,
}

/// What happens to an object that should not be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every part of the proof is there.
    Remove,
    /// It is being removed.
    Removing,
    /// It stays, and why.
    Keep(String),
}

impl Live {
    /// Reads an object; `wanted` is what it should say, where it should be there.
    pub(super) fn new(object: &DynamicObject, wanted: Option<&Value>) -> Self {
        let metadata = &object.metadata;
        let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).cloned();
        let ours = |manager: Option<&str>| manager == Some(MANAGER);
        let lineage = annotation(name::LINEAGE);
        let sequence = annotation(name::SEQUENCE).and_then(|sequence| sequence.parse().ok());
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            managed: metadata
                .managed_fields
                .iter()
                .flatten()
                .any(|entry| ours(entry.manager.as_deref()) && entry.operation.as_deref() == Some("Apply")),
            recorded: annotation(name::RECORDED_UID),
            written: annotation(name::WRITTEN),
            release: lineage
                .zip(sequence)
                .map(|(lineage, sequence)| Release { lineage, sequence }),
            drifted: wanted.is_some_and(|wanted| !is_covered(wanted, object)),
            deleting: metadata.deletion_timestamp.is_some(),
            status: object.data["status"].clone(),
        }
    }

    /// Why it is not ours although it has our label; `None` when it is. One without a recorded UID was
    /// written by a hub that ended before it could record it.
    pub(super) fn objection(&self) -> Option<String> {
        if !self.managed {
            return Some(format!("field manager {MANAGER} is not on it"));
        }
        match &self.recorded {
            Some(recorded) if *recorded != self.uid => Some("it is a copy: its UID is not the recorded one".to_owned()),
            Some(_) | None => None,
        }
    }

    /// Whether nothing has to be written.
    pub(super) fn is_as(&self, digest: &Digest) -> bool {
        let written = self.written.as_deref() == Some(digest.to_string().as_str());
        written && self.recorded.is_some() && !self.drifted && !self.deleting
    }

    /// Decides about an object that should not be there.
    pub(super) fn verdict(&self, release: &Release) -> Verdict {
        if let Some(objection) = self.objection() {
            return Verdict::Keep(objection);
        }
        if self.recorded.is_none() {
            return Verdict::Keep("no UID is recorded on it".to_owned());
        }
        if self.deleting {
            return Verdict::Removing;
        }
        match &self.release {
            None => Verdict::Keep("it does not say which release it was written with".to_owned()),
            Some(written) if written.lineage != release.lineage => {
                Verdict::Keep(format!("it was written under another lineage, {}", written.lineage))
            }
            Some(written) if written.sequence > release.sequence => Verdict::Keep(format!(
                "sequence {} is older than {}, which it was written with",
                release.sequence, written.sequence
            )),
            Some(_) => Verdict::Remove,
        }
    }
}

/// Whether an object says all that is wanted; what others, or defaults, add is theirs.
fn is_covered(wanted: &Value, object: &DynamicObject) -> bool {
    let metadata = serde_json::to_value(&object.metadata).unwrap_or_default();
    covers(&metadata, &wanted["metadata"]) && covers(&object.data["spec"], &wanted["spec"])
}

/// Whether `live` has everything that `wanted` has.
pub(super) fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (_, Value::Null) => true,
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| live.get(key).is_some_and(|live| covers(live, wanted))),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        // An empty list or map is stored as none.
        (Value::Null, Value::Array(wanted)) => wanted.is_empty(),
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn release(lineage: &str, sequence: u64) -> Release {
        Release {
            lineage: lineage.to_owned(),
            sequence,
        }
    }

    /// An object that was written with sequence 5 of lineage a, and has every part of the proof.
    fn live() -> Live {
        let object = json!({
            "apiVersion": "apps.clusternet.io/v1alpha1", "kind": "Base",
            "metadata": {"name": "x", "namespace": "n", "uid": "1", "resourceVersion": "7",
                "annotations": {name::RECORDED_UID: "1", name::LINEAGE: "a", name::SEQUENCE: "5",
                    name::WRITTEN: Digest::of_bytes(b"x").to_string()},
                "managedFields": [{"manager": MANAGER, "operation": "Apply"}]},
            "spec": {"feeds": []},
        });
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        Live::new(&object, Some(&json!({"spec": {"feeds": []}})))
    }

    #[track_caller]
    fn kept(change: impl FnOnce(&mut Live), release: &Release, words: &str) {
        let mut live = live();
        change(&mut live);
        match live.verdict(release) {
            Verdict::Keep(reason) => assert!(reason.contains(words), "{reason}"),
            other => panic!("{other:?}, and {words:?} is missing"),
        }
    }

    #[test]
    fn an_object_is_removed_only_with_every_part_of_the_proof() {
        let now = release("a", 5);
        assert_eq!(live().verdict(&now), Verdict::Remove);
        assert_eq!(live().verdict(&release("a", 6)), Verdict::Remove);
        kept(|live| live.managed = false, &now, "field manager");
        kept(|live| live.recorded = Some("2".to_owned()), &now, "copy");
        kept(|live| live.recorded = None, &now, "no UID");
        kept(|live| live.release = None, &now, "which release");
        kept(|_| {}, &release("b", 6), "lineage");
        kept(|_| {}, &release("a", 4), "older");
    }

    #[test]
    fn an_object_that_goes_already_is_waited_for() {
        let mut going = live();
        going.deleting = true;
        assert_eq!(going.verdict(&release("a", 5)), Verdict::Removing);
    }

    #[test]
    fn only_what_is_as_it_was_written_is_left_alone() {
        let digest = Digest::of_bytes(b"x");
        assert!(live().is_as(&digest));
        assert!(!live().is_as(&Digest::of_bytes(b"y")), "it should say something else");
        let mut changed = live();
        changed.drifted = true;
        assert!(!changed.is_as(&digest), "somebody changed it");
        let mut unrecorded = live();
        unrecorded.recorded = None;
        assert!(!unrecorded.is_as(&digest), "its UID is recorded by the next write");
    }

    #[test]
    fn what_others_add_is_theirs_and_what_they_change_is_not() {
        let live = json!({"a": 1, "b": {"c": [1, {"d": 2, "e": 3}]}, "more": true});
        assert!(covers(&live, &json!({"b": {"c": [1, {"d": 2}]}})));
        assert!(!covers(&live, &json!({"b": {"c": [1]}})), "a list is one value");
        assert!(!covers(&live, &json!({"a": 2})));
        assert!(!covers(&live, &json!({"z": 1})));
    }
}
