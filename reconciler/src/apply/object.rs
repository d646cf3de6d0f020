//! One object of a delivery: who it is, and what is sent to the API server for it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use base64::Engine as _;
use render::depend;
use render::describe::{CarriedStep, Content, is_chart};
use render::model::ANNOTATION_UNIT;
use render::{Digest, ObjectKey, UnitKey, yaml};
use serde_json::{Map, Value, json};

use super::order::{self, Stage};
use super::suspend;
use crate::wire::ObjectState;

/// What the API server keeps by itself and refuses, or takes as a precondition, when it is sent.
const SERVER_FIELDS: [&str; 5] = ["managedFields", "resourceVersion", "uid", "generation", "selfLink"];

/// Who an object is, as its manifest says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// Its key; the namespace is empty where the manifest names none.
    pub key: ObjectKey,
    /// Its API version.
    pub api_version: String,
    /// When it is applied.
    pub stage: Stage,
    /// The objects that must be there and healthy first, by its annotations.
    pub needs: Box<[ObjectKey]>,
    /// The annotation that leaves it as it is, if it has one.
    pub suspended_by: Option<&'static str>,
}

/// A content that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    /// As far as it is known.
    pub key: ObjectKey,
    /// Unsupported or Failed.
    pub state: ObjectState,
    /// Why.
    pub message: String,
}

/// Reads who an object is.
pub(super) fn identify(content: &Content) -> Result<Identity, Box<Unfit>> {
    let (object, promised) = match content {
        Content::Chart { object, .. } | Content::Plain { object } => (Cow::Borrowed(object.as_ref()), None),
        Content::Encrypted { key, original, .. } => (Cow::Owned(readable(original)), Some(key)),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let metadata = &object["metadata"];
    let key = ObjectKey::new(
        &api_version,
        &text(&object["kind"]),
        &text(&metadata["namespace"]),
        &text(&metadata["name"]),
    );
    let unfit = |state, message: &str| {
        Box::new(Unfit {
            key: key.clone(),
            state,
            message: message.to_owned(),
        })
    };
    if let Some(promised) = promised.filter(|promised| **promised != key) {
        return Err(Box::new(Unfit {
            key: promised.clone(),
            state: ObjectState::Failed,
            message: "the encrypted document names another object".to_owned(),
        }));
    }
    if api_version.is_empty() || key.kind.is_empty() {
        return Err(unfit(ObjectState::Failed, "it has no apiVersion or no kind"));
    }
    if key.name.is_empty() {
        return Err(unfit(
            ObjectState::Failed,
            "it has no name, and generated names cannot be kept in step",
        ));
    }
    if is_chart(&key) {
        return Err(unfit(
            ObjectState::Unsupported,
            "a HelmChart is not read when it is encrypted; hint: keep secret values in a Secret that the chart names",
        ));
    }
    Ok(Identity {
        stage: order::stage(&key),
        needs: needs(&object),
        suspended_by: suspend::annotation(&object),
        key,
        api_version,
    })
}

/// What anybody can read of an encrypted document; nothing where it cannot be read at all.
fn readable(original: &str) -> Value {
    let documents = yaml::read(original).unwrap_or_default();
    documents
        .into_iter()
        .next()
        .map_or(Value::Null, |document| document.value)
}

/// What an object's annotations say that it needs. One that cannot be read was an Error when it was planned, and an
/// override may have brought it since: it is not waited for what nobody can name.
pub(super) fn needs(object: &Value) -> Box<[ObjectKey]> {
    let named = depend::annotations(object).filter_map(|(_, text)| depend::references(text).ok());
    named.flatten().collect()
}

/// What is sent for an object: as delivered, with its namespace and the annotation of its unit.
pub(super) fn sent(object: &Value, unit: &UnitKey, namespace: &str) -> Value {
    let mut object = object.clone();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    for field in SERVER_FIELDS {
        metadata.remove(field);
    }
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    let annotations = metadata.entry("annotations").or_insert_with(|| Map::new().into());
    if !annotations.is_object() {
        *annotations = Map::new().into();
    }
    annotations[ANNOTATION_UNIT] = unit.to_string().into();
    object
}

/// A Secret's `stringData` put into its `data`, which is what the API server makes of it: of `stringData` it
/// remembers no owner that anybody could lose it to. Values that are no text are left for it to refuse.
pub(super) fn with_data(mut object: Value, key: &ObjectKey) -> Value {
    let is_text = |text: &Value| text.as_object().is_some_and(|map| map.values().all(Value::is_string));
    let (true, Some(secret)) = (
        key.is_secret() && is_text(&object["stringData"]),
        object.as_object_mut(),
    ) else {
        return object;
    };
    let Some(Value::Object(text)) = secret.remove("stringData") else {
        return object;
    };
    let data = secret.entry("data").or_insert_with(|| Map::new().into());
    if !data.is_object() {
        *data = Map::new().into();
    }
    for (name, value) in text {
        let text = value.as_str().unwrap_or_default();
        data[name] = base64::engine::general_purpose::STANDARD.encode(text).into();
    }
    object
}

/// The digest of an object that was applied without some of its fields, in the API server's words for them.
pub(super) fn digest_without(digest: &str, refused: &[&str]) -> String {
    if refused.is_empty() {
        return digest.to_owned();
    }
    let refused: BTreeSet<_> = refused.iter().collect();
    Digest::of_value(&json!({"of": digest, "without": refused})).short(32)
}

/// The digest of an encrypted document that is sent as a member of an ApplySet.
pub(super) fn digest_with(digest: String, apply_set: Option<&str>) -> String {
    match apply_set {
        None => digest,
        Some(id) => Digest::of_value(&json!({"of": digest, "partOf": id})).short(32),
    }
}

/// A digest of what is sent, short enough for an inventory of thousands.
pub(super) fn digest(sent: &Value) -> String {
    Digest::of_value(sent).short(32)
}

/// The same for an encrypted document: of what it stands for in Git, since a digest of a short password tells it to
/// whoever tries a few million.
pub(super) fn sealed_digest(original: &str, overrides: &[CarriedStep], unit: &UnitKey, namespace: &str) -> String {
    let sealed = json!({"original": original, "overrides": overrides, "unit": unit, "namespace": namespace});
    Digest::of_value(&sealed).short(32)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn plain(object: Value) -> Content {
        Content::Plain {
            object: Arc::new(object),
        }
    }

    fn unit() -> UnitKey {
        UnitKey::new("shop", "web").expect("a valid unit")
    }

    #[track_caller]
    fn check_unfit(content: &Content, state: ObjectState) {
        assert_eq!(identify(content).expect_err("it cannot be sent").state, state);
    }

    #[test]
    fn charts_and_documents_of_another_object_are_never_sent() {
        for group in ["apps.clusternet.io", "fleet.flotilla.dev"] {
            let chart =
                json!({"apiVersion": format!("{group}/v1alpha1"), "kind": "HelmChart", "metadata": {"name": "x"}});
            check_unfit(&plain(chart), ObjectState::Unsupported);
        }
        let encrypted = Content::Encrypted {
            key: ObjectKey::new("v1", "Secret", "shop", "db"),
            original: "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: bank}, sops: {}}".into(),
            overrides: Vec::new(),
        };
        check_unfit(&encrypted, ObjectState::Failed);
        // Somebody else's kind of that name is an object like any other.
        let other = json!({"apiVersion": "helm.cattle.io/v1", "kind": "HelmChart", "metadata": {"name": "x"}});
        assert!(identify(&plain(other)).is_ok());
    }

    #[test]
    fn an_encrypted_document_is_who_its_open_part_says() {
        let encrypted = Content::Encrypted {
            key: ObjectKey::new("v1", "Secret", "shop", "db"),
            original: "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: shop}, sops: {}}".into(),
            overrides: Vec::new(),
        };
        let identity = identify(&encrypted).expect("its open part is whole");
        assert_eq!(
            (identity.api_version.as_str(), identity.key.name.as_str()),
            ("v1", "db")
        );
    }

    #[test]
    fn an_object_needs_a_name_and_a_kind() {
        check_unfit(
            &plain(json!({"apiVersion": "v1", "metadata": {"name": "x"}})),
            ObjectState::Failed,
        );
        check_unfit(
            &plain(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}})),
            ObjectState::Failed,
        );
        check_unfit(&plain(json!([])), ObjectState::Failed);
    }

    #[test]
    fn what_is_sent_names_its_unit_and_nothing_of_the_servers_own() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5},
            "metadata": {"name": "web", "uid": "u", "resourceVersion": "7", "managedFields": [], "annotations": null}});
        let expected = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5},
            "metadata": {"name": "web", "namespace": "default", "annotations": {ANNOTATION_UNIT: "shop/web"}}});
        assert_eq!(sent(&object, &unit(), "default"), expected);
    }

    #[test]
    fn what_was_left_out_changes_the_digest_whatever_its_order() {
        assert_eq!(digest_without("0123", &[]), "0123");
        assert_eq!(
            digest_without("0123", &[".a", ".b"]),
            digest_without("0123", &[".b", ".a", ".b"])
        );
        assert_ne!(digest_without("0123", &[".a"]), digest_without("0123", &[".b"]));
        assert_ne!(digest_without("0123", &[".a"]), digest_without("4567", &[".a"]));
    }

    #[test]
    fn text_of_a_secret_is_sent_as_its_data() {
        let key = ObjectKey::new("v1", "Secret", "shop", "db");
        let secret = json!({"data": {"a": "MQ==", "b": "Mg=="}, "stringData": {"b": "text", "c": ""}});
        let expected = json!({"data": {"a": "MQ==", "b": "dGV4dA==", "c": ""}});
        assert_eq!(with_data(secret.clone(), &key), expected);
        let wrong = json!({"stringData": {"port": 5432}});
        assert_eq!(with_data(wrong.clone(), &key), wrong, "the API server refuses it");
        let other = ObjectKey::new("v1", "ConfigMap", "shop", "db");
        assert_eq!(with_data(secret.clone(), &other), secret);
    }

    #[test]
    fn the_digest_changes_with_the_unit() {
        let object = json!({"metadata": {"name": "web"}, "spec": {}});
        let digest = |unit: &UnitKey| digest(&sent(&object, unit, "default"));
        let other = UnitKey::new("shop", "other").expect("a valid unit");
        assert_eq!(digest(&unit()), digest(&unit()));
        assert_ne!(digest(&unit()), digest(&other));
    }
}
