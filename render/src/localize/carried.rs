//! Overrides on an encrypted document: checked as far as one can, and carried along.

use std::sync::Arc;

use serde_json::Value;

use crate::describe::{CarriedStep, Content, DescribedObject};
use crate::finding::Finding;
use crate::fleet::ManifestObject;
use crate::localize::object::{IDENTITY, steps};
use crate::localize::patch::Patch;
use crate::localize::problem::Problem;
use crate::localize::provenance::Writers;
use crate::model::{Override, OverrideStep};

/// Describes an encrypted object: its own text, and the steps to apply after decryption.
pub(super) fn carry(
    object: &ManifestObject,
    original: &Arc<str>,
    overrides: &[&Override],
) -> Result<DescribedObject, Box<Finding>> {
    let mut carried = Vec::new();
    let mut writers = Writers::default();
    for (place, value) in steps(overrides, object)? {
        let fields = Patch::new(place.step, &value).and_then(|patch| fields(&patch));
        let fields = fields.map_err(|problem| place.finding(&object.key, &problem))?;
        writers.note_fields(fields, place);
        carried.push(step(place.step, value));
    }
    Ok(DescribedObject {
        key: object.key.clone(),
        content: Content::Encrypted {
            key: object.key.clone(),
            original: Arc::clone(original),
            overrides: carried,
        },
        provenance: writers.finish(),
    })
}

fn step(step: &OverrideStep, value: Value) -> CarriedStep {
    let field = step.step_type.field();
    CarriedStep {
        step_type: step.step_type.name().to_owned(),
        value,
        field_path: field.map(|(path, _)| path.to_owned()),
        field_format: field.map(|(_, format)| format.name().to_owned()),
    }
}

/// The fields that a patch will write, none of which may hold the object's identity.
fn fields(patch: &Patch<'_>) -> Result<Vec<String>, Problem> {
    if matches!(patch, Patch::Values(_) | Patch::Chart(_)) {
        return Err(Problem::Encrypted);
    }
    let written = patch.written();
    for (pointer, name) in IDENTITY {
        let holds = |field: &String| {
            let rest = pointer.strip_prefix(field.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if written.iter().any(holds) {
            return Err(Problem::Identity(name));
        }
    }
    Ok(written)
}
