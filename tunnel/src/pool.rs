//! Memory that windows of all tunnels of a process may promise to peers, and how much of it they did.
//!
//! A window is a promise: the peer may send that much before we read. Promises are counted, not bytes, so that
//! memory cannot run out after they were given. Shared by tunnels on any thread; it holds numbers only.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use crate::limits::{POOL_BYTES_MIN, POOL_BYTES_UNKNOWN, POOL_SHARE};

/// Where the kernel says how much memory a process may use: both versions of cgroups, then the machine's own.
const MEMORY_LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];
const MACHINE: &str = "/proc/meminfo";

/// What windows may promise in sum.
#[derive(Debug)]
pub struct Pool {
    bytes_max: u64,
    used: AtomicU64,
}

impl Pool {
    /// A pool of its own, as tests want it.
    #[must_use]
    pub fn of(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            used: AtomicU64::new(0),
        })
    }

    /// The one of this process: a quarter of the memory that its cgroup or machine has.
    #[must_use]
    pub fn of_process() -> Arc<Self> {
        static POOL: LazyLock<Arc<Pool>> = LazyLock::new(|| {
            let share = memory_bytes().map(|bytes| (bytes / POOL_SHARE).max(POOL_BYTES_MIN));
            Pool::of(share.unwrap_or(POOL_BYTES_UNKNOWN))
        });
        Arc::clone(&POOL)
    }

    /// Bytes that may be promised.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Bytes that are promised now.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes` if no more than `eighths` of the pool are used with them.
    pub(crate) fn take(&self, bytes: u32, eighths: u64) -> bool {
        let bound = self.bytes_max / 8 * eighths;
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes.into()).filter(|used| *used <= bound)
        });
        taken.is_ok()
    }

    pub(crate) fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The least that any of them says; a cgroup without a limit says `max` or a number beyond all memory.
fn memory_bytes() -> Option<u64> {
    let cgroups = MEMORY_LIMITS.iter().filter_map(|path| fs::read_to_string(path).ok());
    let cgroups = cgroups.filter_map(|text| text.trim().parse::<u64>().ok());
    cgroups.chain(machine_bytes()).min()
}

fn machine_bytes() -> Option<u64> {
    let text = fs::read_to_string(MACHINE).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_no_more_than_the_share_asked_for() {
        let pool = Pool::of(800);
        assert!(!pool.take(401, 4), "half of it is 400");
        assert!(pool.take(400, 4));
        assert!(!pool.take(1, 4), "half of it is used");
        assert!(pool.take(400, 8), "the other half is for others");
        assert!(!pool.take(1, 8), "and then it is empty");
        pool.give(400);
        assert_eq!(pool.used(), 400);
        assert!(pool.take(400, 8), "what came back is there");
    }

    #[test]
    fn the_process_has_a_pool_below_its_memory() {
        let pool = Pool::of_process();
        assert!(pool.bytes_max() >= POOL_BYTES_MIN);
        assert!(Arc::ptr_eq(&pool, &Pool::of_process()), "there is one for all tunnels");
    }
}
