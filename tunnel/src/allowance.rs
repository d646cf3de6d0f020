//! What a process allows each of its tunnels, beyond what both sides agreed on.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use crate::meters::Meters;
use crate::pool::Pool;

const BYTES_PER_MEGABIT: u64 = 125_000;

/// Cheap to clone; the usual one shares memory and meters with all other tunnels of the process.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// Memory that windows are taken from.
    pub pool: Arc<Pool>,
    /// Where everything is counted.
    pub meters: Arc<Meters>,
    /// Bytes of streams that one tunnel sends in a second; `None` for as many as the link takes. Lower, and
    /// large answers take longer; control frames do not count.
    pub bandwidth: Option<NonZeroU64>,
}

impl Allowance {
    /// The usual one, with so many megabits a second.
    #[must_use]
    pub fn of_megabits(megabits: Option<NonZeroU32>) -> Self {
        let bytes = |megabits: NonZeroU32| NonZeroU64::new(u64::from(megabits.get()) * BYTES_PER_MEGABIT);
        Self {
            bandwidth: megabits.and_then(bytes),
            ..Self::default()
        }
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            pool: Pool::of_process(),
            meters: Meters::of_process(),
            bandwidth: None,
        }
    }
}
