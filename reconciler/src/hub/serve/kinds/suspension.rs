//! Kind Suspension: what a person holds at an older revision, and how much that is.

use std::collections::{BTreeMap, BTreeSet};

use render::model::Suspension;
use serde_json::{Map, Value, json};

use super::super::object::{Object, plain};
use super::or_dash;
use crate::hub::observe::Observation;

pub(super) fn objects(observation: &Observation<'_>) -> Vec<Object> {
    let Some(fleet) = &observation.state.fleet else {
        return Vec::new();
    };
    // Of several that hold the same, one counts; where they stand tells them apart.
    let mut holds: BTreeMap<(&str, u32), usize> = BTreeMap::new();
    for (unit, clusters) in &observation.placements {
        for cluster in clusters {
            if let Some(held) = observation.suspension(unit, cluster) {
                *holds.entry((&held.file, held.line)).or_default() += 1;
            }
        }
    }
    let declared = fleet.suspensions.iter();
    declared
        .map(|declared| {
            let count = match declared.objects.is_empty() {
                true => holds
                    .get(&(&*declared.file, declared.line))
                    .copied()
                    .unwrap_or_default(),
                false => holds_objects(observation, declared),
            };
            object(observation, declared, count)
        })
        .collect()
}

/// On how many clusters, of how many units, a Suspension of objects is said to hold one.
fn holds_objects(observation: &Observation<'_>, declared: &Suspension) -> usize {
    let by = format!("suspended by {}", declared.title());
    let pairs = observation.placements.iter();
    let pairs = pairs.flat_map(|(unit, clusters)| clusters.iter().map(move |cluster| (unit, cluster)));
    let held = pairs.filter(|(unit, cluster)| {
        let suspended = observation.placement(unit, cluster).suspended;
        suspended.is_some_and(|condition| condition.message.contains(&by))
    });
    held.count()
}

fn object(observation: &Observation<'_>, declared: &Suspension, holds: usize) -> Object {
    let in_force = declared.is_in_force(observation.state.now);
    let status = json!({ "inForce": in_force, "holds": holds });
    Object {
        namespace: String::new(),
        name: declared.name.clone(),
        labels: BTreeMap::new(),
        live: None,
        made_by: BTreeSet::new(),
        created: None,
        declared_in: format!("{}:{}", declared.file, declared.line),
        spec: spec(declared),
        status: Map::from_iter(status.as_object().cloned().unwrap_or_default()),
        cells: cells(declared, in_force, holds),
        conditions: Vec::new(),
    }
}

/// The declaration in its own form.
fn spec(declared: &Suspension) -> Value {
    let mut spec = json!({});
    if let Some(unit) = &declared.unit {
        spec["subscription"] = json!({ "namespace": unit.namespace(), "name": unit.name() });
    }
    if let Some(clusters) = &declared.clusters {
        if !clusters.names.is_empty() {
            spec["clusters"] = plain(&clusters.names);
        }
        if let Some(selector) = &clusters.selector {
            spec["clusterAffinity"] = plain(selector);
        }
    }
    if !declared.objects.is_empty() {
        let named = declared.objects.iter().map(|object| {
            json!({"apiVersion": object.api_version, "kind": object.kind, "namespace": object.namespace, "name": object.name})
        });
        spec["objects"] = named.collect();
    }
    if !declared.reason.is_empty() {
        spec["reason"] = json!(declared.reason);
    }
    if let Some(until) = declared.until {
        spec["until"] = json!(render::time::rfc3339(until));
    }
    spec
}

fn cells(declared: &Suspension, in_force: bool, holds: usize) -> Vec<Value> {
    let unit = declared.unit.as_ref().map(ToString::to_string);
    let clusters = declared.clusters.as_ref().map(|clusters| {
        let mut parts: Vec<String> = clusters.names.iter().map(ToString::to_string).collect();
        parts.extend(clusters.selector.iter().map(|_| "by labels".to_owned()));
        parts.join(",")
    });
    vec![
        json!(if in_force { "True" } else { "False" }),
        json!(unit.unwrap_or_else(|| "*".to_owned())),
        json!(clusters.unwrap_or_else(|| "*".to_owned())),
        or_dash(declared.until.map(render::time::rfc3339)),
        json!(holds),
        json!(format!("{}:{}", declared.file, declared.line)),
        or_dash(Some(declared.reason.clone())),
    ]
}
