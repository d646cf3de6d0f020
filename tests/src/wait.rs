//! Waiting for the world to reach a state, by looking at it.

use std::thread;
use std::time::{Duration, Instant};

/// How long a wait may take on a slow and busy machine. Passing tests never see it.
pub const LONG: Duration = Duration::from_secs(120);

/// Looks until `look` finds something, and returns it.
///
/// # Panics
/// After `limit`, with `what` and the last reason that `look` gave.
#[track_caller]
pub fn eventually<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    let mut rest = Duration::from_millis(10);
    loop {
        match look() {
            Ok(found) => return found,
            Err(reason) if started.elapsed() >= limit => panic!("{what}: not within {limit:?}; last seen: {reason}"),
            Err(_) => pause(rest),
        }
        rest = (rest * 3 / 2).min(Duration::from_millis(250));
    }
}

/// Looks again and again for `time`, and panics as soon as `look` finds a reason: for what must *not* happen.
#[track_caller]
pub fn throughout(time: Duration, what: &str, mut look: impl FnMut() -> Result<(), String>) {
    let started = Instant::now();
    while started.elapsed() < time {
        if let Err(reason) = look() {
            panic!("{what}: broken after {:?}: {reason}", started.elapsed());
        }
        pause(Duration::from_millis(100));
    }
}

/// Here alone: between two looks, and between the steps of what has a pace of its own.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no runtime here whose worker this could block"
)]
pub fn pause(time: Duration) {
    thread::sleep(time);
}
