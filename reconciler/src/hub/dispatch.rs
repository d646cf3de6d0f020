//! What each cluster should be told, newest only, and the session that tells it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use render::ClusterName;
use tokio::sync::{Notify, watch};
use tokio::time::{Duration, Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::asking::Door;
use crate::wire::Envelope;

/// Cluster → its newest envelope and its session.
#[derive(Debug)]
pub(super) struct Dispatch {
    clusters: Mutex<BTreeMap<ClusterName, Slot>>,
    /// Somebody came who can be asked.
    opened: Notify,
    since: Instant,
    /// Other hub → the clusters that are connected to it, once it has told.
    elsewhere: Mutex<BTreeMap<String, BTreeMap<ClusterName, Door>>>,
}

impl Default for Dispatch {
    fn default() -> Self {
        Self {
            clusters: Mutex::default(),
            opened: Notify::new(),
            since: Instant::now(),
            elsewhere: Mutex::default(),
        }
    }
}

#[derive(Debug)]
struct Slot {
    newest: watch::Sender<Option<Arc<Envelope>>>,
    session: Option<(u64, CancellationToken)>,
    /// How the session's cluster is asked.
    door: Option<Door>,
    /// When its last session ended.
    left: Option<Instant>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            newest: watch::Sender::new(None),
            session: None,
            door: None,
            left: None,
        }
    }
}

impl Dispatch {
    fn clusters(&self) -> MutexGuard<'_, BTreeMap<ClusterName, Slot>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what a cluster should be told. An older one that was not told yet is not told any more.
    pub(super) fn set(&self, cluster: &ClusterName, envelope: Option<Envelope>) {
        let mut clusters = self.clusters();
        let slot = clusters.entry(cluster.clone()).or_default();
        slot.newest.send_replace(envelope.map(Arc::new));
    }

    /// Begins a session: the older one of the same cluster ends, unless its epoch is higher, in which case
    /// this one ends at once.
    pub(super) fn begin(
        &self,
        cluster: &ClusterName,
        epoch: u64,
        parent: &CancellationToken,
    ) -> (watch::Receiver<Option<Arc<Envelope>>>, CancellationToken) {
        let mut clusters = self.clusters();
        let slot = clusters.entry(cluster.clone()).or_default();
        let token = parent.child_token();
        match &slot.session {
            Some((standing, _)) if *standing > epoch => token.cancel(),
            standing => {
                if let Some((_, older)) = standing {
                    older.cancel();
                }
                slot.session = Some((epoch, token.clone()));
                slot.door = None;
            }
        }
        (slot.newest.subscribe(), token)
    }

    /// Notes that a session ended.
    pub(super) fn end(&self, cluster: &ClusterName, epoch: u64) {
        if let Some(slot) = self.clusters().get_mut(cluster)
            && slot.session.as_ref().is_some_and(|(standing, _)| *standing == epoch)
        {
            slot.session = None;
            slot.door = None;
            slot.left = Some(Instant::now());
        }
    }

    /// Lets a session's cluster be asked, unless a newer session has taken its place.
    pub(super) fn open(&self, cluster: &ClusterName, epoch: u64, door: Door) {
        if let Some(slot) = self.clusters().get_mut(cluster)
            && slot.session.as_ref().is_some_and(|(standing, _)| *standing == epoch)
        {
            slot.door = Some(door);
            self.opened.notify_waiters();
        }
    }

    /// How a cluster is asked: over its own session here, else by way of another hub. `None` while it is away.
    pub(super) fn door(&self, cluster: &ClusterName) -> Option<Door> {
        self.own_door(cluster).or_else(|| {
            let elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
            elsewhere.values().find_map(|doors| doors.get(cluster).cloned())
        })
    }

    /// How a cluster is asked over its own session here.
    pub(super) fn own_door(&self, cluster: &ClusterName) -> Option<Door> {
        self.clusters().get(cluster)?.door.clone()
    }

    /// As [`Self::door`], waiting at most until `until` for a cluster that was there within `hope`, or may have been before
    /// this hub began.
    pub(super) async fn door_soon(&self, cluster: &ClusterName, until: Instant, hope: Duration) -> Option<Door> {
        loop {
            let mut opened = std::pin::pin!(self.opened.notified());
            opened.as_mut().enable();
            if let Some(door) = self.door(cluster) {
                return Some(door);
            }
            let left = self
                .clusters()
                .get(cluster)
                .and_then(|slot| slot.left)
                .unwrap_or(self.since);
            if left.elapsed() >= hope || timeout_at(until, opened).await.is_err() {
                return None;
            }
        }
    }

    /// Sets which clusters are connected to another hub, all of them; `None` while that one is away.
    pub(super) fn set_elsewhere(&self, peer: &str, doors: Option<BTreeMap<ClusterName, Door>>) {
        let mut elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        match doors {
            Some(doors) => elsewhere.insert(peer.to_owned(), doors),
            None => elsewhere.remove(peer),
        };
        drop(elsewhere);
        self.opened.notify_waiters();
    }

    /// Whether another hub is there and has told who is connected to it.
    pub(super) fn has_told(&self, peer: &str) -> bool {
        let elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        elsewhere.contains_key(peer)
    }

    /// Forgets a cluster that is registered no more, and ends its session.
    pub(super) fn forget(&self, cluster: &ClusterName) {
        if let Some(Slot {
            session: Some((_, token)),
            ..
        }) = self.clusters().remove(cluster)
        {
            token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_session_ends_the_older_one() {
        let dispatch = Dispatch::default();
        let cluster = ClusterName::parse("a").expect("a valid cluster");
        let parent = CancellationToken::new();
        let (_, first) = dispatch.begin(&cluster, 5, &parent);
        let (_, second) = dispatch.begin(&cluster, 6, &parent);
        let (_, late) = dispatch.begin(&cluster, 4, &parent);
        assert_eq!(
            [first.is_cancelled(), second.is_cancelled(), late.is_cancelled()],
            [true, false, true]
        );
        dispatch.forget(&cluster);
        assert!(second.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_was_there_is_waited_for_and_one_that_is_long_gone_is_not() {
        let dispatch = Dispatch::default();
        let (cluster, hope) = (
            ClusterName::parse("a").expect("a valid cluster"),
            Duration::from_secs(60),
        );
        let soon = |seconds| dispatch.door_soon(&cluster, Instant::now() + Duration::from_secs(seconds), hope);
        let begin = Instant::now();
        assert!(soon(3).await.is_none());
        assert_eq!(
            begin.elapsed(),
            Duration::from_secs(3),
            "a hub that just began waits for it"
        );
        tokio::time::advance(hope).await;
        let begin = Instant::now();
        assert!(soon(3).await.is_none());
        assert_eq!(begin.elapsed(), Duration::ZERO, "it is long gone");
        let parent = CancellationToken::new();
        let (_, _session) = dispatch.begin(&cluster, 1, &parent);
        dispatch.end(&cluster, 1);
        let begin = Instant::now();
        assert!(soon(3).await.is_none());
        assert_eq!(begin.elapsed(), Duration::from_secs(3), "it left just now");
    }
}
