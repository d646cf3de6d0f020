//! What a cluster holds. In: whole objects. Out: whole objects, lists of a moment, and events since one.
//!
//! Every object has its own few bytes (version, UID, times); the rest is one byte string that all clusters
//! of the process share where it is equal. What may be written is deliberately not decided here.

mod history;
mod intern;
mod state;
mod stored;

pub(crate) use history::{Change, Event};
pub(crate) use state::{DEFINITIONS, Saved, State, in_namespace, now};
pub(crate) use stored::Stored;

/// Namespace (empty without one) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub namespace: Box<str>,
    pub name: Box<str>,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub(crate) fn of(object: &serde_json::Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Self::new(text("namespace"), text("name"))
    }
}
