//! So much in a second, and a burst after a rest: a bucket that knows only when it will be full again.

use std::time::Duration;

#[derive(Debug)]
pub(super) struct Rate {
    per_second: f64,
    burst: Duration,
    full_at: Duration,
}

impl Rate {
    /// `burst` is the time that may be saved up.
    pub(super) fn new(per_second: f64, burst: Duration) -> Self {
        Self {
            per_second,
            burst,
            full_at: Duration::ZERO,
        }
    }

    /// When there is something in it again.
    pub(super) fn due(&self) -> Duration {
        self.full_at.saturating_sub(self.burst)
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        now >= self.due()
    }

    /// Takes `amount`, also more than there is: what comes next waits longer for it.
    pub(super) fn spend(&mut self, amount: f64, now: Duration) {
        self.full_at = self.full_at.max(now) + Duration::from_secs_f64(amount / self.per_second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_its_rate() {
        let mut rate = Rate::new(100.0, Duration::from_secs(2));
        let (mut taken, mut now) = (0, Duration::ZERO);
        while now < Duration::from_secs(10) {
            while rate.is_due(now) {
                rate.spend(1.0, now);
                taken += 1;
            }
            now += Duration::from_millis(10);
        }
        assert!(
            (1_190..=1_210).contains(&taken),
            "200 at once and 100 a second, not {taken}"
        );
    }
}
