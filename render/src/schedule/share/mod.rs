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

use std::borrow::Borrow;
use std::collections::BTreeMap;

use crate::name::{ClusterName, UnitKey};
use crate::schedule::by_name::ByName;

pub use weights::divide;

use proportion::{Part, proportion};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shares<K = ClusterName> {
    /// One per seat.
    pub(in crate::schedule) replicas: ByName<K, u64>,
    /// How many found no place.
    pub(in crate::schedule) unplaced: u64,
    /// Whether the room there is was looked at.
    pub(in crate::schedule) by_room: bool,
}

/// The seats by name.
pub(super) type Seats<K = ClusterName> = ByName<K, Seat>;

/// Shares `wanted` replicas out.
pub(super) fn share<K: Ord + Clone + Borrow<ClusterName>>(
    unit: &UnitKey,
    wanted: u64,
    rule: Rule,
    skew: Option<Skew>,
    seats: &Seats<K>,
) -> Shares<K> {
    let table = Table {
        unit,
        rule,
        skew,
        seats: seats.iter().map(|(name, seat)| (name.borrow(), seat)).collect(),
    };
    let mut shares = match rule {
        Rule::Weights => table.by_weights(wanted),
        Rule::Spread | Rule::Binpack => seats.values().map(|seat| seat.had.min(seat.most)).collect(),
    };
    let is_room_asked = rule != Rule::Weights;
    let mut by_room = false;
    let sum = total(&shares);
    if sum > wanted {
        table.take(sum - wanted, &mut shares);
    } else if sum < wanted {
        by_room = is_room_asked;
        table.add(wanted - sum, &mut shares);
    }
    let unplaced = wanted.saturating_sub(total(&shares));
    Shares {
        replicas: seats.with(shares),
        unplaced,
        by_room,
    }
}

fn total(shares: &[u64]) -> u64 {
    shares.iter().fold(0, |sum, share| sum.saturating_add(*share))
}

/// The seats in the order of their names, and by what replicas are shared out among them. Shares come in the same order.
struct Table<'a> {
    unit: &'a UnitKey,
    rule: Rule,
    skew: Option<Skew>,
    seats: Vec<(&'a ClusterName, &'a Seat)>,
}

impl Table<'_> {
    /// What each gets by its weight, within its bounds. A cluster that nobody hears of keeps what it has.
    fn by_weights(&self, wanted: u64) -> Vec<u64> {
        let is_frozen = |seat: &Seat| seat.room == Room::Frozen;
        let kept = |(_, seat): &(&ClusterName, &Seat)| if is_frozen(seat) { seat.had } else { 0 };
        let mut shares: Vec<u64> = self.seats.iter().map(kept).collect();
        let left = wanted.saturating_sub(total(&shares));
        let open = |place: &usize| !is_frozen(self.seats[*place].1);
        let bounded = |seat: &Seat| Part {
            weight: seat.weight,
            least: seat.least,
            most: seat.most.max(seat.least),
        };
        let open: Vec<usize> = (0..self.seats.len()).filter(open).collect();
        let parts = open
            .iter()
            .map(|place| (self.seats[*place].0, bounded(self.seats[*place].1)));
        let found = proportion(self.unit, left, &parts.collect::<Vec<_>>());
        for (place, share) in open.into_iter().zip(found) {
            shares[place] = share;
        }
        shares
    }

    /// Takes away, in proportion to what is there: first where somebody is heard of, and below the least last.
    fn take(&self, mut amount: u64, shares: &mut [u64]) {
        for (frozen, down_to_least) in [(false, true), (false, false), (true, false)] {
            if amount == 0 {
                return;
            }
            let part = |place: &usize| {
                let (name, seat) = self.seats[*place];
                let floor = if down_to_least { seat.least } else { 0 };
                let part = Part {
                    weight: shares[*place],
                    least: 0,
                    most: shares[*place].saturating_sub(floor),
                };
                (name, part)
            };
            let is_meant = |place: &usize| (self.seats[*place].1.room == Room::Frozen) == frozen;
            let places: Vec<usize> = (0..self.seats.len()).filter(is_meant).collect();
            let parts: Vec<_> = places.iter().map(part).collect();
            let taken = match self.skew {
                None => proportion(self.unit, amount, &parts),
                Some(_) => {
                    let parts = parts.iter().map(|(name, part)| ((*name).clone(), *part)).collect();
                    let there = self.by_name(shares.iter().copied());
                    let taken = evenly::take(self.unit, amount, &parts, &self.groups(), &there);
                    parts
                        .keys()
                        .map(|name| taken.get(name).copied().unwrap_or_default())
                        .collect()
                }
            };
            for (place, less) in places.into_iter().zip(taken) {
                amount -= less;
                shares[place] -= less;
            }
        }
    }

    fn add(&self, mut amount: u64, shares: &mut [u64]) {
        // What each must have at least comes first.
        for ((_, seat), share) in self.seats.iter().zip(shares.iter_mut()) {
            let open = self.open(seat, *share);
            let more = seat.least.saturating_sub(*share).min(open).min(amount);
            amount -= more;
            *share += more;
        }
        if let Some(skew) = self.skew {
            let rooms = self.seats.iter().zip(shares.iter());
            let rooms = self.by_name(rooms.map(|((_, seat), share)| self.open(seat, *share)));
            let mut by_name = self.by_name(shares.iter().copied());
            evenly::add(self.unit, amount, skew, &rooms, &self.groups(), &mut by_name);
            for ((name, _), share) in self.seats.iter().zip(shares) {
                *share = by_name.get(*name).copied().unwrap_or_default();
            }
            return;
        }
        match self.rule {
            Rule::Binpack => {
                let mut order: Vec<usize> = (0..self.seats.len()).collect();
                order.sort_by_key(|place| self.seats[*place].1.rank);
                for place in order {
                    let more = self.open(self.seats[place].1, shares[place]).min(amount);
                    amount -= more;
                    shares[place] += more;
                }
            }
            Rule::Weights | Rule::Spread => {
                // Its room counts whole, also where the cluster may have less of it.
                let weight = |seat: &Seat, share: u64| match (self.rule, seat.room) {
                    (Rule::Weights, _) => seat.weight,
                    (_, Room::Unbounded) => 1,
                    (_, Room::Replicas(room)) => room.saturating_sub(share),
                    (_, Room::Frozen) => 0,
                };
                let part = |seat: &Seat, share: u64| Part {
                    weight: weight(seat, share),
                    least: 0,
                    most: self.open(seat, share),
                };
                let parts = self.seats.iter().zip(shares.iter());
                let parts: Vec<_> = parts.map(|((name, seat), share)| (*name, part(seat, *share))).collect();
                for (share, more) in shares.iter_mut().zip(proportion(self.unit, amount, &parts)) {
                    *share += more;
                }
            }
        }
    }

    /// How many more may come where so many are.
    fn open(&self, seat: &Seat, there: u64) -> u64 {
        let room = match (self.rule, seat.room) {
            (_, Room::Frozen) => there,
            (Rule::Weights, _) | (_, Room::Unbounded) => u64::MAX,
            (_, Room::Replicas(room)) => room,
        };
        room.min(seat.most).saturating_sub(there)
    }

    fn groups(&self) -> BTreeMap<ClusterName, String> {
        let group = |(name, seat): &(&ClusterName, &Seat)| ((*name).clone(), seat.group.clone());
        self.seats.iter().map(group).collect()
    }

    fn by_name(&self, numbers: impl Iterator<Item = u64>) -> BTreeMap<ClusterName, u64> {
        let names = self.seats.iter().map(|(name, _)| (*name).clone());
        names.zip(numbers).collect()
    }
}

#[cfg(test)]
mod tests;
