//! What watches saw of a release's objects and its task has not looked at yet: the newest of each, so that it never
//! grows beyond what the release has.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::core::ObjectMeta;
use render::{Digest, ObjectKey};
use serde_json::{Value, json};
use tokio::sync::watch;

/// An object as somebody left it; nothing of it is there when it is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// Its UID.
    pub uid: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Who owns which of its fields, without those that only say how it fares. Whoever changes a field takes it from
    /// its owner, and this changes.
    pub owners: Option<Digest>,
}

impl Sight {
    /// Reads an object's metadata.
    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        let managed = metadata.managed_fields.as_deref().unwrap_or_default();
        Self {
            uid: metadata.uid.clone(),
            version: metadata.resource_version.clone(),
            owners: Some(owners(managed)),
        }
    }

    /// The same, of what a watch tells.
    pub(super) fn told(uid: Option<String>, version: Option<String>, managed: &[ManagedFieldsEntry]) -> Self {
        Self {
            uid,
            version,
            owners: Some(owners(managed)),
        }
    }
}

fn owners(managed: &[ManagedFieldsEntry]) -> Digest {
    let entries = managed
        .iter()
        .filter(|entry| entry.subresource.as_deref() != Some("status"))
        .map(|entry| {
            json!({"manager": entry.manager, "operation": entry.operation, "subresource": entry.subresource,
                "fields": entry.fields_v1.as_ref().map(|fields| &fields.0)})
        });
    Digest::of_value(&Value::Array(entries.collect()))
}

/// What a task takes of them at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// All are watched from now on, or watches fail, and none was compared since.
    pub all: bool,
    /// The newest of each.
    pub seen: BTreeMap<ObjectKey, Sight>,
}

/// Where the session notes them; its copies are one.
#[derive(Clone, Default)]
pub(super) struct Touches(watch::Sender<Touched>);

impl Touches {
    /// An object was seen, or is gone.
    pub(super) fn note(&self, key: ObjectKey, sight: Sight) {
        self.0.send_modify(|touched| drop(touched.seen.insert(key, sight)));
    }

    /// All are watched from now on.
    pub(super) fn watched(&self) {
        self.0.send_modify(|touched| touched.all = true);
    }

    /// Learns of what is noted from now on.
    pub(super) fn listen(&self) -> watch::Receiver<Touched> {
        self.0.subscribe()
    }

    /// Takes what was noted.
    pub(super) fn take(&self) -> Touched {
        let mut taken = Touched::default();
        self.0.send_if_modified(|touched| {
            taken = std::mem::take(touched);
            false
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;

    use super::*;

    fn entry(manager: &str, subresource: Option<&str>, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some("Update".to_owned()),
            subresource: subresource.map(str::to_owned),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn a_field_that_changed_hands_is_seen_and_a_status_is_not() {
        let helm = || entry("helm", None, json!({"f:data": {"f:colour": {}}}));
        let status = entry("kubelet", Some("status"), json!({"f:status": {}}));
        assert_eq!(owners(&[helm()]), owners(&[helm(), status]));
        let taken = [
            entry("helm", None, json!({"f:data": {}})),
            entry("kubectl-edit", None, json!({"f:data": {"f:colour": {}}})),
        ];
        assert_ne!(owners(&[helm()]), owners(&taken));
    }

    #[test]
    fn of_each_object_the_newest_is_kept_until_it_is_taken() {
        let touches = Touches::default();
        let listener = touches.listen();
        let key = ObjectKey::new("v1", "ConfigMap", "shop", "a");
        let sight = |version: &str| Sight::told(None, Some(version.to_owned()), &[]);
        touches.note(key.clone(), sight("1"));
        touches.note(key.clone(), sight("2"));
        touches.watched();
        assert!(listener.has_changed().is_ok_and(|changed| changed));
        let taken = touches.take();
        assert!(taken.all);
        assert_eq!(taken.seen, BTreeMap::from([(key, sight("2"))]));
        assert_eq!(touches.take(), Touched::default());
    }
}
