//! When an agent dials again: a pure function of what happened and one random number.
//!
//! Every wait is drawn from the whole range (full jitter), the first one too: after a hub's restart all
//! agents notice in the same second, and a fixed first delay would bring them back in the same second.

use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::frame::{GoAway, GoAwayReason};

/// Range of the first wait after a tunnel that had lived well, in a small fleet; each failure doubles it. A restarted
/// hub waits for its last agent, so this is most of what a restart costs: of three agents the last one comes after
/// three quarters of it.
pub const FIRST_RETRY_MAX: Duration = Duration::from_millis(500);

/// Agents of a large fleet that come back in one second. The hub says over what time its own are to be spread, since it
/// alone knows how many there are: 1,000 in 33 s. It could greet some twenty times as many; what stands before it, and
/// what each of them then asks of it, is not known here.
pub const RETURNS_PER_SECOND: u32 = 30;

/// No wait is drawn from a longer range, but in a fleet that needs more room than this.
pub const RETRY_MAX: Duration = Duration::from_secs(60);

/// No wait is drawn from a longer range at all: all are back two minutes after their hub.
pub const RETRY_MAX_OF_LARGE_FLEETS: Duration = Duration::from_secs(120);

/// A hub may not send its agents away for longer.
pub const TOLD_RETRY_MAX: Duration = Duration::from_secs(600);

/// Life after which a tunnel counts as good and the count of failures starts anew.
pub const GOOD_LIFE: Duration = Duration::from_secs(60);
/// Wait after the hub refused our identity: only a commit there can change its mind.
pub const REFUSED_RETRY: Duration = Duration::from_secs(60);

/// Wait after what answered was a hub that we have a tunnel to: four tries a minute at most, and fewer each time.
pub const DUPLICATE_RETRY: Duration = Duration::from_secs(15);

/// See [`DUPLICATE_RETRY`].
pub const DUPLICATE_RETRY_MAX: Duration = Duration::from_secs(300);

/// How the last attempt went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No tunnel came about.
    Failed,
    /// A tunnel came about and lived this long.
    Lived(Duration),
    /// The hub refused our identity, or another agent with our identity took our place: two of them would
    /// take it from each other every other second.
    Refused,
    /// What answered is a hub that we have a tunnel to already. Behind one address there may be several.
    Duplicate,
    /// The hub named a range in its GOAWAY; it overrides the schedule.
    Told {
        /// Earliest.
        min: Duration,
        /// Latest.
        max: Duration,
    },
}

impl Outcome {
    /// What a GOAWAY says about the next attempt, if it says anything.
    #[must_use]
    pub fn told_by(away: &GoAway) -> Option<Self> {
        match away.reason {
            GoAwayReason::IdentityRefused | GoAwayReason::Revoked | GoAwayReason::Replaced => Some(Self::Refused),
            GoAwayReason::Shutdown
            | GoAwayReason::Drain
            | GoAwayReason::ProtocolError
            | GoAwayReason::Version
            | GoAwayReason::Overload => away.retry().map(|(min, max)| Self::Told { min, max }),
        }
    }
}

/// How long agents are spread over in a fleet of so many clusters.
#[must_use]
pub fn spread_of(clusters: usize) -> Duration {
    let seconds = u32::try_from(clusters).map_or(f64::from(u32::MAX), f64::from) / f64::from(RETURNS_PER_SECOND);
    Duration::from_secs_f64(seconds).min(RETRY_MAX_OF_LARGE_FLEETS)
}

/// How many attempts failed in a row, and how far apart the agents of this fleet should come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
    spread: Duration,
}

impl Backoff {
    /// Takes over what a hub said of its fleet.
    #[must_use]
    pub fn spread_over(self, spread: Duration) -> Self {
        let spread = spread.min(RETRY_MAX_OF_LARGE_FLEETS);
        Self { spread, ..self }
    }

    /// The count and the wait after `outcome`; `random` is in `0.0..1.0`, and what is outside is clamped.
    #[must_use]
    pub fn after(self, outcome: Outcome, random: f64) -> (Self, Duration) {
        let random = if random.is_nan() { 0.0 } else { random.clamp(0.0, 1.0) };
        match outcome {
            Outcome::Refused => (self, REFUSED_RETRY + FIRST_RETRY_MAX.mul_f64(random)),
            Outcome::Duplicate => {
                let (next, _) = self.next(random);
                let range = DUPLICATE_RETRY.mul_f64(f64::from(1 << self.failures.min(5)));
                (next, range.min(DUPLICATE_RETRY_MAX).mul_f64(1.0 + random / 2.0))
            }
            Outcome::Told { min, max } => {
                let (min, max) = (min.min(TOLD_RETRY_MAX), max.min(TOLD_RETRY_MAX));
                (self, min + max.saturating_sub(min).mul_f64(random))
            }
            Outcome::Lived(life) => self.after_life(life).next(random),
            Outcome::Failed => self.next(random),
        }
    }

    /// The count after a tunnel that had lived so long, whatever ended it.
    #[must_use]
    pub fn after_life(self, life: Duration) -> Self {
        if life >= GOOD_LIFE {
            Self { failures: 0, ..self }
        } else {
            self
        }
    }

    /// Failures in a row, for logs and conditions.
    #[must_use]
    pub fn failures(self) -> u32 {
        self.failures
    }

    fn first(self) -> Duration {
        self.spread.max(FIRST_RETRY_MAX)
    }

    fn next(self, random: f64) -> (Self, Duration) {
        let longest = (self.spread * 2).clamp(RETRY_MAX, RETRY_MAX_OF_LARGE_FLEETS);
        // Seven doublings are past the longest range already.
        let range = longest.min(self.first() * (1 << self.failures.min(7)));
        let failures = self.failures.saturating_add(1);
        (Self { failures, ..self }, range.mul_f64(random))
    }
}

/// A number in `0.0..1.0` for [`Backoff::after`], from the system's generator; 0.5 should that fail.
#[must_use]
pub fn random() -> f64 {
    let mut bytes = [0; 4];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_be_bytes(bytes)) / (f64::from(u32::MAX) + 1.0),
        Err(_) => 0.5,
    }
}

#[cfg(test)]
mod storm_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(outcomes: &[Outcome], seconds_max: &[f64]) {
        let mut backoff = Backoff::default();
        for (outcome, seconds) in outcomes.iter().zip(seconds_max) {
            let (next, longest) = backoff.after(*outcome, 1.0);
            assert_eq!(
                longest,
                Duration::from_secs_f64(*seconds),
                "longest wait after {outcome:?}"
            );
            backoff = next;
        }
    }

    #[test]
    fn failures_double_the_range_up_to_a_minute() {
        let seconds = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0];
        check(&[Outcome::Failed; 9], &seconds);
    }

    #[test]
    fn a_large_fleet_begins_with_a_longer_range_and_ends_within_two_minutes() {
        let longest = |clusters| {
            let mut backoff = Backoff::default().spread_over(spread_of(clusters));
            [(); 3].map(|()| {
                let (next, wait) = backoff.after(Outcome::Failed, 1.0);
                backoff = next;
                wait.as_secs()
            })
        };
        assert_eq!(longest(3), [0, 1, 2]);
        assert_eq!(longest(300), [10, 20, 40]);
        assert_eq!(longest(1_000), [33, 66, 66]);
        assert_eq!(longest(2_000), [66, 120, 120]);
        assert_eq!(longest(1_000_000), [120, 120, 120]);
    }

    #[test]
    fn a_hub_that_is_there_already_is_tried_at_most_five_times_a_minute() {
        let (mut backoff, mut waits) = (Backoff::default(), Vec::new());
        for _ in 0..8 {
            let (next, wait) = backoff.after(Outcome::Duplicate, 0.0);
            backoff = next;
            waits.push(wait.as_secs());
        }
        assert_eq!(waits, [15, 30, 60, 120, 240, 300, 300, 300]);
    }

    #[test]
    fn only_a_good_life_starts_the_count_anew() {
        let (short, long) = (Outcome::Lived(Duration::from_secs(59)), Outcome::Lived(GOOD_LIFE));
        check(
            &[Outcome::Failed, Outcome::Failed, short, short, long, short],
            &[0.5, 1.0, 2.0, 4.0, 0.5, 1.0],
        );
    }

    #[test]
    fn a_refused_identity_waits_a_minute_and_keeps_the_count() {
        check(&[Outcome::Failed, Outcome::Refused, Outcome::Failed], &[0.5, 60.5, 1.0]);
    }

    #[test]
    fn a_range_the_hub_names_overrides_the_schedule() {
        let told = Outcome::Told {
            min: Duration::from_secs(5),
            max: Duration::from_secs(9),
        };
        let (_, earliest) = Backoff::default().after(told, 0.0);
        let (_, latest) = Backoff::default().after(told, 1.0);
        assert_eq!((earliest, latest), (Duration::from_secs(5), Duration::from_secs(9)));
    }

    #[test]
    fn every_wait_may_be_zero_or_anything_up_to_its_range() {
        for random in [0.0, 0.25, 0.5, f64::NAN, -1.0] {
            let (_, wait) = Backoff {
                failures: 3,
                ..Backoff::default()
            }
            .after(Outcome::Failed, random);
            assert!(wait <= Duration::from_secs(2), "half of the range at most");
        }
    }

    #[test]
    fn a_goaway_decides_when_to_dial_again_only_where_it_says_so() {
        let (min, max) = (Duration::from_secs(1), Duration::from_secs(3));
        let told = |reason| Outcome::told_by(&GoAway::new(reason, "").with_retry(min, max));
        let silent = |reason| Outcome::told_by(&GoAway::new(reason, ""));
        for reason in [
            GoAwayReason::IdentityRefused,
            GoAwayReason::Revoked,
            GoAwayReason::Replaced,
        ] {
            assert_eq!(
                (told(reason), silent(reason)),
                (Some(Outcome::Refused), Some(Outcome::Refused)),
                "{reason}"
            );
        }
        for reason in [GoAwayReason::Shutdown, GoAwayReason::Drain, GoAwayReason::Overload] {
            assert_eq!(
                (told(reason), silent(reason)),
                (Some(Outcome::Told { min, max }), None),
                "{reason}"
            );
        }
    }

    #[test]
    fn random_numbers_lie_in_their_range_and_differ() {
        let drawn = [(); 8].map(|()| random());
        assert!(drawn.iter().all(|number| (0.0..1.0).contains(number)), "{drawn:?}");
        assert!(drawn.iter().any(|number| *number != drawn[0]), "{drawn:?}");
    }
}
