//! Many agents and one hub, by simulated time: how many knock in each second, and when all are back.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Backoff, Outcome, spread_of};

/// Numbers in `0.0..1.0`, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1_u64 << 24) as f64
    }
}

/// What a storm was like.
struct Storm {
    /// Handshakes per second that a hub or a proxy saw, by second.
    knocks: BTreeMap<u64, u32>,
    /// When the last agent was back.
    back: Duration,
}

impl Storm {
    /// All agents lose a good tunnel at once, learn of it by `first`, and are let in again only after `away`.
    fn of(agents: usize, first: Outcome, away: Duration) -> Self {
        let mut storm = Self {
            knocks: BTreeMap::new(),
            back: Duration::ZERO,
        };
        for agent in 0..agents {
            let mut dice = Dice(agent as u64 + 1);
            // The first numbers of neighbouring seeds are alike.
            for _ in 0..4 {
                dice.roll();
            }
            let backoff = Backoff::default().spread_over(spread_of(agents));
            let (mut backoff, mut at) = backoff.after(first, dice.roll());
            loop {
                *storm.knocks.entry(at.as_secs()).or_default() += 1;
                if at >= away {
                    break;
                }
                let (next, wait) = backoff.after(Outcome::Failed, dice.roll());
                backoff = next;
                at += wait;
            }
            storm.back = storm.back.max(at);
        }
        storm
    }

    fn peak(&self, from: Duration) -> u32 {
        let later = self.knocks.range(from.as_secs()..);
        later.map(|(_, knocks)| *knocks).max().unwrap_or_default()
    }
}

const LOST: Outcome = Outcome::Lived(Duration::from_secs(3_600));
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_thousand_agents_knock_less_than_fifty_times_a_second_and_are_back_in_time() {
    let restart = Storm::of(1_000, LOST, Duration::from_secs(2));
    assert!(restart.peak(Duration::ZERO) < 50, "{:?}", restart.knocks);
    assert!(restart.back < 2 * MINUTE, "{:?}", restart.back);
    // A proxy in between says 502 for a minute.
    let proxied = Storm::of(1_000, LOST, MINUTE);
    assert!(proxied.peak(MINUTE) < 50, "{:?}", proxied.knocks);
    assert!(
        proxied.peak(Duration::ZERO) < 75,
        "what the proxy sees: {:?}",
        proxied.knocks
    );
    assert!(proxied.back < MINUTE + 2 * MINUTE, "{:?}", proxied.back);
}

#[test]
fn two_thousand_agents_knock_as_often_for_each_as_a_thousand() {
    let proxied = Storm::of(2_000, LOST, MINUTE);
    assert!(proxied.peak(Duration::ZERO) < 100, "{:?}", proxied.knocks);
    assert!(proxied.back < MINUTE + 2 * MINUTE, "{:?}", proxied.back);
}

#[test]
fn three_agents_are_back_within_half_a_second() {
    let restart = Storm::of(3, LOST, Duration::ZERO);
    assert!(restart.back <= super::FIRST_RETRY_MAX, "{:?}", restart.back);
}

#[test]
fn a_hub_that_drains_is_followed_and_what_fails_after_that_is_not_faster() {
    let told = Outcome::Told {
        min: Duration::ZERO,
        max: Duration::from_secs(5),
    };
    let drained = Storm::of(1_000, told, MINUTE);
    assert!(drained.peak(Duration::from_secs(6)) < 75, "{:?}", drained.knocks);
    assert!(drained.back < MINUTE + 2 * MINUTE, "{:?}", drained.back);
}
