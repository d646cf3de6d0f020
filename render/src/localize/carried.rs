//! Overrides on an encrypted document: checked as far as one can, carried along, and applied by whoever can
//! read it.

use std::sync::Arc;

use serde_json::Value;

use crate::describe::{CarriedStep, Content, DescribedObject};
use crate::finding::Finding;
use crate::fleet::ManifestObject;
use crate::localize::object::{IDENTITY, check, steps};
use crate::localize::patch::Patch;
use crate::localize::problem::Problem;
use crate::localize::provenance::Writers;
use crate::model::{FieldFormat, Override, OverrideStep, OverrideStepType};

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

/// A carried step that does not fit the document, now that it can be read.
#[derive(Debug, thiserror::Error)]
#[error("step {number} of its overrides does not fit: {problem}")]
pub struct Unfitting {
    /// Which step, from 1.
    number: usize,
    /// Why; never with a value.
    problem: Problem,
}

/// Applies carried steps, in order, to the object that was decrypted.
///
/// # Errors
///
/// The first step that does not fit; the object is half changed then and must be thrown away.
pub fn apply_carried(object: &mut Value, steps: &[CarriedStep]) -> Result<(), Unfitting> {
    for (index, carried) in steps.iter().enumerate() {
        apply_step(object, carried).map_err(|problem| Unfitting {
            number: index + 1,
            problem,
        })?;
    }
    Ok(())
}

fn apply_step(object: &mut Value, carried: &CarriedStep) -> Result<(), Problem> {
    let step = OverrideStep {
        name: String::new(),
        step_type: step_type(carried).ok_or_else(|| Problem::UnknownType(carried.step_type.clone()))?,
        override_chart: false,
        value: String::new(),
        line: 0,
    };
    let before = object.clone();
    Patch::new(&step, &carried.value)?.apply(object, false)?;
    check(&before, object, false)
}

/// The type that a carried step names; `None` for one that is not known.
fn step_type(carried: &CarriedStep) -> Option<OverrideStepType> {
    let field_path = carried.field_path.clone();
    let format = match carried.field_format.as_deref() {
        Some("YAML") => Some(FieldFormat::Yaml),
        Some("JSON") => Some(FieldFormat::Json),
        Some(_) | None => None,
    };
    Some(match (carried.step_type.as_str(), field_path, format) {
        ("JSONPatch", None, None) => OverrideStepType::JsonPatch,
        ("MergePatch", None, None) => OverrideStepType::MergePatch,
        ("FieldJSONPatch", Some(field_path), Some(format)) => OverrideStepType::FieldJsonPatch { field_path, format },
        ("FieldMergePatch", Some(field_path), Some(format)) => OverrideStepType::FieldMergePatch { field_path, format },
        _ => return None,
    })
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
