//! The time of the day, which the engine is told and never asks for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::limits::CLOCK_LOOK;

/// Waits for a time of the day; for ever where there is none. The clock is asked again once a minute, since it
/// may be set meanwhile.
pub(in crate::hub) async fn until(due: Option<i64>) {
    let Some(due) = due else {
        return std::future::pending().await;
    };
    while seconds() < due {
        let left = u64::try_from(due - seconds()).unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(left).min(CLOCK_LOOK)).await;
    }
}

/// Seconds since 1970.
pub(in crate::hub) fn seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
