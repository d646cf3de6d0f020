//! A step, parsed and checked to be what its type says.

use json_patch::Patch as Operations;
use serde_json::Value;

use crate::localize::problem::Problem;
use crate::localize::provenance::leaves;
use crate::localize::{chart, field, json};
use crate::model::{FieldFormat, OverrideStep, OverrideStepType};
use crate::yaml;

/// What a step does.
pub(super) enum Patch<'a> {
    /// Helm values over the chart's.
    Values(Value),
    /// A merge patch of the HelmChart object.
    Chart(Value),
    /// A change of the object.
    Whole(Change),
    /// A change of the text inside one field.
    Field {
        pointer: &'a str,
        format: FieldFormat,
        change: Change,
    },
}

/// A change of a document.
pub(super) enum Change {
    Json(Operations),
    Merge(Value),
}

/// The step's value; `None` where it is blank or only comments, and the step does nothing.
pub(super) fn read(step: &OverrideStep) -> Result<Option<Value>, Problem> {
    let mut documents = yaml::read(&step.value).map_err(|error| Problem::Unreadable(error.to_string()))?;
    let document = documents.pop();
    if documents.is_empty() {
        Ok(document.map(|document| document.value))
    } else {
        Err(Problem::SeveralDocuments)
    }
}

impl<'a> Patch<'a> {
    /// The patch that a step of this value is.
    pub(super) fn new(step: &'a OverrideStep, value: &Value) -> Result<Self, Problem> {
        Ok(match &step.step_type {
            OverrideStepType::Helm if step.override_chart => Self::Chart(merge_of_object(value)?),
            OverrideStepType::Helm => Self::Values(mapping(value)?),
            OverrideStepType::JsonPatch => {
                let operations = value.as_array().into_iter().flatten();
                operations
                    .map(|operation| &operation["value"])
                    .try_for_each(no_directive)?;
                Self::Whole(Change::Json(json::parse(value)?))
            }
            OverrideStepType::MergePatch => Self::Whole(Change::Merge(merge_of_object(value)?)),
            OverrideStepType::FieldJsonPatch { field_path, format } => Self::Field {
                pointer: field_path,
                format: *format,
                change: Change::Json(json::parse(value)?),
            },
            OverrideStepType::FieldMergePatch { field_path, format } => Self::Field {
                pointer: field_path,
                format: *format,
                change: Change::Merge(mapping(value)?),
            },
        })
    }

    /// Applies it. On an error the object is half changed and must be thrown away.
    pub(super) fn apply(&self, object: &mut Value, is_chart: bool) -> Result<(), Problem> {
        match self {
            Self::Values(_) | Self::Chart(_) if !is_chart => Err(Problem::NotAChart),
            Self::Whole(_) | Self::Field { .. } if is_chart => Err(Problem::ChartNeedsHelm),
            Self::Values(values) => chart::merge_values(object, values),
            Self::Chart(patch) => {
                json_patch::merge(object, patch);
                Ok(())
            }
            Self::Whole(change) => change.apply(object),
            Self::Field {
                pointer,
                format,
                change,
            } => field::edit(object, pointer, *format, |document| change.apply(document)),
        }
    }
}

impl Patch<'_> {
    /// The fields of the object that it writes, whatever they say now: every leaf, and the field above that
    /// a JSON patch names. Of Helm's patches none are told.
    pub(super) fn written(&self) -> Vec<String> {
        let mut fields = Vec::new();
        match self {
            Self::Values(_) | Self::Chart(_) => {}
            Self::Whole(Change::Merge(patch)) => leaves(patch, &mut String::new(), &mut fields),
            Self::Whole(Change::Json(operations)) => json::written(operations, &mut fields),
            Self::Field { pointer, .. } => fields.push((*pointer).to_owned()),
        }
        fields
    }
}

impl Change {
    fn apply(&self, document: &mut Value) -> Result<(), Problem> {
        match self {
            Self::Json(operations) => json::apply(operations, document),
            Self::Merge(patch) => {
                json_patch::merge(document, patch);
                Ok(())
            }
        }
    }
}

fn mapping(value: &Value) -> Result<Value, Problem> {
    if value.is_object() {
        Ok(value.clone())
    } else {
        Err(Problem::NotAMapping)
    }
}

fn merge_of_object(value: &Value) -> Result<Value, Problem> {
    no_directive(value)?;
    mapping(value)
}

/// Refuses the keys that steer a strategic merge patch: here they would only be data.
fn no_directive(value: &Value) -> Result<(), Problem> {
    const DIRECTIVES: [&str; 4] = ["$patch", "$retainKeys", "$deleteFromPrimitiveList", "$setElementOrder"];
    match value {
        Value::Array(items) => items.iter().try_for_each(no_directive),
        Value::Object(map) => map.iter().try_for_each(|(key, item)| {
            match DIRECTIVES.iter().find(|word| key.split('/').next() == Some(**word)) {
                Some(word) => Err(Problem::Directive((*word).to_owned())),
                None => no_directive(item),
            }
        }),
        _ => Ok(()),
    }
}
