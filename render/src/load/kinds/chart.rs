//! Kind HelmChart: an object to deliver whose fields are ours to judge, since no API server does.

use serde_json::{Map, Value};

use super::super::fields::{Fields, Judge};
use super::super::pattern::Pattern;
use super::metadata::Metadata;
use crate::chart::{is_release_name, parse_digest};

const FLAGS: &[&str] = &[
    "atomic",
    "createNamespace",
    "disableHooks",
    "force",
    "replace",
    "upgradeAtomic",
    "wait",
    "waitForJob",
];

/// Revisions that a release may keep: each is a Secret with the whole manifest.
const HISTORY_MAX: i64 = 100;

/// Checks a chart's fields; what is wrong is left with the judge.
pub(in super::super) fn check(map: &Map<String, Value>, judge: &Judge) {
    let mut top = Fields::new(map, "", judge);
    top.known(&["apiVersion", "kind", "status"]);
    let metadata = Metadata::read(&mut top);
    match top.object("spec") {
        Some(spec) => check_spec(spec, &metadata.name),
        None => top.missing("spec"),
    }
    top.finish();
}

fn check_spec(mut spec: Fields<'_>, name: &str) {
    match spec.text("path") {
        Some(path) => check_folder(&mut spec, path),
        None => check_repository(&mut spec),
    }
    spec.required_text("targetNamespace");
    check_release_name(&mut spec, name);
    spec.any_map("values");
    for flag in FLAGS {
        spec.boolean(flag);
    }
    spec.integer("timeoutSeconds", 0..=i64::from(i32::MAX));
    spec.integer("historyMax", 1..=HISTORY_MAX);
    check_crds(&mut spec);
    if spec.written("overrides").is_some() {
        // A HelmRelease has it, which is Clusternet's own record of a release.
        let hint = "write values as a map, or a Localization with a step of type Helm";
        spec.error("overrides", "NotSupported", "is a field of HelmRelease", hint);
    }
    spec.finish();
}

/// A chart of this repository: its version is what stands there.
fn check_folder(spec: &mut Fields<'_>, path: &str) {
    match Pattern::parse(path) {
        Ok(pattern) if pattern.is_path() => {}
        Ok(_) => spec.error("path", "FieldInvalid", "must be one folder, and not a glob", ""),
        Err(error) => spec.error(
            "path",
            error.reason(),
            error.to_string(),
            "name the folder of Chart.yaml",
        ),
    }
    spec.text("chart");
    let of_repositories = ["repo", "version", "digest", "plainHTTP", "chartPullSecret"];
    for name in of_repositories {
        let written = spec.written(name).is_some_and(|value| !value.is_null());
        if written {
            let message = "is for a chart of a repository, and path names a folder of this one";
            spec.error(name, "FieldInvalid", message, "keep one of the two");
        }
    }
}

fn check_repository(spec: &mut Fields<'_>) {
    let repo = spec.text("repo");
    if repo.is_none() {
        let hint = "name a chart of this repository by path, and one of another by repo and chart";
        spec.error("repo", "FieldMissing", "repo is missing", hint);
    }
    if let Some(repo) = repo {
        let schemes = ["http://", "https://", "oci://"];
        if !schemes.iter().any(|scheme| repo.starts_with(scheme)) {
            let hint = "a chart of this repository is named by path";
            spec.error(
                "repo",
                "FieldInvalid",
                "must start with http://, https:// or oci://",
                hint,
            );
        }
    }
    spec.required_text("chart");
    spec.text("version");
    if let Some(digest) = spec.text("digest")
        && parse_digest(digest).is_err()
    {
        spec.error(
            "digest",
            "FieldInvalid",
            "must be sha256: and 64 hex digits",
            "it is that of the chart's archive, as the repository's index or `helm push` says it",
        );
    }
    if let Some(mut secret) = spec.object("chartPullSecret") {
        secret.text("name");
        secret.text("namespace");
        secret.finish();
    }
    spec.boolean("plainHTTP");
}

fn check_release_name(spec: &mut Fields<'_>, name: &str) {
    let rule = "lower case letters, digits, - and ., at most 53, as Helm has them";
    match spec.text("releaseName") {
        Some(given) if !is_release_name(given) => {
            spec.error("releaseName", "FieldInvalid", format!("must be {rule}"), "");
        }
        Some(_) => {}
        None if name.is_empty() || is_release_name(name) => {}
        None => {
            let message = format!("is missing, and {name:?} cannot be a release's name: {rule}");
            spec.error(
                "releaseName",
                "FieldMissing",
                message,
                "give the release a shorter name",
            );
        }
    }
}

fn check_crds(spec: &mut Fields<'_>) {
    let words = ["Skip", "Create", "CreateReplace"].map(|word| (word, ()));
    let crds = spec.choice("crds", &words);
    let skip = spec.boolean("skipCRDs") == Some(true);
    let replace = spec.boolean("replaceCRDs") == Some(true);
    let of_clusternet = if skip { "skipCRDs" } else { "replaceCRDs" };
    if crds.is_some() && (skip || replace) {
        let message = "says it in other words than crds, which is there too";
        spec.error(of_clusternet, "FieldInvalid", message, "keep crds");
    } else if skip && replace {
        spec.warning("replaceCRDs", "NoEffect", "is without effect beside skipCRDs");
    }
}
