//! Patches of an object. In: the object as it is and the patch's body. Out: the object as it should be.
//!
//! Server-side apply is deliberately not here: it needs the owners of fields, see `fields`.

mod strategic;

use serde_json::Value;

use crate::failure::Failure;
use crate::schema::Shape;

/// The kinds of patches, by their content types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// A JSON patch.
pub(crate) fn json(live: &Value, body: &[u8]) -> Result<Value, Failure> {
    let patch: json_patch::Patch =
        serde_json::from_slice(body).map_err(|error| Failure::bad_request(error.to_string()))?;
    let mut object = live.clone();
    json_patch::patch(&mut object, &patch).map_err(|error| {
        let message = format!("the server rejected our request due to an error in our request: {error}");
        Failure::new(422, "Invalid", message)
    })?;
    Ok(object)
}

/// A JSON merge patch.
pub(crate) fn merge(live: &Value, patch: &Value) -> Value {
    let mut object = live.clone();
    json_patch::merge(&mut object, patch);
    object
}

/// A strategic merge patch.
pub(crate) fn strategic(live: &Value, patch: &Value, shape: &Shape) -> Value {
    strategic::merge(live, patch, shape)
}
