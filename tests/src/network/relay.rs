//! A relay between two ends that can fall silent: it takes bytes and passes none on, and neither end is told.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A listening relay. Its threads end with their connections, and its listener on drop.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<SocketAddr>,
    is_black: AtomicBool,
    is_over: AtomicBool,
    connections: AtomicUsize,
}

impl Relay {
    /// Listens on `address` (port 0 for any) and passes on to `target`.
    #[track_caller]
    pub fn start(address: SocketAddr, target: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("the address is free");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            is_black: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        });
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if own.is_over.load(Ordering::SeqCst) {
                    return;
                }
                own.connections.fetch_add(1, Ordering::SeqCst);
                let target = *own.target.lock().unwrap_or_else(PoisonError::into_inner);
                if let Ok(far) = TcpStream::connect(target) {
                    join(near, far, &own);
                }
            }
        });
        Self { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes bytes from now on and passes none on; `false` lets those that come later through again.
    pub fn set_black(&self, is_black: bool) {
        self.shared.is_black.store(is_black, Ordering::SeqCst);
    }

    /// Where new connections go.
    pub fn set_target(&self, target: SocketAddr) {
        *self.shared.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    /// Connections that it took so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees it.
        let _ = TcpStream::connect(self.address);
    }
}

fn join(near: TcpStream, far: TcpStream, shared: &Arc<Shared>) {
    let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else {
        return;
    };
    for (from, to) in [(near, far), (far_too, near_too)] {
        let shared = Arc::clone(shared);
        thread::spawn(move || pass_on(from, to, &shared));
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, shared: &Shared) {
    let mut buffer = vec![0; 32 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let is_black = shared.is_black.load(Ordering::SeqCst);
        if !is_black && to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    // A black hole says nothing, not even that an end is gone.
    if !shared.is_black.load(Ordering::SeqCst) {
        let _ = to.shutdown(std::net::Shutdown::Both);
    }
}
