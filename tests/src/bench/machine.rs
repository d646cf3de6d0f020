//! How fast this machine is right now, to judge absolute figures by.

use std::hint::black_box;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::Figures;

const BUFFER_BYTES: usize = 1 << 20;
const ROUNDS: usize = 256;
const REPEATS: usize = 5;

/// The time of hashing 256 MiB on one core, the best of five.
pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let buffer = vec![0x5a_u8; BUFFER_BYTES];
    let best = (0..REPEATS).map(|_| hash(&buffer)).min().unwrap_or_default();
    figures.print_ms("calibration", best)
}

fn hash(buffer: &[u8]) -> Duration {
    let started = Instant::now();
    let mut hasher = Sha256::new();
    for _ in 0..ROUNDS {
        hasher.update(black_box(buffer));
    }
    black_box(hasher.finalize());
    started.elapsed()
}
