//! Kind Placement: one unit on one cluster, with its ladder.

use std::collections::BTreeMap;

use render::model::LABEL_CLUSTER_NAME;
use render::published::{Placement, Variant};
use render::{ClusterName, UnitKey};
use serde_json::{Map, Value, json};

use super::super::object::{Object, SUBSCRIPTION_LABEL, plain};
use super::{of, or_dash, ready_cells};
use crate::hub::observe::{Observation, PlacementView, Rung, short_revision, shown_revision};

pub(super) fn objects(observation: &Observation<'_>) -> Vec<Object> {
    let pairs = observation
        .placements
        .iter()
        .flat_map(|(unit, clusters)| clusters.iter().map(|cluster| (*unit, *cluster)));
    pairs
        .map(|(unit, cluster)| object(observation, unit, cluster))
        .collect()
}

fn object(observation: &Observation<'_>, unit: &UnitKey, cluster: &ClusterName) -> Object {
    let view = observation.placement(unit, cluster);
    let state = observation.state;
    let published = state.rendered.as_ref().or(state.released.as_ref());
    let entry = published.and_then(|commit| commit.published.units.get(unit)?.entry(cluster));
    let mut conditions = view.summary.clone();
    conditions.extend(view.ladder.0.iter().cloned());
    conditions.extend(view.suspended.clone());
    conditions.extend(view.drifted.clone());
    Object {
        namespace: unit.namespace().to_owned(),
        // A cluster's name has no dot, so that the last one parts the two.
        name: format!("{}.{cluster}", unit.name()),
        labels: labels(unit, cluster),
        live: None,
        made_by: entry.iter().map(|(placement, _)| placement.revision.clone()).collect(),
        created: None,
        declared_in: String::new(),
        spec: spec(&state.branch, unit, cluster, entry),
        status: status(&view),
        cells: cells(&state.branch, cluster, &view, entry),
        conditions,
    }
}

fn labels(unit: &UnitKey, cluster: &ClusterName) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([(LABEL_CLUSTER_NAME.to_owned(), cluster.to_string())]);
    // A label's value ends at 63 characters; a longer name is found by the object's own.
    if unit.name().len() <= 63 {
        labels.insert(SUBSCRIPTION_LABEL.to_owned(), unit.name().to_owned());
    }
    labels
}

type Entry<'a> = Option<(&'a Placement, &'a Variant)>;

fn spec(branch: &str, unit: &UnitKey, cluster: &ClusterName, entry: Entry<'_>) -> Value {
    let mut spec = json!({ "subscription": unit.name(), "cluster": cluster });
    if let Some((placement, variant)) = entry {
        spec["variant"] = json!(placement.variant);
        spec["digest"] = json!(variant.digest);
        spec["revision"] = json!(shown_revision(branch, &variant.revision));
        spec["placedBy"] = json!(shown_revision(branch, &placement.revision));
        spec["drift"] = json!(placement.drift);
        if !placement.replicas.is_empty() {
            spec["replicas"] = plain(&placement.replicas);
        }
        if !placement.reasons.is_empty() {
            spec["reasons"] = json!(placement.reasons);
        }
    }
    spec
}

fn status(view: &PlacementView) -> Map<String, Value> {
    let mut status = Map::from_iter([("objects".to_owned(), plain(view.counts))]);
    if view.offline
        && let Some(objects) = status.get_mut("objects")
    {
        objects["unknown"] = json!(view.counts.objects);
    }
    if !view.worst.is_empty() {
        status.insert("worstObjects".to_owned(), plain(&view.worst));
    }
    if !view.drift.is_empty() {
        status.insert("drift".to_owned(), plain(&view.drift));
    }
    for (field, holds) in [("offline", view.offline), ("leaving", view.leaving)] {
        if holds {
            status.insert(field.to_owned(), json!(true));
        }
    }
    status
}

fn cells(branch: &str, cluster: &ClusterName, view: &PlacementView, entry: Entry<'_>) -> Vec<Value> {
    let (ready, message) = ready_cells(&view.summary);
    let waits_for = Rung::ALL
        .into_iter()
        .skip(1)
        .find(|rung| !view.ladder.rung(*rung).is_true());
    vec![
        ready,
        json!(cluster),
        or_dash(entry.map(|(placement, _)| placement.variant.to_string())),
        or_dash(entry.map(|(_, variant)| short_revision(branch, &variant.revision))),
        or_dash(waits_for.map(|rung| rung.as_str().to_owned())),
        of(view.counts.current, view.counts.objects),
        or_dash(entry.map(|(placement, _)| format!("{:?}", placement.drift))),
        message,
    ]
}
