//! One object's replicas, shared out over the clusters that were chosen.
//!
//! In: how many are wanted, and what each cluster had, may have and has room for ([`Seat`]). Out: how many each gets
//! ([`Shares`]), and how many found no place. Why a cluster is among the seats is deliberately not here.
//!
//! What is placed stays: more is added where there is room, less is taken in proportion to what is there, and with
//! equal numbers nothing moves, whatever the room is by now.

mod evenly;
mod proportion;
mod weights;

use std::collections::BTreeMap;

use crate::name::{ClusterName, UnitKey};

pub use weights::divide;

use proportion::proportion;

/// A cluster among which replicas are shared out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    /// Its replicas so far.
    pub(in crate::schedule) had: u64,
    /// Its weight, for static dividing.
    pub(in crate::schedule) weight: u64,
    /// Fewer than this only where it has no room for them.
    pub(in crate::schedule) least: u64,
    /// Never more than this.
    pub(in crate::schedule) most: u64,
    /// How many have room there, those that it has included.
    pub(in crate::schedule) room: Room,
    /// Its place among the others, for packing: lower is filled first.
    pub(in crate::schedule) rank: usize,
    /// Its value of the label over which replicas are spread; empty where none is asked for.
    pub(in crate::schedule) group: String,
}

/// How many replicas have room in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// As many as anybody likes: nobody asks.
    Unbounded,
    /// So many, those that are there included.
    Replicas(u64),
    /// Nobody knows: it keeps what it has, and gets no more.
    Frozen,
}

/// How replicas are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// By the seats' weights.
    Weights,
    /// By the room that each has.
    Spread,
    /// One cluster after the other is filled.
    Binpack,
}

/// Over how many replicas groups may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Skew {
    /// By so many.
    pub(in crate::schedule) max: u64,
    /// Whether what cannot be placed so stays unplaced.
    pub(in crate::schedule) hard: bool,
}

/// What each cluster gets.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Shares {
    /// One per seat.
    pub(in crate::schedule) replicas: BTreeMap<ClusterName, u64>,
    /// How many found no place.
    pub(in crate::schedule) unplaced: u64,
    /// Whether the room there is was looked at.
    pub(in crate::schedule) by_room: bool,
}

/// The seats by name.
pub(super) type Seats = BTreeMap<ClusterName, Seat>;

/// Shares `wanted` replicas out.
pub(super) fn share(unit: &UnitKey, wanted: u64, rule: Rule, skew: Option<Skew>, seats: &Seats) -> Shares {
    let mut shares: BTreeMap<ClusterName, u64> = match rule {
        Rule::Weights => by_weights(unit, wanted, seats),
        Rule::Spread | Rule::Binpack => seats
            .iter()
            .map(|(name, seat)| (name.clone(), seat.had.min(seat.most)))
            .collect(),
    };
    let is_room_asked = rule != Rule::Weights;
    let mut by_room = false;
    let sum = total(&shares);
    if sum > wanted {
        take(unit, sum - wanted, seats, skew, &mut shares);
    } else if sum < wanted {
        by_room = is_room_asked;
        add(unit, wanted - sum, rule, skew, seats, &mut shares);
    }
    let unplaced = wanted.saturating_sub(total(&shares));
    Shares {
        replicas: shares,
        unplaced,
        by_room,
    }
}

fn total(shares: &BTreeMap<ClusterName, u64>) -> u64 {
    shares.values().fold(0, |sum, share| sum.saturating_add(*share))
}

/// What each gets by its weight, within its bounds. A cluster that nobody hears of keeps what it has.
fn by_weights(unit: &UnitKey, wanted: u64, seats: &Seats) -> BTreeMap<ClusterName, u64> {
    let frozen = seats.iter().filter(|(_, seat)| seat.room == Room::Frozen);
    let mut shares: BTreeMap<ClusterName, u64> = frozen.map(|(name, seat)| (name.clone(), seat.had)).collect();
    let left = wanted.saturating_sub(total(&shares));
    let open = seats.iter().filter(|(_, seat)| seat.room != Room::Frozen);
    let bounded = open.map(|(name, seat)| {
        let most = seat.most.max(seat.least);
        (
            name.clone(),
            proportion::Part {
                weight: seat.weight,
                least: seat.least,
                most,
            },
        )
    });
    shares.extend(proportion(unit, left, &bounded.collect()));
    shares
}

/// Takes away, in proportion to what is there: first where somebody is heard of, and below the least last.
fn take(unit: &UnitKey, mut amount: u64, seats: &Seats, skew: Option<Skew>, shares: &mut BTreeMap<ClusterName, u64>) {
    for (frozen, down_to_least) in [(false, true), (false, false), (true, false)] {
        if amount == 0 {
            return;
        }
        let parts: BTreeMap<ClusterName, proportion::Part> = seats
            .iter()
            .filter(|(_, seat)| (seat.room == Room::Frozen) == frozen)
            .map(|(name, seat)| {
                let there = shares.get(name).copied().unwrap_or_default();
                let floor = if down_to_least { seat.least } else { 0 };
                let part = proportion::Part {
                    weight: there,
                    least: 0,
                    most: there.saturating_sub(floor),
                };
                (name.clone(), part)
            })
            .collect();
        let taken = match skew {
            None => proportion(unit, amount, &parts),
            Some(_) => evenly::take(unit, amount, &parts, &groups(seats), shares),
        };
        for (name, less) in taken {
            amount -= less;
            shares.entry(name).and_modify(|share| *share -= less);
        }
    }
}

fn groups(seats: &Seats) -> BTreeMap<ClusterName, String> {
    seats
        .iter()
        .map(|(name, seat)| (name.clone(), seat.group.clone()))
        .collect()
}

fn add(
    unit: &UnitKey,
    mut amount: u64,
    rule: Rule,
    skew: Option<Skew>,
    seats: &Seats,
    shares: &mut BTreeMap<ClusterName, u64>,
) {
    let open = |name: &ClusterName, seat: &Seat, shares: &BTreeMap<ClusterName, u64>| {
        let there = shares.get(name).copied().unwrap_or_default();
        let room = match (rule, seat.room) {
            (_, Room::Frozen) => there,
            (Rule::Weights, _) | (_, Room::Unbounded) => u64::MAX,
            (_, Room::Replicas(room)) => room,
        };
        (there, room.min(seat.most).saturating_sub(there))
    };
    // What each must have at least comes first.
    for (name, seat) in seats {
        let (there, open) = open(name, seat, shares);
        let more = seat.least.saturating_sub(there).min(open).min(amount);
        amount -= more;
        shares.entry(name.clone()).and_modify(|share| *share += more);
    }
    if let Some(skew) = skew {
        let rooms = seats
            .iter()
            .map(|(name, seat)| (name.clone(), open(name, seat, shares).1))
            .collect();
        evenly::add(unit, amount, skew, &rooms, &groups(seats), shares);
        return;
    }
    match rule {
        Rule::Binpack => {
            let mut order: Vec<_> = seats.iter().collect();
            order.sort_by_key(|(name, seat)| (seat.rank, (*name).clone()));
            for (name, seat) in order {
                let more = open(name, seat, shares).1.min(amount);
                amount -= more;
                shares.entry(name.clone()).and_modify(|share| *share += more);
            }
        }
        Rule::Weights | Rule::Spread => {
            let parts = seats.iter().map(|(name, seat)| {
                let (there, most) = open(name, seat, shares);
                // Its room counts whole, also where the cluster may have less of it.
                let weight = match (rule, seat.room) {
                    (Rule::Weights, _) => seat.weight,
                    (_, Room::Unbounded) => 1,
                    (_, Room::Replicas(room)) => room.saturating_sub(there),
                    (_, Room::Frozen) => 0,
                };
                (name.clone(), proportion::Part { weight, least: 0, most })
            });
            for (name, more) in proportion(unit, amount, &parts.collect()) {
                shares.entry(name).and_modify(|share| *share += more);
            }
        }
    }
}

#[cfg(test)]
mod tests;
