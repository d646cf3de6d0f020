//! Pods that are to go already, and those that wait for their nodes.

use crate::capacity::Field;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::published::{Placement, UnitPlacement};
use crate::schedule::desired::workloads_of;

use super::{Asking, Books, Ledger};

impl Ledger {
    /// The nodes once pods beyond what a unit keeps gave way to those that have no node; `None` where none do.
    ///
    /// A unit that shrank, or gave room away, has its pods there until the cluster says otherwise. If it grows again
    /// before that, they are its own again, but for what others were promised meanwhile.
    pub(super) fn passed_on(
        &mut self,
        books: &Books<'_>,
        cluster: &ClusterName,
        opened: usize,
        asking: Asking<'_>,
    ) -> Option<Field> {
        let account = &self.accounts.list[opened].1;
        let place = account.report.workload(asking.unit, asking.object)?;
        let reported = &account.report.workloads[place];
        let keeps = share(books.previous.get(asking.unit), cluster, asking.object)
            .map_or(0, |share| share.unwrap_or(reported.replicas));
        // What the cluster was told is never less than what has a node, but for what is on its way out.
        if reported.scheduled.max(reported.replicas) <= keeps {
            return None;
        }
        let mut nodes = account.nodes.nodes();
        let leaving = nodes.pods(place).saturating_sub(keeps);
        let lacking = self.lacking(books, cluster, opened, asking);
        if leaving == 0 || lacking.is_empty() {
            return None;
        }
        nodes.leave(place, &reported.requests, leaving);
        let mut field = self.demands.field(&nodes);
        for (unit, object, pods) in lacking {
            let Some(declared) = books.fleet.units.get(&unit) else {
                continue;
            };
            if let Some(workload) = workloads_of(declared).get(&object) {
                let demand = self.demands.of(&field, &workload.requirements);
                field.put_by((&workload.requirements, &demand), pods, None);
            }
        }
        Some(field)
    }

    /// Whose pods have no node in a cluster, and how many; the asking one's own are not looked at.
    fn lacking(
        &self,
        books: &Books<'_>,
        cluster: &ClusterName,
        opened: usize,
        asking: Asking<'_>,
    ) -> Vec<(UnitKey, ObjectKey, u64)> {
        let account = &self.accounts.list[opened].1;
        let nodes = account.nodes.nodes();
        let told = account.report.workloads.iter().enumerate();
        let told = told.filter(|(_, workload)| workload.replicas > workload.scheduled);
        let told = told.filter_map(|(place, workload)| {
            let planned = self.planned.iter().rfind(|(unit, _)| *unit == workload.unit);
            let placement = planned.map(|(_, placement)| placement);
            let placement = placement.or_else(|| books.previous.get(&workload.unit));
            let share = share(placement, cluster, &workload.object)?.unwrap_or(workload.replicas);
            let pods = workload.replicas.min(share).saturating_sub(nodes.pods(place));
            Some((workload.unit.clone(), workload.object.clone(), pods))
        });
        let newer = account.lacking.iter();
        let newer = newer.flat_map(|(unit, of_unit)| {
            let of_unit = of_unit.iter();
            of_unit.map(|(object, pods)| (unit.clone(), object.clone(), *pods))
        });
        let is_own = |unit: &UnitKey, object: &ObjectKey| unit == asking.unit && object == asking.object;
        told.chain(newer)
            .filter(|(unit, object, pods)| *pods > 0 && !is_own(unit, object))
            .collect()
    }
}

/// What a placement gives a cluster of an object: nothing where it is not there, all where it is not divided.
fn share(unit: Option<&UnitPlacement>, cluster: &ClusterName, object: &ObjectKey) -> Option<Option<u64>> {
    let placement: &Placement = unit?.clusters.get(cluster)?;
    Some(placement.replicas.get(object).copied())
}
