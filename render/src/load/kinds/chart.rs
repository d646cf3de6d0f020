//! Kind HelmChart: an object to deliver whose fields are ours to judge, since no API server does.

use serde_json::{Map, Value};

use super::super::fields::{Fields, Judge};
use super::metadata::Metadata;

const FLAGS: &[&str] = &[
    "atomic",
    "createNamespace",
    "disableHooks",
    "force",
    "plainHTTP",
    "replace",
    "replaceCRDs",
    "skipCRDs",
    "upgradeAtomic",
    "wait",
    "waitForJob",
];

/// Checks a chart's fields; what is wrong is left with the judge.
pub(in super::super) fn check(map: &Map<String, Value>, judge: &Judge) {
    let mut top = Fields::new(map, "", judge);
    top.known(&["apiVersion", "kind", "status"]);
    Metadata::read(&mut top);
    match top.object("spec") {
        Some(spec) => check_spec(spec),
        None => top.missing("spec"),
    }
    top.finish();
}

fn check_spec(mut spec: Fields<'_>) {
    if let Some(repo) = spec.required_text("repo")
        && !["http://", "https://", "oci://"]
            .iter()
            .any(|scheme| repo.starts_with(scheme))
    {
        spec.error(
            "repo",
            "FieldInvalid",
            "must start with http://, https:// or oci://",
            "",
        );
    }
    spec.required_text("chart");
    spec.required_text("targetNamespace");
    spec.text("version");
    if let Some(mut secret) = spec.object("chartPullSecret") {
        secret.text("name");
        secret.text("namespace");
        secret.finish();
    }
    for flag in FLAGS {
        spec.boolean(flag);
    }
    spec.integer("timeoutSeconds", 0..=i64::from(i32::MAX));
    spec.finish();
}
