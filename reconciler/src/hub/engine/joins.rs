//! Clusters whose agents ask for registration with a token: which branches propose them, and that a person has to push
//! their files where the hub may not write to source.

use std::collections::{BTreeMap, BTreeSet};

use render::ClusterName;
use tunnel::PublicKey;

use super::peers::Peers;
use super::{State, Write};
use crate::hub::publish::{Elsewhere, OtherHubs, Registrations};

/// Who asks for registration, and what became of it.
#[derive(Clone, Debug, Default)]
pub struct Joins {
    /// Cluster → the key that its agent proved; `None` where this hub takes no tokens.
    pub wanted: Option<BTreeMap<ClusterName, PublicKey>>,
    /// Whether branches are proposed for them: the hub writes to the repository that people push to.
    pub is_proposing: bool,
    /// Other hub → who asks there, all of them, as it told last; an older one tells nothing of it.
    others: BTreeMap<String, BTreeMap<ClusterName, PublicKey>>,
    /// What is there, and what it was made for; `None` before the first look.
    done: Option<Done>,
}

#[derive(Clone, Debug)]
struct Done {
    wanted: BTreeMap<ClusterName, PublicKey>,
    elsewhere: Elsewhere,
    registrations: Registrations,
    /// What is there may be gone.
    is_doubted: bool,
}

impl Joins {
    /// Another hub told who asks there. What it does not say changes nothing, and what it told last goes on to count while
    /// it is away.
    pub(super) fn peer_told(&mut self, peer: &str, joining: Option<BTreeMap<ClusterName, PublicKey>>) {
        if let Some(joining) = joining {
            self.others.insert(peer.to_owned(), joining);
        }
    }

    /// The refs were looked at: a branch that another hub put there may be gone.
    pub(super) fn looked(&mut self) {
        if let Some(done) = &mut self.done {
            done.is_doubted |= done.registrations.rests_on_others;
        }
    }

    fn hubs(&self, peers: &Peers) -> OtherHubs {
        match peers.are_none() {
            true => OtherHubs::None,
            false if peers.are_there(|peer| self.others.contains_key(peer)) => OtherHubs::Told,
            false => OtherHubs::Silent,
        }
    }

    /// Branches are as they were asked for.
    pub(super) fn proposed(
        &mut self,
        wanted: BTreeMap<ClusterName, PublicKey>,
        elsewhere: Elsewhere,
        registrations: Registrations,
    ) {
        self.done = Some(Done {
            wanted,
            elsewhere,
            registrations,
            is_doubted: false,
        });
    }

    /// The branch that proposes a cluster's file.
    pub fn branch(&self, cluster: &ClusterName) -> Option<&str> {
        let done = self.done.as_ref()?;
        done.registrations.branches.get(cluster).map(String::as_str)
    }

    /// Whether the branch of a cluster is another hub's, with another key.
    pub fn is_contested(&self, cluster: &ClusterName) -> bool {
        let done = self.done.as_ref();
        done.is_some_and(|done| done.registrations.contested.contains(cluster))
    }
}

impl State {
    /// Who asks for registration and is not registered.
    pub fn joining(&self) -> BTreeMap<ClusterName, PublicKey> {
        self.unregistered(self.joins.wanted.iter().flatten())
    }

    /// The same for other hubs, once it is known.
    pub(in crate::hub) fn told_joining(&self) -> Option<BTreeMap<ClusterName, PublicKey>> {
        let wanted = self.joins.wanted.as_ref().filter(|_| self.fleet.is_some())?;
        Some(self.unregistered(wanted))
    }

    fn unregistered<'a>(
        &self,
        wanted: impl IntoIterator<Item = (&'a ClusterName, &'a PublicKey)>,
    ) -> BTreeMap<ClusterName, PublicKey> {
        let wanted = wanted.into_iter().filter(|(cluster, _)| !self.is_registered(cluster));
        wanted.map(|(cluster, key)| (cluster.clone(), *key)).collect()
    }

    /// Who asks at other hubs, with which keys.
    fn asked_elsewhere(&self) -> BTreeMap<ClusterName, BTreeSet<PublicKey>> {
        let told = self.joins.others.values();
        let mut asked: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (cluster, key) in told.flatten() {
            asked.entry(cluster.clone()).or_default().insert(*key);
        }
        asked
    }
}

/// Branches are due when others ask than those they were made for, here or at another hub: what that one takes back may be
/// asked for here.
pub(super) fn due(state: &State) -> Option<Write> {
    // Nobody can be called unregistered before the fleet is known.
    let source = state.accepted.clone().filter(|_| state.fleet.is_some())?;
    if !state.joins.is_proposing || state.joins.wanted.is_none() {
        return None;
    }
    // Every report leads here.
    let (wanted, asked, hubs) = (state.joining(), state.asked_elsewhere(), state.joins.hubs(&state.peers));
    let is_done = |done: &Done| {
        // A hub that is away is no reason to look again.
        let is_known = done.elsewhere.hubs == hubs || hubs == OtherHubs::Silent;
        !done.is_doubted && done.wanted == wanted && done.elsewhere.asked == asked && is_known
    };
    let is_done = state.joins.done.as_ref().is_some_and(is_done);
    if is_done {
        return None;
    }
    let registered = state.fleet.iter().flat_map(|fleet| fleet.clusters.keys());
    let elsewhere = Elsewhere {
        hubs,
        asked,
        registered: registered.cloned().collect(),
    };
    Some(Write::Registrations {
        source,
        wanted,
        elsewhere,
    })
}
