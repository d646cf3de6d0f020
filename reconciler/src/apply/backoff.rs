//! Waits between tries: they double, have a maximum, and differ between processes.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The next wait of something that keeps failing.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    /// Starts at `first` and never waits longer than `max`.
    pub(crate) fn new(first: Duration, max: Duration) -> Self {
        Self {
            first,
            max,
            next: first,
        }
    }

    /// How long to wait now: between three quarters of the step and all of it.
    pub(crate) fn wait(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.max);
        step.mul_f64(1.0 - jitter() / 4.0)
    }

    /// It worked: the next wait is the first one again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Between 0 and 1. The seed that the standard library gives every map is random enough to keep a
/// thousand appliers apart, and saves a dependency.
fn jitter() -> f64 {
    let random = RandomState::new().hash_one(0_u8);
    f64::from(u16::try_from(random & 0xffff).unwrap_or(0)) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_maximum_and_start_again() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(4));
        for step in [1.0, 2.0, 4.0, 4.0] {
            let wait = backoff.wait().as_secs_f64();
            assert!((step * 0.74..=step).contains(&wait), "{wait} is not about {step}");
        }
        backoff.reset();
        assert!(backoff.wait() <= Duration::from_secs(1));
    }
}
