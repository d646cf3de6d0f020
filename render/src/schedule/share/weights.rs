//! Static dividing: the largest remainder.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::name::{ClusterName, UnitKey};

/// Shares `desired` out in proportion to the weights: each cluster gets its exact share rounded down, and
/// what is left goes, one each, to the largest fractions. `None` when the weights add up to 0.
///
/// Equal fractions are told apart by a hash of unit and cluster name: one unit's single replicas stay
/// together, many units' spread over the clusters, and no rerun moves anything.
pub fn divide(
    unit: &UnitKey,
    desired: u64,
    weights: &BTreeMap<ClusterName, u64>,
) -> Option<BTreeMap<ClusterName, u64>> {
    let list: Vec<_> = weights.iter().map(|(name, weight)| (name, *weight)).collect();
    let shares = divide_list(unit, desired, &list)?;
    Some(weights.keys().cloned().zip(shares).collect())
}

/// The same, one share per entry in the same order.
pub(super) fn divide_list(unit: &UnitKey, desired: u64, weights: &[(&ClusterName, u64)]) -> Option<Vec<u64>> {
    let total: u128 = weights.iter().map(|(_, weight)| u128::from(*weight)).sum();
    if total == 0 {
        return None;
    }
    let mut shares = Vec::with_capacity(weights.len());
    let mut fractions = Vec::with_capacity(weights.len());
    let mut left = desired;
    for (_, weight) in weights {
        // 64 bits times 64 bits fit in 128, and a share is at most `desired`.
        let exact = u128::from(desired) * u128::from(*weight);
        let floor = exact / total;
        let share = u64::try_from(floor).unwrap_or(desired);
        left -= share;
        fractions.push(exact - floor * total);
        shares.push(share);
    }
    // Less than one for each is left.
    let left = usize::try_from(left).unwrap_or(usize::MAX).min(weights.len());
    if left > 0 {
        for place in largest(unit, left, &fractions, weights) {
            shares[place] += 1;
        }
    }
    Some(shares)
}

/// The places of the largest fractions. Only those that are as large as the last of them have to be told apart.
fn largest(unit: &UnitKey, count: usize, fractions: &[u128], weights: &[(&ClusterName, u64)]) -> Vec<usize> {
    let mut order = fractions.to_vec();
    let (_, last, _) = order.select_nth_unstable_by(count - 1, |a, b| b.cmp(a));
    let last = *last;
    let places = |holds: &dyn Fn(u128) -> bool| -> Vec<usize> {
        (0..fractions.len()).filter(|place| holds(fractions[*place])).collect()
    };
    let mut chosen = places(&|fraction| fraction > last);
    let mut equal = places(&|fraction| fraction == last);
    let open = count - chosen.len();
    if equal.len() > open {
        let key = |place: usize| (tie(unit, weights[place].0), weights[place].0, place);
        let mut order: Vec<_> = equal.into_iter().map(key).collect();
        // Who is among the first counts, not in which order.
        order.select_nth_unstable(open);
        order.truncate(open);
        equal = order.into_iter().map(|(_, _, place)| place).collect();
    }
    chosen.append(&mut equal);
    chosen
}

fn tie(unit: &UnitKey, cluster: &ClusterName) -> Digest {
    Digest::of_bytes(format!("{unit} {cluster}").as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit(name: &str) -> UnitKey {
        UnitKey::new("default", name).expect("it is a valid unit")
    }

    fn clusters(weights: &[u64]) -> BTreeMap<ClusterName, u64> {
        let name = |index| ClusterName::parse(format!("c{index:03}")).expect("it is a valid name");
        weights
            .iter()
            .enumerate()
            .map(|(index, weight)| (name(index), *weight))
            .collect()
    }

    fn shares(desired: u64, weights: &[u64]) -> Vec<u64> {
        let shares = divide(&unit("web"), desired, &clusters(weights)).expect("the weights are not all 0");
        shares.into_values().collect()
    }

    #[track_caller]
    fn check(desired: u64, weights: &[u64], expected: &[u64]) {
        assert_eq!(shares(desired, weights), expected, "{desired} over {weights:?}");
    }

    #[test]
    fn the_largest_fraction_gets_what_is_left() {
        check(9, &[1, 2], &[3, 6]);
        check(0, &[4, 1], &[0, 0]);
        check(5, &[5, 1, 0, 2], &[3, 1, 0, 1]);
        check(100, &[7, 11, 13], &[23, 35, 42]);
        check(u64::MAX, &[u64::MAX, 0], &[u64::MAX, 0]);
    }

    #[test]
    fn weights_that_add_up_to_nothing_divide_nothing() {
        assert_eq!(divide(&unit("web"), 3, &clusters(&[0, 0])), None);
        assert_eq!(divide(&unit("web"), 3, &BTreeMap::new()), None);
    }

    #[test]
    fn single_replicas_of_many_units_spread_over_equal_clusters() {
        let mut counts = [0; 3];
        for index in 0..300 {
            let shares = divide(&unit(&format!("app-{index}")), 1, &clusters(&[1, 1, 1]));
            let shares: Vec<u64> = shares.expect("the weights are not all 0").into_values().collect();
            for (count, share) in counts.iter_mut().zip(shares) {
                *count += share;
            }
        }
        let spread = counts.iter().all(|count| (80..=120).contains(count));
        assert!(spread, "300 replicas went {counts:?}");
    }

    proptest! {
        #[test]
        fn shares_add_up_and_stay_within_one_of_the_exact_share(
            desired in any::<u64>(),
            weights in prop::collection::vec(0..=u64::from(u32::MAX), 1..40),
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
            let shares = shares(desired, &weights);
            let sum: u128 = shares.iter().map(|share| u128::from(*share)).sum();
            prop_assert_eq!(sum, u128::from(desired));
            for (share, weight) in shares.iter().zip(&weights) {
                let scaled = u128::from(*share) * total;
                let exact = u128::from(desired) * u128::from(*weight);
                prop_assert!(scaled.abs_diff(exact) < total, "{} of weight {}", share, weight);
            }
        }

        #[test]
        fn a_greater_weight_never_gets_less(
            desired in any::<u64>(),
            weights in prop::collection::vec(0..1000_u64, 2..20),
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let shares = shares(desired, &weights);
            for (a, weight_a) in weights.iter().enumerate() {
                for (b, weight_b) in weights.iter().enumerate() {
                    prop_assert!(weight_a <= weight_b || shares[a] >= shares[b]);
                }
            }
        }

        // Largest remainder is not monotone (one replica more can cost a cluster one, the Alabama paradox),
        // but a share never falls by more than that one.
        #[test]
        fn one_replica_more_takes_at_most_one_from_any_cluster(
            desired in 0..1_000_000_u64,
            weights in prop::collection::vec(0..1000_u64, 1..20),
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            for (before, after) in shares(desired, &weights).iter().zip(shares(desired + 1, &weights)) {
                prop_assert!(after + 1 >= *before);
            }
        }
    }
}
