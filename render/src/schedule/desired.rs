//! Which objects have replicas to divide, and how many the Base asks for.

use serde_json::Value;

use crate::finding::Finding;
use crate::fleet::ManifestObject;
use crate::name::ObjectKey;

/// Whether the object's replicas can be divided: Deployment, StatefulSet and ReplicaSet, in `apps` and in
/// the group they came from. Jobs are not divided yet.
pub(crate) fn is_divisible(key: &ObjectKey) -> bool {
    matches!(
        (key.group.as_str(), key.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") | ("extensions", "Deployment" | "ReplicaSet")
    )
}

/// How many replicas a divisible object asks for: `spec.replicas`, 1 where it says nothing.
///
/// # Errors
///
/// A finding with the object's file when the number cannot be read: the unit must then stay as it is.
pub(super) fn desired_replicas(object: &ManifestObject) -> Result<u64, Box<Finding>> {
    if object.is_encrypted() {
        let finding = refuse(
            object,
            "EncryptedReplicas",
            "cannot be divided, since the document is encrypted",
        );
        let hint = "keep the workload in plain text and its secrets in a Secret of their own";
        return Err(Box::new(finding.hint(hint)));
    }
    let what = "are not a whole number from 0 to 2147483647";
    match object.value.pointer("/spec/replicas") {
        None | Some(Value::Null) => Ok(1),
        Some(number) => number
            .as_u64()
            .filter(|replicas| i32::try_from(*replicas).is_ok())
            .ok_or_else(|| Box::new(refuse(object, "InvalidReplicas", what))),
    }
}

fn refuse(object: &ManifestObject, reason: &str, what: &str) -> Finding {
    let message = format!("the replicas of {} {} {what}", object.key.kind, object.key.name);
    Finding::error(reason, message)
        .at(object.file.as_ref(), object.line)
        .field("spec.replicas")
}
