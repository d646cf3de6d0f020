//! Clusternet's arithmetic, number for number: what `schedulingPolicy: clusternet` asks for.
//!
//! In: lists in the order of the clusters' names. Out: lists in the same order. Two of its defects are not here: its
//! products overflow above 2^31, and it loses what finds no room without a word.

/// Static dividing: each exact share rounded down, and one more each for the first in the order of falling weights.
/// `None` where the weights add up to 0: every cluster then runs the whole.
pub(super) fn by_weights(wanted: u64, weights: &[u64]) -> Option<Vec<u64>> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if total == 0 {
        return None;
    }
    let floor = |weight: &u64| u64::try_from(u128::from(*weight) * u128::from(wanted) / total).unwrap_or(wanted);
    let mut shares: Vec<u64> = weights.iter().map(floor).collect();
    let mut left = wanted - shares.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(weights[*index]));
    for index in order {
        if left == 0 {
            break;
        }
        shares[index] += 1;
        left -= 1;
    }
    Some(shares)
}

/// Dynamic dividing: what is missing is shared out in proportion to the room that each has beside what it has; what is
/// too much is taken away in proportion to what each has.
pub(super) fn by_room(wanted: u64, had: &[u64], room: &[u64]) -> Vec<u64> {
    let placed: u64 = had.iter().sum();
    if wanted >= placed {
        let more = in_proportion(wanted - placed, room);
        had.iter().zip(more).map(|(had, more)| had + more).collect()
    } else {
        let less = in_proportion(placed - wanted, had);
        had.iter().zip(less).map(|(had, less)| had - less).collect()
    }
}

/// An amount in proportion to parts: rounded down, and one more each for the largest fractions, of equal ones the
/// first. All of the parts where they are less than the amount.
pub(super) fn in_proportion(amount: u64, parts: &[u64]) -> Vec<u64> {
    let total: u128 = parts.iter().map(|part| u128::from(*part)).sum();
    if total == 0 || u128::from(amount) > total {
        return parts.to_vec();
    }
    let exact = |part: &u64| u128::from(*part) * u128::from(amount);
    let mut shares: Vec<u64> = parts
        .iter()
        .map(|part| u64::try_from(exact(part) / total).unwrap_or(amount))
        .collect();
    let mut left = amount - shares.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(exact(&parts[*index]) % total));
    for index in order {
        if left == 0 {
            break;
        }
        shares[index] += 1;
        left -= 1;
    }
    shares
}

/// What speaks for a cluster with so many soft taints that are not tolerated, where none has more than the most: from
/// 100 down to 0, in the default profile's threefold weight.
pub(super) fn taint_score(taints: u64, most: u64) -> u64 {
    let less = (100 * taints).checked_div(most).unwrap_or_default();
    3 * 100_u64.saturating_sub(less)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overflows_there_is_shared_out_here() {
        assert_eq!(by_room(5_000, &[0, 0], &[500_000, 1_500_000]), [1_250, 3_750]);
    }

    #[test]
    fn scores_of_soft_taints_are_upstreams() {
        let scores = |taints: &[u64]| -> Vec<u64> {
            let most = taints.iter().copied().max().unwrap_or_default();
            taints.iter().map(|count| taint_score(*count, most)).collect()
        };
        assert_eq!(scores(&[1, 2, 3, 4]), [225, 150, 75, 0]);
        assert_eq!(scores(&[0, 1, 1]), [300, 0, 0]);
        assert_eq!(scores(&[0, 0]), [300, 300], "with no taint anywhere nobody is worse");
        assert_eq!(
            scores(&[1, 3]),
            [201, 0],
            "a third is rounded down before it is taken away"
        );
    }

    #[test]
    fn static_shares_are_upstreams() {
        assert_eq!(by_weights(6, &[2, 1, 0, 2]), Some(vec![3, 1, 0, 2]));
        assert_eq!(by_weights(5, &[5, 1, 0, 2]), Some(vec![4, 0, 0, 1]));
        assert_eq!(by_weights(100, &[7, 11, 13]), Some(vec![22, 36, 42]));
        assert_eq!(by_weights(6, &[0, 0]), None);
    }

    #[test]
    fn dynamic_shares_are_upstreams() {
        assert_eq!(by_room(2, &[0, 0, 0], &[3, 6, 9]), [0, 1, 1]);
        assert_eq!(by_room(8, &[1, 3, 0], &[10, 10, 10]), [3, 4, 1]);
        assert_eq!(by_room(2, &[1, 3, 0], &[10, 10, 10]), [0, 2, 0]);
        assert_eq!(by_room(11, &[0, 0, 0], &[5, 3, 2]), [5, 3, 2]);
        assert_eq!(by_room(4, &[1, 3, 0], &[9, 9, 9]), [1, 3, 0]);
    }
}
