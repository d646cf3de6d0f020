//! `flotilla accept-rewrite`: the commit that lets a rewritten history through.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use render::Revision;

use super::client::{ServerOptions, failed};
use super::clone::{Change, Clone, CloneOptions};
use super::hub_view::View;
use super::{consent, output, plan, wait_for};
use crate::hub::source::ACCEPT_REWRITE;

/// Commit that the history of the clone's branch takes the place of the one that the hub accepted.
#[derive(Debug, Args)]
pub(super) struct AcceptRewrite {
    /// The head that was accepted before, instead of asking the hub.
    #[arg(long, value_name = "REVISION")]
    old: Option<Revision>,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    clone: CloneOptions,
    #[command(flatten)]
    server: ServerOptions,
}

pub(super) fn run(arguments: &AcceptRewrite) -> anyhow::Result<ExitCode> {
    let clone = arguments.clone.open()?;
    let old = match &arguments.old {
        Some(old) => old.clone(),
        None => match wait_for(View::fleet(&arguments.server))? {
            Ok(fleet) => match held(&fleet, &clone)? {
                Some(old) => old,
                None => {
                    output::tell("The hub follows its branch; there is nothing to accept.\n");
                    return Ok(ExitCode::SUCCESS);
                }
            },
            Err(error) => {
                let code = failed(&error);
                output::tell("hint: without a hub, name the head that was accepted before with --old\n");
                return Ok(code);
            }
        },
    };
    if clone.contains(&old, "HEAD")? {
        bail!("{} builds on {old}, so its history is not rewritten", clone.branch());
    }
    show(&clone, &old)?;
    if !arguments.clone.is_dry_run() && !arguments.yes {
        consent::ask(
            "Accept that?",
            "nobody is here to be asked; accept it with --yes",
            "not accepted",
        )?;
    }
    let change = Change {
        edits: Vec::new(),
        subject: "Accept the rewritten history".to_owned(),
        body: String::new(),
        trailers: vec![(ACCEPT_REWRITE, old.to_string())],
    };
    arguments.clone.commit(&clone, &change)
}

/// The head that the hub holds on to; `None` if it follows its branch.
fn held(fleet: &View, clone: &Clone) -> anyhow::Result<Option<Revision>> {
    let source = fleet.condition("SourceVerified");
    match (source.status, source.reason) {
        ("False", "HistoryRewritten") => {}
        ("True", _) => return Ok(None),
        (_, reason) => bail!("the hub does not see its branch ({reason}): {}", source.message),
    }
    let old = fleet
        .revision("accepted")
        .context("the hub does not say what it accepted; name it with --old")?;
    let branch = fleet.branch().unwrap_or_default();
    if branch != clone.branch() {
        bail!("the hub follows {branch}, and {} is checked out here", clone.branch());
    }
    // What is shown must be what is accepted.
    let seen = fleet.revision("source").context("the hub does not say what it sees")?;
    if !clone.contains(&seen, "HEAD")? {
        bail!("the hub sees {seen}, on which HEAD does not build; git fetch, and git reset to it");
    }
    Ok(Some(old))
}

/// What is accepted: commits that are lost and gained, and what becomes of the units.
fn show(clone: &Clone, old: &Revision) -> anyhow::Result<()> {
    if clone.knows(old)? {
        side(clone, "Lost", &format!("HEAD..{old}"))?;
        side(clone, "Gained", &format!("{old}..HEAD"))?;
    } else {
        output::tell(&format!(
            "The commit {old} is not in this clone, so what is lost cannot be shown; git fetch origin {old} may bring it.\n"
        ));
    }
    let summary = plan::summary(clone.root(), clone.branch());
    let summary = summary.unwrap_or_else(|error| format!("cannot be made: {}", crate::fault::line(error.as_ref())));
    output::tell(&format!("The plan: {}\n", output::visible(&summary)));
    Ok(())
}

fn side(clone: &Clone, title: &str, range: &str) -> anyhow::Result<()> {
    let lines = clone.log(range)?;
    let all = format!("git log {range} shows them");
    consent::show(title, "commit", &lines, Some(&all));
    Ok(())
}
