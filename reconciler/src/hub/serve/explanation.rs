//! Why a unit is where it is: `…/subscriptions/NAME/explanation`, made when somebody asks.
//!
//! Never part of a list: of a thousand clusters it is a megabyte.

use std::collections::BTreeSet;

use render::chart::Previews;
use render::explain::{Context, Explanation, explain, predicted};
use render::schedule::Reports;
use render::{ClusterName, Finding, Published, UnitKey};
use serde_json::{Map, Value, json};

use super::answer::Refused;
use super::object::plain;
use super::resource::{GROUP, VERSION};
use crate::hub::engine::State;
use crate::hub::observe::{Observation, PlacementView, shown_revision};

/// Explains a unit, on every cluster or on one.
pub(super) fn explanation(
    state: &State,
    unit: &UnitKey,
    only: Option<&ClusterName>,
    (previews, reports): (&Previews, &Reports),
) -> Result<Value, Refused> {
    let observation = Observation::new(state);
    let published = state.rendered.as_ref().or(state.released.as_ref());
    let nothing = Published::default();
    let published = published.map_or(&nothing, |commit| commit.published.as_ref());
    let fleet = state.fleet.as_ref();
    let explained = fleet.and_then(|fleet| {
        let looking = Context {
            fleet,
            published,
            findings: &state.findings,
            reports,
            now: state.now,
        };
        explain(&looking, unit, only)
    });
    let has = observation.placements.get(unit).cloned().unwrap_or_default();
    if explained.is_none() && has.is_empty() {
        return Err(Refused::no_such_in(GROUP, "subscriptions", unit.name()));
    }
    let known = |name: &ClusterName| fleet.is_some_and(|fleet| fleet.clusters.contains_key(name)) || has.contains(name);
    if let Some(only) = only.filter(|only| !known(only)) {
        return Err(Refused::no_such_in(GROUP, "managedclusters", only.as_str()));
    }
    let mut whole = explained.as_ref().map_or_else(|| json!({ "unit": unit }), plain);
    whole["apiVersion"] = json!(format!("{GROUP}/{VERSION}"));
    whole["kind"] = json!("Explanation");
    whole["metadata"] = json!({ "namespace": unit.namespace(), "name": unit.name() });
    let view = observation.unit(unit);
    whole["conditions"] = plain(&view.conditions);
    if let Some(revision) = &state.accepted {
        whole["revision"] = json!(shown_revision(&state.branch, revision));
    }
    whole["findings"] = plain(findings(state, unit, only, explained.as_ref()));
    if let (Some(fleet), Some(explained)) = (fleet, &explained) {
        let charts = predicted(fleet, explained, previews);
        if !charts.is_empty() {
            whole["charts"] = plain(charts);
        }
    }
    whole["holds"] = plain(holds(&observation));
    whole["clusters"] = clusters(&observation, unit, only, explained.as_ref(), &has);
    Ok(whole)
}

/// What is said of the unit at the accepted revision, by load and plan, each once.
fn findings(
    state: &State,
    unit: &UnitKey,
    only: Option<&ClusterName>,
    explained: Option<&Explanation>,
) -> BTreeSet<Finding> {
    let concerns =
        |finding: &&Finding| finding.unit.as_ref() == Some(unit) && only.is_none_or(|only| finding.concerns(only));
    let known: BTreeSet<Finding> = state.findings.iter().filter(concerns).cloned().collect();
    let places: BTreeSet<_> = known
        .iter()
        .map(|finding| (finding.file.clone(), finding.line, finding.reason.clone()))
        .collect();
    let explained = explained
        .map(|explained| explained.findings.iter())
        .into_iter()
        .flatten();
    // The plan tells the same mistake with the number of clusters that it holds.
    let new =
        explained.filter(|finding| !places.contains(&(finding.file.clone(), finding.line, finding.reason.clone())));
    let new: Vec<Finding> = new.map(|finding| finding.clone().unit(unit)).collect();
    known.into_iter().chain(new).collect()
}

/// What holds the whole fleet back, in words.
fn holds(observation: &Observation<'_>) -> Vec<String> {
    let state = observation.state;
    let conditions = state.conditions().into_iter();
    let open = conditions.filter(|condition| condition.status != "True");
    let mut holds: Vec<String> = open
        .map(|condition| format!("{}: {}", condition.reason, condition.message))
        .collect();
    if let Some(proposed) = &state.proposed {
        let branch = proposed.branch.trim_start_matches("refs/heads/");
        holds.push(format!("the proposal {branch} waits for a person to merge it"));
    }
    holds
}

/// The decisions, with what the clusters themselves say.
fn clusters(
    observation: &Observation<'_>,
    unit: &UnitKey,
    only: Option<&ClusterName>,
    explained: Option<&Explanation>,
    has: &BTreeSet<&ClusterName>,
) -> Value {
    let explained = explained
        .map(|explained| explained.clusters.as_slice())
        .unwrap_or_default();
    let mut all: Vec<Value> = Vec::with_capacity(explained.len());
    for cluster in explained {
        let mut value = plain(cluster);
        if cluster.decision.has_it() || has.contains(&cluster.cluster) {
            observed(observation, unit, &cluster.cluster, &mut value);
        } else {
            value["session"] = json!(observation.session(&cluster.cluster));
        }
        all.push(value);
    }
    let explained: BTreeSet<_> = explained.iter().map(|cluster| &cluster.cluster).collect();
    let others = has.iter().filter(|name| !explained.contains(**name));
    for name in others.filter(|name| only.is_none_or(|only| only == **name)) {
        let mut value = undeclared(observation, unit, name);
        observed(observation, unit, name, &mut value);
        all.push(value);
    }
    Value::Array(all)
}

/// A cluster that has a unit which is declared no more, or whose file is gone: it leaves, unless something holds it.
fn undeclared(observation: &Observation<'_>, unit: &UnitKey, cluster: &ClusterName) -> Value {
    let gone = "the unit is declared no more, or the cluster's file is gone";
    match observation.held_by(unit, cluster) {
        Some(error) => {
            let reason = format!("{gone}; it is kept: {}", error.reason);
            json!({ "cluster": cluster, "decision": "Held", "reasons": [reason] })
        }
        None => json!({ "cluster": cluster, "decision": "Leaving", "reasons": [gone] }),
    }
}

fn observed(observation: &Observation<'_>, unit: &UnitKey, cluster: &ClusterName, value: &mut Value) {
    let PlacementView {
        ladder,
        worst,
        counts,
        leaving,
        suspended,
        ..
    } = observation.placement(unit, cluster);
    let mut fields = Map::new();
    if leaving {
        fields.insert("leaving".to_owned(), json!(true));
    }
    if let Some(suspended) = suspended {
        fields.insert("suspended".to_owned(), json!(suspended.message));
    }
    fields.insert("session".to_owned(), json!(observation.session(cluster)));
    fields.insert("ladder".to_owned(), plain(&ladder.0));
    fields.insert("counts".to_owned(), plain(counts));
    if !worst.is_empty() {
        fields.insert("worstObjects".to_owned(), plain(&worst));
    }
    if let Some(object) = value.as_object_mut() {
        object.extend(fields);
    }
}
