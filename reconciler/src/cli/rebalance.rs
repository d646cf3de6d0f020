//! `flotilla rebalance`: what would move if units were placed anew, and the commit that asks for it.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use render::UnitKey;
use render::schedule::{Rebalance, RebalanceWord};

use super::client::{Questions, ServerOptions};
use super::clone::{Change, CloneOptions};
use super::progress::Progress;
use super::rooms::{RoomOptions, Rooms};
use super::{exit, output, plan};

/// Show what would move if these units were placed as if they were new, by the room that clusters have now. Exits with 0
/// when nothing would move and 1 when something would; with --commit it commits the word for it.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_REBALANCE)]
pub(super) struct RebalanceArguments {
    /// The Subscriptions: NAMESPACE/NAME, or NAME with --namespace. With --namespace alone, all of it.
    #[arg(value_name = "NAME", required_unless_present = "namespace")]
    names: Vec<String>,
    /// The namespace of names that say none.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Move only the replicas that no node of their cluster takes.
    #[arg(long)]
    pending: bool,
    /// Make the empty commit that asks for it, if something would move.
    #[arg(long)]
    commit: bool,
    /// The first line of that commit.
    #[arg(short, long, requires = "commit")]
    message: Option<String>,
    #[command(flatten)]
    clone: CloneOptions,
    #[command(flatten)]
    rooms: RoomOptions,
    /// The hub is asked what room clusters have.
    #[command(flatten)]
    server: ServerOptions,
}

pub(super) fn run(arguments: &RebalanceArguments) -> ExitCode {
    let words = match arguments.words() {
        Ok(words) => words,
        Err(error) => {
            output::fail(error.as_ref());
            return exit::usage();
        }
    };
    rebalance(arguments, &words).unwrap_or_else(|error| {
        output::fail(error.as_ref());
        ExitCode::from(exit::PLAN_ERROR)
    })
}

impl RebalanceArguments {
    /// What is asked for, each once.
    fn words(&self) -> anyhow::Result<Vec<RebalanceWord>> {
        let what = match self.pending {
            true => Rebalance::Pending,
            false => Rebalance::All,
        };
        let mut words = Vec::new();
        if let (Some(namespace), true) = (&self.namespace, self.names.is_empty()) {
            words.push(RebalanceWord::of_namespace(namespace, what));
        }
        for name in &self.names {
            let full = match (&self.namespace, name.contains('/')) {
                (_, true) => name.clone(),
                (Some(namespace), false) => format!("{namespace}/{name}"),
                (None, false) => bail!("{name} has no namespace; hint: write NAMESPACE/{name}, or --namespace"),
            };
            let unit: UnitKey = full.parse()?;
            words.push(RebalanceWord::of_unit(&unit, what));
        }
        words.sort();
        words.dedup();
        Ok(words)
    }
}

fn rebalance(arguments: &RebalanceArguments, words: &[RebalanceWord]) -> anyhow::Result<ExitCode> {
    let clone = arguments.clone.open()?;
    let hub = Questions::new(&arguments.server);
    let rooms = Rooms::new(&arguments.rooms, Some(&hub));
    let progress = Progress::begin("planning HEAD".to_owned());
    let moves = plan::show_rebalance((clone.root(), clone.branch()), &rooms, words);
    drop(progress);
    if !arguments.commit {
        return Ok(ExitCode::from(u8::from(moves?)));
    }
    if !moves? {
        output::tell("Nothing would move; nothing is committed.\n");
        return Ok(ExitCode::SUCCESS);
    }
    arguments
        .clone
        .commit(&clone, &change(words, arguments.message.as_deref()))
}

fn change(words: &[RebalanceWord], message: Option<&str>) -> Change {
    let subject = match words {
        [one] => format!("Rebalance {one}"),
        several => format!("Rebalance {} units", several.len()),
    };
    Change {
        edits: Vec::new(),
        subject: message.map_or(subject, str::to_owned),
        body: String::new(),
        trailers: words
            .iter()
            .map(|word| (RebalanceWord::TRAILER, word.to_string()))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        arguments: RebalanceArguments,
    }

    fn words(line: &str) -> Result<Vec<String>, String> {
        let parsed = Program::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?;
        let words = parsed.arguments.words().map_err(|error| error.to_string())?;
        Ok(words.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn names_are_read_as_trailers_say_them() {
        for (line, expected) in [
            ("rebalance shop/web", "shop/web"),
            ("rebalance -n shop web shop/web api", "shop/api, shop/web"),
            ("rebalance --namespace shop --pending", "shop/* pending"),
        ] {
            assert_eq!(
                words(line).map(|words| words.join(", ")),
                Ok(expected.to_owned()),
                "{line}"
            );
        }
        assert!(words("rebalance").is_err(), "nothing is meant");
        assert!(words("rebalance web").is_err_and(|text| text.contains("write NAMESPACE/web")));
        assert!(words("rebalance shop/We_b").is_err());
    }

    #[test]
    fn one_commit_asks_for_all_of_it() {
        let words = ["shop/api", "shop/web pending"].map(|text| RebalanceWord::parse(text).expect("it is one"));
        let change = change(&words, None);
        assert_eq!(change.subject, "Rebalance 2 units");
        assert_eq!(change.trailers[1], ("Rebalance", "shop/web pending".to_owned()));
    }
}
