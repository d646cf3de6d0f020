//! The real parts: where they are, and which versions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Output;

/// The parts that `tests/parts/build` makes.
pub const NAMES: [&str; 11] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
    "kwok",
    "gitea",
    "helm",
    "sops",
    "age",
    "age-keygen",
];

/// The folder that has them all: `FLOTILLA_PARTS`, or the cache, where they are built if need be.
///
/// # Panics
/// If a part is missing and cannot be built: a test never passes without it.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("parts/build");
        PathBuf::from(Output::of(&mut Command::new(build)).expect_ok().trim())
    })
}

/// A command that runs part `name`.
pub fn command(name: &str) -> Command {
    debug_assert!(NAMES.contains(&name), "{name} is a part");
    Command::new(folder().join(name))
}

/// What each part, `git` and `sshd` say their versions are.
pub fn versions() -> Vec<(&'static str, String)> {
    let mut versions: Vec<_> = NAMES
        .into_iter()
        .map(|name| (name, version(name, command(name))))
        .collect();
    versions.push(("git", version("git", Command::new("git"))));
    versions.push(("sshd", crate::git_host::sshd_version()));
    versions
}

fn version(name: &str, mut command: Command) -> String {
    match name {
        "kubectl" => command.args(["version", "--client"]),
        "helm" => command.args(["version", "--short"]),
        "sops" => command.args(["--version", "--disable-version-check"]),
        _ => command.arg("--version"),
    };
    let said = Output::of(&mut command).expect_ok();
    let word = said
        .split_whitespace()
        .find(|word| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()));
    word.unwrap_or_else(|| panic!("{name} names its version, but said: {said}"))
        .to_owned()
}
