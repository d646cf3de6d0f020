//! Which workloads are delivered, and how their pods are known.

use render::capacity::{PodRequirements, ReplicaPath, Workload, replica_path};
use render::describe::key_of;
use render::selector::LabelSelector;
use render::{ObjectKey, Shared, UnitKey};
use serde_json::Value;

use crate::apply::{Desired, DesiredUnit};

/// A delivered workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) unit: UnitKey,
    pub(super) object: ObjectKey,
    /// Which pods of its namespace are its own; `None` where it does not say.
    pub(super) selector: Option<LabelSelector>,
    pub(super) replicas: u64,
    pub(super) requirements: Shared<PodRequirements>,
}

/// What a delivery asks for, sorted by unit and object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AllWanted {
    pub(super) sequence: Option<u64>,
    pub(super) workloads: Vec<Wanted>,
}

/// The workloads of a delivery. What cannot be read is left out: its pods are counted as anybody's.
pub(super) fn wanted(desired: Option<&Desired>) -> AllWanted {
    let Some(desired) = desired else {
        return AllWanted::default();
    };
    let mut workloads: Vec<Wanted> = desired
        .units
        .iter()
        .flat_map(|(unit, content)| of_unit(unit, content))
        .collect();
    workloads.sort_by(|a, b| (&a.unit, &a.object).cmp(&(&b.unit, &b.object)));
    AllWanted {
        sequence: Some(desired.held.sequence),
        workloads,
    }
}

fn of_unit(unit: &UnitKey, content: &DesiredUnit) -> Vec<Wanted> {
    let contents = content.description.with_replicas(&content.replicas);
    let objects = contents.iter().filter_map(|content| content.object());
    let declared = &content.description.apply.replica_paths;
    let read = |object: &Value| {
        let key = key_of(object)?;
        let own = declared.iter().find(|item| item.is_of(&key));
        let path = own.map(|item| ReplicaPath {
            replicas: item.replicas.clone(),
            template: item.template.clone(),
        });
        let workload = Workload::read(object, &path.or_else(|| replica_path(&key))?).ok()?;
        Some(Wanted {
            unit: unit.clone(),
            selector: selector(object, &key),
            object: key,
            replicas: workload.replicas,
            requirements: workload.requirements,
        })
    };
    objects.filter_map(|object| read(object)).collect()
}

/// How a workload's pods are selected: as it says itself; a Job's by the label that its controller gives them.
fn selector(object: &Value, key: &ObjectKey) -> Option<LabelSelector> {
    if key.group == "batch" && key.kind == "Job" {
        return Some(LabelSelector {
            match_labels: [("job-name".to_owned(), key.name.clone())].into(),
            ..LabelSelector::default()
        });
    }
    let said = object
        .pointer("/spec/selector")
        .filter(|selector| selector.is_object())?;
    let whole = said.get("matchLabels").is_some() || said.get("matchExpressions").is_some();
    let selector = if whole {
        serde_json::from_value::<LabelSelector>(said.clone()).ok()?
    } else {
        // A ReplicationController has labels alone.
        LabelSelector {
            match_labels: serde_json::from_value(said.clone()).ok()?,
            ..LabelSelector::default()
        }
    };
    (!selector.is_empty()).then_some(selector)
}
