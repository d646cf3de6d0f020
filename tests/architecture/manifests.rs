//! What the manifests say: versions in one place, lints everywhere.

use std::collections::BTreeMap;

use super::sources;
use super::workspace::{list, members, metadata, text};

/// Packages we name that are in the graph in two versions, and who brings the other one.
const TWICE: [(&str, &str); 3] = [
    ("base64", "0.22 by k8s-openapi, 0.23 by kube-client"),
    ("sha2", "0.10 by age, 0.11 by rust-embed while age is built"),
    ("thiserror", "2 by kube, 1 by i18n-embed of age"),
];

/// The lines of a manifest's tables whose name ends so: (table, line).
fn lines<'a>(manifest: &'a str, ending: &str) -> Vec<(&'a str, &'a str)> {
    let mut table = "";
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => table = name,
            None if table.ends_with(ending) && !line.is_empty() && !line.starts_with('#') => found.push((table, line)),
            None => {}
        }
    }
    found
}

/// Those of the workspace's members; the fuzz targets are none, since they need another compiler.
fn member_manifests() -> Vec<String> {
    let mut manifests = sources::files_named("/Cargo.toml");
    manifests.retain(|path| path != "tunnel/fuzz/Cargo.toml");
    manifests
}

/// The key of a line such as `axum = { … }` or `axum.workspace = true`.
fn key(line: &str) -> &str {
    line.split(['.', '=', ' ']).next().unwrap_or_default()
}

#[test]
fn versions_stand_only_in_the_root_manifest() {
    for path in member_manifests() {
        for (table, line) in lines(&sources::read(&path), "dependencies") {
            let from_root = line.contains(".workspace = true")
                || line.contains("workspace = true,")
                || line.contains("{ workspace = true }");
            assert!(
                from_root,
                "{path} [{table}]: the version of `{line}` belongs into the root manifest"
            );
        }
    }
}

#[test]
fn every_dependency_of_the_root_manifest_is_used() {
    let manifests: Vec<_> = member_manifests().iter().map(|path| sources::read(path)).collect();
    let used: Vec<_> = manifests
        .iter()
        .flat_map(|text| lines(text, "dependencies"))
        .map(|(_, line)| key(line))
        .collect();
    let root = sources::read("Cargo.toml");
    let named = lines(&root, "workspace.dependencies")
        .into_iter()
        .filter(|(_, line)| !line.contains("path = "));
    let unused: Vec<_> = named
        .map(|(_, line)| key(line))
        .filter(|name| !used.contains(name))
        .collect();
    assert!(
        unused.is_empty(),
        "nobody uses {unused:?}: they belong out of the root manifest"
    );
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for path in member_manifests() {
        let text = sources::read(&path);
        assert_eq!(
            lines(&text, "lints"),
            [("lints", "workspace = true")],
            "{path} lints as the workspace does"
        );
    }
}

#[test]
fn no_package_we_name_is_there_in_two_versions() {
    let mut versions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for package in list(&metadata()["packages"]) {
        versions
            .entry(text(&package["name"]))
            .or_default()
            .push(text(&package["version"]));
    }
    let named = members()
        .into_values()
        .flat_map(|member| list(&member["dependencies"]))
        .map(|used| text(&used["name"]));
    for package in named {
        let twice = TWICE.iter().find(|(name, _)| *name == package);
        let count = versions[package].len();
        assert!(
            count == 1 || twice.is_some(),
            "{package} is there as {:?}",
            versions[package]
        );
        assert!(
            count > 1 || twice.is_none(),
            "{package} is there once: it belongs out of the list"
        );
    }
}

#[test]
fn every_crate_has_one_test_binary_at_most() {
    for (member, package) in members() {
        let targets = list(&package["targets"]).iter();
        let tests: Vec<_> = targets
            .filter(|target| text(&target["kind"][0]) == "test")
            .map(|target| text(&target["name"]))
            .collect();
        assert!(tests.len() <= 1, "{member} links {tests:?}: they belong into one");
    }
}
