//! `flotilla simulate`: what would be elsewhere if a cluster were lost, a label or a taint another, or replicas more.
//!
//! In: a clone, what is rendered in it, what clusters reported, and suppositions. Out: what differs. What that is, is
//! [`render::suppose`]'s matter; nothing is written anywhere.

mod text;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{ArgAction, ArgGroup, Args, ValueEnum};
use render::Published;
use render::load::LoadMemo;
use render::suppose::{Simulation, Supposition, Unreadable, simulate};
use serde_json::json;

use super::client::{Questions, ServerOptions};
use super::plan::CloneOptions;
use super::progress::Progress;
use super::rooms::{RoomOptions, Rooms};
use super::{exit, output};
use crate::hub::load_revision;

/// Show what would differ if something were so. What is placed in the rendered ref of the clone counts as placed; without
/// one, what a plan would place. Exits with 0 when nothing differs, 1 when something does, and 2 on an error.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_SIMULATE)]
#[command(group = ArgGroup::new("supposed").args(["without_cluster", "label", "taint", "scale"]).required(true).multiple(true))]
pub(super) struct SimulateArguments {
    /// This cluster is lost, and its share goes to others at once.
    #[arg(long, value_name = "CLUSTER")]
    without_cluster: Vec<String>,
    /// A cluster has this label: KEY=VALUE, or KEY- for none of it.
    #[arg(long, num_args = 2, value_names = ["CLUSTER", "LABEL"], action = ArgAction::Append)]
    label: Vec<String>,
    /// A cluster has this taint: KEY=VALUE:EFFECT, or KEY- for none of it.
    #[arg(long, num_args = 2, value_names = ["CLUSTER", "TAINT"], action = ArgAction::Append)]
    taint: Vec<String>,
    /// An object asks for another number of replicas: NAMESPACE/NAME of the Subscription, /KIND/OBJECT where several have
    /// replicas, and =+20, =-3 or =30.
    #[arg(long, value_name = "SCALE")]
    scale: Vec<String>,
    /// The revision that is looked at.
    #[arg(long, default_value = "HEAD")]
    revision: String,
    #[command(flatten)]
    clone: CloneOptions,
    #[command(flatten)]
    rooms: RoomOptions,
    #[command(flatten)]
    server: ServerOptions,
    /// How it is told.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
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
}

pub(super) fn run(arguments: &SimulateArguments) -> ExitCode {
    let supposed = match arguments.supposed() {
        Ok(supposed) => supposed,
        Err(error) => {
            output::fail(&error);
            return exit::usage();
        }
    };
    match simulated(arguments, &supposed) {
        Ok(simulation) => {
            print(arguments.output, &simulation);
            ExitCode::from(u8::from(!simulation.is_nothing()))
        }
        Err(error) => {
            output::fail(error.as_ref());
            ExitCode::from(exit::PLAN_ERROR)
        }
    }
}

impl SimulateArguments {
    fn supposed(&self) -> Result<Vec<Supposition>, Unreadable> {
        let pairs = |words: &'_ [String], read: fn(&str, &str) -> Result<Supposition, Unreadable>| {
            let pairs = words.chunks_exact(2);
            pairs
                .map(|pair| read(&pair[0], &pair[1]))
                .collect::<Result<Vec<_>, _>>()
        };
        let lost = self.without_cluster.iter().map(|name| Supposition::lost(name));
        let scaled = self.scale.iter().map(|words| Supposition::scale(words));
        let mut supposed = pairs(&self.label, Supposition::label)?;
        supposed.extend(pairs(&self.taint, Supposition::taint)?);
        for supposition in scaled.chain(lost) {
            supposed.push(supposition?);
        }
        Ok(supposed)
    }
}

fn simulated(arguments: &SimulateArguments, supposed: &[Supposition]) -> anyhow::Result<Simulation> {
    let revision = &arguments.revision;
    let source = arguments.clone.open()?;
    let revision = source
        .resolve(revision)
        .with_context(|| format!("failed to find {revision}"))?;
    let progress = Progress::begin(format!("reading {revision}"));
    let (fleet, _) = load_revision(&source, &revision, &mut LoadMemo::default())
        .with_context(|| format!("failed to read {revision}"))?;
    if fleet.clusters.is_empty() {
        bail!("no cluster is registered at {revision}");
    }
    let rendered = arguments.clone.rendered(&source)?;
    let published = rendered.map_or_else(Published::default, |rendered| rendered.published);
    drop(progress);
    let hub = Questions::new(&arguments.server);
    let rooms = Rooms::new(&arguments.rooms, Some(&hub));
    let snapshot = rooms.snapshot(&fleet.into(), published.into())?;
    Ok(simulate(&snapshot, supposed)?)
}

fn print(form: Output, simulation: &Simulation) {
    let value = json!(simulation);
    output::print(&match form {
        Output::Text => text::text(simulation),
        Output::Json => output::json(&value),
        Output::Yaml => render::yaml::write(&value),
    });
}

#[cfg(test)]
mod tests;
