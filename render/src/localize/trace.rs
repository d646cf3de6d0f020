//! What every step of every override does to a Base, told by field: never by value, which may be secret.

use std::sync::Arc;

use serde::Serialize;

use crate::describe::is_chart;
use crate::finding::Finding;
use crate::fleet::{Base, ManifestObject};
use crate::limits::TRACED_FIELDS_MAX;
use crate::localize::patch::Patch;
use crate::localize::problem::Place;
use crate::localize::provenance::compare;
use crate::localize::{chart, object};
use crate::model::Override;
use crate::name::ObjectKey;
use crate::schedule::Divided;

/// One step on one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Traced {
    /// The override's label.
    pub by: String,
    /// Its file and the step's line, `path:line`.
    pub at: String,
    /// The override's priority.
    pub priority: i32,
    /// The step's position, from 1.
    pub step: usize,
    /// The step's name; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How its value is meant.
    #[serde(rename = "type")]
    pub step_type: &'static str,
    /// Which object.
    pub object: ObjectKey,
    /// JSON pointers of the fields that it changed, sorted; empty where they were so already.
    pub fields: Vec<String>,
    /// Fields beyond those that are told.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Why it does not fit; nothing after it is applied to this object then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Finding>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What these overrides do to a Base, in the order in which they apply: override by override, object by
/// object. `divided` is as for [`super::localize`].
pub fn trace(base: &Base, overrides: &[&Arc<Override>], divided: &Divided) -> Vec<Traced> {
    let mut traced: Vec<(usize, Traced)> = Vec::new();
    for declared in &base.objects {
        let chosen: Vec<&Override> = overrides
            .iter()
            .filter(|meets| meets.feed.selects(&declared.key))
            .map(|meets| meets.as_ref())
            .collect();
        for step in of_object(declared, &chosen, divided) {
            let position = overrides.iter().position(|meets| meets.label() == step.by);
            traced.push((position.unwrap_or(usize::MAX), step));
        }
    }
    // Stable: the steps of one override on one object stay in their order.
    traced.sort_by(|(a, one), (b, other)| (a, &one.object).cmp(&(b, &other.object)));
    traced.into_iter().map(|(_, step)| step).collect()
}

fn of_object(declared: &ManifestObject, overrides: &[&Override], divided: &Divided) -> Vec<Traced> {
    let steps = match object::steps(overrides, declared) {
        Ok(steps) => steps,
        // A step that cannot be read stops the object before anything is applied.
        Err(problem) => return unreadable(declared, overrides, &problem),
    };
    let mut value = declared.value.as_ref().clone();
    if is_chart(&declared.key) {
        chart::describe(&mut value);
    }
    let rules = object::Rules::of(declared, divided);
    let mut traced = Vec::new();
    for (place, step_value) in steps {
        let mut fields = Vec::new();
        let applied = if declared.is_encrypted() {
            // What an encrypted document says, nobody here can tell: the fields are those that are written.
            Patch::new(place.step, &step_value).map(|patch| fields = patch.written())
        } else {
            let before = rules.apply(place, &step_value, &mut value);
            before.map(|before| compare(&before, &value, &mut String::new(), &mut fields))
        };
        let problem = applied.err().map(|problem| *place.finding(&declared.key, &problem));
        let stops = problem.is_some();
        traced.push(told(place, declared, fields, problem));
        if stops {
            break;
        }
    }
    traced
}

/// The step that a finding is about, told with it.
fn unreadable(declared: &ManifestObject, overrides: &[&Override], problem: &Finding) -> Vec<Traced> {
    let places = overrides.iter().flat_map(|item| {
        item.steps
            .iter()
            .enumerate()
            .map(|(index, step)| Place { item, index, step })
    });
    let mut blamed = places.filter(|place| problem.file == *place.item.file && problem.line == place.line());
    let blamed = blamed.next();
    let told = blamed.map(|place| told(place, declared, Vec::new(), Some(problem.clone())));
    told.into_iter().collect()
}

fn told(place: Place<'_>, declared: &ManifestObject, mut fields: Vec<String>, problem: Option<Finding>) -> Traced {
    fields.sort();
    fields.dedup();
    let more = fields.len().saturating_sub(TRACED_FIELDS_MAX);
    fields.truncate(TRACED_FIELDS_MAX);
    Traced {
        by: place.item.label(),
        at: format!("{}:{}", place.item.file, place.line()),
        priority: place.item.priority,
        step: place.index + 1,
        name: place.step.name.clone(),
        step_type: place.step.step_type.name(),
        object: declared.key.clone(),
        fields,
        more,
        problem,
    }
}
