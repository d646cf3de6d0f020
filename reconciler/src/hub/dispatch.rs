//! What each cluster should be told, newest only, and the session that tells it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use render::ClusterName;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::asking::Door;
use crate::wire::Envelope;

/// Cluster → its newest envelope and its session.
#[derive(Debug, Default)]
pub(super) struct Dispatch {
    clusters: Mutex<BTreeMap<ClusterName, Slot>>,
}

#[derive(Debug)]
struct Slot {
    newest: watch::Sender<Option<Arc<Envelope>>>,
    session: Option<(u64, CancellationToken)>,
    /// How the session's cluster is asked.
    door: Option<Door>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            newest: watch::Sender::new(None),
            session: None,
            door: None,
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
        }
    }

    /// Lets a session's cluster be asked, unless a newer session has taken its place.
    pub(super) fn open(&self, cluster: &ClusterName, epoch: u64, door: Door) {
        if let Some(slot) = self.clusters().get_mut(cluster)
            && slot.session.as_ref().is_some_and(|(standing, _)| *standing == epoch)
        {
            slot.door = Some(door);
        }
    }

    /// How a cluster is asked; `None` while it is away.
    pub(super) fn door(&self, cluster: &ClusterName) -> Option<Door> {
        self.clusters().get(cluster)?.door.clone()
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
}
