//! Loading as a whole: small repositories go in, and what stands in their fleet and findings is looked at.

mod access;
mod applying;
mod broken;
mod charts;
mod feeds;
mod files;
mod kinds;
mod needs;
mod projected;
mod properties;
mod scheduling;
mod schema;
mod suspensions;

use super::*;
use crate::fleet::Unit;
use crate::name::{Revision, UnitKey};
use crate::tree::SourceEntry;

/// A cluster that every test repository may use.
const CLUSTER: &str = "apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {name: a}
";

fn tree(files: &[(&str, &str)]) -> SourceTree {
    let files = files.iter().map(|(path, text)| (*path, text.as_bytes()));
    SourceTree::from_files(Revision::parse("0".repeat(40)).unwrap(), files)
}

fn loaded(files: &[(&str, &str)]) -> (Fleet, Vec<Finding>) {
    load(&tree(files), &Previous::default())
}

/// A Subscription `team/app` of our group with these feeds, as flow YAML.
fn subscription(feeds: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {{name: app, namespace: team}}
spec:
  subscribers: [{{clusterAffinity: {{}}}}]
  feeds: {feeds}
"
    )
}

/// A ConfigMap with a label `app` of its own name.
fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop, labels: {{app: {name}}}}}\n")
}

fn unit(fleet: &Fleet) -> &Unit {
    fleet.units.get(&UnitKey::new("team", "app").unwrap()).unwrap()
}

fn names(unit: &Unit) -> Vec<&str> {
    unit.base
        .objects
        .iter()
        .map(|object| object.key.name.as_str())
        .collect()
}

fn reasons(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.reason.as_str()).collect()
}

/// Each finding as `file:line severity reason field`.
fn shown(findings: &[Finding]) -> Vec<String> {
    let show = |finding: &Finding| {
        let severity = format!("{:?}", finding.severity);
        let text = format!(
            "{}:{} {severity} {} {}",
            finding.file, finding.line, finding.reason, finding.field
        );
        text.trim_end().to_owned()
    };
    findings.iter().map(show).collect()
}

#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let (_, findings) = loaded(files);
    assert_eq!(shown(&findings), expected, "{findings:#?}");
}
