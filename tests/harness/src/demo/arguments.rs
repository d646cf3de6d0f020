//! The command line of the demo.

use std::path::PathBuf;

use clap::Parser;

/// Clusters of a new folder.
pub(super) const CLUSTERS: u16 = 3;

/// A hub, simulated clusters, and a fleet repository to push to, in one process.
#[derive(Debug, Parser)]
#[command(name = "cargo demo --")]
pub(super) struct Arguments {
    /// Make one change, push it, wait until every cluster shows it, print what happened room by room, and end.
    #[arg(long)]
    pub(super) once: bool,
    /// How many clusters; without it 3, or as many as the folder has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=200))]
    pub(super) clusters: Option<u16>,
    /// Keep everything in this folder and go on there the next time; without it, a temporary folder.
    #[arg(long)]
    pub(super) folder: Option<PathBuf>,
}
