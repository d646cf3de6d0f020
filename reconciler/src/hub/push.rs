//! A cluster of mode Push that has an agent: the hub's applier works through the tunnel.
//!
//! In: what the cluster should be told, and what its agent says that it holds. Out: an applier in this process while both
//! say Push, whose requests go over streams of class `push`. The agent adds its credential, so that the hub holds none,
//! and the agent's own rights are the applier's. Which of the two may write is deliberately not decided here: the Lease
//! in the cluster says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper_util::rt::TokioIo;
use kube::Client;
use render::ClusterName;
use render::model::SyncMode;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::service_fn;
use tunnel::{Opener, TargetClass};

use super::clusters::Appliers;
use super::direct::{Direct, Memory};
use super::session::Sessions;
use crate::apply::{ApplierOptions, client_over};
use crate::exchange::Room;
use crate::limits::{API_CONNECT_TIMEOUT, PUSH_STREAM_IDLE, PUSH_STREAM_LOOK, PUSH_STREAMS_IDLE_MAX};
use crate::telemetry::process_name;
use crate::wire::{Envelope, Held};

/// The host of requests through a tunnel: the agent knows where its API server is.
const HOST: &str = "apiserver.invalid";

const ROOM: Room = Room {
    in_all: PUSH_STREAMS_IDLE_MAX,
    at_place: PUSH_STREAMS_IDLE_MAX,
    stay: PUSH_STREAM_IDLE,
    look: PUSH_STREAM_LOOK,
};

/// The hub's appliers behind tunnels.
pub(super) struct Pushing {
    appliers: Appliers,
    /// The identity of all of them in Leases, so that one that lost its tunnel goes on at once behind the next.
    holder: String,
    /// One at a time for each cluster, since two of one identity are taken for one.
    turns: Mutex<BTreeMap<ClusterName, Arc<tokio::sync::Mutex<()>>>>,
}

impl Pushing {
    pub(super) fn new(appliers: Appliers) -> Self {
        Self {
            appliers,
            holder: process_name(),
            turns: Mutex::default(),
        }
    }

    fn turn(&self, cluster: &ClusterName) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(cluster.clone()).or_default())
    }

    fn options(&self, cluster: &ClusterName) -> ApplierOptions {
        ApplierOptions {
            holder: self.holder.clone(),
            ..self.appliers.options(cluster.clone())
        }
    }
}

/// Whether what a cluster should be told says that the hub applies.
fn is_meant(newest: &Option<Arc<Envelope>>) -> bool {
    newest.as_ref().is_some_and(|envelope| envelope.mode == SyncMode::Push)
}

/// Whether an agent that holds this stands by.
fn stands_by(held: &Option<Held>) -> bool {
    held.as_ref().is_some_and(|held| held.mode == SyncMode::Push)
}

/// Whether a cluster is to be told that the hub does not apply. Nothing to tell, as while the hub recovers, is no other mode.
fn is_meant_otherwise(newest: &Option<Arc<Envelope>>) -> bool {
    newest.is_some() && !is_meant(newest)
}

/// Whether an agent says that it took another mode, as from another hub that has seen a newer commit: it takes no requests
/// any more, and what this hub would report of that is no news of the cluster.
fn stands_by_no_more(held: &Option<Held>) -> bool {
    held.is_some() && !stands_by(held)
}

/// Whether the hub's applier speaks for a cluster, and not its agent.
pub(super) fn speaks(newest: &Option<Arc<Envelope>>, held: &Option<Held>) -> bool {
    is_meant(newest) && stands_by(held)
}

/// Applies through one session's tunnel whenever it is the hub's to do, until the session ends. `applying` says whether it does,
/// until the Lease was given back.
pub(super) async fn run(
    sessions: Sessions,
    (cluster, opener): (ClusterName, Opener),
    mut newest: watch::Receiver<Option<Arc<Envelope>>>,
    mut heard: watch::Receiver<Option<Held>>,
    (applying, ended): (watch::Sender<bool>, CancellationToken),
) {
    let turn = sessions.pushing.turn(&cluster);
    loop {
        let begins = async { newest.wait_for(is_meant).await.is_ok() && heard.wait_for(stands_by).await.is_ok() };
        if ended.run_until_cancelled(begins).await != Some(true) {
            return;
        }
        let Some(_turn) = ended.run_until_cancelled(turn.lock()).await else {
            return;
        };
        let held = heard.borrow().clone();
        let direct = Direct {
            cluster: cluster.clone(),
            client: client(opener.clone()),
            options: sessions.pushing.options(&cluster),
            sessions: sessions.clone(),
            memory: Memory::Agent(held),
        };
        tracing::info!(cluster = %cluster, "Applies through the tunnel.");
        let stop = ended.child_token();
        applying.send_replace(true);
        let mut serving = Box::pin(direct.serve_on(newest.clone(), &stop));
        let left = newest.wait_for(is_meant_otherwise);
        let taken_back = async {
            if heard.wait_for(stands_by_no_more).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = &mut serving => return,
            _ = left => {}
            () = taken_back => {}
        }
        stop.cancel();
        serving.await;
        applying.send_replace(false);
        tracing::info!(cluster = %cluster, "Leaves applying to the agent.");
    }
}

/// A client of the API server behind a tunnel.
fn client(opener: Opener) -> Client {
    let streams = service_fn(move |()| {
        let opener = opener.clone();
        async move {
            let stream = opener.open(TargetClass::Push, "", API_CONNECT_TIMEOUT).await;
            stream.map(TokioIo::new)
        }
    });
    client_over(streams, HOST, ROOM)
}

#[cfg(test)]
mod tests {
    use render::Revision;

    use super::*;
    use crate::wire::list_digest;

    fn envelope(mode: SyncMode) -> Envelope {
        let commit = Revision::parse("1".repeat(40)).expect("forty hex digits");
        Envelope {
            version: Envelope::VERSION,
            cluster: ClusterName::parse("oslo").expect("a valid name"),
            lineage: commit.clone(),
            sequence: 7,
            released: commit,
            units: BTreeMap::new(),
            list: list_digest(&BTreeMap::new(), false),
            orphan: false,
            orphaned: BTreeMap::new(),
            mode,
            mode_source: None,
            mode_instead: None,
            lineage_grant: None,
        }
    }

    #[test]
    fn a_hub_that_has_not_seen_the_newer_mode_leaves_applying_when_the_agent_says_so() {
        use SyncMode::{Dual, Pull, Push};
        // What this hub means, and what the agent was told by whichever hub.
        for meant in [Dual, Push, Pull] {
            for told in [Dual, Push, Pull] {
                let newest = Some(Arc::new(envelope(meant)));
                let held = Some(envelope(told).held());
                let begins = is_meant(&newest) && stands_by(&held);
                let ends = is_meant_otherwise(&newest) || stands_by_no_more(&held);
                assert_eq!(begins, meant == Push && told == Push, "{meant:?} {told:?}");
                assert_eq!(ends, !begins, "{meant:?} {told:?}");
                assert_eq!(speaks(&newest, &held), begins, "one of the two is heard");
                assert!(!(begins && told.agent_applies()), "never both");
            }
        }
        // A hub that recovers, and an agent that says nothing, are no reason to change hands.
        assert!(!is_meant_otherwise(&None) && !stands_by_no_more(&None));
    }
}
