//! What was decrypted: it is never printed, and is wiped when it is dropped.

use serde_json::{Map, Value};
use zeroize::Zeroize as _;

/// A decrypted object. It has no `Debug`, and its texts are overwritten when it goes.
pub struct Opened(Value);

impl Opened {
    pub(super) fn new(map: Map<String, Value>) -> Self {
        Self(Value::Object(map))
    }

    /// The object.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The object, to put overrides in.
    pub(in crate::apply) fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }

    pub(super) fn object_mut(&mut self) -> &mut Map<String, Value> {
        if !self.0.is_object() {
            self.0 = Value::Object(Map::new());
        }
        self.0.as_object_mut().expect("it was made an object above")
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(map) => map.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
