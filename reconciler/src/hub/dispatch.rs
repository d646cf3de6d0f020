//! What each cluster should be told, newest only, and the session that tells it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use render::ClusterName;
use tokio::sync::{Notify, watch};
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::asking::Door;
use super::registry::Registry;
use crate::limits::REPLACED_INSTANCES_MAX;
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
    /// Who may come at all.
    registry: Arc<Registry>,
}

#[cfg(test)]
impl Default for Dispatch {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl Dispatch {
    /// Nobody is there yet.
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self {
            clusters: Mutex::default(),
            opened: Notify::new(),
            since: Instant::now(),
            elsewhere: Mutex::default(),
            registry,
        }
    }
}

/// How a cluster is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// It was there a moment ago, or may have been before this hub began.
    Returning,
    /// Nobody knows when it comes back.
    Long,
}

#[derive(Debug)]
struct Slot {
    newest: watch::Sender<Option<Arc<Envelope>>>,
    session: Option<Standing>,
    /// Instances that the standing one took the place of.
    replaced: VecDeque<String>,
    /// How the session's cluster is asked.
    door: Option<Door>,
    /// When its last session ended.
    left: Option<Instant>,
}

/// The session that counts.
#[derive(Debug)]
struct Standing {
    epoch: u64,
    instance: String,
    /// It said that another agent of this cluster applies, so that the other one is heard rather.
    is_waiting: bool,
    token: CancellationToken,
}

/// Who a session is with, of all that have a cluster's identity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dial<'a> {
    /// The newest one counts.
    pub(super) epoch: u64,
    /// Which process; may be empty.
    pub(super) instance: &'a str,
}

/// A session that began: what its cluster should be told, and what ends it.
pub(super) type Begun = (watch::Receiver<Option<Arc<Envelope>>>, CancellationToken);

/// A session that may not begin: another agent with this identity is there, and was first to take this one's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Duplicate;

impl Default for Slot {
    fn default() -> Self {
        Self {
            newest: watch::Sender::new(None),
            session: None,
            replaced: VecDeque::new(),
            door: None,
            left: None,
        }
    }
}

impl Slot {
    /// Whether a dial is an agent whose place the standing one took, and that did not end. One of the two would take it
    /// from the other again and again.
    fn is_duplicate(&self, dial: Dial<'_>) -> bool {
        let was_replaced = self.replaced.iter().any(|instance| instance == dial.instance);
        was_replaced && self.session.as_ref().is_some_and(|standing| !standing.is_waiting)
    }

    /// Lets a dial take the place of the one that stands.
    fn stand(&mut self, dial: Dial<'_>, token: CancellationToken) {
        self.replaced.retain(|instance| instance != dial.instance);
        if let Some(older) = self.session.take() {
            older.token.cancel();
            if !older.instance.is_empty() && older.instance != dial.instance {
                self.replaced.push_back(older.instance);
            }
            if self.replaced.len() > REPLACED_INSTANCES_MAX {
                self.replaced.pop_front();
            }
        }
        self.session = Some(Standing {
            epoch: dial.epoch,
            instance: dial.instance.to_owned(),
            is_waiting: false,
            token,
        });
        self.door = None;
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
        dial: Dial<'_>,
        parent: &CancellationToken,
    ) -> Result<Begun, Duplicate> {
        let mut clusters = self.clusters();
        let slot = clusters.entry(cluster.clone()).or_default();
        if slot.is_duplicate(dial) {
            return Err(Duplicate);
        }
        let token = parent.child_token();
        match &slot.session {
            Some(standing) if standing.epoch > dial.epoch => token.cancel(),
            _ => slot.stand(dial, token.clone()),
        }
        Ok((slot.newest.subscribe(), token))
    }

    /// Notes whether the agent of a session waits for another one that applies.
    pub(super) fn waits(&self, cluster: &ClusterName, epoch: u64, is_waiting: bool) {
        if let Some(standing) = self
            .clusters()
            .get_mut(cluster)
            .and_then(|slot| slot.session.as_mut())
            .filter(|standing| standing.epoch == epoch)
        {
            standing.is_waiting = is_waiting;
        }
    }

    /// Notes that a session ended.
    pub(super) fn end(&self, cluster: &ClusterName, epoch: u64) {
        if let Some(slot) = self.clusters().get_mut(cluster)
            && slot.session.as_ref().is_some_and(|standing| standing.epoch == epoch)
        {
            slot.session = None;
            slot.door = None;
            slot.left = Some(Instant::now());
        }
    }

    /// Lets a session's cluster be asked, unless a newer session has taken its place.
    pub(super) fn open(&self, cluster: &ClusterName, epoch: u64, door: Door) {
        if let Some(slot) = self.clusters().get_mut(cluster)
            && slot.session.as_ref().is_some_and(|standing| standing.epoch == epoch)
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
    /// this hub began. One that nobody may be is not waited for, from when that is known.
    pub(super) async fn door_soon(
        &self,
        cluster: &ClusterName,
        until: Instant,
        hope: Duration,
    ) -> Result<Door, Absent> {
        let mut changes = self.registry.changes();
        loop {
            let mut opened = std::pin::pin!(self.opened.notified());
            opened.as_mut().enable();
            if let Some(door) = self.door(cluster) {
                return Ok(door);
            }
            let left = self.clusters().get(cluster).and_then(|slot| slot.left);
            if self.registry.is_shut_out(cluster) || left.unwrap_or(self.since).elapsed() >= hope {
                return Err(Absent::Long);
            }
            tokio::select! {
                biased;
                () = opened => {}
                () = changes.next() => {}
                () = sleep_until(until) => return Err(Absent::Returning),
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
            session: Some(standing),
            ..
        }) = self.clusters().remove(cluster)
        {
            standing.token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::deny::Denied;

    fn cluster() -> ClusterName {
        ClusterName::parse("a").expect("a valid cluster")
    }

    /// Begins a session; `None` for a duplicate.
    fn session(dispatch: &Dispatch, epoch: u64, instance: &str) -> Option<CancellationToken> {
        let dial = Dial { epoch, instance };
        let begun = dispatch.begin(&cluster(), dial, &CancellationToken::new());
        begun.ok().map(|(_, token)| token)
    }

    #[test]
    fn the_newest_session_ends_the_older_one() {
        let dispatch = Dispatch::default();
        let sessions = [5, 6, 4].map(|epoch| session(&dispatch, epoch, "").expect("it may begin"));
        assert_eq!(
            sessions.each_ref().map(CancellationToken::is_cancelled),
            [true, false, true]
        );
        dispatch.forget(&cluster());
        assert!(sessions[1].is_cancelled());
    }

    #[test]
    fn of_two_agents_with_one_identity_the_later_one_stays() {
        let dispatch = Dispatch::default();
        let original = session(&dispatch, 1, "original").expect("it may begin");
        let copy = session(&dispatch, 2, "copy").expect("it may be a restart");
        assert!(original.is_cancelled(), "it may be dead");
        for epoch in 3..60 {
            assert!(
                session(&dispatch, epoch, "original").is_none(),
                "it is not dead, so that there are two"
            );
        }
        assert!(!copy.is_cancelled(), "nothing goes to and fro");
        let redialled = session(&dispatch, 60, "copy").expect("a process may dial again");
        assert!(copy.is_cancelled() && !redialled.is_cancelled());
        dispatch.end(&cluster(), 60);
        assert!(session(&dispatch, 61, "original").is_some(), "it is alone again");
    }

    #[test]
    fn an_agent_that_waits_for_the_lease_makes_room_for_the_one_that_has_it() {
        let dispatch = Dispatch::default();
        let _applying = session(&dispatch, 1, "applying");
        let waiting = session(&dispatch, 2, "waiting").expect("it may be a restart");
        dispatch.waits(&cluster(), 2, true);
        assert!(session(&dispatch, 3, "applying").is_some());
        assert!(waiting.is_cancelled());
        assert!(session(&dispatch, 4, "waiting").is_none(), "the one that applies stays");
    }

    #[test]
    fn agents_that_restart_without_end_leave_no_more_than_a_few_names() {
        let dispatch = Dispatch::default();
        for epoch in 0..1_000 {
            session(&dispatch, epoch, &format!("process-{epoch}")).expect("it may begin");
        }
        let clusters = dispatch.clusters();
        assert_eq!(clusters[&cluster()].replaced.len(), REPLACED_INSTANCES_MAX);
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
        assert_eq!(soon(3).await.err(), Some(Absent::Returning));
        assert_eq!(
            begin.elapsed(),
            Duration::from_secs(3),
            "a hub that just began waits for it"
        );
        tokio::time::advance(hope).await;
        let begin = Instant::now();
        assert_eq!(soon(3).await.err(), Some(Absent::Long));
        assert_eq!(begin.elapsed(), Duration::ZERO, "it is long gone");
        let _session = session(&dispatch, 1, "");
        dispatch.end(&cluster, 1);
        let begin = Instant::now();
        assert_eq!(soon(3).await.err(), Some(Absent::Returning));
        assert_eq!(begin.elapsed(), Duration::from_secs(3), "it left just now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_is_shut_out_is_not_waited_for_until_it_is_let_in_again() {
        let registry = Arc::new(Registry::default());
        let deny = |list: &str| registry.deny(Denied::parse(list).expect("a list"));
        // Before the hub began.
        deny("a");
        let dispatch = Dispatch::new(Arc::clone(&registry));
        let (cluster, hope) = (cluster(), Duration::from_secs(60));
        let soon = || dispatch.door_soon(&cluster, Instant::now() + Duration::from_secs(3), hope);
        let begin = Instant::now();
        assert_eq!(soon().await.err(), Some(Absent::Long));
        assert_eq!(begin.elapsed(), Duration::ZERO, "nobody may come");
        deny("");
        assert_eq!(soon().await.err(), Some(Absent::Returning), "it may come again");
        let _session = session(&dispatch, 1, "");
        dispatch.end(&cluster, 1);
        deny("a");
        let begin = Instant::now();
        assert_eq!(soon().await.err(), Some(Absent::Long));
        assert_eq!(begin.elapsed(), Duration::ZERO, "it was denied while it was away");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_a_cluster_hears_at_once_that_it_is_shut_out() {
        let registry = Arc::new(Registry::default());
        let dispatch = Dispatch::new(Arc::clone(&registry));
        let (cluster, hope) = (cluster(), Duration::from_secs(60));
        let begin = Instant::now();
        let waiting = dispatch.door_soon(&cluster, begin + Duration::from_secs(3), hope);
        let denying = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            registry.deny(Denied::parse("a").expect("a list"));
        };
        let (found, ()) = tokio::join!(waiting, denying);
        assert_eq!(found.err(), Some(Absent::Long));
        assert_eq!(begin.elapsed(), Duration::from_secs(1));
    }
}
