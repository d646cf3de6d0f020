//! Manifests that people really deploy, and hard YAML with expected verdicts: what render says about them.
//!
//! They are never copied into the project. They lie in `shared/inputs` beside the checkout, or where
//! `FLOTILLA_INPUTS` points; a machine without them prints how many checks did not run, which is the one
//! skip allowed. No other file knows where they are.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The folder of the inputs, if this machine has them.
pub(crate) fn inputs_root() -> Option<PathBuf> {
    let folder = match std::env::var_os("FLOTILLA_INPUTS") {
        Some(folder) => PathBuf::from(folder),
        None => beside_checkout()?.join("shared/inputs"),
    };
    folder.is_dir().then_some(folder)
}

/// The folder that holds the checkout.
fn beside_checkout() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()?
        .parent()
        .map(Path::to_owned)
}

/// Runs `checks`, of which there are `count`, on the folder of the inputs, or says that they did not run.
pub(crate) fn with_inputs(count: usize, checks: impl FnOnce(&Path)) {
    match inputs_root() {
        Some(root) => checks(&root),
        // Straight to the stream: what a passing test prints is not shown, and this has to be.
        None => writeln!(std::io::stderr(), "inputs absent: {count} checks not run").expect("somebody listens"),
    }
}

#[test]
fn the_folders_that_the_checks_read_are_there() {
    const FOLDERS: [&str; 5] = [
        "clusternet",
        "kubernetes-examples",
        "microservices-demo",
        "nasty",
        "podinfo",
    ];
    with_inputs(FOLDERS.len(), |root| {
        for folder in FOLDERS {
            assert!(root.join(folder).is_dir(), "{folder} is among the inputs");
        }
    });
}
