//! One object to the API server: a server-side apply that never forces, and what came of it.

use kube::Client;
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams, ValidationDirective};
use render::{Digest, ObjectKey};
use serde_json::{Value, json};

use super::discovery::ServedKind;
use super::health::{self, Verdict};
use super::request::{RequestError, bounded};
use super::session::Outcome;
use super::{FIELD_MANAGER, message};
use crate::wire::ObjectState;

/// What came of an object that was sent.
pub(super) enum Sent {
    /// It is as it was sent.
    Applied(Seen),
    /// It was refused; others may well be taken.
    Refused(Outcome),
    /// The API server is of no use right now.
    Stopped(RequestError),
}

impl Sent {
    /// Without values of the object in the words of a refusal, whatever its kind: it was encrypted.
    pub(super) fn without_values(self, object: &Value) -> Self {
        match self {
            Self::Refused(outcome) => Self::Refused(Outcome {
                message: message::without_values(&outcome.message, object),
                ..outcome
            }),
            sent @ (Self::Applied(_) | Self::Stopped(_)) => sent,
        }
    }
}

/// What a live object shows.
#[derive(Clone, Debug)]
pub(super) struct Seen {
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
    pub(super) fn object(object: &DynamicObject) -> Self {
        Self::new(&object.metadata, health::health(&whole(object)))
    }

    /// Reads an object's metadata and a health that is known otherwise.
    pub(super) fn new(metadata: &ObjectMeta, verdict: Verdict) -> Self {
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
    let ours = metadata.managed_fields.iter().flatten().find(|entry| {
        entry.manager.as_deref() == Some(FIELD_MANAGER)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.is_none()
    })?;
    Some(Digest::of_value(&ours.fields_v1.as_ref()?.0))
}

/// Sends an object.
pub(super) async fn send(client: &Client, kind: &ServedKind, key: &ObjectKey, object: Value) -> Sent {
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        // As kubectl does: a misspelt field is refused and not dropped.
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::default()
    };
    let api = kind.api(client, &key.namespace);
    match bounded(api.patch(&key.name, &params, &Patch::Apply(&object))).await {
        Ok(live) => Sent::Applied(Seen::object(&live)),
        Err(error) if error.is_general() => Sent::Stopped(error),
        Err(RequestError::Refused(status)) => {
            let conflict = message::conflict(&status);
            let state = match status.code {
                _ if conflict.is_some() => ObjectState::Conflict,
                // Its namespace or its kind is not there, or the namespace is on its way out.
                404 => ObjectState::Waiting,
                403 if is_terminating(&status) => ObjectState::Waiting,
                _ => ObjectState::Failed,
            };
            let words = conflict.unwrap_or_else(|| status.message.clone());
            Sent::Refused(Outcome::new(state, message::about(key, &object, &words)))
        }
        Err(error) => {
            let words = message::about(key, &object, &error.line());
            Sent::Refused(Outcome::new(ObjectState::Failed, words))
        }
    }
}

fn is_terminating(status: &kube::core::Status) -> bool {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice());
    causes
        .unwrap_or_default()
        .iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};

    use super::*;

    fn metadata(entries: &[(&str, &str, Value)]) -> ObjectMeta {
        let entry = |(manager, operation, fields): &(&str, &str, Value)| ManagedFieldsEntry {
            manager: Some((*manager).to_owned()),
            operation: Some((*operation).to_owned()),
            fields_v1: Some(FieldsV1(fields.clone())),
            ..ManagedFieldsEntry::default()
        };
        ObjectMeta {
            managed_fields: Some(entries.iter().map(entry).collect()),
            ..ObjectMeta::default()
        }
    }

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
