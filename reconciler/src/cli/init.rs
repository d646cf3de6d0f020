//! `flotilla init`: a fleet repository to begin with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

/// Make a fleet repository to begin with: two units, two environments, a check for pull requests, and a README.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// Its folder, made when it is missing.
    folder: PathBuf,
}

macro_rules! template {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../fleet-repo-template/", $path)))),*]
    };
}

/// The template, file by file.
const TEMPLATE: [(&str, &str); 17] = template![
    ".github/workflows/plan.yaml",
    "README.md",
    "access/README.md",
    "access/shop.yaml",
    "ci/plan",
    "clusters/README.md",
    "feeds/hello/hello.yaml",
    "feeds/web/deployment.yaml",
    "feeds/web/namespace.yaml",
    "feeds/web/page.yaml",
    "feeds/web/service.yaml",
    "fleet.yaml",
    "globalizations/production.yaml",
    "localizations/paris/web.yaml",
    "policies/README.md",
    "subscriptions/platform/hello.yaml",
    "subscriptions/shop/web.yaml",
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
    super::output::tell(&format!(
        "Wrote a fleet repository to {}; its README.md says how to go on. Register a cluster with `flotilla agent join`, \
         commit, and push to where the hub reads.\n",
        init.folder.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}
