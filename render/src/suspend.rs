//! Which Suspensions hold: a fleet, a unit, a cluster and a time go in, the one that counts comes out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fleet::Fleet;
use crate::model::{Cluster, Suspension};
use crate::name::{ClusterName, UnitKey};

/// What holds units back on clusters, as a fleet says it.
#[derive(Clone, Copy, Debug)]
pub struct Suspensions<'a> {
    declared: &'a [Arc<Suspension>],
    clusters: &'a BTreeMap<ClusterName, Cluster>,
}

impl Fleet {
    /// What holds units back on clusters.
    pub fn suspensions(&self) -> Suspensions<'_> {
        Suspensions {
            declared: &self.suspensions,
            clusters: &self.clusters,
        }
    }
}

impl<'a> Suspensions<'a> {
    /// Nothing is suspended.
    pub fn none() -> Self {
        static NO_CLUSTERS: BTreeMap<ClusterName, Cluster> = BTreeMap::new();
        Self {
            declared: &[],
            clusters: &NO_CLUSTERS,
        }
    }

    /// The Suspension that keeps a unit on a cluster as it is; of several, the one that holds longest.
    pub fn of(&self, unit: &UnitKey, cluster: &ClusterName, now: i64) -> Option<&'a Suspension> {
        if self.declared.is_empty() {
            return None;
        }
        let labels = self.clusters.get(cluster).map(|cluster| &cluster.labels);
        let holds =
            |suspension: &&Arc<Suspension>| suspension.is_in_force(now) && suspension.concerns(unit, cluster, labels);
        let length = |suspension: &&Arc<Suspension>| suspension.until.unwrap_or(i64::MAX);
        let declared: &'a [Arc<Suspension>] = self.declared;
        // The last of equals is the one that is kept, so the first is looked at last.
        declared
            .iter()
            .rev()
            .filter(holds)
            .max_by_key(length)
            .map(|found| &**found)
    }

    /// When the next Suspension ends that holds now; `None` where none ends by itself.
    pub fn next_end(&self, now: i64) -> Option<i64> {
        self.declared
            .iter()
            .filter_map(|suspension| suspension.until)
            .filter(|until| *until > now)
            .min()
    }
}
