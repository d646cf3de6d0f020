//! Which overrides meet which unit and cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::fleet::{Base, Fleet};
use crate::model::{Cluster, Override, OverrideKind};

/// A fleet's overrides by the object they change, so that a thousand units do not each look at all.
#[derive(Debug)]
pub struct Index<'a> {
    overrides: &'a [Arc<Override>],
    by_object: BTreeMap<(&'a str, &'a str), Vec<usize>>,
}

/// The overrides that change an object of one Base, on whichever clusters.
#[derive(Clone, Debug, Default)]
pub struct Touching<'a> {
    globalizations: Vec<&'a Arc<Override>>,
    localizations: BTreeMap<&'a str, Vec<&'a Arc<Override>>>,
}

impl<'a> Index<'a> {
    /// Indexes a fleet's overrides.
    pub fn new(fleet: &'a Fleet) -> Self {
        debug_assert!(
            fleet.overrides.is_sorted_by_key(|item| item.order_key()),
            "load leaves overrides in the order in which they apply"
        );
        let mut by_object: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (position, item) in fleet.overrides.iter().enumerate() {
            let object = (item.feed.kind.as_str(), item.feed.name.as_str());
            by_object.entry(object).or_default().push(position);
        }
        Self {
            overrides: &fleet.overrides,
            by_object,
        }
    }

    /// The overrides that change an object of this Base.
    pub fn touching(&self, base: &Base) -> Touching<'a> {
        let mut positions = BTreeSet::new();
        for object in &base.objects {
            let named = self
                .by_object
                .get(&(object.key.kind.as_str(), object.key.name.as_str()));
            let named = named.into_iter().flatten().copied();
            positions.extend(named.filter(|position| self.overrides[*position].feed.selects(&object.key)));
        }
        let mut touching = Touching::default();
        for item in positions.into_iter().map(|position| &self.overrides[position]) {
            match item.kind {
                OverrideKind::Globalization { .. } => touching.globalizations.push(item),
                OverrideKind::Localization => {
                    let of_namespace = touching.localizations.entry(&item.namespace);
                    of_namespace.or_default().push(item);
                }
            }
        }
        touching
    }
}

impl<'a> Touching<'a> {
    /// All of them, whatever the cluster.
    pub fn all(&self) -> impl Iterator<Item = &'a Arc<Override>> {
        self.globalizations
            .iter()
            .chain(self.localizations.values().flatten())
            .copied()
    }

    /// Those that meet this cluster, in the order in which they apply.
    pub fn for_cluster(&self, cluster: &Cluster) -> Vec<&'a Arc<Override>> {
        let of_all = self.globalizations.iter().filter(|item| item.meets(cluster));
        let of_its_own = self.localizations.get(cluster.namespace.as_str()).into_iter().flatten();
        of_all.chain(of_its_own).copied().collect()
    }
}

/// The overrides that meet a cluster and change an object of a Base, in the order in which they apply. For
/// many Bases or clusters, keep an [`Index`].
pub fn matching<'a>(fleet: &'a Fleet, cluster: &Cluster, base: &Base) -> Vec<&'a Arc<Override>> {
    Index::new(fleet).touching(base).for_cluster(cluster)
}
