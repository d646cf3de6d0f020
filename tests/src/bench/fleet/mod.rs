//! A change on 100 and on 1,000 simulated clusters, a restart of the hub, and its memory.
//!
//! Enters: the release binary `flotilla`, whose hub is a process of its own; clusters and agents are tasks of
//! this process, so that it and the hub share the machine. Leaves: figures of the hub. Each time begins when `git push`
//! has ended, or the hub was started, and ends when the last cluster has the change.
//!
//! Agents keep their journals in memory (`/dev/shm`) where there is such a thing: each has a disk of its own
//! elsewhere, and a thousand of them on one would measure that disk.

mod world;

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use self::world::World;
use super::push::resident_mib;
use super::{Figures, percentile};

const PUSHES: usize = 20;
const UNITS: usize = 100;
/// Between two pushes; whoever pushes to a thousand clusters waits that long.
const BETWEEN_PUSHES: Duration = Duration::from_millis(500);
/// What counts as idle, before memory is looked at.
const REST: Duration = Duration::from_secs(15);
/// No step takes this long, unless it never ends.
const LIMIT: Duration = Duration::from_secs(300);

/// Open files per cluster in this process: its tunnel and its journal's lock, and one to spare.
const FILES_PER_CLUSTER: u64 = 3;

/// Measures 100 clusters, then 1,000.
pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build, whose figures say nothing; run `cargo fleet-bench fleet`");
    }
    check_files(1_000)?;
    let mut hundred = World::start(100)?;
    changes(&mut hundred, "hundred_clusters_p90", figures)?;
    drop(hundred);
    let mut thousand = World::start(1_000)?;
    changes(&mut thousand, "thousand_clusters_p90", figures)?;
    for unit in 1..UNITS {
        thousand.write_unit(unit, 0);
    }
    let pushed = thousand.push()?;
    let time = thousand.wait_everywhere(pushed, LIMIT, UNITS - 1, 0)?;
    figures.print("fill_1000x100", time.as_secs_f64(), "s")?;
    pause(REST);
    figures.print("hub_rss_1000x100", resident_mib(thousand.hub_id())?, "MiB")?;
    thousand.kill_hub();
    thousand.write_unit(0, PUSHES + 1);
    thousand.push()?;
    let started = Instant::now();
    thousand.start_hub();
    let time = thousand.wait_everywhere(started, LIMIT, 0, PUSHES + 1)?;
    figures.print("hub_restart_100k", time.as_secs_f64(), "s")
}

fn changes(world: &mut World, figure: &str, figures: &mut Figures) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for push in 1..=PUSHES {
        pause(BETWEEN_PUSHES);
        world.write_unit(0, push);
        let pushed = world.push()?;
        times.push(world.wait_everywhere(pushed, LIMIT, 0, push)?);
    }
    let time = percentile(&mut times, 0.9).context("there were pushes")?;
    figures.print(figure, time.as_secs_f64(), "s")
}

/// A tunnel that cannot be opened for want of a file descriptor would look like a slow hub.
fn check_files(clusters: u64) -> anyhow::Result<()> {
    let limits = std::fs::read_to_string("/proc/self/limits").context("failed to read /proc/self/limits")?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    let needed = clusters * FILES_PER_CLUSTER + 200;
    match soft.and_then(|soft| soft.parse::<u64>().ok()) {
        Some(soft) if soft < needed => {
            bail!(
                "this shell allows {soft} open files, and {clusters} clusters take {needed}: run `ulimit -n {needed}` first"
            )
        }
        _ => Ok(()),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the fleet has threads of its own, and this is none of them"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
