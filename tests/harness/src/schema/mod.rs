//! What objects look like: the shape of each served kind. In: the table of built-in types, and schemas of
//! custom resources. Out: [`Shape`], which checking, patching and field ownership walk along.
//!
//! Formats, patterns, ranges and CEL rules are deliberately not here: see `docs/harness.md`.

mod check;
mod custom;
mod openapi;
mod table;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub(crate) use check::{Problems, check, fill, tidy};
pub(crate) use custom::from_definition;
pub(crate) use openapi::{definition_name, json_schema};
pub(crate) use table::{builtin, builtins};

/// The shape of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Anything; maps are owned field by field, lists as a whole.
    Any,
    /// A scalar.
    Scalar(Scalar),
    /// An object with known fields.
    Object(Object),
    /// A map of equal values.
    Map { of: Box<Shape>, atomic: bool },
    /// A list.
    List { of: Box<Shape>, rule: ListRule },
    /// A built-in type by its place in the table, since types contain each other.
    Named { index: usize, atomic: bool },
}

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Bytes,
    Time,
    Integer,
    Number,
    Boolean,
    IntOrString,
    Quantity,
}

/// An object with known fields.
#[derive(Debug, Default)]
pub(crate) struct Object {
    /// The fields.
    pub fields: BTreeMap<Box<str>, Field>,
    /// Owned as a whole.
    pub atomic: bool,
    /// Whether unknown fields are kept.
    pub open: bool,
}

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field {
    /// Of its value.
    pub shape: Shape,
    /// Whether it must be there.
    pub required: bool,
    /// How a strategic merge patch treats it.
    pub patch: Patch,
    /// What it is when nobody says.
    pub default: Option<Value>,
}

/// A field under a strategic merge patch.
#[derive(Debug, Default)]
pub(crate) struct Patch {
    /// Lists are merged, by this key or, without one, as sets.
    pub merge: bool,
    /// Fields that the patch does not name are dropped.
    pub retain_keys: bool,
    /// The key that items are told apart by.
    pub key: Option<Box<str>>,
}

/// How the items of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListRule {
    /// Not at all: the list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By these fields.
    Keys(Vec<Box<str>>),
}

impl Shape {
    /// The shape behind a name.
    pub(crate) fn resolved(&self) -> &Shape {
        match self {
            Self::Named { index, .. } => table::by_index(*index),
            other => other,
        }
    }

    /// Whether a map or object is owned as a whole.
    pub(crate) fn is_atomic(&self) -> bool {
        match self {
            Self::Named { index, atomic } => *atomic || table::by_index(*index).is_atomic(),
            Self::Object(object) => object.atomic,
            Self::Map { atomic, .. } => *atomic,
            Self::List { rule, .. } => *rule == ListRule::Atomic,
            Self::Any | Self::Scalar(_) => false,
        }
    }

    /// A field of it, if it knows that one.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        match self.resolved() {
            Self::Object(object) => object.fields.get(name),
            _ => None,
        }
    }

    /// The shape of the value under a key.
    pub(crate) fn child(&self, name: &str) -> &Shape {
        match self.resolved() {
            Self::Object(object) => object.fields.get(name).map_or(&Shape::Any, |field| &field.shape),
            Self::Map { of, .. } => of,
            _ => &Shape::Any,
        }
    }

    /// The shape of a list's items and how they are told apart.
    pub(crate) fn items(&self) -> (&Shape, &ListRule) {
        match self.resolved() {
            Self::List { of, rule } => (of, rule),
            _ => (&Shape::Any, &ListRule::Atomic),
        }
    }

    /// What tells an item of a keyed list apart, with defaults of key fields filled in.
    pub(crate) fn key_of(&self, keys: &[Box<str>], item: &Value) -> Map<String, Value> {
        let mut key = Map::new();
        for name in keys {
            let value = item.get(&**name).filter(|value| !value.is_null());
            let default = || self.field(name).and_then(|field| field.default.clone());
            if let Some(value) = value.cloned().or_else(default) {
                key.insert(name.to_string(), value);
            }
        }
        key
    }
}
