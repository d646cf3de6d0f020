//! `flotilla allow-prune`: the commit that lets a list of objects go which is beyond a budget.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use render::guard::Exceeded;
use render::model::PruneAllowance;

use super::clone::{Change, CloneOptions};
use super::{output, plan};

/// Objects of each list that are shown; the rest is counted.
const OBJECTS_SHOWN_MAX: usize = 20;

/// Commit that the objects which a budget holds back may go: exactly those that are listed, and once.
#[derive(Debug, Args)]
pub(super) struct AllowPrune {
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    clone: CloneOptions,
}

pub(super) fn run(arguments: &AllowPrune) -> anyhow::Result<ExitCode> {
    let clone = arguments.clone.open()?;
    let exceeded = plan::exceeded(clone.root(), clone.branch())?;
    if exceeded.is_empty() {
        output::tell("Nothing that goes is beyond a budget; there is nothing to allow.\n");
        return Ok(ExitCode::SUCCESS);
    }
    exceeded.iter().for_each(show);
    if !arguments.clone.is_dry_run() && !arguments.yes {
        confirm()?;
    }
    let count: u64 = exceeded.iter().map(|list| list.allowance.count).sum();
    let objects = if count == 1 { "object" } else { "objects" };
    let mut trailers: Vec<_> = exceeded.iter().map(|list| list.allowance.text()).collect();
    trailers.sort();
    trailers.dedup();
    let change = Change {
        edits: Vec::new(),
        subject: format!("Allow {count} {objects} to go"),
        body: String::new(),
        trailers: trailers
            .into_iter()
            .map(|text| (PruneAllowance::TRAILER, text))
            .collect(),
    };
    arguments.clone.commit(&clone, &change)
}

fn show(list: &Exceeded) {
    let count = output::counted(list.removals.len(), "object");
    output::tell(&format!("Beyond {}: {count}\n", output::visible(&list.budget)));
    for removal in list.removals.iter().take(OBJECTS_SHOWN_MAX) {
        let line = format!("{}: {} of {}", removal.cluster, removal.object, removal.unit);
        output::tell(&format!("  {}\n", output::visible(&line)));
    }
    if list.removals.len() > OBJECTS_SHOWN_MAX {
        output::tell(&format!("  and {} more\n", list.removals.len() - OBJECTS_SHOWN_MAX));
    }
}

fn confirm() -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("nobody is here to be asked; allow it with --yes");
    }
    output::tell("Let them go? [y/N] ");
    drop(std::io::stderr().flush());
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .context("failed to read the answer")?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("not allowed; nothing was changed"),
    }
}
