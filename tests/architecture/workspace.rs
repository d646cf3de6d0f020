//! What `cargo metadata` says about the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::OnceLock;

use flotilla_tests::Output;
use serde_json::Value;

use super::sources;

/// The members by the name of their folder's crate: `render`, `tunnel`, `reconciler`, …
pub(super) const CRATES: [&str; 7] = ["edge", "harness", "pedia", "reconciler", "render", "tests", "tunnel"];

/// `cargo metadata` of the whole graph, asked once.
pub(super) fn metadata() -> &'static Value {
    static METADATA: OnceLock<Value> = OnceLock::new();
    METADATA.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
        let mut command = Command::new(cargo);
        command
            .current_dir(sources::root())
            .args(["metadata", "--format-version=1", "--locked"]);
        serde_json::from_str(&Output::of(&mut command).expect_ok()).expect("cargo writes JSON")
    })
}

/// The packages of this workspace, by crate.
pub(super) fn members() -> BTreeMap<&'static str, &'static Value> {
    let packages = list(&metadata()["packages"]);
    let ours = packages
        .iter()
        .filter_map(|package| Some((crate_of(text(&package["name"]))?, package)));
    ours.collect()
}

/// The crate that `package` is, if it is ours.
pub(super) fn crate_of(package: &str) -> Option<&'static str> {
    let short = package.strip_prefix("flotilla-")?;
    CRATES.into_iter().find(|name| *name == short)
}

/// Every package that a build of `member` (without its tests) may draw in, whatever its features.
pub(super) fn reachable(member: &str) -> BTreeSet<&'static str> {
    let nodes: BTreeMap<_, _> = list(&metadata()["resolve"]["nodes"])
        .iter()
        .map(|node| (text(&node["id"]), node))
        .collect();
    let names: BTreeMap<_, _> = list(&metadata()["packages"])
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    let mut waiting = vec![text(&members()[member]["id"])];
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if seen.insert(id) {
            let dependencies = list(&nodes[id]["deps"])
                .iter()
                .filter(|dependency| is_built(dependency));
            waiting.extend(dependencies.map(|dependency| text(&dependency["pkg"])));
        }
    }
    seen.into_iter().map(|id| names[id]).collect()
}

fn is_built(dependency: &Value) -> bool {
    list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev")
}

/// A JSON array.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("cargo writes a list there")
}

/// A JSON string.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().expect("cargo writes a text there")
}

#[test]
fn every_fuzz_target_calls_what_a_test_calls_too() {
    let rust = sources::files_named(".rs");
    let of = |folder: &'static str| rust.iter().filter(move |path| path.starts_with(folder));
    let tests: String = of("tunnel/src/")
        .filter(|path| path.ends_with("fuzz_tests.rs"))
        .map(|path| sources::read(path))
        .collect();
    let named = sources::read("tunnel/src/fuzz.rs");
    let mut targets = 0;
    for path in of("tunnel/fuzz/fuzz_targets/") {
        let text = sources::read(path);
        let (_, called) = text.split_once("tunnel::fuzz::").expect("a target calls one function");
        let function = called.split('(').next().unwrap_or_default();
        assert!(
            named.contains(&format!("::{function};")),
            "{path}: tunnel::fuzz has no {function}"
        );
        assert!(
            tests.contains(&format!("fuzz::{function}(")),
            "{path}: no test calls {function}"
        );
        targets += 1;
    }
    assert_eq!(targets, 2, "streams and the handshake");
}
