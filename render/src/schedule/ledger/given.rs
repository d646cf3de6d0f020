//! Room that a lower priority gives to a higher one.

use crate::capacity::Field;
use crate::fleet::Fleet;
use crate::model::{Cluster, Subscription};
use crate::name::{ClusterName, ObjectKey, UnitKey};

use super::{Account, Asking, Books, Ledger};

/// What a unit has to give in this plan.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct Given {
    pub(in crate::schedule) cluster: ClusterName,
    pub(in crate::schedule) object: ObjectKey,
    pub(in crate::schedule) replicas: u64,
    pub(in crate::schedule) to: UnitKey,
    pub(in crate::schedule) priority: i32,
}

/// Replicas that would leave a cluster.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct Gone {
    pub(in crate::schedule) unit: UnitKey,
    pub(in crate::schedule) object: ObjectKey,
    pub(in crate::schedule) replicas: u64,
    /// How many of them have a node: those that have none go first, and make no room.
    pub(in crate::schedule) pods: u64,
}

impl Ledger {
    /// How many pods of a workload a cluster has on its nodes; none where its room is not known.
    pub(in crate::schedule) fn pods(
        &mut self,
        books: &Books<'_>,
        cluster: &Cluster,
        unit: &UnitKey,
        object: &ObjectKey,
    ) -> u64 {
        let account = self.account(books, cluster).ok();
        let pods = account.and_then(|account| Some(account.nodes.nodes().pods(account.report.workload(unit, object)?)));
        pods.unwrap_or_default()
    }

    /// As [`Ledger::room`], if these were gone.
    pub(in crate::schedule) fn room_without(
        &mut self,
        books: &Books<'_>,
        cluster: &Cluster,
        asking: Asking<'_>,
        most: u64,
        gone: &[Gone],
    ) -> u64 {
        let Ok(account) = self.account(books, cluster) else {
            return 0;
        };
        let before = account.nodes.clone();
        account.let_go(gone);
        let room = self.room(books, cluster, asking, most).map_or(0, |fit| fit.replicas);
        if let Ok(account) = self.account(books, cluster) {
            account.nodes = before;
        }
        room
    }

    /// Takes these away for a unit; they are told when their own unit is placed.
    pub(in crate::schedule) fn give(
        &mut self,
        books: &Books<'_>,
        cluster: &Cluster,
        to: &Subscription,
        gone: Vec<Gone>,
    ) {
        let Ok(account) = self.account(books, cluster) else {
            return;
        };
        account.let_go(&gone);
        account.waiting.insert(to.key.clone(), to.placing.priority);
        for gone in gone {
            let given = Given {
                cluster: cluster.name.clone(),
                object: gone.object,
                replicas: gone.replicas,
                to: to.key.clone(),
                priority: to.placing.priority,
            };
            self.given.entry(gone.unit).or_default().push(given);
        }
    }

    /// What a unit has to give of an object in a cluster.
    pub(in crate::schedule) fn given(&self, unit: &UnitKey, cluster: &ClusterName, object: &ObjectKey) -> Vec<&Given> {
        let given = self.given.get(unit).into_iter().flatten();
        given
            .filter(|given| given.cluster == *cluster && given.object == *object)
            .collect()
    }

    /// Whether a unit has to give anything.
    pub(crate) fn gives(&self, unit: &UnitKey) -> bool {
        self.given.contains_key(unit)
    }

    /// A unit of a higher priority that waits for its room in a cluster, with that. What becomes free there is its own.
    pub(in crate::schedule) fn first_served(
        &mut self,
        books: &Books<'_>,
        cluster: &Cluster,
        after: &Subscription,
    ) -> Option<(UnitKey, i32)> {
        if !books.fleet.spec.scheduling.preemption {
            return None;
        }
        let account = self.account(books, cluster).ok()?;
        let mut higher = account.waiting.iter();
        let found = higher.find(|(unit, priority)| **priority > after.placing.priority && **unit != after.key);
        found.map(|(unit, priority)| (unit.clone(), *priority))
    }
}

impl Account {
    /// Who may take room waits while the pods of others still go.
    pub(super) fn waits(&mut self, subscription: &Subscription, fleet: &Fleet) {
        if may_take(subscription, fleet) {
            self.waiting
                .insert(subscription.key.clone(), subscription.placing.priority);
        }
    }

    /// Those whose replicas the cluster was told already, and that have no node yet.
    pub(super) fn note_waiting(&mut self, fleet: &Fleet) {
        if !fleet.spec.scheduling.preemption {
            return;
        }
        let report = std::sync::Arc::clone(&self.report);
        let waiting = report
            .workloads
            .iter()
            .filter(|workload| workload.replicas > workload.scheduled);
        for unit in waiting.filter_map(|workload| fleet.units.get(&workload.unit)) {
            self.waits(&unit.subscription, fleet);
        }
    }

    fn let_go(&mut self, gone: &[Gone]) {
        let mut nodes = self.nodes.nodes();
        for gone in gone {
            if let Some(place) = self.report.workload(&gone.unit, &gone.object) {
                let requests = &self.report.workloads[place].requests;
                nodes.leave(place, requests, gone.pods);
            }
        }
        self.nodes = Field::of(&nodes);
    }
}

/// Whether a unit may take the room of a lower priority.
pub(in crate::schedule) fn may_take(subscription: &Subscription, fleet: &Fleet) -> bool {
    subscription.placing.preempts && fleet.spec.scheduling.preemption
}
