//! Release: which cluster gets which revision next. What it says goes through the `tunnel` to the agents.
//!
//! The target (`rendered`) and what is released now go in, advances come out; writing the commit is the
//! hub's. The only strategy yet is *all at once*: whatever the target says is due. Waves, windows and
//! suspensions are other answers of the same function.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::{ClusterName, UnitKey};
use crate::published::{Placement, Published, UnitPlacement, Variant};

/// What clusters were seen to hold. Read by strategies that wait for an outcome.
#[derive(Clone, Debug, Default)]
pub struct Observed {}

/// One step: a cluster's share of a unit becomes what the target says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Whose unit.
    pub unit: UnitKey,
    /// Which cluster.
    pub cluster: ClusterName,
    /// What it gets; `None`: the unit leaves the cluster.
    pub to: Option<(Placement, Variant)>,
}

/// The advances that are due, sorted by unit and cluster.
pub fn release(target: &Published, released: &Published, _observed: &Observed, _now: i64) -> Vec<Advance> {
    let nothing = UnitPlacement::default();
    let mut advances = Vec::new();
    let units: BTreeSet<_> = target.units.keys().chain(released.units.keys()).collect();
    for unit in units {
        let (wanted, present) = (
            target.units.get(unit).unwrap_or(&nothing),
            released.units.get(unit).unwrap_or(&nothing),
        );
        if wanted == present {
            continue;
        }
        let clusters: BTreeSet<_> = wanted.clusters.keys().chain(present.clusters.keys()).collect();
        for cluster in clusters {
            let (to, from) = (wanted.entry(cluster), present.entry(cluster));
            if to != from {
                let to = to.map(|(placement, variant)| (placement.clone(), variant.clone()));
                advances.push(Advance {
                    unit: unit.clone(),
                    cluster: cluster.clone(),
                    to,
                });
            }
        }
    }
    advances
}

/// What is released after these advances; the record is the caller's to write.
pub fn advance(target: &Published, released: &Published, advances: Vec<Advance>) -> Published {
    let mut next = released.clone();
    let mut by_unit: BTreeMap<UnitKey, Vec<Advance>> = BTreeMap::new();
    for advance in advances {
        by_unit.entry(advance.unit.clone()).or_default().push(advance);
    }
    for (unit, advances) in by_unit {
        let present = next.units.remove(&unit).unwrap_or_default();
        let newest = target.units.get(&unit).map(UnitPlacement::digests).unwrap_or_default();
        let placement = UnitPlacement::compose(present.advanced(advances), &newest);
        if !placement.clusters.is_empty() {
            next.units.insert(unit, placement);
        }
    }
    next
}

impl UnitPlacement {
    fn advanced(self, advances: Vec<Advance>) -> Vec<(ClusterName, Placement, Variant)> {
        let mut entries: BTreeMap<ClusterName, (Placement, Variant)> = BTreeMap::new();
        for (cluster, placement) in self.clusters {
            if let Some(variant) = self.variants.get(&placement.variant) {
                entries.insert(cluster, (placement, variant.clone()));
            }
        }
        for advance in advances {
            match advance.to {
                Some(entry) => entries.insert(advance.cluster, entry),
                None => entries.remove(&advance.cluster),
            };
        }
        entries
            .into_iter()
            .map(|(cluster, (placement, variant))| (cluster, placement, variant))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::tests::{entry, placement};

    fn published(units: &[(&str, UnitPlacement)]) -> Published {
        let units = units
            .iter()
            .map(|(unit, placement)| (unit.parse().expect("a valid unit"), placement.clone()));
        Published {
            record: None,
            units: units.collect(),
        }
    }

    #[track_caller]
    fn check(target: &Published, released: &Published, due: usize) {
        let advances = release(target, released, &Observed::default(), 0);
        assert_eq!(advances.len(), due, "{advances:#?}");
        let next = advance(target, released, advances);
        assert_eq!(next.units, target.units, "all at once ends at the target");
        assert!(
            release(target, &next, &Observed::default(), 0).is_empty(),
            "and stays there"
        );
    }

    #[test]
    fn all_at_once_follows_the_target_entry_by_entry() {
        let old = placement(&[entry("a", "default", "1"), entry("b", "default", "1")]);
        let new = placement(&[entry("a", "default", "2"), entry("b", "default", "2")]);
        let nothing = Published::default();
        check(&published(&[("t/web", old.clone())]), &nothing, 2);
        check(
            &published(&[("t/web", new.clone())]),
            &published(&[("t/web", old.clone())]),
            2,
        );
        check(&published(&[("t/web", new.clone())]), &published(&[("t/web", new)]), 0);
        check(&nothing, &published(&[("t/web", old)]), 2);
    }

    #[test]
    fn an_entry_that_is_not_advanced_keeps_its_older_content_beside_the_newer() {
        let old = published(&[(
            "t/web",
            placement(&[entry("a", "default", "1"), entry("b", "default", "1")]),
        )]);
        let new = published(&[(
            "t/web",
            placement(&[entry("a", "default", "2"), entry("b", "default", "2")]),
        )]);
        let only_a = release(&new, &old, &Observed::default(), 0)
            .into_iter()
            .take(1)
            .collect();
        let mixed = advance(&new, &old, only_a);
        let unit = &mixed.units[&"t/web".parse().expect("a valid unit")];
        let (a, b) = (
            ClusterName::parse("a").expect("valid"),
            ClusterName::parse("b").expect("valid"),
        );
        assert_eq!(unit.entry(&a).expect("a has it").0.variant.as_str(), "default");
        let (held, variant) = unit.entry(&b).expect("b keeps it");
        assert!(held.variant.as_str().starts_with("default-held-"), "{held:?}");
        assert_eq!(variant.digest, crate::Digest::of_bytes(b"1"));
        check(&new, &mixed, 1);
    }
}
