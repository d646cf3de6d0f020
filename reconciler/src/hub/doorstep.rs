//! The doorstep of a listener: connections in, with limits on how many are there, and on how many of them are one network's.
//!
//! A network that nobody knows has an eighth of the places, one from which somebody proved who they are a quarter, and a
//! quarter of all is for such networks alone: however many addresses somebody has who proves nothing, those who were
//! there before come in. Nothing is queued here, since a queue is filled by those who do not mind waiting.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use super::places::{self, Places};
use crate::limits::{
    ACCEPT_PAUSE, KNOWN_NETWORK_FORGOTTEN, KNOWN_NETWORKS_MAX, PLACES_OF_KNOWN, PLACES_OF_STRANGER, PLACES_RESERVED,
};

/// The places of a listener.
#[derive(Debug)]
pub(super) struct Doorstep {
    /// Of networks. What is reserved is for known ones alone.
    places: Places<IpAddr>,
    share_of_stranger: usize,
    share_of_known: usize,
    known: Arc<Known>,
}

/// A place, for as long as it is held.
pub(super) type Place = places::Place<IpAddr>;

/// Networks from which somebody proved who they are, and when they did last.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<BTreeMap<IpAddr, Instant>>);

impl Doorstep {
    /// So many places for all, with what is known of networks.
    pub(super) fn new(places: usize, known: Arc<Known>) -> Self {
        let reserved = places / PLACES_RESERVED;
        Self {
            places: Places::with_reserved(places - reserved, reserved),
            share_of_stranger: places / PLACES_OF_STRANGER,
            share_of_known: places / PLACES_OF_KNOWN,
            known,
        }
    }

    /// `None`: there is no place, or the network has its share.
    pub(super) fn place(&self, from: IpAddr) -> Option<Place> {
        let from = network(from);
        let place = match self.known.has(from, Instant::now()) {
            true => self.places.place_or_reserved(from, self.share_of_known),
            false => self.places.place(from, self.share_of_stranger),
        };
        place.ok()
    }
}

impl Known {
    /// Somebody there proved who they are.
    pub(super) fn proven(&self, from: IpAddr) {
        self.proven_at(network(from), Instant::now());
    }

    /// Whether somebody did not long ago.
    pub(super) fn has(&self, from: IpAddr, now: Instant) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let proven = known.get(&network(from));
        proven.is_some_and(|proven| now.saturating_duration_since(*proven) < KNOWN_NETWORK_FORGOTTEN)
    }

    /// Where too many are known, the one that proved least lately is forgotten.
    fn proven_at(&self, from: IpAddr, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_NETWORKS_MAX && !known.contains_key(&from) {
            let oldest = known.iter().min_by_key(|(_, proven)| **proven);
            if let Some(oldest) = oldest.map(|(from, _)| *from) {
                known.remove(&oldest);
            }
        }
        known.insert(from, now);
    }
}

/// Of IPv6 somebody may have a whole /48, by asking for it.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// The next connection, after a rest where there is none to be had: some files will be closed soon.
pub(super) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "Could not accept a connection.");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Lets callers in until `closing` is over, each with a place or not at all, and gives what goes on of them. `place` says what
/// place a caller has; whoever has none is closed at once, and may dial again.
pub(super) async fn run<P, F>(
    listener: TcpListener,
    place: impl Fn(IpAddr) -> Option<P>,
    serve: impl Fn(TcpStream, SocketAddr, P) -> F,
    closing: impl Future<Output = ()>,
) -> TaskTracker
where
    F: Future<Output = ()> + Send + 'static,
{
    let callers = TaskTracker::new();
    let mut closing = std::pin::pin!(closing);
    loop {
        let (socket, from) = tokio::select! {
            biased;
            () = &mut closing => break,
            accepted = accept(&listener) => accepted,
        };
        if let Some(place) = place(from.ip()) {
            callers.spawn(serve(socket, from, place));
        }
    }
    // Who comes now is refused at once, and does not wait in the kernel's queue.
    drop(listener);
    callers.close();
    callers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn stranger(number: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from(0x0a00_0000 + number))
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_with_many_addresses_leave_a_quarter_to_those_who_proved_who_they_are() {
        let known = Arc::<Known>::default();
        let doorstep = Doorstep::new(64, Arc::clone(&known));
        let ada = address("192.0.2.1");
        known.proven(ada);
        let mut held = Vec::new();
        for number in 0..1_000 {
            held.extend(doorstep.place(stranger(number)));
        }
        assert_eq!(held.len(), 48, "they have three quarters");
        let hers: Vec<_> = std::iter::from_fn(|| doorstep.place(ada)).collect();
        assert_eq!(hers.len(), 16, "and whoever was there before comes in");
        drop(hers);
        tokio::time::advance(KNOWN_NETWORK_FORGOTTEN).await;
        assert!(doorstep.place(ada).is_none(), "who was not seen for long is a stranger");
        held.pop();
        assert!(doorstep.place(ada).is_some(), "as any other");
    }

    #[test]
    fn one_network_has_an_eighth_and_a_known_one_a_quarter() {
        let known = Arc::<Known>::default();
        let doorstep = Doorstep::new(64, Arc::clone(&known));
        // Each from another /64 of one /48.
        let from = |number: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, number, 0, 0, 0, 1));
        let mut held: Vec<_> = (0..100).filter_map(|number| doorstep.place(from(number))).collect();
        assert_eq!(held.len(), 8);
        assert!(
            doorstep.place(address("2001:db8:2::1")).is_some(),
            "another network has its own"
        );
        known.proven(from(7));
        held.extend((0..100).filter_map(|number| doorstep.place(from(number))));
        assert_eq!(held.len(), 16);
        held.clear();
        assert!(doorstep.place(from(1)).is_some(), "they are given back");
        assert_eq!(network(address("::ffff:192.0.2.1")), address("192.0.2.1"));
    }

    #[test]
    fn so_many_networks_are_known_and_the_newest_of_them() {
        let (known, now) = (Known::default(), Instant::now());
        for number in 0..=KNOWN_NETWORKS_MAX {
            let number = u32::try_from(number).expect("it is small");
            known.proven_at(
                stranger(number),
                now + std::time::Duration::from_millis(u64::from(number)),
            );
        }
        assert!(!known.has(stranger(0), now) && known.has(stranger(1), now));
    }
}
