//! Release: which cluster gets which revision next. What it says goes through the `tunnel` to the agents.
//!
//! The target (`rendered`), what is released now and what is suspended go in, advances come out; writing the
//! commit is the hub's. The strategy is *all at once*: whatever the target says is due, but for what a
//! Suspension holds, which stays as it is. Waves and windows are other answers of the same function.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::{ClusterName, UnitKey};
use crate::published::{Placement, Published, UnitPlacement, Variant};
use crate::suspend::Suspensions;

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

/// The advances that are due, sorted by unit and cluster. `now` is in seconds since 1970.
pub fn release(
    target: &Published,
    released: &Published,
    suspensions: Suspensions<'_>,
    _observed: &Observed,
    now: i64,
) -> Vec<Advance> {
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
            if to != from && suspensions.of(unit, cluster, now).is_none() {
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
        let mut placement = UnitPlacement::compose(present.advanced(advances), &newest);
        placement.depends_on = target
            .units
            .get(&unit)
            .map(|unit| unit.depends_on.clone())
            .unwrap_or_default();
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
    use std::sync::Arc;

    use super::*;
    use crate::Fleet;
    use crate::model::{Scheduling, SuspendedClusters, Suspension};
    use crate::published::tests::{entry, placement};
    use crate::selector::LabelSelector;

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
        let advances = release(target, released, Suspensions::none(), &Observed::default(), 0);
        assert_eq!(advances.len(), due, "{advances:#?}");
        let next = advance(target, released, advances);
        assert_eq!(next.units, target.units, "all at once ends at the target");
        assert!(
            release(target, &next, Suspensions::none(), &Observed::default(), 0).is_empty(),
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
        let only_a = release(&new, &old, Suspensions::none(), &Observed::default(), 0)
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

    /// A fleet of clusters a and b that declares these Suspensions.
    fn suspended(declared: Vec<Suspension>) -> Fleet {
        use crate::fixture;
        let clusters = ["a", "b"].map(|name| fixture::cluster(name, &[("zone", name)]));
        let subscription = fixture::subscription(Scheduling::Replication, Vec::new());
        Fleet {
            suspensions: declared.into_iter().map(Arc::new).collect(),
            ..fixture::fleet(clusters, subscription, crate::Base::empty())
        }
    }

    fn suspension(unit: Option<&str>, clusters: Option<SuspendedClusters>, until: Option<i64>) -> Suspension {
        Suspension {
            name: "held".to_owned(),
            unit: unit.map(|unit| unit.parse().expect("a valid unit")),
            clusters,
            reason: String::new(),
            until,
            file: "policies/held.yaml".into(),
            line: 1,
        }
    }

    fn named(name: &str) -> Option<SuspendedClusters> {
        Some(SuspendedClusters {
            names: vec![ClusterName::parse(name).expect("a valid cluster")],
            selector: None,
        })
    }

    fn in_zone(zone: &str) -> Option<SuspendedClusters> {
        let selector = LabelSelector {
            match_labels: BTreeMap::from([("zone".to_owned(), zone.to_owned())]),
            ..LabelSelector::default()
        };
        Some(SuspendedClusters {
            names: Vec::new(),
            selector: Some(selector),
        })
    }

    /// Who advances, as `unit cluster`, where t/web and t/api are new on a and b.
    #[track_caller]
    fn advancing(held: Suspension, now: i64, expected: &[&str]) {
        let new = placement(&[entry("a", "default", "1"), entry("b", "default", "1")]);
        let (target, fleet) = (
            published(&[("t/web", new.clone()), ("t/api", new)]),
            suspended(vec![held]),
        );
        let advances = release(
            &target,
            &Published::default(),
            fleet.suspensions(),
            &Observed::default(),
            now,
        );
        let found: Vec<_> = advances
            .iter()
            .map(|advance| format!("{} {}", advance.unit, advance.cluster))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_suspended_is_not_released_and_everything_else_is() {
        advancing(suspension(Some("t/web"), None, None), 0, &["t/api a", "t/api b"]);
        advancing(suspension(None, named("a"), None), 0, &["t/api b", "t/web b"]);
        advancing(suspension(None, in_zone("b"), None), 0, &["t/api a", "t/web a"]);
        advancing(
            suspension(Some("t/web"), named("a"), None),
            0,
            &["t/api a", "t/api b", "t/web b"],
        );
        advancing(
            suspension(Some("t/other"), None, None),
            0,
            &["t/api a", "t/api b", "t/web a", "t/web b"],
        );
    }

    #[test]
    fn a_suspension_ends_at_its_time() {
        let held = suspension(Some("t/web"), None, Some(100));
        advancing(held.clone(), 99, &["t/api a", "t/api b"]);
        advancing(held.clone(), 100, &["t/api a", "t/api b", "t/web a", "t/web b"]);
        let fleet = suspended(vec![held, suspension(None, named("a"), Some(50))]);
        let next = |now| fleet.suspensions().next_end(now);
        assert_eq!([next(0), next(50), next(100)], [Some(50), Some(100), None]);
    }

    #[test]
    fn of_two_suspensions_the_longer_one_counts() {
        let (short, long) = (
            suspension(None, named("a"), Some(50)),
            suspension(Some("t/web"), None, None),
        );
        for declared in [vec![short.clone(), long.clone()], vec![long, short]] {
            let fleet = suspended(declared);
            let (unit, a) = ("t/web".parse().expect("valid"), ClusterName::parse("a").expect("valid"));
            let found = fleet.suspensions().of(&unit, &a, 0).expect("both hold it");
            assert_eq!(found.until, None);
        }
    }

    #[test]
    fn a_removal_waits_as_well_also_on_a_cluster_that_is_not_registered() {
        let old = published(&[(
            "t/web",
            placement(&[entry("a", "default", "1"), entry("gone", "default", "1")]),
        )]);
        let fleet = suspended(vec![suspension(Some("t/web"), in_zone("a"), None)]);
        let advances = release(
            &Published::default(),
            &old,
            fleet.suspensions(),
            &Observed::default(),
            0,
        );
        assert_eq!(advances, [], "nobody knows the labels of a cluster that is gone");
    }

    proptest::proptest! {
        /// Contents 0 (none) to 3 of two units on two clusters, before and after; any of the four is suspended.
        #[test]
        fn a_suspended_entry_never_changes_and_the_others_reach_the_target(
            before in proptest::array::uniform4(0_u8..4),
            after in proptest::array::uniform4(0_u8..4),
            held in proptest::array::uniform4(proptest::bool::ANY),
        ) {
            let places = [("t/api", "a"), ("t/api", "b"), ("t/web", "a"), ("t/web", "b")];
            let state = |contents: [u8; 4]| {
                let unit = |name: &str| {
                    let of = places.iter().zip(contents).filter(|((unit, _), content)| *unit == name && *content > 0);
                    let entries: Vec<_> = of.map(|((_, cluster), content)| entry(cluster, "default", &content.to_string())).collect();
                    placement(&entries)
                };
                let units = ["t/api", "t/web"].map(|name| (name, unit(name)));
                published(&units.into_iter().filter(|(_, unit)| !unit.clusters.is_empty()).collect::<Vec<_>>())
            };
            let (released, target) = (state(before), state(after));
            let declared = places.iter().zip(held).filter(|(_, held)| *held);
            let fleet = suspended(declared.map(|((unit, cluster), _)| suspension(Some(unit), named(cluster), None)).collect());
            let due = release(&target, &released, fleet.suspensions(), &Observed::default(), 0);
            let next = advance(&target, &released, due);
            for ((unit, cluster), held) in places.iter().zip(held) {
                let content = |from: &Published| {
                    let unit = from.units.get(&unit.parse::<UnitKey>().expect("valid"))?;
                    let (_, variant) = unit.entry(&ClusterName::parse(*cluster).expect("valid"))?;
                    Some(variant.digest)
                };
                proptest::prop_assert_eq!(content(&next), content(if held { &released } else { &target }));
            }
            proptest::prop_assert!(
                release(&target, &next, fleet.suspensions(), &Observed::default(), 0).is_empty(),
                "what is held is not due again"
            );
            let resumed = release(&target, &next, Suspensions::none(), &Observed::default(), 0);
            proptest::prop_assert_eq!(advance(&target, &next, resumed).units, target.units, "and resuming ends at the target");
        }
    }
}
