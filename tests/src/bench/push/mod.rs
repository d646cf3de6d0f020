//! From the end of a `git push` to the object in the cluster, on three real clusters.
//!
//! Enters: the release binary `flotilla` and the real parts. Leaves: the figures of the whole way. Each time
//! begins when `git push` has ended and ends when a watch of the API server shows the change, in every
//! cluster it is for.

mod fleet;
mod memory;
pub(super) mod requests;
mod watch;

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use self::fleet::Fleet;
pub(super) use self::memory::resident_mib;
use self::requests::Asked;
use super::{Figures, percentile};

/// One more than 100, so that the 99th percentile leaves room for one.
const PUSHES: usize = 101;
const UNITS: usize = 200;
const OBJECTS: usize = 1_000;
const TOUCHES: usize = 11;
/// People do not push faster; what a change leaves to do is done by the next one.
const BETWEEN_PUSHES: Duration = Duration::from_millis(300);
/// What counts as idle, before memory is looked at.
const REST: Duration = Duration::from_secs(6);
/// An agent whose tunnel lived this long dials again without a history of failures.
const GOOD_LIFE: Duration = Duration::from_secs(61);
/// In this time an agent has asked all that it asks from time to time.
const MINUTE: Duration = Duration::from_secs(65);
/// No step takes this long, unless it never ends.
const LIMIT: Duration = Duration::from_secs(120);

/// Measures all of it on one fleet that grows.
pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build, whose figures say nothing; run `cargo fleet-bench push`");
    }
    let mut fleet = Fleet::start()?;
    small_changes(&mut fleet, figures)?;
    bulk(&mut fleet, figures)?;
    rest();
    figures.print("hub_rss", memory::resident_mib(fleet.hub().id())?, "MiB")?;
    let agents = fleet.agents().map(|agent| memory::resident_mib(agent.id()));
    let agents = agents.collect::<anyhow::Result<Vec<_>>>()?;
    figures.print("agent_rss_idle", agents.into_iter().fold(0.0, f64::max), "MiB")?;
    restart(&mut fleet, figures)?;
    touch_one(&mut fleet, figures)
}

fn small_changes(fleet: &mut Fleet, figures: &mut Figures) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for push in 0..PUSHES {
        rest_for(BETWEEN_PUSHES);
        fleet.write_config_map("feeds/small/small.yaml", "small", push);
        let pushed = fleet.push()?;
        times.push(fleet.wait_everywhere(pushed, |objects| objects.is("small", push))?);
    }
    for (figure, quantile) in [("push_to_applied_p50", 0.5), ("push_to_applied_p99", 0.99)] {
        figures.print_ms(figure, percentile(&mut times, quantile).context("there were pushes")?)?;
    }
    Ok(())
}

fn bulk(fleet: &mut Fleet, figures: &mut Figures) -> anyhow::Result<()> {
    for unit in 0..UNITS {
        fleet.write_subscription(&format!("unit-{unit}"), "");
        fleet.write_config_map(&format!("feeds/unit-{unit}/object.yaml"), &format!("bulk-{unit}"), unit);
    }
    let pushed = fleet.push()?;
    let time = fleet.wait_everywhere(pushed, |objects| objects.count("bulk-") == UNITS)?;
    figures.print("bulk_200_units", time.as_secs_f64(), "s")
}

/// The change is pushed while the hub is away, so that it is there from the hub's first moment on.
fn restart(fleet: &mut Fleet, figures: &mut Figures) -> anyhow::Result<()> {
    rest_for(GOOD_LIFE.saturating_sub(fleet.hub_age()));
    fleet.kill_hub();
    fleet.write_config_map("feeds/small/small.yaml", "small", PUSHES);
    fleet.push()?;
    let started = Instant::now();
    fleet.start_hub();
    let time = fleet.wait_everywhere(started, |objects| objects.is("small", PUSHES))?;
    figures.print("restart_600", time.as_secs_f64(), "s")
}

fn touch_one(fleet: &mut Fleet, figures: &mut Figures) -> anyhow::Result<()> {
    fleet.write_subscription("many", fleet::ONE_CLUSTER);
    for object in 0..OBJECTS {
        fleet.write_config_map(&format!("feeds/many/{object}.yaml"), &format!("many-{object}"), 0);
    }
    let pushed = fleet.push()?;
    fleet.wait_in_one(pushed, |objects| objects.count("many-") == OBJECTS)?;
    let by_itself = in_a_minute(fleet)?;
    let (mut times, mut requests) = (Vec::new(), Vec::new());
    for touch in 1..=TOUCHES {
        rest();
        let before = fleet.requests_in_one()?;
        let name = format!("many-{}", touch * 83 % OBJECTS);
        fleet.write_config_map(&format!("feeds/many/{}.yaml", touch * 83 % OBJECTS), &name, touch);
        let pushed = fleet.push()?;
        times.push(fleet.wait_in_one(pushed, |objects| objects.is(&name, touch))?);
        // What follows an object's change (the inventory, a look at its health) counts as well.
        rest_for(Duration::from_secs(2));
        let mut after = fleet.requests_in_one()?;
        after.retain(|id, asked| !before.contains_key(id) && !by_itself.contains(asked));
        requests.push(after.len());
    }
    let time = percentile(&mut times, 0.5).context("there were touches")?;
    figures.print_ms("touch_one_of_1000", time)?;
    let most = requests.into_iter().max().context("there were touches")?;
    figures.print("touch_one_requests", most as f64, "count")
}

/// What an agent asks although nothing changes: how its cluster fares, and watches once more.
fn in_a_minute(fleet: &Fleet) -> anyhow::Result<BTreeSet<Asked>> {
    rest();
    let before = fleet.requests_in_one()?;
    rest_for(MINUTE);
    let after = fleet.requests_in_one()?.into_iter();
    Ok(after
        .filter(|(id, _)| !before.contains_key(id))
        .map(|(_, asked)| asked)
        .collect())
}

fn rest() {
    rest_for(REST);
}

#[expect(
    clippy::disallowed_methods,
    reason = "there is no runtime here whose worker this could block"
)]
fn rest_for(time: Duration) {
    thread::sleep(time);
}
