//! How many agents are let in at a time, how fast that goes, and over what time those who are there should come back.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use std::net::IpAddr;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Duration, Instant, timeout};

use super::doorstep::{self, Doorstep, Known};
use super::turned_away::TurnedAway;
use super::turns::Turns;
use crate::limits::{
    HANDSHAKE_QUEUE_TIMEOUT, HANDSHAKES_MAX, HANDSHAKES_OF_PLAIN_MAX, HANDSHAKES_PER_SECOND_MIN, HANDSHAKES_QUEUED_MAX,
    HANDSHAKES_QUEUED_OF_PLAIN_MAX, PLACES_OF_KNOWN, PLACES_OF_STRANGER, PLACES_RESERVED,
};

/// Where a hub's agents arrive.
#[derive(Debug)]
pub(super) struct Arrivals {
    queue: Doorstep,
    handshakes: Semaphore,
    /// Of all turns, those that others have than known networks.
    of_strangers: Semaphore,
    turns_of_stranger: Turns,
    turns_of_known: Turns,
    plain: Plain,
    known: Arc<Known>,
    rate: Mutex<Rate>,
    start: Instant,
    /// Over what time agents come back to whoever follows, once the hub ends.
    farewell: OnceLock<Duration>,
    /// What was said of those who are turned away.
    pub(super) turned_away: TurnedAway,
}

/// Of agents behind a server that ends TLS, all of which have its address.
#[derive(Debug)]
struct Plain {
    queued: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// A place in the queue.
#[derive(Debug)]
pub(super) struct Place {
    _place: InQueue,
    /// What its network may have of all turns.
    turns: Arc<Semaphore>,
    from: Network,
}

/// Where an agent comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Stranger,
    Known,
    /// Behind a server that ends TLS. Its turns are apart: whoever says nothing at the other door takes none of them.
    Plain,
}

#[derive(Debug)]
enum InQueue {
    OfAll { _place: doorstep::Place },
    OfPlain { _place: OwnedSemaphorePermit },
}

/// Somebody's turn, as long as it lasts.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    _in_all: Option<SemaphorePermit<'a>>,
    _of_strangers: Option<SemaphorePermit<'a>>,
    _of_network: OwnedSemaphorePermit,
}

impl Default for Arrivals {
    fn default() -> Self {
        let known = Arc::<Known>::default();
        Self {
            queue: Doorstep::new(HANDSHAKES_MAX + HANDSHAKES_QUEUED_MAX, Arc::clone(&known)),
            handshakes: Semaphore::new(HANDSHAKES_MAX),
            of_strangers: Semaphore::new(HANDSHAKES_MAX - HANDSHAKES_MAX / PLACES_RESERVED),
            turns_of_stranger: Turns::of_each(HANDSHAKES_MAX / PLACES_OF_STRANGER),
            turns_of_known: Turns::of_each(HANDSHAKES_MAX / PLACES_OF_KNOWN),
            plain: Plain {
                queued: Arc::new(Semaphore::new(HANDSHAKES_QUEUED_OF_PLAIN_MAX)),
                turns: Arc::new(Semaphore::new(HANDSHAKES_OF_PLAIN_MAX)),
            },
            known,
            rate: Mutex::default(),
            start: Instant::now(),
            farewell: OnceLock::new(),
            turned_away: TurnedAway::default(),
        }
    }
}

impl Arrivals {
    /// A place in the queue; `None` if it is full, or if too many came from that network.
    pub(super) fn place(&self, from: IpAddr, is_plain: bool) -> Option<Place> {
        if is_plain {
            let place = Arc::clone(&self.plain.queued).try_acquire_owned().ok()?;
            return Some(Place {
                _place: InQueue::OfPlain { _place: place },
                turns: Arc::clone(&self.plain.turns),
                from: Network::Plain,
            });
        }
        let (network, turns) = match self.known.has(from, Instant::now()) {
            true => (Network::Known, &self.turns_of_known),
            false => (Network::Stranger, &self.turns_of_stranger),
        };
        Some(Place {
            _place: InQueue::OfAll {
                _place: self.queue.place(from)?,
            },
            turns: turns.of(from),
            from: network,
        })
    }

    /// Waits for a turn; `None` if it would come too late. Who waits for the turns of one network takes none of the others'.
    pub(super) async fn turn(&self, place: &Place) -> Option<Turn<'_>> {
        let turn = async {
            // The semaphores are never closed.
            let of_network = Arc::clone(&place.turns).acquire_owned().await.ok()?;
            let of_strangers = match place.from {
                Network::Stranger => Some(self.of_strangers.acquire().await.ok()?),
                Network::Known | Network::Plain => None,
            };
            let in_all = match place.from {
                Network::Plain => None,
                Network::Stranger | Network::Known => Some(self.handshakes.acquire().await.ok()?),
            };
            Some(Turn {
                _in_all: in_all,
                _of_strangers: of_strangers,
                _of_network: of_network,
            })
        };
        timeout(HANDSHAKE_QUEUE_TIMEOUT, turn).await.ok().flatten()
    }

    /// An agent came to terms, from there where its address is its own.
    pub(super) fn arrived(&self, from: Option<IpAddr>) {
        if let Some(from) = from {
            self.known.proven(from);
        }
        self.rate().count(self.start.elapsed());
    }

    /// Over what time agents are to come back to whoever follows: one answer for all of them, by how many there were
    /// when the first one asked, since each that left makes the rest look fewer.
    pub(super) fn farewell(&self, tunnels: impl FnOnce() -> usize) -> Duration {
        *self.farewell.get_or_init(|| self.rate().spread_of(tunnels()))
    }

    fn rate(&self) -> std::sync::MutexGuard<'_, Rate> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most handshakes that were done in one second.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    second: u64,
    count: u32,
    best: u32,
}

impl Rate {
    fn count(&mut self, at: Duration) {
        if at.as_secs() != self.second {
            (self.second, self.count) = (at.as_secs(), 0);
        }
        self.count += 1;
        self.best = self.best.max(self.count);
    }

    /// By half of the rate, so that the tunnels that stand are served meanwhile.
    fn spread_of(self, tunnels: usize) -> Duration {
        let per_second = f64::from(self.best).max(HANDSHAKES_PER_SECOND_MIN) / 2.0;
        Duration::from_secs_f64(tunnels as f64 / per_second).min(tunnel::backoff::RETRY_MAX_OF_LARGE_FLEETS)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tunnel::backoff::{Backoff, Outcome};

    use super::*;

    #[test]
    fn agents_come_back_at_half_of_the_rate_that_was_measured() {
        let mut rate = Rate::default();
        assert_eq!(rate.spread_of(1_000), Duration::from_secs(40), "nothing was measured");
        (0..400).for_each(|at| rate.count(Duration::from_millis(at)));
        (0..100).for_each(|at| rate.count(Duration::from_millis(5_000 + at)));
        assert_eq!(
            rate.spread_of(1_000),
            Duration::from_secs(5),
            "400 were done in the best second"
        );
        assert_eq!(rate.spread_of(0), Duration::ZERO);
        assert_eq!(rate.spread_of(10_000_000), tunnel::backoff::RETRY_MAX_OF_LARGE_FLEETS);
    }

    #[test]
    fn all_agents_of_a_hub_that_ends_have_one_range_however_few_are_left() {
        let arrivals = Arrivals::default();
        let told = [1_000, 500, 1].map(|left| arrivals.farewell(|| left));
        assert_eq!(told, [Duration::from_secs(40); 3]);
    }

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from(0x0a00_0000 + number).into()
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_is_bounded_and_so_is_the_wait_in_it() {
        let arrivals = Arrivals::default();
        let ours = address(u32::from(u16::MAX));
        arrivals.known.proven(ours);
        let places: Vec<_> = (0..).map_while(|from| arrivals.place(address(from), false)).collect();
        let all = HANDSHAKES_MAX + HANDSHAKES_QUEUED_MAX;
        assert_eq!(places.len(), all - all / PLACES_RESERVED);
        let mut turns = Vec::new();
        let of_strangers = HANDSHAKES_MAX - HANDSHAKES_MAX / PLACES_RESERVED;
        for place in &places[..of_strangers] {
            turns.push(arrivals.turn(place).await.expect("there is one"));
        }
        let next = &places[of_strangers];
        let begun = Instant::now();
        assert!(
            arrivals.turn(next).await.is_none(),
            "all turns are taken for longer than anybody waits"
        );
        assert_eq!(begun.elapsed(), HANDSHAKE_QUEUE_TIMEOUT);
        for _ in of_strangers..HANDSHAKES_MAX {
            let place = arrivals.place(ours, false).expect("who was there before has a place");
            turns.push(arrivals.turn(&place).await.expect("and a turn"));
        }
        assert_eq!(begun.elapsed(), HANDSHAKE_QUEUE_TIMEOUT, "at once");
        turns.remove(0);
        assert!(arrivals.turn(next).await.is_some(), "who broke off makes room");
    }

    /// How long one handshake takes over a long way.
    const HANDSHAKE: Duration = Duration::from_millis(200);

    #[tokio::test(start_paused = true)]
    async fn two_thousand_agents_come_back_and_no_more_than_64_shake_hands_at_once() {
        let arrivals = Arc::new(Arrivals::default());
        let (peak, away) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let begun = Instant::now();
        // All lose their hub at once, and it says nothing of over what time they should come. A quarter is one site.
        let agents = (0..2_000).map(|number| {
            let (arrivals, peak, away) = (Arc::clone(&arrivals), Arc::clone(&peak), Arc::clone(&away));
            let from = address(if number < 500 { 1 } else { number });
            tokio::spawn(async move {
                let mut backoff = Backoff::default();
                let mut outcome = Outcome::Lived(Duration::from_secs(3_600));
                loop {
                    let random = f64::from(number.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24);
                    let (next, wait) = backoff.after(outcome, random);
                    backoff = next;
                    tokio::time::sleep(wait).await;
                    outcome = Outcome::Failed;
                    let Some(place) = arrivals.place(from, false) else {
                        away.fetch_add(1, Ordering::Relaxed);
                        continue;
                    };
                    let Some(turn) = arrivals.turn(&place).await else {
                        continue;
                    };
                    let at_once = HANDSHAKES_MAX - arrivals.handshakes.available_permits();
                    peak.fetch_max(at_once, Ordering::Relaxed);
                    tokio::time::sleep(HANDSHAKE).await;
                    arrivals.arrived(Some(from));
                    drop(turn);
                    return begun.elapsed();
                }
            })
        });
        let agents: Vec<_> = agents.collect();
        let mut last = Duration::ZERO;
        for agent in agents {
            last = last.max(agent.await.expect("without a panic"));
        }
        assert_eq!(
            peak.load(Ordering::Relaxed),
            HANDSHAKES_MAX,
            "and no fewer while many wait"
        );
        assert!(away.load(Ordering::Relaxed) > 0, "more come than may wait");
        assert!(last < Duration::from_secs(60), "the last one is back after {last:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_who_take_all_their_turns_hold_up_nobody_behind_a_server_that_ends_tls() {
        let arrivals = Arrivals::default();
        let mut turns = Vec::new();
        let strangers: Vec<_> = (0..).map_while(|from| arrivals.place(address(from), false)).collect();
        for place in &strangers[..HANDSHAKES_MAX - HANDSHAKES_MAX / PLACES_RESERVED] {
            turns.push(arrivals.turn(place).await.expect("there is one"));
        }
        let begun = Instant::now();
        let plain: Vec<_> = (0..HANDSHAKES_OF_PLAIN_MAX)
            .map_while(|_| arrivals.place(address(0), true))
            .collect();
        for place in &plain {
            turns.push(arrivals.turn(place).await.expect("it has turns of its own"));
        }
        assert_eq!(plain.len(), HANDSHAKES_OF_PLAIN_MAX);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_has_neither_all_turns_nor_the_whole_queue() {
        let all = HANDSHAKES_MAX + HANDSHAKES_QUEUED_MAX;
        for (is_plain, queued, of_place) in [
            (false, all / PLACES_OF_STRANGER, HANDSHAKES_MAX / PLACES_OF_STRANGER),
            (true, HANDSHAKES_QUEUED_OF_PLAIN_MAX, HANDSHAKES_OF_PLAIN_MAX),
        ] {
            let arrivals = Arrivals::default();
            let places: Vec<_> = std::iter::from_fn(|| arrivals.place(address(1), is_plain)).collect();
            assert_eq!(places.len(), queued);
            let mut turns = Vec::new();
            for place in &places[..of_place] {
                turns.push(arrivals.turn(place).await.expect("there is one"));
            }
            let more = arrivals.turn(&places[of_place]);
            let mut more = std::pin::pin!(more);
            let is_first = tokio::select! {
                biased;
                _turn = more.as_mut() => true,
                () = tokio::task::yield_now() => false,
            };
            assert!(!is_first, "it waits behind those of its own address");
            let elsewhere = arrivals.place(address(2), false).expect("there is a place for others");
            let begun = Instant::now();
            assert!(arrivals.turn(&elsewhere).await.is_some());
            assert_eq!(begun.elapsed(), Duration::ZERO, "and a turn at once");
        }
    }
}
