//! Connections to another hub: what it tells is taken in, and its clusters can be reached by one hop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use render::ClusterName;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tunnel::backoff::Backoff;
use tunnel::{ConnectOptions, Open, OpenCode, OpenError, Opener, TargetClass, Tunnel};

use super::endpoints::Endpoints;
use super::first_words::FirstWords;
use super::heard::{Heard, Told};
use super::{Peer, PeerKeys, name, now_ms, twins};
use crate::fault::line;
use crate::hub::asking::Door;
use crate::hub::clock::seconds;
use crate::hub::connections::Connections;
use crate::hub::dispatch::Dispatch;
use crate::hub::engine::{Event, KeyWish};
use crate::hub::keys::HubKeys;
use crate::hub::registry::Registry;
use crate::hub::session::drained;
use crate::key_sets::{self, HubKeysError, KeySet};
use crate::limits::{
    DRAIN_TIMEOUT, KEY_STEP_TIMEOUT, PEER_CONNECTIONS, PEER_KEYS_REST, PEER_PATIENCE, PEER_SILENCE,
    SESSION_CLOSE_TIMEOUT, SESSION_STEP_TIMEOUT,
};
use crate::wire::{Hop, PeerWord, WITH_ASKS, read_message};

/// What dialling other hubs needs.
#[derive(Clone)]
pub(in crate::hub) struct Dialling {
    /// This hub's own, of which it shows the first.
    pub(in crate::hub) keys: HubKeys,
    pub(in crate::hub) peer_keys: Arc<PeerKeys>,
    pub(in crate::hub) server_id: String,
    pub(in crate::hub) dispatch: Arc<Dispatch>,
    pub(in crate::hub) connections: Arc<Connections>,
    pub(in crate::hub) registry: Arc<Registry>,
    pub(in crate::hub) events: mpsc::Sender<Event>,
    pub(in crate::hub) endpoints: Arc<Endpoints>,
    pub(in crate::hub) first_words: Arc<FirstWords>,
    pub(in crate::hub) others: Others,
}

/// Streams to clusters whose tunnels another hub holds, over whichever of its connections stand.
#[derive(Clone, Default)]
pub(in crate::hub) struct Pool(Arc<Mutex<PoolState>>);

#[derive(Default)]
struct PoolState {
    openers: [Option<Opener>; PEER_CONNECTIONS],
    next: usize,
}

impl Pool {
    /// The next connection in turn; `None` while none stands.
    fn opener(&self) -> Option<Opener> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = pool.next;
        pool.next = (first + 1) % PEER_CONNECTIONS;
        let mut places = (0..PEER_CONNECTIONS).map(|step| (first + step) % PEER_CONNECTIONS);
        places.find_map(|place| pool.openers[place].clone())
    }

    fn set(&self, place: usize, opener: Option<Opener>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).openers[place] = opener;
    }
}

/// The connections to all other hubs, by their addresses: to ask them what they know of a cluster, wherever it is.
#[derive(Clone, Default)]
pub(in crate::hub) struct Others(Arc<Mutex<BTreeMap<String, Pool>>>);

impl Others {
    fn add(&self, url: &str, pool: &Pool) {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pools.insert(url.to_owned(), pool.clone());
    }

    /// The ways to what each of them knows of a cluster.
    pub(in crate::hub) fn ways(&self, cluster: &ClusterName) -> Vec<(String, ByHop)> {
        let pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let way = |(url, pool): (&String, &Pool)| {
            let (pool, cluster) = (pool.clone(), cluster.clone());
            (url.clone(), ByHop { pool, cluster })
        };
        pools.iter().map(way).collect()
    }
}

/// The way to a cluster that is connected to another hub.
#[derive(Clone)]
pub(in crate::hub) struct ByHop {
    pool: Pool,
    cluster: ClusterName,
}

impl ByHop {
    /// The connection and the OPEN for it. Whoever opens waits for the answer as in a tunnel of its own.
    pub(in crate::hub) fn way(&self, open: Open) -> Result<(Opener, Open), OpenError> {
        let gone = || OpenError {
            code: OpenCode::Gone,
            text: "the hub that holds the cluster's tunnel is away".to_owned(),
        };
        let hop = Hop::first(self.cluster.clone(), open.target);
        let target = hop.to_target();
        Ok((self.pool.opener().ok_or_else(gone)?, Open { target, ..open }))
    }
}

/// Keeps connections to another hub until shutdown.
pub(in crate::hub) async fn follow(peer: Peer, dialling: Dialling, shutdown: CancellationToken) {
    let pool = Pool::default();
    dialling.others.add(&peer.url, &pool);
    let connections = (0..PEER_CONNECTIONS).map(|place| {
        let connection = Connection {
            peer: peer.clone(),
            dialling: dialling.clone(),
            pool: pool.clone(),
            place,
        };
        connection.run(shutdown.clone())
    });
    let patience = async {
        sleep(PEER_PATIENCE).await;
        // Who has told by then is not asked.
        if !dialling.dispatch.has_told(&peer.url) {
            tracing::warn!(peer = %peer.url, "Heard nothing of another hub; clusters count as silent without it.");
            lost(&dialling, &peer).await;
        }
    };
    tokio::select! {
        biased;
        () = shutdown.cancelled() => {}
        _ = futures_util::future::join(futures_util::future::join_all(connections), patience) => {}
    }
}

struct Connection {
    peer: Peer,
    dialling: Dialling,
    pool: Pool,
    place: usize,
}

impl Connection {
    async fn run(self, shutdown: CancellationToken) {
        let mut backoff = Backoff::default();
        let mut told = None;
        let mut since = 0;
        // Connections to a hub that ends, as long as something goes by them.
        let mut left = JoinSet::new();
        while !shutdown.is_cancelled() {
            let registry = &self.dialling.registry;
            // From before the look at the list, so that no change is missed.
            let mut changes = registry.changes();
            let keys = self.dialling.peer_keys.keys(&self.peer.url).into_iter();
            let keys: Vec<_> = keys.filter(|key| !registry.has_denied(key)).collect();
            if keys.is_empty() {
                // Nobody waits for a hub that is shut out, and no agent is led there.
                self.dialling.endpoints.shut_out(&self.peer.url);
                self.dialling.first_words.tried(&self.peer.url);
                changes.next().await;
                continue;
            }
            let Some(key) = self.dialling.keys.borrow().first().cloned() else {
                return;
            };
            let options = ConnectOptions::new(
                self.peer.url.clone(),
                keys,
                name(&self.dialling.server_id),
                key,
                now_ms(),
            );
            let born = Instant::now();
            let outcome = match tunnel::connect(&options).await {
                Ok(tunnel) => {
                    told = None;
                    let mut is_leaving = false;
                    tracing::info!(peer = %self.peer.url, "Connected to another hub.");
                    self.pool.set(self.place, Some(tunnel.opener.clone()));
                    let reason = tokio::select! {
                        biased;
                        () = self.dialling.registry.denied(&tunnel.peer.key) => "the deny list has its key".to_owned(),
                        away = tunnel.session.draining() => {
                            is_leaving = true;
                            away.reason.to_string()
                        }
                        reason = tunnel.session.closed() => reason.to_string(),
                        reason = self.listen(&tunnel.opener, &mut since) => reason,
                        reason = self.learn(&tunnel.opener) => reason,
                    };
                    self.pool.set(self.place, None);
                    tracing::info!(peer = %self.peer.url, reason, "Lost another hub.");
                    if self.place == 0 {
                        lost(&self.dialling, &self.peer).await;
                    }
                    if is_leaving {
                        left.spawn(leave(tunnel, Arc::clone(registry)));
                    }
                    while left.try_join_next().is_some() {}
                    tunnel::backoff::Outcome::Lived(born.elapsed())
                }
                Err(error) => {
                    let error_line = line(&error);
                    if told.as_ref() != Some(&error_line) {
                        tracing::warn!(peer = %self.peer.url, error = error_line, "Could not connect to another hub.");
                        told = Some(error_line);
                    }
                    error.outcome()
                }
            };
            self.dialling.first_words.tried(&self.peer.url);
            let (next, wait) = backoff.after(outcome, tunnel::backoff::random());
            backoff = next;
            sleep(wait).await;
        }
    }

    /// Follows the other hub's keys, on the first connection alone, as long as that stands.
    async fn learn(&self, opener: &Opener) -> String {
        if self.place > 0 {
            return std::future::pending().await;
        }
        again_and_again(|| async {
            let error = self.converse(opener).await.err();
            tracing::debug!(peer = %self.peer.url, error, "Follows another hub's keys no more; asks again later.");
        })
        .await
    }

    async fn converse(&self, opener: &Opener) -> Result<(), String> {
        // An older hub refuses it.
        let stream = opener.open(TargetClass::Keys, "", KEY_STEP_TIMEOUT).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let take = |told| std::future::ready(self.take_keys(told));
        let asked = key_sets::ask(stream, Vec::new, take, |_| {}).await;
        asked.map_err(|error| line(&error))
    }

    fn take_keys(&self, told: KeySet) -> Result<(), HubKeysError> {
        let keys = told.iter().count();
        if self.dialling.peer_keys.take(&self.peer.url, told)? {
            // docs/register-a-cluster.md quotes this line.
            tracing::info!(peer = %self.peer.url, keys, "Follows another hub's keys; name them in --peer at the next start.");
        }
        Ok(())
    }

    /// Hears what the other hub tells, on the first connection alone, until that ends; says why.
    async fn listen(&self, opener: &Opener, since: &mut u64) -> String {
        if self.place > 0 {
            return std::future::pending().await;
        }
        let stream = match opener.open(TargetClass::Peer, WITH_ASKS, SESSION_STEP_TIMEOUT).await {
            Ok(stream) => stream,
            Err(error) => return error.to_string(),
        };
        let mut stream = Box::pin(stream);
        let mut heard = Heard::since(*since);
        let registry = &self.dialling.registry;
        let mut changes = registry.changes();
        let mut is_first = true;
        loop {
            // Reading a message is not cancel-safe, so that it goes on while others than before count.
            let mut word = std::pin::pin!(timeout(PEER_SILENCE, read_message::<_, PeerWord>(&mut stream)));
            let word = loop {
                tokio::select! {
                    biased;
                    () = changes.next() => self.told(heard.told()).await,
                    word = &mut word => break word,
                }
            };
            let word = match word {
                Ok(Ok(Some(word))) => word,
                Ok(Ok(None)) => return "it tells no more".to_owned(),
                Ok(Err(error)) => return line(&error),
                Err(_) => return format!("it told nothing for {} s", PEER_SILENCE.as_secs()),
            };
            match heard.take(word, |cluster, key| registry.counts(cluster, key)) {
                Ok(Some(told)) => {
                    if std::mem::take(&mut is_first) {
                        tracing::info!(peer = %self.peer.url, "Heard from another hub.");
                    }
                    self.told(told).await;
                }
                Ok(None) => {}
                Err(nonsense) => return nonsense.to_string(),
            }
            *since = heard.epoch();
        }
    }

    /// Passes on what counts here. Who is denied, or registered with another key, is not there for this hub.
    async fn told(&self, told: Told) {
        let Dialling {
            dispatch,
            connections,
            registry,
            endpoints,
            events,
            first_words,
            ..
        } = &self.dialling;
        endpoints.told(&self.peer.url, told.endpoints);
        let (mut clusters, mut reports) = (told.clusters, told.reports);
        clusters.retain(|cluster, there| registry.counts(cluster, there.key.as_ref()));
        reports.retain(|report| clusters.contains_key(&report.cluster));
        let mut wishes = told.wishes;
        let does_count = |cluster: &ClusterName, wish: &KeyWish| {
            registry.counts(cluster, Some(&wish.used())) && !registry.has_denied(&wish.next)
        };
        wishes.retain(|(cluster, wish)| does_count(cluster, wish));
        for (cluster, there) in &clusters {
            let here = connections.agent(cluster);
            if let Some(here) = here.filter(|here| twins::are_two(here, there, seconds())) {
                registry.duplicate(cluster, here.key);
            }
        }
        let door = |cluster: &ClusterName| {
            let hop = ByHop {
                pool: self.pool.clone(),
                cluster: cluster.clone(),
            };
            (cluster.clone(), Door::Peer(hop))
        };
        let doors: BTreeMap<_, _> = clusters.keys().map(door).collect();
        dispatch.set_elsewhere(&self.peer.url, Some(doors));
        let told = Event::PeerTold {
            peer: self.peer.url.clone(),
            clusters: clusters.into_iter().map(|(name, there)| (name, there.since)).collect(),
            reports,
            joining: told.joining,
            wishes,
        };
        first_words.tried(&self.peer.url);
        // The engine is gone only when the hub is ending.
        let _sent = events.send(told).await;
    }
}

/// Keeps a connection that takes no new streams until those that are open have ended, or the other hub has: that one
/// counts the time.
async fn leave(tunnel: Tunnel, registry: Arc<Registry>) {
    let Tunnel { peer, session, .. } = tunnel;
    tokio::select! {
        biased;
        () = registry.denied(&peer.key) => {}
        _reason = session.closed() => {}
        () = drained(&session, DRAIN_TIMEOUT + SESSION_CLOSE_TIMEOUT) => {}
    }
}

/// Does something that ends before its time, with rests.
async fn again_and_again<T, F: Future<Output = ()>>(doing: impl Fn() -> F) -> T {
    loop {
        doing().await;
        sleep(PEER_KEYS_REST).await;
    }
}

async fn lost(dialling: &Dialling, peer: &Peer) {
    dialling.dispatch.set_elsewhere(&peer.url, None);
    let event = Event::PeerLost { peer: peer.url.clone() };
    let _sent = dialling.events.send(event).in_current_span().await;
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_did_not_answer_about_its_keys_is_asked_again_after_a_rest() {
        let asked = RefCell::new(Vec::new());
        let begun = Instant::now();
        let ask = async || {
            asked.borrow_mut().push(begun.elapsed());
            let (near, _far) = tokio::io::duplex(1 << 12);
            let silent = key_sets::ask(near, Vec::new, |_| std::future::ready(Ok(())), |_| {}).await;
            assert!(silent.is_err(), "nobody answers");
        };
        let turn = KEY_STEP_TIMEOUT + PEER_KEYS_REST;
        let _over = timeout(2 * turn + KEY_STEP_TIMEOUT, again_and_again::<(), _>(ask)).await;
        assert_eq!(*asked.borrow(), [tokio::time::Duration::ZERO, turn, 2 * turn]);
    }
}
