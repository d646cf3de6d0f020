//! Kind Finding: what is wrong in the repository, and where.

use std::collections::{BTreeMap, BTreeSet};

use render::{Digest, Finding};
use serde_json::{Map, Value, json};

use super::super::object::{Object, plain};
use super::or_dash;
use crate::hub::observe::Observation;

pub(super) fn objects(observation: &Observation<'_>) -> Vec<Object> {
    observation.state.findings.iter().map(object).collect()
}

fn object(finding: &Finding) -> Object {
    let whole = plain(finding);
    let labels = [
        ("severity", format!("{:?}", finding.severity)),
        ("reason", finding.reason.clone()),
    ];
    let labels: BTreeMap<_, _> = labels
        .into_iter()
        .map(|(key, value)| (format!("fleet.flotilla.dev/{key}"), value))
        .collect();
    Object {
        namespace: String::new(),
        name: name(finding, &whole),
        labels,
        live: None,
        made_by: BTreeSet::new(),
        created: None,
        declared_in: place(finding),
        cells: cells(finding),
        spec: whole,
        status: Map::new(),
        conditions: Vec::new(),
    }
}

/// The reason, and a digest over all of it: the same finding has the same name whichever others there are.
fn name(finding: &Finding, whole: &Value) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric();
    let reason: String = finding.reason.chars().filter(plain).take(40).collect();
    format!("{}-{}", reason.to_ascii_lowercase(), Digest::of_value(whole).short(10))
}

fn place(finding: &Finding) -> String {
    if finding.line == 0 {
        finding.file.clone()
    } else {
        format!("{}:{}", finding.file, finding.line)
    }
}

/// `a`, or `a and 2 more`.
fn clusters(finding: &Finding) -> Option<String> {
    let first = finding.cluster.as_ref()?;
    Some(match finding.also_on.len() {
        0 => first.to_string(),
        more => format!("{first} and {more} more"),
    })
}

fn cells(finding: &Finding) -> Vec<Value> {
    vec![
        json!(finding.severity),
        json!(finding.reason),
        or_dash(Some(place(finding))),
        json!(finding.message),
        or_dash(Some(finding.field.clone())),
        or_dash(finding.unit.as_ref().map(ToString::to_string)),
        or_dash(clusters(finding)),
        or_dash(Some(finding.hint.clone())),
    ]
}
