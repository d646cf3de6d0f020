//! `flotilla init`: a fleet repository to begin with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

/// Make a fleet repository: folders, a first Subscription, and an explanation beside each.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// Its folder, made when it is missing.
    folder: PathBuf,
}

/// The template, file by file.
const TEMPLATE: [(&str, &str); 8] = [
    ("README.md", include_str!("../../../fleet-repo-template/README.md")),
    ("fleet.yaml", include_str!("../../../fleet-repo-template/fleet.yaml")),
    (
        "access/README.md",
        include_str!("../../../fleet-repo-template/access/README.md"),
    ),
    (
        "clusters/README.md",
        include_str!("../../../fleet-repo-template/clusters/README.md"),
    ),
    (
        "feeds/hello/hello.yaml",
        include_str!("../../../fleet-repo-template/feeds/hello/hello.yaml"),
    ),
    (
        "globalizations/README.md",
        include_str!("../../../fleet-repo-template/globalizations/README.md"),
    ),
    (
        "localizations/README.md",
        include_str!("../../../fleet-repo-template/localizations/README.md"),
    ),
    (
        "subscriptions/default/hello.yaml",
        include_str!("../../../fleet-repo-template/subscriptions/default/hello.yaml"),
    ),
];

pub(super) fn run(init: &Init) -> anyhow::Result<ExitCode> {
    for (path, _) in TEMPLATE {
        let target = init.folder.join(path);
        if target.exists() {
            bail!("{} exists already; nothing was written", target.display());
        }
    }
    for (path, text) in TEMPLATE {
        write(&init.folder.join(path), text)?;
    }
    eprintln!(
        "Wrote a fleet repository to {}. Commit it, and push it to where the hub reads.",
        init.folder.display()
    );
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}
