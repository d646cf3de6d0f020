//! Free ports on loopback.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range that Linux gives to outgoing connections (32768 and up), so that a port stays free while
/// the server that owns it is down for a moment.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port nobody listens on, and that no other call in this process was given.
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes that run side by side begin at different places.
    let start = (std::process::id().wrapping_mul(977) % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (start + step) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port between {FIRST} and {} is free", FIRST + COUNT);
}
