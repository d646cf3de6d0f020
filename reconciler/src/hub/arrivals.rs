//! How many agents are let in at a time, how fast that goes, and over what time those who are there should come back.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, Instant, timeout};

use crate::limits::{HANDSHAKE_QUEUE_TIMEOUT, HANDSHAKES_MAX, HANDSHAKES_PER_SECOND_MIN, HANDSHAKES_QUEUED_MAX};

/// A hub's doorstep.
#[derive(Debug)]
pub(super) struct Arrivals {
    queue: Arc<Semaphore>,
    handshakes: Semaphore,
    rate: Mutex<Rate>,
    start: Instant,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self {
            queue: Arc::new(Semaphore::new(HANDSHAKES_MAX + HANDSHAKES_QUEUED_MAX)),
            handshakes: Semaphore::new(HANDSHAKES_MAX),
            rate: Mutex::default(),
            start: Instant::now(),
        }
    }
}

impl Arrivals {
    /// A place in the queue; `None` if it is full.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.queue).try_acquire_owned().ok()
    }

    /// Runs a handshake when its turn has come; `None` if that is too late.
    pub(super) async fn greet<T, E>(&self, handshake: impl Future<Output = Result<T, E>>) -> Option<Result<T, E>> {
        // The semaphore is never closed.
        let turn = timeout(HANDSHAKE_QUEUE_TIMEOUT, self.handshakes.acquire()).await;
        let _turn = turn.ok()?.ok()?;
        let outcome = handshake.await;
        if outcome.is_ok() {
            self.rate().count(self.start.elapsed());
        }
        Some(outcome)
    }

    /// Over what time so many agents are to come back to whoever follows.
    pub(super) fn spread_of(&self, tunnels: usize) -> Duration {
        self.rate().spread_of(tunnels)
    }

    fn rate(&self) -> std::sync::MutexGuard<'_, Rate> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most handshakes that were done in one second.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    second: u64,
    count: u32,
    best: u32,
}

impl Rate {
    fn count(&mut self, at: Duration) {
        if at.as_secs() != self.second {
            (self.second, self.count) = (at.as_secs(), 0);
        }
        self.count += 1;
        self.best = self.best.max(self.count);
    }

    /// By half of the rate, so that the tunnels that stand are served meanwhile.
    fn spread_of(self, tunnels: usize) -> Duration {
        let per_second = f64::from(self.best).max(HANDSHAKES_PER_SECOND_MIN) / 2.0;
        Duration::from_secs_f64(tunnels as f64 / per_second).min(tunnel::backoff::RETRY_MAX_OF_LARGE_FLEETS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_come_back_at_half_of_the_rate_that_was_measured() {
        let mut rate = Rate::default();
        assert_eq!(rate.spread_of(1_000), Duration::from_secs(40), "nothing was measured");
        (0..400).for_each(|at| rate.count(Duration::from_millis(at)));
        (0..100).for_each(|at| rate.count(Duration::from_millis(5_000 + at)));
        assert_eq!(
            rate.spread_of(1_000),
            Duration::from_secs(5),
            "400 were done in the best second"
        );
        assert_eq!(rate.spread_of(0), Duration::ZERO);
        assert_eq!(rate.spread_of(10_000_000), tunnel::backoff::RETRY_MAX_OF_LARGE_FLEETS);
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_is_bounded_and_so_is_the_wait_in_it() {
        let arrivals = Arc::new(Arrivals::default());
        let places: Vec<_> = std::iter::from_fn(|| arrivals.place()).collect();
        assert_eq!(places.len(), HANDSHAKES_MAX + HANDSHAKES_QUEUED_MAX);
        let greeted: Vec<_> = (0..HANDSHAKES_MAX)
            .map(|_| {
                let arrivals = Arc::clone(&arrivals);
                tokio::spawn(async move { arrivals.greet(std::future::pending::<Result<(), ()>>()).await })
            })
            .collect();
        while arrivals.handshakes.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let late = arrivals.greet(async { Ok::<_, ()>(()) }).await;
        assert_eq!(late, None, "all turns are taken for longer than anybody waits");
        greeted.iter().for_each(tokio::task::JoinHandle::abort);
        drop(greeted);
        let next = arrivals.greet(async { Ok::<_, ()>(()) }).await;
        assert_eq!(next, Some(Ok(())), "who broke off makes room");
    }
}
