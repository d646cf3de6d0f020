//! How wide a stream's window should be: wider while a peer uses it up quickly, narrow again after a rest.
//!
//! A window that is used up within two round trips held the sender up, so it doubles; one that lasts longer
//! does no harm. What a stream may have beyond its first credit is asked of [`Budget`], which keeps room for
//! streams to come.

use std::sync::Arc;
use std::time::Duration;

use crate::limits::{
    STREAMS_MAX, TUNNEL_WINDOW_BYTES_MAX, WINDOW_BYTES, WINDOW_BYTES_FIRST, WINDOW_BYTES_MAX, WINDOW_BYTES_SCARCE,
    WINDOW_REST,
};
use crate::pool::Pool;

/// What a stream wants after bytes came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    /// To know the round-trip time, without which nothing can be said.
    Rtt,
    /// A window of this size, wider or narrower.
    Window(u32),
}

/// How quickly one stream uses its window.
#[derive(Debug)]
pub(super) struct Usage {
    began: Duration,
    last: Duration,
    bytes: u64,
}

impl Usage {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            began: now,
            last: now,
            bytes: 0,
        }
    }

    /// Something came at `now` on a stream whose window is `window`; `bytes` were read since that happened last.
    pub(super) fn of(&mut self, bytes: usize, window: u32, now: Duration, rtt: Option<Duration>) -> Wish {
        let rested = now.saturating_sub(std::mem::replace(&mut self.last, now)) >= WINDOW_REST;
        if rested {
            (self.began, self.bytes) = (now, 0);
        }
        self.bytes += bytes as u64;
        if rested && window > WINDOW_BYTES {
            return Wish::Window(WINDOW_BYTES);
        }
        if self.bytes < window.into() || window >= WINDOW_BYTES_MAX {
            return Wish::Nothing;
        }
        let took = now.saturating_sub(std::mem::replace(&mut self.began, now));
        self.bytes = 0;
        match rtt {
            None => Wish::Rtt,
            Some(rtt) if took <= 2 * rtt => Wish::Window(window.saturating_mul(2).min(WINDOW_BYTES_MAX)),
            Some(_) => Wish::Nothing,
        }
    }
}

/// What credit is for; who comes later in this list may use more of what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Growth,
    Start,
    ScarceStart,
    Stream,
}

impl Purpose {
    /// Of a tunnel's or process's memory, in eighths.
    fn eighths(self) -> u64 {
        match self {
            Self::Growth => 4,
            Self::Start => 6,
            Self::ScarceStart => 7,
            Self::Stream => 8,
        }
    }
}

/// What one tunnel's windows take of its own budget and of the process's pool.
#[derive(Debug)]
pub(super) struct Budget {
    pool: Arc<Pool>,
    /// First credits of streams, which the limit on streams bounds.
    first: u64,
    /// All beyond.
    beyond: u64,
}

impl Budget {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            first: 0,
            beyond: 0,
        }
    }

    /// Bytes promised to the peer.
    pub(super) fn used(&self) -> u64 {
        self.first + self.beyond
    }

    /// Room for one more stream with `first` bytes of credit; false if the process has none.
    pub(super) fn stream(&mut self, first: u32) -> bool {
        let taken = self.pool.take(first, Purpose::Stream.eighths());
        self.first += if taken { u64::from(first) } else { 0 };
        taken
    }

    /// The window a new stream gets.
    pub(super) fn start(&mut self, first: u32) -> u32 {
        let wide = [
            (WINDOW_BYTES, Purpose::Start),
            (WINDOW_BYTES_SCARCE, Purpose::ScarceStart),
        ];
        let fits = wide.into_iter().filter(|(window, _)| *window > first);
        let mut fits = fits.filter(|(window, purpose)| self.widen(window - first, *purpose));
        fits.next().map_or(first, |(window, _)| window)
    }

    /// Room to grow from one window to a wider one.
    pub(super) fn grow(&mut self, from: u32, to: u32) -> bool {
        self.widen(to - from, Purpose::Growth)
    }

    fn widen(&mut self, bytes: u32, purpose: Purpose) -> bool {
        // What streams to come need at first is set aside.
        let beyond_max = TUNNEL_WINDOW_BYTES_MAX - STREAMS_MAX as u64 * u64::from(WINDOW_BYTES_FIRST);
        let beyond = self.beyond + u64::from(bytes);
        let taken = beyond <= beyond_max / 8 * purpose.eighths() && self.pool.take(bytes, purpose.eighths());
        if taken {
            self.beyond = beyond;
        }
        taken
    }

    /// A stream's window is `bytes` narrower. What was first credit counts as such to the last.
    pub(super) fn give(&mut self, bytes: u32) {
        let bytes = u64::from(bytes);
        let beyond = bytes.min(self.beyond);
        self.beyond -= beyond;
        self.first = self.first.saturating_sub(bytes - beyond);
        self.pool.give(bytes);
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.pool.give(self.used());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(60));

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_window_used_within_two_round_trips_doubles_up_to_four_mebibytes() {
        let (mut usage, mut window, mut now) = (Usage::new(at(0)), WINDOW_BYTES, 0);
        let mut widths = Vec::new();
        for _ in 0..6 {
            now += 100;
            if let Wish::Window(wider) = usage.of(window as usize, window, at(now), RTT) {
                window = wider;
            }
            widths.push(window >> 10);
        }
        assert_eq!(widths, [512, 1024, 2048, 4096, 4096, 4096]);
    }

    #[test]
    fn a_window_that_lasts_longer_than_two_round_trips_stays() {
        let mut usage = Usage::new(at(0));
        let half = WINDOW_BYTES as usize / 2;
        assert_eq!(usage.of(half, WINDOW_BYTES, at(100), RTT), Wish::Nothing, "half of it");
        assert_eq!(
            usage.of(half, WINDOW_BYTES, at(121), RTT),
            Wish::Nothing,
            "all, but late"
        );
        assert_eq!(
            usage.of(half, WINDOW_BYTES, at(130), RTT),
            Wish::Nothing,
            "counted anew"
        );
    }

    #[test]
    fn without_a_round_trip_time_one_is_asked_for() {
        let mut usage = Usage::new(at(0));
        assert_eq!(usage.of(WINDOW_BYTES as usize, WINDOW_BYTES, at(1), None), Wish::Rtt);
    }

    #[test]
    fn a_stream_that_rested_has_a_narrow_window_again() {
        let mut usage = Usage::new(at(0));
        let rested = WINDOW_REST.as_millis() as u64;
        let wish = usage.of(1, WINDOW_BYTES_MAX, at(rested), RTT);
        assert_eq!(wish, Wish::Window(WINDOW_BYTES));
        assert_eq!(usage.of(1, WINDOW_BYTES, at(3 * rested), RTT), Wish::Nothing);
    }

    #[test]
    fn growth_leaves_room_for_streams_to_come() {
        let pool = Pool::of(u64::MAX);
        let mut budget = Budget::new(Arc::clone(&pool));
        let mut grown = 0;
        while budget.grow(WINDOW_BYTES, WINDOW_BYTES_MAX) {
            grown += 1;
        }
        assert!(grown >= 5, "some streams may have four mebibytes, not {grown}");
        let windows: Vec<u32> = (0..STREAMS_MAX)
            .map(|_| {
                assert!(budget.stream(WINDOW_BYTES_FIRST), "there is room for every stream");
                budget.start(WINDOW_BYTES_FIRST)
            })
            .collect();
        assert_eq!(windows[0], WINDOW_BYTES, "the next stream starts as usual");
        assert!(windows.contains(&WINDOW_BYTES_SCARCE), "then windows are scarce");
        assert_eq!(
            windows[STREAMS_MAX - 1],
            WINDOW_BYTES_FIRST,
            "the last has its first credit"
        );
        assert!(budget.used() <= TUNNEL_WINDOW_BYTES_MAX, "never more than the budget");
        drop(budget);
        assert_eq!(pool.used(), 0, "a tunnel that is over gives everything back");
    }

    #[test]
    fn a_process_without_room_takes_no_stream() {
        let mut budget = Budget::new(Pool::of(u64::from(2 * WINDOW_BYTES_FIRST)));
        assert!(budget.stream(WINDOW_BYTES_FIRST) && budget.stream(WINDOW_BYTES_FIRST));
        assert_eq!(budget.start(WINDOW_BYTES_FIRST), WINDOW_BYTES_FIRST);
        assert!(!budget.stream(WINDOW_BYTES_FIRST), "the pool is empty");
        budget.give(WINDOW_BYTES_FIRST);
        assert!(budget.stream(WINDOW_BYTES_FIRST), "until a stream ends");
    }
}
