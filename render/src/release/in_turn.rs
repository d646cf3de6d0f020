//! Make before break: where clusters have shares of a unit, those that get more of it are told first. Whoever gets less
//! keeps what it has until all of them are healthy with what they got.
//!
//! A unit that every matching cluster has whole is none of this: no cluster stands in for another there.

use super::unfinished::Gained;
use super::{Look, Outcome, Wait, WaitReason};
use crate::by_object::ByObject;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::published::{Awaited, Placement, Published, UnitPlacement, Variant};

/// Who of a unit waits for whom.
pub(super) struct Turn<'l, 'a> {
    look: &'l Look<'a>,
    unit: &'a UnitKey,
    present: &'a UnitPlacement,
    /// Clusters that are not healthy with what they get, and why that is.
    open: Vec<(&'a ClusterName, WaitReason)>,
}

/// How far a cluster may go now.
pub(super) enum Step {
    /// All the way.
    Whole,
    /// Its replicas become these, and all else stays, since the rest has to wait.
    Part(ByObject, Wait),
    /// Nowhere.
    Stays(Wait),
}

impl<'l, 'a> Turn<'l, 'a> {
    /// `None` where nobody has to wait.
    pub(super) fn of(
        look: &'l Look<'a>,
        unit: &'a UnitKey,
        wanted: &'a UnitPlacement,
        present: &'a UnitPlacement,
    ) -> Option<Self> {
        if !is_under_way(wanted, present) {
            return None;
        }
        let mut turn = Self {
            look,
            unit,
            present,
            open: Vec::new(),
        };
        for (cluster, to) in &wanted.clusters {
            // Where it is suspended it gets no further, and nobody waits for that.
            if look.suspensions.of(unit, cluster, look.now).is_some() {
                continue;
            }
            let told = present.entry(cluster);
            let why = match told {
                Some((placement, variant)) if !gains(Some(placement), to) => turn.lacks(cluster, variant),
                told if gains(told.map(|(told, _)| told), to) => Some(WaitReason::Moves),
                _ => None,
            };
            turn.open.extend(why.map(|why| (cluster, why)));
        }
        (!turn.open.is_empty()).then_some(turn)
    }

    /// How far a cluster that has the unit so may go towards what it is to have.
    pub(super) fn step(&self, cluster: &ClusterName, from: Option<&Placement>, to: Option<&Placement>) -> Step {
        let Some(from) = from.filter(|from| balance(Some(*from), to).loses) else {
            return Step::Whole;
        };
        let Some((on, why)) = self.open.iter().find(|(on, _)| *on != cluster) else {
            return Step::Whole;
        };
        let gained = self.gained(cluster);
        if gained.is_some_and(|gained| gained.had.is_none()) && to.is_none() {
            return Step::Whole;
        }
        // What it got and was not healthy with yet, nobody relies on. What it had before, others may.
        let relied_on = |object: &ObjectKey, told: u64| match gained.map(|gained| gained.had.as_ref()) {
            Some(had) => had.and_then(|had| had.get(object)).map_or(0, |had| told.min(*had)),
            None => told,
        };
        let wanted = |object: &ObjectKey| to.and_then(|to| to.replicas.get(object)).copied();
        let least = |(object, told): (&ObjectKey, &u64)| {
            let replicas = relied_on(object, *told).max(wanted(object).unwrap_or_default());
            (object.clone(), replicas)
        };
        let replicas: ByObject = from.replicas.iter().map(least).collect();
        let is_there = |(object, replicas): (&ObjectKey, &u64)| wanted(object).is_none_or(|wanted| wanted == *replicas);
        if to.is_some() && replicas.iter().all(is_there) {
            return Step::Whole;
        }
        let wait = (self.unit.clone(), (*on).clone(), *why);
        match replicas == from.replicas {
            true => Step::Stays(wait),
            false => Step::Part(replicas, wait),
        }
    }

    /// What is remembered of a cluster that got more and was not healthy with it since.
    fn gained(&self, cluster: &ClusterName) -> Option<&Gained> {
        self.look.observed.unfinished.of(self.unit, cluster)
    }

    fn awaited(&self, cluster: &ClusterName) -> Option<Awaited> {
        let noted = self.present.awaited.get(cluster).copied();
        noted.or_else(|| Some(self.gained(cluster)?.awaited))
    }

    /// Why a cluster that others wait for is not healthy with what it was told.
    fn lacks(&self, cluster: &ClusterName, told: &Variant) -> Option<WaitReason> {
        let awaited = self.awaited(cluster)?;
        let observed = self.look.observed;
        let ends = observed.move_seconds.map(|seconds| end(awaited, seconds));
        if ends.is_some_and(|ends| ends <= self.look.now) {
            return None;
        }
        let seen = observed.clusters.get(cluster).and_then(|units| units.get(self.unit));
        let seen = seen.filter(|seen| seen.is_about(told, awaited.sequence));
        match seen.map(|seen| seen.outcome) {
            Some(Outcome::Healthy) => None,
            Some(Outcome::Failed) => Some(WaitReason::MoveFailed),
            Some(Outcome::UnderWay) | None => Some(WaitReason::Moves),
        }
    }
}

/// Whether some cluster is to get less of a unit that clusters have shares of.
pub(crate) fn is_under_way(wanted: &UnitPlacement, present: &UnitPlacement) -> bool {
    let loses = |(cluster, from): (&ClusterName, &Placement)| balance(Some(from), wanted.clusters.get(cluster)).loses;
    (is_shared(wanted) || is_shared(present)) && present.clusters.iter().any(loses)
}

/// Whether clusters have shares of a unit, so that one stands in for another.
pub(super) fn is_shared(unit: &UnitPlacement) -> bool {
    let mut placements = unit.clusters.values();
    unit.in_turn || placements.any(|placement| !placement.replicas.is_empty())
}

/// Whether a cluster gets more than it had.
fn gains(had: Option<&Placement>, has: &Placement) -> bool {
    balance(had, Some(has)).gains
}

/// Notes which clusters got more, where others wait for them: once `released` says what they have, nothing else does.
pub(super) fn note(target: &Published, released: &Published, next: &mut Published, now: i64) {
    let at = Awaited::after(released, now);
    let nothing = UnitPlacement::default();
    for (key, unit) in &mut next.units {
        let wanted = target.units.get(key).unwrap_or(&nothing);
        if !is_under_way(wanted, unit) {
            unit.awaited.clear();
            continue;
        }
        let before = released.units.get(key).unwrap_or(&nothing);
        let telling = Telling { before, unit, at };
        let told = unit.clusters.keys();
        unit.awaited = told
            .filter_map(|cluster| Some((cluster.clone(), telling.awaited(cluster)?)))
            .collect();
    }
}

/// What clusters are told with a commit.
pub(super) struct Telling<'a> {
    pub(super) before: &'a UnitPlacement,
    pub(super) unit: &'a UnitPlacement,
    /// When that is, and with which sequence.
    pub(super) at: Awaited,
}

/// What the word that a cluster is told does to its share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// It gets more than it had.
    More,
    /// It gets less, or another content.
    Other,
    /// Nothing is other than before.
    Same,
}

impl Telling<'_> {
    pub(super) fn to(&self, cluster: &ClusterName) -> Word {
        let (had, told) = (self.before.entry(cluster), self.unit.entry(cluster));
        let share = |(placement, variant): (&Placement, &Variant)| (placement.replicas.clone(), variant.digest);
        match told {
            Some((told, _)) if gains(had.map(|(had, _)| had), told) => Word::More,
            _ if had.map(share) == told.map(share) => Word::Same,
            _ => Word::Other,
        }
    }

    /// Since when a cluster is awaited, if it is.
    fn awaited(&self, cluster: &ClusterName) -> Option<Awaited> {
        let known = self.before.awaited.get(cluster).copied();
        match self.to(cluster) {
            Word::More => Some(self.at),
            // What it says of what it was told before counts no more.
            Word::Other => known.map(|known| known.told(self.at)),
            Word::Same => known,
        }
    }
}

impl Awaited {
    /// The same, where it was told something else later.
    pub(super) fn told(self, later: Self) -> Self {
        Self {
            since: self.since,
            sequence: later.sequence,
        }
    }

    /// Of clusters that are told something with the commit that follows `released`.
    pub(super) fn after(released: &Published, now: i64) -> Self {
        Self {
            since: now,
            sequence: released.next_sequence(),
        }
    }
}

/// When the next cluster was waited for long enough, in seconds since 1970.
pub(super) fn next_end(released: &Published, move_seconds: u64, now: i64) -> Option<i64> {
    let awaited = released.units.values().flat_map(|unit| unit.awaited.values());
    awaited
        .map(|awaited| end(*awaited, move_seconds))
        .filter(|end| *end > now)
        .min()
}

fn end(awaited: Awaited, move_seconds: u64) -> i64 {
    awaited.since.saturating_add_unsigned(move_seconds)
}

/// What a change does to a cluster's share. It may be both, with several objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Balance {
    gains: bool,
    loses: bool,
}

fn balance(from: Option<&Placement>, to: Option<&Placement>) -> Balance {
    // An object that the unit has on one side only is another content, and no other share.
    let both = |from: &Placement, to: &Placement, more: fn(u64, u64) -> bool| {
        let mut objects = from.replicas.iter();
        objects.any(|(object, before)| to.replicas.get(object).is_some_and(|after| more(*before, *after)))
    };
    match (from, to) {
        (None, None) => Balance::default(),
        (None, Some(to)) => Balance {
            gains: has_share(to),
            loses: false,
        },
        (Some(from), None) => Balance {
            gains: false,
            loses: has_share(from),
        },
        (Some(from), Some(to)) => Balance {
            gains: both(from, to, |before, after| after > before),
            loses: both(from, to, |before, after| after < before),
        },
    }
}

/// Whether a cluster has any of the unit: objects of which it has none are no share.
fn has_share(placement: &Placement) -> bool {
    placement.replicas.is_empty() || placement.replicas.values().any(|replicas| *replicas > 0)
}
