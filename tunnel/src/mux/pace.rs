//! How fast the link takes what we send, as far as it shows: large frames suit a fast one, and on a slow one
//! they make what is urgent wait.

use std::time::Duration;

use crate::limits::{
    BATCH_BYTES, BATCH_BYTES_SLOW, FAST_LINK_BYTES_PER_SECOND, FRAME_PAYLOAD_BYTES_SLOW, PACE_BYTES, PACE_TIME,
};

#[derive(Debug)]
pub(super) struct Pace {
    is_fast: bool,
    /// When the batch began that is on its way into the socket.
    began: Option<Duration>,
    bytes: u64,
    busy: Duration,
}

impl Pace {
    /// Fast until it shows otherwise: the first batches tell.
    pub(super) fn new() -> Self {
        Self {
            is_fast: true,
            began: None,
            bytes: 0,
            busy: Duration::ZERO,
        }
    }

    pub(super) fn taken_out(&mut self, bytes: usize, now: Duration) {
        self.began.get_or_insert(now);
        self.bytes += bytes as u64;
    }

    pub(super) fn flushed(&mut self, now: Duration) {
        if let Some(began) = self.began.take() {
            self.busy += now.saturating_sub(began);
        }
        if self.bytes < PACE_BYTES && self.busy < PACE_TIME {
            return;
        }
        let rate = self.bytes as f64 / self.busy.as_secs_f64();
        // Half as fast before it counts as slow again, so that it does not flap.
        let bound = FAST_LINK_BYTES_PER_SECOND / if self.is_fast { 2.0 } else { 1.0 };
        self.is_fast = rate >= bound;
        (self.bytes, self.busy) = (0, Duration::ZERO);
    }

    /// Payload of the largest frame that is made now.
    pub(super) fn frame_bytes(&self, agreed: usize) -> usize {
        if self.is_fast {
            agreed
        } else {
            agreed.min(FRAME_PAYLOAD_BYTES_SLOW)
        }
    }

    /// Bytes to take out before the socket has them.
    pub(super) fn batch_bytes(&self) -> usize {
        if self.is_fast { BATCH_BYTES } else { BATCH_BYTES_SLOW }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(pace: &mut Pace, now: &mut Duration, bytes_per_second: f64) {
        for _ in 0..100 {
            let bytes = pace.batch_bytes();
            pace.taken_out(bytes, *now);
            *now += Duration::from_secs_f64(bytes as f64 / bytes_per_second);
            pace.flushed(*now);
        }
    }

    #[test]
    fn frames_are_small_on_a_slow_link_and_large_on_a_fast_one() {
        let (mut pace, mut now) = (Pace::new(), Duration::ZERO);
        for (bytes_per_second, frame) in [(12.5e6, 16 << 10), (1e9, 32 << 10), (30e6, 32 << 10), (1e3, 16 << 10)] {
            send(&mut pace, &mut now, bytes_per_second);
            assert_eq!(
                pace.frame_bytes(32 << 10),
                frame,
                "at {bytes_per_second} bytes a second"
            );
        }
        assert_eq!(pace.frame_bytes(4 << 10), 4 << 10, "never more than was agreed");
    }
}
