//! What another hub is told of the clusters that are connected here.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::ClusterName;
use render::capacity::Capacity;

use crate::hub::engine::State;
use crate::wire::{PeerWord, Report};

/// What it was told by now.
#[derive(Debug, Default)]
pub(super) struct Words {
    clusters: BTreeMap<ClusterName, Told>,
}

#[derive(Clone, Debug)]
struct Told {
    since: i64,
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
    /// What is new since the last time; with `whole` all there is, after `begin`. What other hubs told is never told on.
    pub(super) fn news(&mut self, state: &State, begin: &PeerWord, whole: bool) -> Vec<PeerWord> {
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
                report,
                capacity,
            };
            let before = self.clusters.get(cluster).filter(|_| !whole);
            let is_said = before.is_some_and(|before| before.is_same(&told));
            if !is_said || before.is_some_and(|before| before.since != since) {
                words.push(PeerWord::Cluster {
                    cluster: cluster.clone(),
                    since,
                    report: known.last_report().filter(|_| !is_said).map(Box::new),
                });
            }
            now.insert(cluster.clone(), told);
        }
        if whole {
            words.push(PeerWord::End);
        } else {
            let gone = self.clusters.keys().filter(|cluster| !now.contains_key(*cluster));
            words.extend(gone.cloned().map(|cluster| PeerWord::Gone { cluster }));
        }
        self.clusters = now;
        words
    }
}
