//! What a unit's objects ask for on each cluster, after the overrides that meet it there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::capacity::{Workload, replica_path};
use crate::fleet::Unit;
use crate::localize::{self, Touching};
use crate::model::Cluster;
use crate::schedule::{Divided, Inventory, Workloads, workloads_of};

/// Computed once for each distinct set of overrides.
pub(crate) struct Overridden<'a> {
    unit: &'a Unit,
    touching: &'a Touching<'a>,
    known: RefCell<BTreeMap<Vec<String>, Arc<Workloads>>>,
}

impl<'a> Overridden<'a> {
    pub(crate) fn new(unit: &'a Unit, touching: &'a Touching<'a>) -> Self {
        Self {
            unit,
            touching,
            known: RefCell::default(),
        }
    }
}

impl Inventory for Overridden<'_> {
    fn workloads(&self, cluster: &Cluster) -> Arc<Workloads> {
        let overrides = self.touching.for_cluster(cluster);
        if overrides.is_empty() {
            return workloads_of(self.unit);
        }
        let labels: Vec<String> = overrides.iter().map(|declared| declared.label()).collect();
        let mut known = self.known.borrow_mut();
        let found = known.entry(labels).or_insert_with(|| {
            let divided = Divided::of(&self.unit.subscription);
            let Ok(description) = localize::localize(&self.unit.base, &overrides, &divided) else {
                // What does not fit is said where it is rendered, and the cluster keeps what it has.
                return workloads_of(self.unit);
            };
            let read = |object: &crate::describe::DescribedObject| {
                let path = divided.path(&object.key).or_else(|| replica_path(&object.key))?;
                let workload = Workload::read(object.content.object()?, &path).ok()?;
                Some((object.key.clone(), workload))
            };
            Arc::new(description.objects.iter().filter_map(read).collect())
        });
        Arc::clone(found)
    }
}
