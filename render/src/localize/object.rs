//! One object through its overrides.

use std::sync::Arc;

use serde_json::Value;

use crate::describe::{Content, DescribedObject, SERVER_POINTERS, is_chart, key_of, strip_server_fields};
use crate::finding::Finding;
use crate::fleet::ManifestObject;
use crate::limits::DEPTH_MAX;
use crate::localize::patch::Patch;
use crate::localize::problem::{Place, Problem};
use crate::localize::provenance::Writers;
use crate::localize::{carried, chart, patch};
use crate::model::Override;
use crate::schedule::Divided;

/// What no override may change, as pointer and as people write it.
pub(super) const IDENTITY: [(&str, &str); 4] = [
    ("/apiVersion", "apiVersion"),
    ("/kind", "kind"),
    ("/metadata/name", "metadata.name"),
    ("/metadata/namespace", "metadata.namespace"),
];

/// What makes a release of Helm another one.
const CHART_IDENTITY: [(&str, &str); 4] = [
    ("/spec/chart", "spec.chart"),
    // Its files are read with the manifest, before any override.
    ("/spec/path", "spec.path"),
    ("/spec/releaseName", "spec.releaseName"),
    ("/spec/targetNamespace", "spec.targetNamespace"),
];

const REPLICAS: &str = "/spec/replicas";

/// Describes an object after these overrides, in this order.
pub(super) fn localize(
    object: &ManifestObject,
    overrides: &[&Override],
    divided: &Divided,
) -> Result<DescribedObject, Box<Finding>> {
    if let Some(original) = &object.original {
        return carried::carry(object, original, overrides);
    }
    let is_chart = is_chart(&object.key);
    let steps = steps(overrides, object)?;
    if steps.is_empty() && !is_chart && !has_server_fields(&object.value) {
        return Ok(DescribedObject {
            key: object.key.clone(),
            content: Content::Plain {
                object: Arc::clone(&object.value),
            },
            provenance: Vec::new(),
        });
    }
    let mut value = object.value.as_ref().clone();
    if is_chart {
        chart::describe(&mut value);
    }
    let mut writers = Writers::default();
    let rules = Rules::of(object, divided);
    for (place, step_value) in steps {
        let before = rules.apply(place, &step_value, &mut value);
        let before = before.map_err(|problem| place.finding(&object.key, &problem))?;
        writers.note(&before, &value, place);
    }
    strip_server_fields(&mut value);
    let key = key_of(&value).unwrap_or_else(|| object.key.clone());
    let value = Arc::new(value);
    let content = match &object.chart {
        Some(files) => Content::Chart {
            object: value,
            files: Arc::clone(files),
        },
        None => Content::Plain { object: value },
    };
    Ok(DescribedObject {
        key,
        content,
        provenance: writers.finish(),
    })
}

/// What holds for the steps on one object.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    is_chart: bool,
    divided: bool,
}

impl Rules {
    pub(super) fn of(object: &ManifestObject, divided: &Divided) -> Self {
        Self {
            is_chart: is_chart(&object.key),
            divided: divided.path(&object.key).is_some(),
        }
    }

    /// Applies one step, and gives the object as it was before. On an error it is half changed and must be
    /// thrown away.
    pub(super) fn apply(self, place: Place<'_>, step_value: &Value, value: &mut Value) -> Result<Value, Problem> {
        let before = value.clone();
        let patch = Patch::new(place.step, step_value)?;
        patch.apply(value, self.is_chart)?;
        check(&before, value, self.is_chart)?;
        if self.divided {
            check_replicas(&patch, &before, value)?;
        }
        Ok(before)
    }
}

/// Every step that has a value, in order.
pub(super) fn steps<'a>(
    overrides: &[&'a Override],
    object: &ManifestObject,
) -> Result<Vec<(Place<'a>, Value)>, Box<Finding>> {
    let mut steps = Vec::new();
    for item in overrides {
        for (index, step) in item.steps.iter().enumerate() {
            let place = Place { item, index, step };
            match patch::read(step) {
                Ok(Some(value)) => steps.push((place, value)),
                Ok(None) => {}
                Err(problem) => return Err(place.finding(&object.key, &problem)),
            }
        }
    }
    Ok(steps)
}

fn has_server_fields(object: &Value) -> bool {
    SERVER_POINTERS.iter().any(|pointer| object.pointer(pointer).is_some())
}

/// What must hold after every step.
pub(super) fn check(before: &Value, after: &Value, is_chart: bool) -> Result<(), Problem> {
    let changed = |fields: &[(&'static str, &'static str)]| {
        let differs = |(pointer, _): &&(&str, &str)| before.pointer(pointer) != after.pointer(pointer);
        fields.iter().find(differs).map(|(_, name)| *name)
    };
    if let Some(name) = changed(&IDENTITY) {
        return Err(Problem::Identity(name));
    }
    if let Some(name) = changed(&CHART_IDENTITY).filter(|_| is_chart) {
        return Err(Problem::Identity(name));
    }
    if is_chart && ["path", "repo"].iter().all(|field| !after["spec"][field].is_null()) {
        return Err(Problem::TwoSources);
    }
    if is_deeper(after, DEPTH_MAX) {
        return Err(Problem::TooDeep);
    }
    Ok(())
}

/// Refuses a step on divided replicas, even one that says what the Base says: it would be lost at dispatch.
fn check_replicas(patch: &Patch<'_>, before: &Value, after: &Value) -> Result<(), Problem> {
    let changed = before.pointer(REPLICAS) != after.pointer(REPLICAS);
    if changed || patch.written().iter().any(|field| field == REPLICAS) {
        return Err(Problem::Divided);
    }
    Ok(())
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|item| is_deeper(item, levels - 1)),
        _ => false,
    }
}
