//! `flotilla plan`: what a revision changes, before it is pushed.
//!
//! In: a clone and two revisions of it. Out: the changes, for a person, for a review, or as JSON. What a plan
//! is, is [`render::plan`]'s matter; nothing is written anywhere.

mod clone;
mod compare;
mod dependants;
mod immutable;
mod lines;
mod markdown;
mod predicted;
mod summary;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use render::schedule::RebalanceWord;
use render::{Finding, UnitKey};
use serde_json::json;

pub(super) use clone::CloneOptions;
pub(super) use dependants::{Removals, ask as dependants, lines as dependant_lines};
pub(super) use lines::{object_name, unplaced_words};

use super::client::{Questions, ServerOptions};
use super::git::Git;
use super::output::visible;
use super::progress::Progress;
use super::rooms::{RoomOptions, Rooms};
use super::{exit, output, wait_for};
use compare::Shown;

/// The newest commit of what is checked out.
const HEAD: &str = "HEAD";

/// Show what a revision changes. Exits with 0 when it changes nothing, 1 when it does, and 2 on an error
/// or an Error finding.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_PLAN)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    revisions: Revisions,
    /// How the plan is written.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Whether it is coloured: with auto on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, default_value_t)]
    color: Color,
    /// The helm program, version 3, which predicts what charts change; the hub says for which clusters.
    #[arg(long, env = "FLOTILLA_HELM", default_value = "helm")]
    helm: PathBuf,
    #[command(flatten)]
    rooms: RoomOptions,
    /// The hub is asked what room clusters have, and where something is removed, what goes with it there.
    #[command(flatten)]
    server: ServerOptions,
}

/// What is planned, and what it is compared with.
#[derive(Debug, Args)]
struct Revisions {
    #[command(flatten)]
    clone: CloneOptions,
    /// The revision to compare with; without it, what the rendered ref says now. In a clone that is what the
    /// last `git fetch` brought.
    #[arg(long)]
    from: Option<String>,
    /// The revision to plan.
    #[arg(long, default_value = HEAD)]
    to: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// The same as YAML.
    Yaml,
    /// For a comment on a pull request.
    Markdown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    fn is_on(self) -> bool {
        let wanted = || std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match self {
            Self::Auto => std::io::IsTerminal::is_terminal(&std::io::stdout()) && wanted(),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

pub(super) fn run(arguments: &PlanArguments) -> anyhow::Result<ExitCode> {
    let progress = Progress::begin(format!("planning {}", arguments.revisions.to));
    let hub = Questions::new(&arguments.server);
    let rooms = Rooms::new(&arguments.rooms, Some(&hub));
    let shown = compare::shown(&arguments.revisions, &rooms).and_then(|mut shown| {
        shown.dependants = wait_for(dependants::ask(&hub, &shown.removals()))?;
        let (charts, helm) = (std::mem::take(&mut shown.charts), arguments.helm.clone());
        let mut predicted = wait_for(predicted::ask(&hub, helm, &charts))?;
        for unit in &mut shown.units {
            unit.predicted = predicted.remove(&unit.unit).unwrap_or_default();
        }
        Ok(shown)
    });
    drop(progress);
    match shown {
        Ok(shown) => {
            print(arguments, &shown)?;
            if let Some(note) = arguments.revisions.not_committed() {
                output::tell(&format!("note: {note}\n"));
            }
            let error = shown.findings.iter().any(Finding::is_error);
            Ok(ExitCode::from(if error {
                exit::PLAN_ERROR
            } else {
                u8::from(!shown.units.is_empty())
            }))
        }
        Err(error) => {
            let line = json!({ "error": visible(&crate::fault::line(error.as_ref())) });
            match arguments.output {
                Output::Json => output::print(&output::json(&line)),
                Output::Yaml => output::print(&render::yaml::write(&line)),
                Output::Text | Output::Markdown => true,
            };
            output::fail(error.as_ref());
            Ok(ExitCode::from(exit::PLAN_ERROR))
        }
    }
}

impl Revisions {
    /// That something in the work tree is not planned, where its newest commit is and its own git tells.
    fn not_committed(&self) -> Option<String> {
        if self.to != HEAD {
            return None;
        }
        match Git::at(&self.clone.repository).not_committed()? {
            0 => None,
            1 => Some("1 file is not committed and is not in this plan".to_owned()),
            count => Some(format!("{count} files are not committed and are not in this plan")),
        }
    }
}

/// The lists of objects that the newest commit of a clone would take away beyond a budget, as far as the clone knows
/// what was rendered.
pub(super) fn exceeded(clone: &std::path::Path, branch: &str) -> anyhow::Result<Vec<render::guard::Exceeded>> {
    Ok(compare::shown(&of_head(clone, branch), &Rooms::unknown())?.exceeded)
}

/// What is wrong at a revision of a clone, and what a hub would hold back of it.
pub(super) fn findings(
    clone: &CloneOptions,
    revision: &render::Revision,
    rooms: &Rooms<'_>,
) -> anyhow::Result<Vec<Finding>> {
    let revisions = Revisions {
        clone: clone.clone(),
        to: revision.to_string(),
        ..of_head(&clone.repository, "")
    };
    Ok(compare::shown(&revisions, rooms)?.findings)
}

/// Shows what becomes of units of a clone's newest commit if they are placed anew, and whether that is anything.
pub(super) fn show_rebalance(
    (clone, branch): (&std::path::Path, &str),
    rooms: &Rooms<'_>,
    words: &[RebalanceWord],
) -> anyhow::Result<bool> {
    let mut shown = compare::shown_with(&of_head(clone, branch), rooms, words)?;
    let is_meant = |unit: &UnitKey| words.iter().any(|word| word.names(unit));
    shown.units.retain(|unit| is_meant(&unit.unit));
    shown
        .findings
        .retain(|finding| finding.unit.as_ref().is_some_and(is_meant));
    shown.summary = summary::Summary::of(&shown.units, &shown.findings);
    output::print(&text::text(&shown, Color::Auto.is_on()));
    for finding in once(&shown.findings) {
        output::tell(&format!("{}\n", in_sight(&finding)));
    }
    Ok(!shown.units.is_empty())
}

/// In a line: what the newest commit of a clone changes in what the hub rendered, as far as the clone knows it.
pub(super) fn summary(clone: &std::path::Path, branch: &str) -> anyhow::Result<String> {
    let shown = compare::shown(&of_head(clone, branch), &Rooms::unknown())?;
    Ok(summary::Summary::of(&shown.units, &shown.findings).line())
}

fn of_head(clone: &std::path::Path, branch: &str) -> Revisions {
    Revisions {
        clone: CloneOptions::at(clone, branch),
        from: None,
        to: HEAD.to_owned(),
    }
}

/// Prints the changes to stdout. Findings and hints go to stderr where the form has no place for them.
fn print(arguments: &PlanArguments, shown: &Shown) -> anyhow::Result<()> {
    match arguments.output {
        Output::Text => output::print(&text::text(shown, arguments.color.is_on())),
        Output::Markdown => output::print(&markdown::markdown(shown)),
        Output::Json => output::print(&output::json(&serde_json::to_value(shown)?)),
        Output::Yaml => output::print(&render::yaml::write(&serde_json::to_value(shown)?)),
    };
    if shown.from.is_none() {
        output::tell("hint: no rendered ref is here to compare with; `git fetch` brings the one the hub wrote\n");
    }
    if arguments.output == Output::Text {
        for finding in once(&shown.findings) {
            output::tell(&format!("{}\n", in_sight(&finding)));
        }
    }
    Ok(())
}

/// Clusters that a finding names before the rest is counted.
const CLUSTERS_NAMED: usize = 5;

/// Each finding once: one that differs by its cluster alone names them all in its message.
fn once(findings: &[Finding]) -> Vec<Finding> {
    let without_cluster = |finding: &Finding| Finding {
        cluster: None,
        also_on: Vec::new(),
        ..finding.clone()
    };
    let mut told: Vec<(Finding, Vec<String>)> = Vec::new();
    for finding in findings {
        let bare = without_cluster(finding);
        let all = finding.cluster.iter().chain(&finding.also_on);
        let own = all.map(ToString::to_string);
        // Equal ones stand side by side, since a cluster is what findings are sorted by last.
        match told.last_mut() {
            Some((last, clusters)) if *last == bare => clusters.extend(own),
            _ => told.push((bare, own.collect())),
        }
    }
    let named = |(mut finding, clusters): (Finding, Vec<String>)| {
        let shown = clusters[..clusters.len().min(CLUSTERS_NAMED)].join(", ");
        finding.message = match clusters.len() {
            0 => finding.message,
            1 => format!("{} (cluster {shown})", finding.message),
            count if count <= CLUSTERS_NAMED => format!("{} (clusters {shown})", finding.message),
            count => format!(
                "{} (clusters {shown} and {} more)",
                finding.message,
                count - CLUSTERS_NAMED
            ),
        };
        finding
    };
    told.into_iter().map(named).collect()
}

/// A finding whose words, which may come from anybody's file, steer no terminal.
pub(super) fn in_sight(finding: &Finding) -> Finding {
    Finding {
        file: visible(&finding.file),
        field: visible(&finding.field),
        message: visible(&finding.message),
        hint: visible(&finding.hint),
        ..finding.clone()
    }
}

#[cfg(test)]
mod tests;
