//! What a unit's placement begins with: what it has, unless a commit or the past asks for something else.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::published::UnitPlacement;
use crate::schedule::share::Room;
use crate::schedule::{Context, Rebalance};

/// What the usual rules go on from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Begin<'a> {
    /// What the unit has.
    AsItIs(Option<&'a UnitPlacement>),
    /// What it had when it asked for the same.
    AsItWas(&'a UnitPlacement),
    /// Nothing.
    Anew,
    /// What it has, without the replicas that no node takes.
    WithoutPending(Option<&'a UnitPlacement>),
}

impl<'a> Begin<'a> {
    /// A word of a commit counts before what is remembered.
    pub(super) fn of(context: &Context<'a>, unit: &UnitKey, asks: Option<&Digest>) -> Self {
        let previous = context.previous.get(unit);
        match context.moves.rebalance.get(unit) {
            Some(Rebalance::All) => Self::Anew,
            Some(Rebalance::Pending) => Self::WithoutPending(previous),
            None => {
                let remembered = context.moves.remembered.get(unit);
                let same = remembered.filter(|before| asks.is_some() && before.asks.as_ref() == asks);
                same.map_or(Self::AsItIs(previous), Self::AsItWas)
            }
        }
    }

    /// Whether a commit asks to place the unit anew.
    pub(super) fn is_rebalance(self) -> bool {
        matches!(self, Self::Anew | Self::WithoutPending(_))
    }

    /// The placement whose clusters are better than others.
    pub(super) fn favoured(self) -> Option<&'a UnitPlacement> {
        match self {
            Self::AsItIs(previous) | Self::WithoutPending(previous) => previous,
            Self::AsItWas(before) => Some(before),
            Self::Anew => None,
        }
    }

    /// How many replicas a cluster begins with, of those that it has. `leaving` of them are waited for in vain.
    pub(super) fn share(self, at: (&ClusterName, &ObjectKey), (had, leaving): (u64, u64), room: Room) -> u64 {
        match (self, room) {
            // Nobody knows: it keeps what it has.
            (_, Room::Frozen) | (Self::AsItIs(_), _) => had,
            (Self::AsItWas(before), Room::Unbounded) => before.replicas(at.0, at.1),
            (Self::AsItWas(before), Room::Replicas(room)) => before.replicas(at.0, at.1).min(room.max(had)),
            (Self::Anew, _) => 0,
            (Self::WithoutPending(_), _) => had.saturating_sub(leaving),
        }
    }

    /// Why a cluster has as many as it has, where that is no usual reason.
    pub(super) fn reason(self, cluster: &ClusterName, object: &ObjectKey, share: u64) -> Option<String> {
        match self {
            Self::AsItIs(_) => None,
            Self::AsItWas(before) => {
                let (revision, was) = (made_by(before, cluster)?, before.replicas(cluster, object));
                Some(match was == share {
                    true => format!("as it was at {revision}"),
                    false => format!("was {was} at {revision}"),
                })
            }
            Self::Anew => Some("placed anew".to_owned()),
            Self::WithoutPending(_) => None,
        }
    }
}

/// Whether a unit asks for something else than when it was placed. Of an older version's placement, only more replicas
/// are known to be asked for.
pub(super) fn is_new(
    context: &Context<'_>,
    unit: &UnitKey,
    asks: Option<&Digest>,
    desired: &BTreeMap<ObjectKey, u64>,
) -> bool {
    let Some(previous) = context.previous.get(unit).filter(|_| !context.moves.decided) else {
        return !context.moves.decided;
    };
    if previous.asks.is_some() {
        return previous.asks.as_ref() != asks;
    }
    let known = |object: &ObjectKey| {
        let placed: u64 = previous
            .clusters
            .keys()
            .map(|cluster| previous.replicas(cluster, object))
            .sum();
        placed + previous.unplaced.get(object).map_or(0, |unplaced| unplaced.replicas)
    };
    desired.iter().any(|(object, wanted)| *wanted > known(object))
}

/// The source commit that placed a unit on a cluster, for people.
pub(super) fn made_by(placement: &UnitPlacement, cluster: &ClusterName) -> Option<String> {
    let placement = placement.clusters.get(cluster)?;
    Some(placement.revision.short().to_owned())
}
