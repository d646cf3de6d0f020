//! `flotilla cordon`, `drain` and `uncordon`: the taints of clusters in the clone, changed as a commit.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use render::cordon::{Asked, edited};
use render::model::Cluster;
use render::name::wrong_label_value;
use render::{ClusterName, Fleet};

use super::clone::{Change, Clone, CloneOptions, Edit};
use super::suspend::{absent, fleet, list};
use super::{output, plan};

/// Which clusters.
#[derive(Debug, Args)]
struct Target {
    /// The clusters.
    #[arg(value_name = "CLUSTER", required = true)]
    clusters: Vec<ClusterName>,
    #[command(flatten)]
    clone: CloneOptions,
}

/// Commit that nothing new comes to clusters; what is there stays.
#[derive(Debug, Args)]
pub(super) struct Cordon {
    #[command(flatten)]
    target: Target,
    /// Why, in a word of letters, digits and `-_.`: the value of the taint.
    #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
    reason: String,
}

/// Commit that nothing new comes to clusters, and that what is there leaves once others have it.
#[derive(Debug, Args)]
pub(super) struct Drain {
    #[command(flatten)]
    target: Target,
    /// Why, in a word of letters, digits and `-_.`: the value of the taints.
    #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
    reason: String,
}

/// Commit that clusters may have something new again. What left stays where it is.
#[derive(Debug, Args)]
pub(super) struct Uncordon {
    #[command(flatten)]
    target: Target,
}

/// What is done to clusters, in the words of people.
struct Deed<'a> {
    asked: Asked<'a>,
    /// `Drain`
    verb: &'static str,
    /// `drained`
    done: &'static str,
}

pub(super) fn cordon(arguments: &Cordon) -> anyhow::Result<ExitCode> {
    let asked = Asked::Cordon {
        reason: &arguments.reason,
    };
    let deed = Deed {
        asked,
        verb: "Cordon",
        done: "cordoned",
    };
    deed.commit(&arguments.target)
}

pub(super) fn drain(arguments: &Drain) -> anyhow::Result<ExitCode> {
    let asked = Asked::Drain {
        reason: &arguments.reason,
    };
    let deed = Deed {
        asked,
        verb: "Drain",
        done: "drained",
    };
    deed.commit(&arguments.target)
}

pub(super) fn uncordon(arguments: &Uncordon) -> anyhow::Result<ExitCode> {
    let deed = Deed {
        asked: Asked::Uncordon,
        verb: "Uncordon",
        done: "open",
    };
    deed.commit(&arguments.target)
}

fn reason(text: &str) -> Result<String, String> {
    match wrong_label_value(text) {
        None => Ok(text.to_owned()),
        Some(rule) => Err(format!("it is the value of a taint: {rule}")),
    }
}

impl Deed<'_> {
    fn commit(&self, target: &Target) -> anyhow::Result<ExitCode> {
        let clone = target.clone.open()?;
        let fleet = fleet(&clone)?;
        let clusters = known(&fleet, &target.clusters)?;
        let (texts, changed) = self.texts(&clone, &clusters)?;
        let names: Vec<_> = changed.iter().map(ToString::to_string).collect();
        if names.is_empty() {
            let verb = if clusters.len() == 1 { "is" } else { "are" };
            let names = list(clusters.iter().map(|cluster| &cluster.name));
            let done = self.done;
            output::tell(&format!("{names} {verb} {done} already; there is nothing to do.\n"));
            return Ok(ExitCode::SUCCESS);
        }
        let reason = match self.asked {
            Asked::Cordon { reason } | Asked::Drain { reason } => reason,
            Asked::Uncordon => "",
        };
        let edits = texts.into_iter().map(|(path, text)| Edit {
            path,
            content: Some(text.into_bytes()),
        });
        let change = Change {
            edits: edits.collect(),
            subject: format!("{} {}", self.verb, names.join(", ")),
            body: reason.to_owned(),
            trailers: Vec::new(),
        };
        let code = target.clone.commit(&clone, &change)?;
        if !target.clone.is_dry_run() {
            // Only the hub knows what room others have.
            let summary = plan::summary(clone.root(), clone.branch());
            let summary =
                summary.unwrap_or_else(|error| format!("cannot be made: {}", crate::fault::line(error.as_ref())));
            output::tell(&format!("The plan: {}\n", output::visible(&summary)));
        }
        Ok(code)
    }

    /// Path → the file as it is to be, and the clusters that it changes.
    fn texts<'f>(
        &self,
        clone: &Clone,
        clusters: &[&'f Cluster],
    ) -> anyhow::Result<(BTreeMap<String, String>, Vec<&'f ClusterName>)> {
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let mut changed = Vec::new();
        // In one file from behind, so that the lines of the others stay theirs.
        let mut ordered = clusters.to_vec();
        ordered.sort_by_key(|cluster| std::cmp::Reverse((&cluster.file, cluster.line)));
        for cluster in ordered {
            let path = cluster.file.to_string();
            let text = match texts.get(&path) {
                Some(text) => text.clone(),
                None => clone.read(&path)?,
            };
            if let Some(text) = edited(&text, cluster, self.asked)? {
                texts.insert(path, text);
                changed.push(&cluster.name);
            }
        }
        changed.sort();
        Ok((texts, changed))
    }
}

/// The clusters of these names, each once.
fn known<'f>(fleet: &'f Fleet, names: &[ClusterName]) -> anyhow::Result<Vec<&'f Cluster>> {
    let mut clusters = BTreeMap::new();
    for name in names {
        let Some(cluster) = fleet.clusters.get(name) else {
            return Err(absent("cluster", name, fleet.clusters.keys()));
        };
        clusters.insert(name, cluster);
    }
    Ok(clusters.into_values().collect())
}
