//! What a process allows each of its tunnels, beyond what both sides agreed on.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::meters::Meters;
use crate::pool::Pool;

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

impl Default for Allowance {
    fn default() -> Self {
        Self {
            pool: Pool::of_process(),
            meters: Meters::of_process(),
            bandwidth: None,
        }
    }
}
