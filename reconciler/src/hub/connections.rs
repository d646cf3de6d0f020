//! The tunnels that stand, and what is remembered of those that do not: for a person who asks why a cluster is away.
//!
//! Nothing is decided by it. Only registered clusters are in it, and of each one the newest of everything.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use render::ClusterName;
use tunnel::{PeerInfo, PublicKey, Session};

use super::clock::seconds;
use crate::wire::{StandingTunnel, TunnelEnd, TunnelRefusal, TunnelSeen};

/// Cluster → what is known of its tunnels.
#[derive(Default)]
pub(super) struct Connections {
    clusters: Mutex<BTreeMap<ClusterName, Known>>,
}

#[derive(Default)]
struct Known {
    standing: Option<Standing>,
    ended: Option<TunnelEnd>,
    refused: Option<TunnelRefusal>,
}

struct Standing {
    since: i64,
    peer: PeerInfo,
    session: Weak<Session>,
    has_keys: bool,
}

/// Whose tunnel a cluster's is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agent {
    /// The key that it proved.
    pub(super) key: PublicKey,
    /// Which process of the cluster's agents; may be empty.
    pub(super) instance: String,
    /// Since when it is connected, in seconds since 1970.
    pub(super) since: i64,
}

impl Connections {
    fn clusters(&self) -> MutexGuard<'_, BTreeMap<ClusterName, Known>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tunnel stands; it takes the place of an older one.
    pub(super) fn begin(&self, cluster: &ClusterName, peer: PeerInfo, session: Weak<Session>) {
        let mut clusters = self.clusters();
        let known = clusters.entry(cluster.clone()).or_default();
        let is_newer = known
            .standing
            .as_ref()
            .is_none_or(|standing| standing.peer.epoch <= peer.epoch);
        if is_newer {
            known.standing = Some(Standing {
                since: seconds(),
                peer,
                session,
                has_keys: false,
            });
        }
    }

    /// The agent of the tunnel that stands.
    pub(super) fn agent(&self, cluster: &ClusterName) -> Option<Agent> {
        let clusters = self.clusters();
        let standing = clusters.get(cluster)?.standing.as_ref()?;
        Some(Agent {
            key: standing.peer.key,
            instance: standing.peer.instance.clone(),
            since: standing.since,
        })
    }

    /// The agent of a tunnel keeps all of the hub's keys.
    pub(super) fn has_keys(&self, cluster: &ClusterName, epoch: u64) {
        let mut clusters = self.clusters();
        let standing = clusters.get_mut(cluster).and_then(|known| known.standing.as_mut());
        if let Some(standing) = standing.filter(|standing| standing.peer.epoch == epoch) {
            standing.has_keys = true;
        }
    }

    /// The hub has other keys, which no agent has said that it keeps.
    pub(super) fn forget_keys(&self) {
        for known in self.clusters().values_mut() {
            if let Some(standing) = &mut known.standing {
                standing.has_keys = false;
            }
        }
    }

    /// A tunnel ended; one that a newer one replaced is not worth a word.
    pub(super) fn end(&self, cluster: &ClusterName, epoch: u64, why: &str) {
        let mut clusters = self.clusters();
        let Some(known) = clusters.get_mut(cluster) else { return };
        if known
            .standing
            .as_ref()
            .is_some_and(|standing| standing.peer.epoch == epoch)
        {
            known.standing = None;
            known.ended = Some(TunnelEnd {
                at: seconds(),
                why: why.to_owned(),
            });
        }
    }

    /// Somebody said this registered cluster's name and was refused.
    pub(super) fn refused(&self, cluster: &ClusterName, why: String, from: SocketAddr) {
        let mut clusters = self.clusters();
        let known = clusters.entry(cluster.clone()).or_default();
        let times = known.refused.as_ref().map_or(0, |refused| refused.times) + 1;
        known.refused = Some(TunnelRefusal {
            at: seconds(),
            why,
            times,
            from: Some(from),
        });
    }

    /// How many tunnels stand.
    pub(super) fn count(&self) -> usize {
        self.clusters()
            .values()
            .filter(|known| known.standing.is_some())
            .count()
    }

    /// At how many of them the agent keeps all of the hub's keys.
    pub(super) fn with_keys(&self) -> usize {
        let clusters = self.clusters();
        let has_keys = |known: &&Known| known.standing.as_ref().is_some_and(|standing| standing.has_keys);
        clusters.values().filter(has_keys).count()
    }

    /// What is known of one cluster.
    pub(super) fn view(&self, cluster: &ClusterName) -> TunnelSeen {
        let clusters = self.clusters();
        let Some(known) = clusters.get(cluster) else {
            return TunnelSeen::default();
        };
        let tunnel = known.standing.as_ref().map(|standing| {
            let session = standing.session.upgrade();
            StandingTunnel {
                since: standing.since,
                version: standing.peer.version.clone(),
                key: standing.peer.key.to_string(),
                has_hub_keys: standing.has_keys,
                streams: session.as_ref().map_or(0, |session| session.streams()),
                rtt_ms: session
                    .and_then(|session| session.rtt())
                    .map(|rtt| rtt.as_secs_f64() * 1e3),
            }
        });
        TunnelSeen {
            tunnel,
            last_end: known.ended.clone(),
            last_refusal: known.refused.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tunnel::SecretKey;

    use super::*;

    fn peer(epoch: u64) -> PeerInfo {
        PeerInfo {
            cluster: "oslo".to_owned(),
            epoch,
            version: "0.1.0".to_owned(),
            key: SecretKey::generate().expect("there is randomness").public(),
            server_id: String::new(),
            endpoints: Vec::new(),
            spread: Duration::ZERO,
            binding: [0; 32],
            instance: String::new(),
        }
    }

    #[test]
    fn the_newest_tunnel_is_shown_and_its_end_is_remembered_in_words() {
        let (connections, oslo) = (Connections::default(), ClusterName::parse("oslo").expect("a name"));
        assert_eq!(connections.view(&oslo), TunnelSeen::default());
        connections.begin(&oslo, peer(6), Weak::new());
        connections.begin(&oslo, peer(5), Weak::new());
        connections.end(&oslo, 5, "a newer session took its place");
        assert_eq!((connections.count(), connections.with_keys()), (1, 0));
        connections.has_keys(&oslo, 5);
        assert_eq!(connections.with_keys(), 0, "the older one's agent may not be this one");
        connections.has_keys(&oslo, 6);
        assert_eq!(connections.with_keys(), 1);
        connections.forget_keys();
        assert_eq!(connections.with_keys(), 0, "there are others now");
        connections.has_keys(&oslo, 6);
        assert_eq!(connections.with_keys(), 1);
        let view = connections.view(&oslo);
        assert!(view.tunnel.is_some() && view.last_end.is_none(), "{view:?}");
        connections.end(&oslo, 6, "nothing was heard for 25 s");
        let view = connections.view(&oslo);
        assert_eq!(view.tunnel, None);
        assert_eq!(
            view.last_end.map(|ended| ended.why).as_deref(),
            Some("nothing was heard for 25 s")
        );
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn knocks_are_counted_and_the_last_one_is_told() {
        let (connections, oslo) = (Connections::default(), ClusterName::parse("oslo").expect("a name"));
        let from = "192.0.2.1:4".parse().expect("an address");
        connections.refused(&oslo, "another key".to_owned(), from);
        connections.refused(&oslo, "another version".to_owned(), from);
        let refused = connections.view(&oslo).last_refusal.expect("it was refused");
        assert_eq!((refused.times, refused.why.as_str()), (2, "another version"));
        assert_eq!(refused.from, Some(from));
    }
}
