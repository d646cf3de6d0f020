//! Proportion within bounds.

use std::collections::BTreeMap;

use super::weights::divide;
use crate::name::{ClusterName, UnitKey};

/// One part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) weight: u64,
    pub(super) least: u64,
    /// At least `least`.
    pub(super) most: u64,
}

/// Shares an amount out in proportion to the weights, each within its bounds. What bounds keep from one goes to the
/// others, by their weights. Less than the amount is given where the bounds allow no more; a part without weight gets
/// its least.
///
/// Whoever would get more than its most is set to it, and the rest shared out anew; then the same for the least. Where
/// the least together are more than the amount, they are shared out by themselves.
pub(super) fn proportion(
    unit: &UnitKey,
    amount: u64,
    parts: &BTreeMap<ClusterName, Part>,
) -> BTreeMap<ClusterName, u64> {
    let least = parts.values().fold(0_u64, |sum, part| sum.saturating_add(part.least));
    if least >= amount {
        let weights = parts.iter().map(|(name, part)| (name.clone(), part.least)).collect();
        return divide(unit, amount, &weights).unwrap_or_else(|| zeros(parts));
    }
    let mut shares = zeros(parts);
    let mut open: BTreeMap<ClusterName, u64> = BTreeMap::new();
    let mut left = amount;
    for (name, part) in parts {
        if part.weight == 0 {
            left -= part.least;
            shares.insert(name.clone(), part.least);
        } else {
            open.insert(name.clone(), part.weight);
        }
    }
    while let Some(found) = divide(unit, left, &open) {
        let bound = |at_most: bool| {
            let over = found.iter().filter_map(|(name, share)| {
                let part = parts.get(name)?;
                let bound = if at_most { part.most } else { part.least };
                let is_out = if at_most { *share > bound } else { *share < bound };
                is_out.then(|| (name.clone(), bound))
            });
            over.collect::<Vec<_>>()
        };
        let (over, under) = (bound(true), bound(false));
        if over.is_empty() && under.is_empty() {
            shares.extend(found);
            break;
        }
        // Of the two, whichever is more out of bounds is settled first: the other may be none then.
        let excess = |out: &[(ClusterName, u64)]| -> u64 {
            let by = |(name, bound): &(ClusterName, u64)| found.get(name).copied().unwrap_or_default().abs_diff(*bound);
            out.iter().map(by).fold(0, u64::saturating_add)
        };
        let out = if excess(&over) >= excess(&under) { over } else { under };
        for (name, bound) in out {
            open.remove(&name);
            left = left.saturating_sub(bound);
            shares.insert(name, bound);
        }
    }
    shares
}

fn zeros(parts: &BTreeMap<ClusterName, Part>) -> BTreeMap<ClusterName, u64> {
    parts.keys().map(|name| (name.clone(), 0)).collect()
}
