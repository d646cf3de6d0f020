//! Which Suspensions hold: a fleet, a unit, a cluster and a time go in, the one that counts comes out.
//!
//! A Suspension of single objects holds no unit: it travels in the unit's content, and the applier sees to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fleet::Fleet;
use crate::model::{Cluster, ObjectName, SuspendedObject, Suspension};
use crate::name::{ClusterName, ObjectKey, UnitKey};

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
        let holds = |suspension: &&Arc<Suspension>| {
            suspension.objects.is_empty() && suspension.is_in_force(now) && suspension.concerns(unit, cluster, labels)
        };
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

    /// The Suspension that keeps all of a cluster as it is; of several, the one that holds longest.
    pub fn of_cluster(&self, cluster: &ClusterName, now: i64) -> Option<&'a Suspension> {
        let labels = self.clusters.get(cluster).map(|cluster| &cluster.labels);
        let declared: &'a [Arc<Suspension>] = self.declared;
        let holds = |held: &&Arc<Suspension>| {
            held.unit.is_none() && held.objects.is_empty() && held.is_in_force(now) && held.is_there(cluster, labels)
        };
        let length = |held: &&Arc<Suspension>| held.until.unwrap_or(i64::MAX);
        declared
            .iter()
            .rev()
            .filter(holds)
            .max_by_key(length)
            .map(|found| &**found)
    }

    /// The objects of a unit that are left as they are on some of these clusters, sorted. One that the unit does not
    /// deliver is among them where the Suspension names the unit, so that it is not removed either.
    pub fn objects(
        &self,
        unit: &UnitKey,
        clusters: &[&ClusterName],
        delivers: impl Fn(&ObjectKey) -> bool,
    ) -> Vec<SuspendedObject> {
        let mut found = Vec::new();
        for suspension in self.declared {
            let concerns = |cluster: &&&ClusterName| {
                let labels = self.clusters.get(*cluster).map(|cluster| &cluster.labels);
                suspension.concerns(unit, cluster, labels)
            };
            let there: Vec<ClusterName> = clusters.iter().filter(concerns).map(|name| (*name).clone()).collect();
            if there.is_empty() {
                continue;
            }
            let everywhere = there.len() == clusters.len();
            let keys = suspension.objects.iter().map(ObjectName::key);
            let meant = keys.filter(|key| suspension.unit.is_some() || delivers(key));
            found.extend(meant.map(|object| SuspendedObject {
                object,
                clusters: if everywhere { Vec::new() } else { there.clone() },
                until: suspension.until,
                by: suspension.title(),
            }));
        }
        found.sort();
        found.dedup();
        found
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
