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
    let total: u128 = weights.values().map(|weight| u128::from(*weight)).sum();
    if total == 0 {
        return None;
    }
    let mut shares = BTreeMap::new();
    let mut fractions = Vec::with_capacity(weights.len());
    let mut left = desired;
    for (cluster, weight) in weights {
        // 64 bits times 64 bits fit in 128, and a share is at most `desired`.
        let exact = u128::from(desired) * u128::from(*weight);
        let share = u64::try_from(exact / total).unwrap_or(desired);
        left -= share;
        fractions.push((exact % total, cluster));
        shares.insert(cluster.clone(), share);
    }
    if left > 0 {
        fractions.sort_by_cached_key(|(fraction, cluster)| {
            (std::cmp::Reverse(*fraction), tie(unit, cluster), (*cluster).clone())
        });
        for (_, cluster) in fractions.into_iter().zip(0..left).map(|(entry, _)| entry) {
            shares.entry(cluster.clone()).and_modify(|share| *share += 1);
        }
    }
    Some(shares)
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
