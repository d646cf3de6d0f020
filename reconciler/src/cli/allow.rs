//! `flotilla allow-prune`: the commit that lets a list of objects go which is beyond a budget.

use std::process::ExitCode;

use clap::Args;
use render::guard::{Exceeded, Removal};
use render::model::PruneAllowance;

use super::client::{Questions, ServerOptions};
use super::clone::{Change, CloneOptions};
use super::{consent, output, plan, wait_for};

/// Commit that the objects which a budget holds back may go: exactly those that are listed, and once.
#[derive(Debug, Args)]
pub(super) struct AllowPrune {
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    /// Show every object, and not the first 20 of each list.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    clone: CloneOptions,
    /// The hub, which asks the clusters what goes with them.
    #[command(flatten)]
    server: ServerOptions,
}

pub(super) fn run(arguments: &AllowPrune) -> anyhow::Result<ExitCode> {
    let clone = arguments.clone.open()?;
    let exceeded = plan::exceeded(clone.root(), clone.branch())?;
    if exceeded.is_empty() {
        output::tell("Nothing that goes is beyond a budget; there is nothing to allow.\n");
        return Ok(ExitCode::SUCCESS);
    }
    for list in &exceeded {
        show(list, arguments.all);
    }
    show_dependants(&arguments.server, &exceeded)?;
    if !arguments.clone.is_dry_run() && !arguments.yes {
        consent::ask(
            "Let them go?",
            "nobody is here to be asked; allow it with --yes",
            "not allowed",
        )?;
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

fn show(list: &Exceeded, all: bool) {
    let line = |removal: &Removal| format!("{}: {} of {}", removal.cluster, removal.object, removal.unit);
    let lines: Vec<_> = list.removals.iter().map(line).collect();
    let title = format!("Beyond {}", list.budget);
    consent::show(&title, "object", &lines, (!all).then_some("--all shows them"));
}

/// What goes or stays behind with them, as far as the clusters are there to say.
fn show_dependants(server: &ServerOptions, exceeded: &[Exceeded]) -> anyhow::Result<()> {
    let mut removals = plan::Removals::new();
    for removal in exceeded.iter().flat_map(|list| &list.removals) {
        let of_cluster = removals.entry(removal.cluster.clone()).or_default();
        of_cluster.insert(removal.object.clone());
    }
    let dependants = wait_for(plan::dependants(&Questions::new(server), &removals))?;
    output::tell("Dependants\n");
    for (depth, line) in plan::dependant_lines(&dependants) {
        output::tell(&format!("{:indent$}{line}\n", "", indent = 2 + depth * 2));
    }
    Ok(())
}
