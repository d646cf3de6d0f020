//! Which fields of an object are not as they were sent. A pure function of what was sent, what is there, and who owns
//! which fields of it.
//!
//! The API server's own book, `managedFields`, decides: a field that we still own is as we sent it, however the server
//! writes it (a quantity, a default inside it), and whoever changes one takes it from us. So a default that Git does
//! not set is never a difference, and a field at any depth, also in free form, is one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use render::ObjectKey;
use serde_json::{Map, Value};

use super::owners::Owners;
use super::same::is_same;
use crate::limits::DRIFT_VALUE_CHARS_MAX;
use crate::wire::FieldDrift;

/// What of a live object is there to compare with.
#[derive(Clone, Copy, Debug)]
pub(in crate::apply) enum Live<'a> {
    /// Only who owns what is known; fields are named, without their values.
    Metadata,
    /// All of it.
    Whole(&'a Value),
}

/// Whether what we own of a live object was applied from the manifest that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apply) enum Basis {
    /// It was: what we still own is as it should be.
    Applied,
    /// It was another one: values alone tell.
    Another,
}

/// The fields of `sent` that are not as they were sent, in the order of their paths. Paths are JSON pointers into
/// `sent`, so that what is said about an item of a list is where Git has that item.
pub(in crate::apply) fn drift(
    sent: &Value,
    live: Live<'_>,
    managed: &[ManagedFieldsEntry],
    basis: Basis,
) -> Vec<FieldDrift> {
    let mut walk = Walk {
        path: String::new(),
        is_secret: is_secret(sent),
        found: Vec::new(),
    };
    let sent = if walk.is_secret { as_stored(sent) } else { sent.clone() };
    let owners = match basis {
        Basis::Applied => Owners::of(managed),
        Basis::Another => Owners::of_another(managed),
    };
    let there = match live {
        Live::Metadata => There::Unknown,
        Live::Whole(live) => There::Is(live),
    };
    for (field, wanted) in sent.as_object().into_iter().flatten() {
        match field.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for (field, wanted) in wanted.as_object().into_iter().flatten() {
                    // The rest is who it is.
                    if !matches!(field.as_str(), "name" | "namespace") {
                        let owners = owners.field("metadata").field(field);
                        walk.enter("metadata", |walk| {
                            walk.field(field, wanted, there.field("metadata").field(field), &owners);
                        });
                    }
                }
            }
            _ => walk.field(field, wanted, there.field(field), &owners.field(field)),
        }
    }
    walk.found
}

/// What stands at one place of the live object.
#[derive(Clone, Copy)]
enum There<'a> {
    Unknown,
    Missing,
    Is(&'a Value),
}

impl<'a> There<'a> {
    fn of(value: Option<&'a Value>) -> Self {
        match value {
            None | Some(Value::Null) => Self::Missing,
            Some(value) => Self::Is(value),
        }
    }

    /// Whether it is missing, or something of another form.
    fn is_other(self, form: impl Fn(&Value) -> bool) -> bool {
        match self {
            Self::Unknown => false,
            Self::Missing => true,
            Self::Is(value) => !form(value),
        }
    }

    fn field(self, name: &str) -> Self {
        match self {
            Self::Is(value) => Self::of(value.get(name)),
            Self::Unknown | Self::Missing => self,
        }
    }
}

struct Walk {
    path: String,
    is_secret: bool,
    found: Vec<FieldDrift>,
}

impl Walk {
    fn field(&mut self, name: &str, wanted: &Value, there: There<'_>, owners: &Owners<'_>) {
        self.enter(name, |walk| walk.value(wanted, there, owners));
    }

    fn enter(&mut self, segment: &str, inside: impl FnOnce(&mut Self)) {
        let before = self.path.len();
        self.path.push('/');
        self.path.push_str(&segment.replace('~', "~0").replace('/', "~1"));
        inside(self);
        self.path.truncate(before);
    }

    fn value(&mut self, wanted: &Value, there: There<'_>, owners: &Owners<'_>) {
        if owners.is_wholly_ours() || wanted.is_null() {
            return;
        }
        match wanted {
            Value::Object(fields) if !fields.is_empty() && !owners.is_atomic() => self.object(fields, there, owners),
            Value::Array(items) if !items.is_empty() && !owners.is_atomic() => self.array(items, there, owners),
            _ => self.leaf(wanted, there, owners),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, there: There<'_>, owners: &Owners<'_>) {
        if there.is_other(Value::is_object) {
            return self.differs(&Value::Object(fields.clone()), there, owners);
        }
        for (name, wanted) in fields {
            self.field(name, wanted, there.field(name), &owners.field(name));
        }
    }

    fn array(&mut self, items: &[Value], there: There<'_>, owners: &Owners<'_>) {
        if there.is_other(Value::is_array) {
            return self.differs(&Value::Array(items.to_vec()), there, owners);
        }
        let live = match there {
            There::Is(value) => value.as_array().map(Vec::as_slice),
            There::Missing | There::Unknown => None,
        };
        let keys = owners.list_keys();
        if !keys.is_empty() {
            for (index, wanted) in items.iter().enumerate() {
                let owners = owners.item(wanted);
                let there = match live {
                    None => There::Unknown,
                    Some(live) => There::of(live.iter().find(|item| has_keys_of(item, wanted, &keys))),
                };
                self.field(&index.to_string(), wanted, there, &owners);
            }
        } else if owners.is_set() {
            for (index, wanted) in items.iter().enumerate() {
                let there = match live {
                    None => There::Unknown,
                    Some(live) => There::of(live.iter().find(|item| *item == wanted)),
                };
                self.field(&index.to_string(), wanted, there, &owners.member(wanted));
            }
        } else {
            self.leaf(&Value::Array(items.to_vec()), there, owners);
        }
    }

    fn leaf(&mut self, wanted: &Value, there: There<'_>, owners: &Owners<'_>) {
        if owners.has_ours() {
            return;
        }
        match there {
            There::Is(value) if is_same(wanted, value) => {}
            There::Missing if is_nothing(wanted) => {}
            _ => self.differs(wanted, there, owners),
        }
    }

    fn differs(&mut self, wanted: &Value, there: There<'_>, owners: &Owners<'_>) {
        let found = match there {
            There::Is(value) => Some(value.clone()),
            There::Missing | There::Unknown => None,
        };
        let hidden = self.is_secret && !self.path.starts_with("/metadata")
            || is_long(wanted)
            || found.as_ref().is_some_and(is_long);
        self.found.push(FieldDrift {
            path: self.path.clone(),
            wanted: (!hidden).then(|| wanted.clone()),
            found: found.filter(|_| !hidden),
            hidden,
            manager: owners.manager().unwrap_or_default().to_owned(),
        });
    }
}

/// Whether an item of a live list is the one that was sent. A key that was not sent was filled in by the server.
fn has_keys_of(live: &Value, sent: &Value, keys: &[String]) -> bool {
    keys.iter()
        .all(|key| sent.get(key).is_none_or(|wanted| live.get(key) == Some(wanted)))
}

/// An empty value that the server does not keep.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_long(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() > DRIFT_VALUE_CHARS_MAX,
        Value::Array(_) | Value::Object(_) => value.to_string().len() > DRIFT_VALUE_CHARS_MAX,
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_secret(object: &Value) -> bool {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    ObjectKey::new(text("apiVersion"), text("kind"), "", "").is_secret()
}

/// A Secret as the server keeps it: `stringData` is only for writing, and becomes `data`.
fn as_stored(secret: &Value) -> Value {
    use base64::Engine as _;
    let mut stored = secret.clone();
    let Some(Value::Object(plain)) = stored.as_object_mut().and_then(|fields| fields.remove("stringData")) else {
        return stored;
    };
    for (name, value) in plain {
        let text = value.as_str().unwrap_or_default();
        stored["data"][name] = base64::engine::general_purpose::STANDARD.encode(text).into();
    }
    stored
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
