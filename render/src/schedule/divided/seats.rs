//! The seats that clusters take where replicas are shared out, and Clusternet's way to share them.

use std::borrow::Borrow;

use super::Division;
use crate::finding::Finding;
use crate::model::{Bounds, Subscription};
use crate::name::ClusterName;
use crate::schedule::candidates::Chosen;
use crate::schedule::share::{Room, Rule, Seat, Seats, Shares};
use crate::schedule::{clusternet, trouble};

impl Division<'_, '_> {
    pub(super) fn bounds(&self, name: &ClusterName, chosen: &Chosen<'_>) -> Result<Bounds, Box<Finding>> {
        bounds(self.subscription, chosen)
            .map_err(|(least, most)| Box::new(trouble::contradictory(self.subscription, name, least, most)))
    }

    pub(super) fn seat(&self, (chosen, weight): (&Chosen<'_>, u64), bounds: Bounds, (had, room): (u64, Room)) -> Seat {
        let constraint = self.subscription.placing.clusters.spread.first();
        let group = constraint.and_then(|constraint| chosen.cluster.labels.get(&constraint.topology_key));
        Seat {
            had,
            weight,
            least: bounds.min.unwrap_or_default(),
            most: bounds.max.unwrap_or(u64::MAX),
            room: if chosen.still.is_some() { Room::Frozen } else { room },
            rank: chosen.rank,
            group: group.cloned().unwrap_or_default(),
        }
    }
}

/// The strictest bounds of the subscribers that match a cluster. `Err` where none can be kept.
pub(in crate::schedule) fn bounds(subscription: &Subscription, chosen: &Chosen<'_>) -> Result<Bounds, (u64, u64)> {
    let matching = chosen
        .subscribers
        .iter()
        .map(|index| subscription.subscribers[*index].replicas);
    let min = matching.clone().filter_map(|bounds| bounds.min).max();
    let max = matching.filter_map(|bounds| bounds.max).min();
    match (min, max) {
        (Some(least), Some(most)) if least > most => Err((least, most)),
        _ => Ok(Bounds { min, max }),
    }
}

/// The bounds in words, as a part of a reason.
pub(super) fn bounds_text(least: u64, most: u64) -> String {
    let least = (least > 0).then(|| format!(", at least {least}"));
    let most = (most < u64::MAX).then(|| format!(", at most {most}"));
    [least, most].into_iter().flatten().collect()
}

/// The shares by Clusternet's arithmetic. `None` where it divides nothing, and has no rule for it.
pub(super) fn compatible<K>(wanted: u64, rule: Rule, seats: &Seats<K>) -> Option<Shares<K>>
where
    K: Ord + Clone + Borrow<ClusterName>,
{
    let list = |of: &dyn Fn(&Seat) -> u64| seats.values().map(of).collect::<Vec<u64>>();
    let had = list(&|seat| seat.had);
    let shares = match rule {
        Rule::Weights => clusternet::by_weights(wanted, &list(&|seat| seat.weight))?,
        Rule::Spread => {
            let room = list(&|seat| match seat.room {
                Room::Replicas(room) => room.saturating_sub(seat.had),
                Room::Frozen | Room::Unbounded => 0,
            });
            clusternet::by_room(wanted, &had, &room)
        }
        // Upstream takes the word and places nothing by it.
        Rule::Binpack => return None,
    };
    let sum: u64 = shares.iter().sum();
    Some(Shares {
        replicas: seats.with(shares),
        unplaced: wanted.saturating_sub(sum),
        by_room: rule == Rule::Spread && had.iter().sum::<u64>() < wanted,
    })
}

/// For packing: what has replicas comes first, then what has the least room, so that the fewest clusters are begun.
pub(super) fn fullest_first<K: Ord + Borrow<ClusterName>>(seats: &mut Seats<K>) {
    let key = |seat: &Seat| {
        let room = match seat.room {
            Room::Replicas(room) => room,
            Room::Frozen => 0,
            Room::Unbounded => u64::MAX,
        };
        (seat.rank, seat.had == 0, std::cmp::Reverse(room))
    };
    // Equal ones stay in the order of their names.
    let mut order: Vec<&mut Seat> = seats.values_mut().collect();
    order.sort_by_key(|seat| key(seat));
    for (rank, seat) in order.into_iter().enumerate() {
        seat.rank = rank;
    }
}
