//! From a document's value to the object that a unit delivers.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::kinds::{self, Kind};
use crate::describe::is_encrypted;
use crate::digest::Digest;
use crate::fleet::ManifestObject;
use crate::name::ObjectKey;
use crate::yaml::Document;

/// What is known of an object before its value is moved in.
pub(super) struct Head {
    pub(super) key: ObjectKey,
    pub(super) api_version: String,
    pub(super) original: Option<Arc<str>>,
}

impl Head {
    pub(super) fn finish(self, file: &Arc<str>, line: u32, value: Value) -> ManifestObject {
        let (value, digest) = match &self.original {
            Some(original) => (readable(value), Digest::of_bytes(original.as_bytes())),
            None => {
                let digest = Digest::of_value(&value);
                (value, digest)
            }
        };
        ManifestObject {
            key: self.key,
            api_version: self.api_version,
            file: file.clone(),
            line,
            value: Arc::new(value),
            original: self.original,
            chart: None,
            digest,
        }
    }
}

/// What can be read of an encrypted document.
fn readable(value: Value) -> Value {
    let Value::Object(map) = value else {
        return value;
    };
    let open = |(key, _): &(String, Value)| matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "type");
    map.into_iter().filter(open).collect::<Map<_, _>>().into()
}

/// The object of a document that is nothing but one ordinary object.
pub(super) fn plain_object(text: &str, document: &Document) -> Option<Head> {
    let map = document.value.as_object()?;
    let api_version = map.get("apiVersion")?.as_str()?;
    let kind = map.get("kind")?.as_str()?;
    // What has the name of one of our kinds is looked at closely: it may be a declaration with a wrong head.
    if api_version.is_empty()
        || kinds::is_own_name(kind)
        || kinds::kind_of(api_version, kind) != Kind::Object
        || list_items(map, kind).is_some()
    {
        return None;
    }
    Some(Head {
        key: object_key(map, api_version, kind).ok()?,
        api_version: api_version.to_owned(),
        original: original(text, document),
    })
}

/// The document's own text where it is encrypted.
pub(super) fn original(text: &str, document: &Document) -> Option<Arc<str>> {
    is_encrypted(&document.value).then(|| text[document.span.clone()].into())
}

pub(super) fn object_key(
    map: &Map<String, Value>,
    api_version: &str,
    kind: &str,
) -> Result<ObjectKey, (&'static str, String)> {
    if let Some(message) = no_kind(api_version, kind) {
        return Err(("NotAnObject", message));
    }
    let metadata = map.get("metadata").and_then(Value::as_object);
    let field = |name: &str| {
        metadata
            .and_then(|metadata| metadata.get(name))
            .filter(|value| !value.is_null())
    };
    let name = match field("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        Some(_) => {
            return Err((
                "NameInvalid",
                format!("metadata.name of this {kind} is no text with a name"),
            ));
        }
        None if field("generateName").is_some() => {
            let message = format!("this {kind} has generateName, so each delivery would make another");
            return Err(("GenerateName", message));
        }
        None => return Err(("NameMissing", format!("metadata.name of this {kind} is missing"))),
    };
    let namespace = match field("namespace") {
        None => "",
        Some(Value::String(namespace)) => namespace,
        Some(_) => {
            return Err((
                "NameInvalid",
                format!("metadata.namespace of {kind} {name:?} is not text"),
            ));
        }
    };
    if !is_path_segment(name) || !(namespace.is_empty() || is_path_segment(namespace)) {
        let message = format!("no API server could take {kind} {name:?} of namespace {namespace:?} in a path");
        return Err(("NameInvalid", message));
    }
    Ok(ObjectKey::new(api_version, kind, namespace, name))
}

/// What keeps these two from being the kind of an object.
fn no_kind(api_version: &str, kind: &str) -> Option<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let version = api_version.split_once('/').map_or(api_version, |(_, version)| version);
    if kind.is_empty() {
        return Some("kind is empty".to_owned());
    }
    if kind.starts_with("ENC[") || api_version.starts_with("ENC[") {
        let message = "its kind is encrypted too, so nobody can tell what it is; encrypt its values alone, with sops \
                       encrypt --encrypted-regex '^(data|stringData)$'";
        return Some(message.to_owned());
    }
    if !kind.chars().all(word) {
        return Some(format!("{kind:?} is no kind"));
    }
    let known = version.chars().all(word) && api_version.chars().all(|c| word(c) || c == '/');
    (!known).then(|| format!("{api_version:?} is no apiVersion"))
}

/// Whether a text can stand in the path of a request and mean itself: what ends a path, steers a terminal
/// or leads up a folder cannot.
pub(in crate::load) fn is_path_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && text
            .chars()
            .all(|c| c.is_ascii_graphic() && !matches!(c, '/' | '%' | '?' | '#' | '\\'))
}

/// The items of a List or of a typed list such as ConfigMapList.
pub(super) fn list_items<'a>(map: &'a Map<String, Value>, kind: &str) -> Option<&'a [Value]> {
    let items = map.get("items")?.as_array()?;
    (kind.ends_with("List") && !map.contains_key("spec")).then_some(items)
}
