//! `flotilla pedia …` and `flotilla edge …`: the sibling binaries, from this binary's folder or the path.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;

/// Everything after the name goes to the sibling.
#[derive(Debug, Args)]
pub(super) struct Sibling {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes the sibling; returns only when that failed.
pub(super) fn run(name: &str, sibling: &Sibling) -> anyhow::Result<ExitCode> {
    let beside = std::env::current_exe()
        .ok()
        .map(|path| path.with_file_name(name))
        .filter(|path| path.exists());
    let program = beside.unwrap_or_else(|| PathBuf::from(name));
    let error = Command::new(&program).args(&sibling.arguments).exec();
    Err(anyhow::Error::new(error).context(format!(
        "failed to run {name}, which should stand beside flotilla or on the path"
    )))
}
