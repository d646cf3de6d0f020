//! Crash points: an agent that ends at any write, of its journal or to its API server, before or after it, by a
//! signal or by a loss of power that takes of its disk whatever was not synced.
//!
//! A story (`story`) of deliveries is told to the real journal (on `disk`) and the real applier, process after
//! process (`agent`), each of which ends at the write that its `switch` says. `witness` sees every deletion.
//! Afterwards the cluster is held to the last delivery: nothing is lost that should stay, and nothing is left
//! that should go. A failing seed is named, and `FLOTILLA_SEED` repeats it.

mod agent;
mod dice;
mod disk;
mod story;
mod switch;
mod witness;
mod world;

use self::agent::Place;
use self::dice::Dice;
use self::disk::Disk;
use self::story::story;
use self::switch::Side;
use self::world::{Crash, World};

/// Runs a story to its end, in time that passes by itself.
fn run(seed: u64, place: Place, test: impl AsyncFnOnce(&mut World, &mut Dice)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime starts");
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            let mut dice = Dice::new(seed);
            let says = story(&mut dice);
            let mut world = World::new(says, place).await;
            test(&mut world, &mut dice).await;
            world.check();
        });
    }));
    assert!(told.is_ok(), "seed {seed} failed; FLOTILLA_SEED={seed} repeats it");
}

/// Ends up to three processes at random writes.
fn check_seed(seed: u64, place: Place) {
    run(seed, place, async |world, dice| {
        for _ in 0..1 + dice.below(3) {
            let crash = Crash {
                at: 1 + dice.below(70) as u64,
                side: if dice.happens(50) { Side::Before } else { Side::After },
                power: dice.happens(60),
            };
            world.crash(crash, dice).await;
        }
        world.finish(dice).await;
    });
}

#[test]
fn crashes_at_any_write_lose_nothing_that_should_stay_and_leave_nothing_that_should_go() {
    let seed = std::env::var("FLOTILLA_SEED").ok().and_then(|seed| seed.parse().ok());
    if let Some(seed) = seed {
        return check_seed(seed, Place::Disk(Disk::default()));
    }
    let count = if is_long() { 1_000 } else { 200 };
    (0..count).for_each(|seed| check_seed(seed, Place::Disk(Disk::default())));
}

#[test]
fn crashes_lose_nothing_either_where_the_journal_is_in_the_cluster() {
    let seed = std::env::var("FLOTILLA_SEED").ok().and_then(|seed| seed.parse().ok());
    if let Some(seed) = seed {
        return check_seed(seed, Place::Cluster);
    }
    let count = if is_long() { 1_000 } else { 100 };
    (0..count).for_each(|seed| check_seed(seed, Place::Cluster));
}

fn is_long() -> bool {
    std::env::var_os("FLOTILLA_LONG").is_some_and(|set| set != "0")
}

#[test]
fn every_write_of_a_run_may_be_the_last_one() {
    every_write(|| Place::Disk(Disk::default()));
}

#[test]
fn every_write_of_a_journal_in_the_cluster_may_be_the_last_one() {
    every_write(|| Place::Cluster);
}

fn every_write(place: impl Fn() -> Place) {
    let seed = 7;
    let mut writes = 0;
    run(seed, place(), async |world, dice| writes = world.finish(dice).await);
    assert!(writes > 40, "a whole run writes {writes} times");
    for at in 1..=writes {
        for side in [Side::Before, Side::After] {
            let power = (side == Side::Before) == at.is_multiple_of(2);
            run(seed, place(), async |world, dice| {
                world.crash(Crash { at, side, power }, dice).await;
                world.finish(dice).await;
            });
        }
    }
}
