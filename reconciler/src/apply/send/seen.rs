//! What a live object shows of itself: who it is, what of it is ours, and its health.

use kube::api::{DynamicObject, ObjectMeta};
use render::Digest;
use serde_json::{Value, json};

use crate::apply::health::{self, Verdict};
use crate::apply::ownership::Owners;

/// What a live object shows.
#[derive(Clone, Debug)]
pub(in crate::apply) struct Seen {
    /// Its UID.
    pub uid: Option<String>,
    /// Its version.
    pub resource_version: Option<String>,
    /// Digest of the fields that we own.
    pub fields: Option<Digest>,
    /// Its health.
    pub verdict: Verdict,
}

impl Seen {
    /// Reads a whole object.
    pub(in crate::apply) fn object(object: &DynamicObject) -> Self {
        Self::new(&object.metadata, health::health(&whole(object)))
    }

    /// Reads an object's metadata and a health that is known otherwise.
    pub(in crate::apply) fn new(metadata: &ObjectMeta, verdict: Verdict) -> Self {
        Self {
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            fields: fields(metadata),
            verdict,
        }
    }
}

/// An object as JSON, with the metadata that its health is read from.
fn whole(object: &DynamicObject) -> Value {
    let (api_version, kind) = object
        .types
        .as_ref()
        .map_or(("", ""), |types| (types.api_version.as_str(), types.kind.as_str()));
    let metadata = &object.metadata;
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"generation": metadata.generation, "deletionTimestamp": metadata.deletion_timestamp},
        "spec": object.data["spec"],
        "status": object.data["status"],
    })
}

/// Digest of the fields that our manager owns by server-side apply; `None` when it owns none.
fn fields(metadata: &ObjectMeta) -> Option<Digest> {
    Owners::of(metadata).ours().map(Digest::of_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::FIELD_MANAGER;
    use crate::apply::ownership::fixture::metadata;

    #[test]
    fn the_fields_that_count_are_those_of_our_own_applies() {
        let ours = metadata(&[(FIELD_MANAGER, "Apply", json!({"f:data": {"f:a": {}}}))]);
        let more = metadata(&[
            ("kubectl", "Update", json!({"f:data": {"f:b": {}}})),
            (FIELD_MANAGER, "Apply", json!({"f:data": {"f:a": {}}})),
        ]);
        assert!(fields(&ours).is_some());
        assert_eq!(
            fields(&ours),
            fields(&more),
            "what others own beside us changes nothing"
        );
        let taken = metadata(&[(FIELD_MANAGER, "Apply", json!({"f:data": {}}))]);
        assert_ne!(fields(&ours), fields(&taken), "a field that was taken from us does");
        assert_eq!(fields(&metadata(&[("kubectl", "Apply", json!({}))])), None);
    }
}
