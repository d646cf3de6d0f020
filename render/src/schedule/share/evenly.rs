//! Replicas spread evenly over groups of clusters.

use std::collections::{BTreeMap, BTreeSet};

use super::Skew;
use super::proportion::{Part, proportion};
use crate::name::{ClusterName, UnitKey};

type ByCluster = BTreeMap<ClusterName, u64>;

/// Adds an amount where groups have the fewest, and within a group in proportion to the room. With a hard skew no group
/// gets further ahead of the one with the fewest than that.
pub(super) fn add(
    unit: &UnitKey,
    amount: u64,
    skew: Skew,
    rooms: &ByCluster,
    groups: &BTreeMap<ClusterName, String>,
    shares: &mut ByCluster,
) {
    let mut levels = sums(groups, shares);
    let most = sums(groups, rooms)
        .into_iter()
        .map(|(group, room)| (group, levels[group].saturating_add(room)))
        .collect();
    let before = levels.clone();
    raise(&mut levels, &most, amount);
    if skew.hard {
        // The fewest cannot be raised further, and nobody may be further ahead of them.
        let fewest = levels.values().min().copied().unwrap_or_default();
        for (group, level) in &mut levels {
            *level = (*level).min(fewest.saturating_add(skew.max)).max(before[group]);
        }
    }
    for (group, level) in levels {
        let parts = members(group, groups).map(|name| {
            let room = rooms.get(name).copied().unwrap_or_default();
            let part = Part {
                weight: room,
                least: 0,
                most: room,
            };
            (name, part)
        });
        let parts: Vec<_> = parts.collect();
        for ((name, _), more) in parts.iter().zip(proportion(unit, level - before[group], &parts)) {
            *shares.entry((*name).clone()).or_default() += more;
        }
    }
}

/// What to take away where groups have the most.
pub(super) fn take(
    unit: &UnitKey,
    amount: u64,
    parts: &BTreeMap<ClusterName, Part>,
    groups: &BTreeMap<ClusterName, String>,
    shares: &ByCluster,
) -> ByCluster {
    let of_parts: BTreeMap<ClusterName, String> = groups
        .iter()
        .filter(|(name, _)| parts.contains_key(*name))
        .map(|(name, group)| (name.clone(), group.clone()))
        .collect();
    let before = sums(groups, shares);
    let spare = parts.iter().map(|(name, part)| (name.clone(), part.most)).collect();
    // To lower from the top is to raise from the bottom, upside down.
    let top = before.values().max().copied().unwrap_or_default();
    let mut depths: BTreeMap<&str, u64> = before.iter().map(|(group, level)| (*group, top - level)).collect();
    let most = sums(&of_parts, &spare)
        .into_iter()
        .map(|(group, spare)| (group, depths[group].saturating_add(spare)))
        .collect();
    depths.retain(|group, _| of_parts.values().any(|known| known == group));
    let start = depths.clone();
    raise(&mut depths, &most, amount);
    let mut taken = ByCluster::new();
    for (group, depth) in depths {
        let of_group = members(group, &of_parts).filter_map(|name| Some((name, *parts.get(name)?)));
        let of_group: Vec<_> = of_group.collect();
        let shares = proportion(unit, depth - start[group], &of_group);
        taken.extend(of_group.iter().map(|(name, _)| (*name).clone()).zip(shares));
    }
    taken
}

fn members<'a>(group: &'a str, groups: &'a BTreeMap<ClusterName, String>) -> impl Iterator<Item = &'a ClusterName> {
    groups.iter().filter(move |(_, of)| *of == group).map(|(name, _)| name)
}

fn sums<'a>(groups: &'a BTreeMap<ClusterName, String>, amounts: &ByCluster) -> BTreeMap<&'a str, u64> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, group) in groups {
        let sum = sums.entry(group.as_str()).or_default();
        *sum = sum.saturating_add(amounts.get(name).copied().unwrap_or_default());
    }
    sums
}

/// Raises the lowest levels together, as water rises, until the amount is used up or each is at its most.
fn raise(levels: &mut BTreeMap<&str, u64>, most: &BTreeMap<&str, u64>, mut amount: u64) {
    while amount > 0 {
        let open = levels.iter().filter(|(group, level)| **level < most[*group]);
        let Some(lowest) = open.clone().map(|(_, level)| *level).min() else {
            return;
        };
        let rising: BTreeSet<&str> = open
            .clone()
            .filter(|(_, level)| **level == lowest)
            .map(|(group, _)| *group)
            .collect();
        let next = open.map(|(_, level)| *level).filter(|level| *level > lowest).min();
        let bound = rising
            .iter()
            .map(|group| most[group])
            .chain(next)
            .min()
            .unwrap_or(u64::MAX);
        let count = rising.len() as u64;
        let step = (bound - lowest).min(amount / count);
        if step == 0 {
            for group in rising.into_iter().take(usize::try_from(amount).unwrap_or(usize::MAX)) {
                levels.entry(group).and_modify(|level| *level += 1);
            }
            return;
        }
        for group in rising {
            levels.entry(group).and_modify(|level| *level += step);
        }
        amount -= step * count;
    }
}
