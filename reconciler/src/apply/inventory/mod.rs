//! What the applier applied in a cluster: object → unit, UID and what was applied; kept in ConfigMaps of
//! that cluster. It is the only ground on which something is removed.
//!
//! An entry without UID is written before an object is first applied, so that no crash leaves an object
//! that nobody remembers. What may be removed is deliberately not decided here.

mod codec;
#[cfg(test)]
mod large;
mod store;

use std::collections::BTreeMap;

use render::describe::is_chart;
use render::{ObjectKey, UnitKey};

use super::helm::names;

pub(super) use store::{Inventory, InventoryError};

/// What is remembered of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The unit it came with.
    pub unit: UnitKey,
    /// The API version it was applied as.
    pub api_version: String,
    /// Its UID; `None` while it is only intended.
    pub uid: Option<String>,
    /// Short digest of what was sent.
    pub applied: Option<String>,
    /// Its resource version after that. While it is the same, the object is.
    pub resource_version: Option<String>,
    /// Lineage of the delivery that brought it, shortened.
    pub lineage: String,
    /// Sequence of the delivery that brought it.
    pub sequence: u64,
    /// Whether it stays in the cluster, as nobody's, when its unit leaves: what the unit said while it was here.
    pub orphan: bool,
    /// Whether it may be deleted and made anew just now: a process that ended then may have left an object of ours with
    /// another UID in its place.
    pub replacing: bool,
}

/// Who needs whom, for as long as its objects are there: what needs something leaves before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::apply) struct Needs {
    /// Unit → the units that it needs.
    pub units: BTreeMap<UnitKey, Vec<UnitKey>>,
    /// The same of objects, as they are in the cluster.
    pub objects: BTreeMap<ObjectKey, Box<[ObjectKey]>>,
}

impl Needs {
    /// The same, with what is needed by each name that it may have in the inventory: people name a HelmChart in either
    /// of its groups.
    pub(in crate::apply) fn by_every_name(&self) -> Self {
        let mut needs = self.clone();
        for needed in needs.objects.values_mut().filter(|needed| needed.iter().any(is_chart)) {
            let (charts, others): (Vec<_>, Vec<_>) = needed.iter().cloned().partition(is_chart);
            *needed = others.into_iter().chain(charts.iter().flat_map(names)).collect();
        }
        needs
    }
}
