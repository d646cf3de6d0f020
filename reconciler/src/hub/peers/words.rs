//! What another hub is told of the clusters that are connected here.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::ClusterName;
use render::capacity::Capacity;
use tunnel::PublicKey;

use crate::hub::connections::Agent;
use crate::hub::engine::State;
use crate::wire::{PeerWord, Report};

/// What it was told by now.
#[derive(Debug, Default)]
pub(super) struct Words {
    clusters: BTreeMap<ClusterName, Told>,
    /// Who asks for registration; `None` where the other hub was not told of it.
    joining: Option<BTreeMap<ClusterName, PublicKey>>,
    /// Which keys agents here wish, with when they last said so.
    wishes: BTreeMap<(ClusterName, PublicKey), (i64, bool)>,
    with_asks: bool,
}

#[derive(Clone, Debug)]
struct Told {
    since: i64,
    /// `None` for a cluster that this hub itself applies to.
    agent: Option<Agent>,
    report: Option<Arc<Report>>,
    capacity: Option<Arc<Capacity>>,
}

impl Told {
    /// Whether a cluster said nothing since: what is held is the very same.
    fn is_same(&self, other: &Self) -> bool {
        fn is<T>(one: &Option<Arc<T>>, other: &Option<Arc<T>>) -> bool {
            match (one, other) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            }
        }
        is(&self.report, &other.report) && is(&self.capacity, &other.capacity)
    }
}

impl Words {
    /// For a hub that understands what agents ask for, or for an older one.
    pub(super) fn new(with_asks: bool) -> Self {
        Self {
            with_asks,
            ..Self::default()
        }
    }

    /// What is new since the last time; with `whole` all there is, after `begin`. What other hubs told is never told on.
    pub(super) fn news(
        &mut self,
        state: &State,
        agents: &dyn Fn(&ClusterName) -> Option<Agent>,
        begin: &PeerWord,
        whole: bool,
    ) -> Vec<PeerWord> {
        let mut words = Vec::new();
        let mut now = BTreeMap::new();
        if whole {
            words.push(begin.clone());
        }
        for (cluster, known) in &state.clusters {
            let Some(since) = known.connected_since() else { continue };
            let (report, capacity) = known.said();
            let told = Told {
                since,
                agent: agents(cluster),
                report,
                capacity,
            };
            let before = self.clusters.get(cluster).filter(|_| !whole);
            let is_said = before.is_some_and(|before| before.is_same(&told));
            let is_other = |before: &Told| (before.since, &before.agent) != (since, &told.agent);
            if !is_said || before.is_some_and(is_other) {
                words.push(PeerWord::Cluster {
                    cluster: cluster.clone(),
                    since,
                    key: told
                        .agent
                        .as_ref()
                        .map(|agent| agent.key.to_string())
                        .unwrap_or_default(),
                    instance: told
                        .agent
                        .as_ref()
                        .map(|agent| agent.instance.clone())
                        .unwrap_or_default(),
                    report: known.last_report().filter(|_| !is_said).map(Box::new),
                });
            }
            now.insert(cluster.clone(), told);
        }
        words.extend(self.joining(state, whole));
        words.extend(self.wishes(state, whole));
        if whole {
            words.push(PeerWord::End);
        } else {
            let gone = self.clusters.keys().filter(|cluster| !now.contains_key(*cluster));
            words.extend(gone.cloned().map(|cluster| PeerWord::Gone { cluster }));
        }
        self.clusters = now;
        words
    }

    /// Which keys agents here wish, where that is new. Those of other hubs are told by them.
    fn wishes(&mut self, state: &State, whole: bool) -> Vec<PeerWord> {
        let mut words = Vec::new();
        let mut now = BTreeMap::new();
        for (cluster, wish) in state.agent_keys.own().filter(|_| self.with_asks) {
            let (at, said) = ((cluster.clone(), wish.next), (wish.last, wish.is_in_use));
            if whole || self.wishes.get(&at) != Some(&said) {
                words.push(PeerWord::Wish {
                    cluster: cluster.clone(),
                    wish: Box::new(wish.carried()),
                });
            }
            now.insert(at, said);
        }
        self.wishes = now;
        words
    }

    /// Who asks for registration here, where that is new. A hub that has not read its tokens says nothing of them.
    fn joining(&mut self, state: &State, whole: bool) -> Option<PeerWord> {
        let joining = state.told_joining().filter(|_| self.with_asks)?;
        let is_new = whole || self.joining.as_ref() != Some(&joining);
        let word = is_new.then(|| PeerWord::joining(&joining));
        self.joining = Some(joining);
        word
    }
}
