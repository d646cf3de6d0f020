//! Proportion within bounds.

use super::weights::divide_list;
use crate::name::{ClusterName, UnitKey};

/// One part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) weight: u64,
    pub(super) least: u64,
    /// At least `least`.
    pub(super) most: u64,
}

/// Shares an amount out in proportion to the weights, each within its bounds; one share per part, in the same order.
/// What bounds keep from one goes to the others, by their weights. Less than the amount is given where the bounds allow
/// no more; a part without weight gets its least.
///
/// Whoever would get more than its most is set to it, and the rest shared out anew; then the same for the least. Where
/// the least together are more than the amount, they are shared out by themselves.
pub(super) fn proportion(unit: &UnitKey, amount: u64, parts: &[(&ClusterName, Part)]) -> Vec<u64> {
    let mut shares = vec![0; parts.len()];
    let least = parts
        .iter()
        .fold(0_u64, |sum, (_, part)| sum.saturating_add(part.least));
    if least >= amount {
        let weights: Vec<_> = parts.iter().map(|(name, part)| (*name, part.least)).collect();
        return divide_list(unit, amount, &weights).unwrap_or(shares);
    }
    // The places of those that are not settled.
    let mut open: Vec<usize> = Vec::with_capacity(parts.len());
    let mut left = amount;
    for (place, (_, part)) in parts.iter().enumerate() {
        if part.weight == 0 {
            left -= part.least;
            shares[place] = part.least;
        } else {
            open.push(place);
        }
    }
    loop {
        let weights: Vec<_> = open
            .iter()
            .map(|place| (parts[*place].0, parts[*place].1.weight))
            .collect();
        let Some(found) = divide_list(unit, left, &weights) else {
            return shares;
        };
        let (mut over, mut under) = (Out::default(), Out::default());
        for (index, (place, share)) in open.iter().zip(&found).enumerate() {
            let Part { least, most, .. } = parts[*place].1;
            if *share > most {
                over.add(index, *share, most);
            }
            if *share < least {
                under.add(index, *share, least);
            }
        }
        if over.bounds.is_empty() && under.bounds.is_empty() {
            for (place, share) in open.into_iter().zip(found) {
                shares[place] = share;
            }
            return shares;
        }
        // Of the two, whichever is more out of bounds is settled first: the other may be none then.
        let out = if over.excess >= under.excess { over } else { under };
        for (index, bound) in &out.bounds {
            left = left.saturating_sub(*bound);
            shares[open[*index]] = *bound;
        }
        let mut settled = out.bounds.into_iter().map(|(index, _)| index).peekable();
        let mut index = 0;
        open.retain(|_| {
            index += 1;
            settled.next_if_eq(&(index - 1)).is_none()
        });
    }
}

/// Shares that are out of bounds on one side.
#[derive(Default)]
struct Out {
    /// The place among those that are open, and the bound.
    bounds: Vec<(usize, u64)>,
    /// By how much they are, together.
    excess: u64,
}

impl Out {
    fn add(&mut self, index: usize, share: u64, bound: u64) {
        self.bounds.push((index, bound));
        self.excess = self.excess.saturating_add(share.abs_diff(bound));
    }
}
