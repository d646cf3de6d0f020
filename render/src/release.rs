//! Release: which cluster gets which revision next. What it says goes through the `tunnel` to the agents.
//!
//! The target (`rendered`), what is released now and what is suspended go in, advances come out; writing the
//! commit is the hub's. The strategy is *all at once*: whatever the target says is due, but for what a
//! Suspension holds, which stays as it is, and for what has to wait: a unit that needs another one on every cluster
//! comes after it, and leaves before it; and where clusters have shares of a unit, whoever gets less of it comes
//! after those that get more (`in_turn`). Waves and windows are other answers of the same function.
//!
//! An object that changes hands stays with the unit that has it until the other one may come (`hand_over`).
//!
//! What a unit needs on its own cluster alone is no matter of this room: the applier there waits for it.

mod hand_over;
mod in_turn;
mod order;
mod unfinished;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::by_object::ByObject;
use crate::digest::Digest;
use crate::guard::Holdings;
use crate::name::{ClusterName, UnitKey};
use crate::published::{Placement, Published, UnitPlacement, Variant};
use crate::suspend::Suspensions;
use in_turn::Step;

pub(crate) use in_turn::is_under_way;
pub use unfinished::Unfinished;

/// What is known beside the refs: what registered clusters said last, and what contents have.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Cluster → its units, also those that it is still removing. A cluster that said nothing is absent.
    pub clusters: BTreeMap<ClusterName, BTreeMap<UnitKey, Seen>>,
    /// Content → its objects; `None` where it cannot be read. What is not there yet is asked for, see [`Due::unknown`].
    pub holdings: BTreeMap<Digest, Option<Arc<Holdings>>>,
    /// Clusters that are not healthy yet with what they got, as far as anybody remembers.
    pub unfinished: Arc<Unfinished>,
    /// After so many seconds nobody waits any more for a cluster that got more of a unit; `None`: for ever.
    pub move_seconds: Option<u64>,
}

/// How a unit fares on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The content that this is about; `None` while it is being removed.
    pub digest: Option<Digest>,
    /// The newest sequence that this is about; `None` where nobody says.
    pub sequence: Option<u64>,
    /// How it fares there.
    pub outcome: Outcome,
}

impl Seen {
    /// Whether it is about what a cluster was told with this sequence.
    fn is_about(&self, told: &Variant, sequence: u64) -> bool {
        self.digest == Some(told.digest) && self.sequence.is_some_and(|seen| seen >= sequence)
    }
}

/// What came of a unit on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was applied, and is as it should be.
    Healthy,
    /// It is on its way.
    UnderWay,
    /// It will not become healthy by itself.
    Failed,
}

/// What is due, and what would be if it had not to wait.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Due {
    /// The advances, sorted by unit and cluster.
    pub advances: Vec<Advance>,
    /// Sorted likewise.
    pub waiting: Vec<Waiting>,
    /// Contents whose objects have to be known first. While there are any, nothing of it should be done.
    pub unknown: BTreeSet<Digest>,
}

/// A cluster's share of a unit that waits for another unit, or for another cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Whose unit.
    pub unit: UnitKey,
    /// Which cluster.
    pub cluster: ClusterName,
    /// What it waits for; the unit itself where it waits for its other clusters.
    pub other: UnitKey,
    /// A cluster where that is not so yet.
    pub on: ClusterName,
    /// What is not so.
    pub why: WaitReason,
}

/// What a share of a unit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// The other unit, which it needs, is not healthy there yet with its present content.
    NotHealthy,
    /// The other unit, which it needs, failed there.
    Failed,
    /// The other unit, which needs it, has not left there yet.
    StillThere,
    /// The other unit, which gets an object of this one, is not released there yet.
    HandsOver,
    /// The unit itself, of which that cluster gets more, is not healthy there yet.
    Moves,
    /// The unit itself, of which that cluster gets more, failed there.
    MoveFailed,
}

impl WaitReason {
    /// Whether it waits for other clusters of the unit itself.
    pub fn is_move(self) -> bool {
        matches!(self, Self::Moves | Self::MoveFailed)
    }
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { other, on, .. } = self;
        match self.why {
            WaitReason::NotHealthy => write!(f, "waits for {other}, which is not healthy on {on} yet"),
            WaitReason::Failed => write!(f, "waits for {other}, which failed on {on}"),
            WaitReason::StillThere => write!(f, "stays until {other}, which needs it, has left {on}"),
            WaitReason::HandsOver => {
                write!(
                    f,
                    "stays until {other}, which gets an object of it, is released to {on}"
                )
            }
            WaitReason::Moves => write!(f, "keeps what it has until {on}, which gets more, is healthy"),
            WaitReason::MoveFailed => write!(f, "keeps what it has, since {other} failed on {on}, which gets more"),
        }
    }
}

/// One step: a cluster's share of a unit becomes what the target says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Whose unit.
    pub unit: UnitKey,
    /// Which cluster.
    pub cluster: ClusterName,
    /// What it gets; `None`: the unit leaves the cluster.
    pub to: Option<(Placement, Variant)>,
}

/// Whether what is due may depend on what clusters said, so that it is worth looking at.
pub fn reads_outcomes(target: &Published, released: &Published) -> bool {
    let mut units = target.units.values().chain(released.units.values());
    let moves = |(key, present): (&UnitKey, &UnitPlacement)| {
        let wanted = target.units.get(key);
        wanted.is_some_and(|wanted| wanted != present && in_turn::is_under_way(wanted, present))
    };
    units.any(|unit| !unit.removed_after.is_empty() || order::needed_everywhere(unit).next().is_some())
        || released.units.iter().any(moves)
}

/// When something may be due without anybody saying anything, since a cluster was waited for long enough; in seconds
/// since 1970.
pub fn next_end(released: &Published, move_seconds: u64, now: i64) -> Option<i64> {
    in_turn::next_end(released, move_seconds, now)
}

/// What is due. `now` is in seconds since 1970.
pub fn release(
    target: &Published,
    released: &Published,
    suspensions: Suspensions<'_>,
    observed: &Observed,
    now: i64,
) -> Due {
    let nothing = UnitPlacement::default();
    let look = Look {
        target,
        released,
        suspensions,
        observed,
        now,
    };
    let mut changes = Vec::new();
    let units: BTreeSet<_> = target.units.keys().chain(released.units.keys()).collect();
    for unit in units {
        let (wanted, present) = (
            target.units.get(unit).unwrap_or(&nothing),
            released.units.get(unit).unwrap_or(&nothing),
        );
        if wanted != present {
            look.changes(unit, wanted, present, &mut changes);
        }
    }
    let unknown = hand_over::settle(&look, &mut changes);
    let mut due = Due {
        unknown,
        ..Due::default()
    };
    for change in changes {
        change.tell(&mut due);
    }
    due
}

/// A cluster's share of a unit that the target has otherwise.
struct Change<'a> {
    unit: &'a UnitKey,
    cluster: &'a ClusterName,
    from: Option<(&'a Placement, &'a Variant)>,
    to: Option<(&'a Placement, &'a Variant)>,
    /// The replicas that it gets for now, in place of those of `to`.
    replicas: Option<ByObject>,
    /// A Suspension holds it.
    suspended: bool,
    /// What it waits for.
    wait: Option<Wait>,
}

impl Change<'_> {
    fn is_stalled(&self) -> bool {
        self.suspended || self.wait.is_some()
    }

    /// It waits for who gets an object of it.
    fn is_held(&self) -> bool {
        matches!(self.wait, Some((.., WaitReason::HandsOver)))
    }

    /// The content that it gets, and the one that it has.
    fn contents(&self) -> (Option<Digest>, Option<Digest>) {
        let digest = |of: Option<(&Placement, &Variant)>| of.map(|(_, variant)| variant.digest);
        (digest(self.to), digest(self.from))
    }

    fn loses_content(&self) -> bool {
        let (to, from) = self.contents();
        from.is_some() && to != from
    }

    fn tell(self, due: &mut Due) {
        let (unit, cluster) = (self.unit.clone(), self.cluster.clone());
        match self.wait {
            _ if self.suspended => {}
            Some((other, on, why)) => due.waiting.push(Waiting {
                unit,
                cluster,
                other,
                on,
                why,
            }),
            None => {
                let replicas = self.replicas;
                let to = self.to.map(|(placement, variant)| {
                    let mut placement = placement.clone();
                    placement.replicas = replicas.unwrap_or(placement.replicas);
                    (placement, variant.clone())
                });
                due.advances.push(Advance { unit, cluster, to });
            }
        }
    }
}

/// All that the answer is made from.
struct Look<'a> {
    target: &'a Published,
    released: &'a Published,
    suspensions: Suspensions<'a>,
    observed: &'a Observed,
    now: i64,
}

/// Which unit is waited for, where, and why.
type Wait = (UnitKey, ClusterName, WaitReason);

impl<'a> Look<'a> {
    /// Each cluster's share of a unit that differs, with what it waits for.
    fn changes(
        &self,
        unit: &'a UnitKey,
        wanted: &'a UnitPlacement,
        present: &'a UnitPlacement,
        changes: &mut Vec<Change<'a>>,
    ) {
        let clusters: BTreeSet<_> = wanted.clusters.keys().chain(present.clusters.keys()).collect();
        let turn = in_turn::Turn::of(self, unit, wanted, present);
        let mut leaves_after = None;
        let mut comes_after = None;
        for cluster in clusters {
            let (to, from) = (wanted.entry(cluster), present.entry(cluster));
            if to == from {
                continue;
            }
            let suspended = self.suspensions.of(unit, cluster, self.now).is_some();
            let is_new =
                |(_, variant): (&Placement, &Variant)| from.is_none_or(|(_, old)| old.digest != variant.digest);
            let wait = match to {
                _ if suspended => &mut None,
                None => leaves_after.get_or_insert_with(|| self.leaves_after(unit, present)),
                Some(to) if is_new(to) => {
                    comes_after.get_or_insert_with(|| self.comes_after(order::needed_everywhere(wanted)))
                }
                // Other replicas of what is there already need nothing.
                Some(_) => &mut None,
            };
            let mut change = Change {
                unit,
                cluster,
                from,
                to,
                replicas: None,
                suspended,
                wait: wait.clone(),
            };
            let (told, to) = (from.map(|(told, _)| told), to.map(|(to, _)| to));
            match turn
                .as_ref()
                .filter(|_| !suspended)
                .map(|turn| turn.step(cluster, told, to))
            {
                None | Some(Step::Whole) => {}
                Some(Step::Stays(wait)) => change.wait = Some(wait),
                Some(Step::Part(replicas, wait)) => {
                    changes.push(Change {
                        to: from,
                        replicas: Some(replicas),
                        wait: None,
                        ..change
                    });
                    change.wait = Some(wait);
                }
            }
            changes.push(change);
        }
    }
}

/// What is released after these advances; the record is the caller's to write. `now` is in seconds since 1970.
pub fn advance(target: &Published, released: &Published, advances: Vec<Advance>, now: i64) -> Published {
    let nothing = UnitPlacement::default();
    let mut next = released.clone();
    let mut by_unit: BTreeMap<UnitKey, Vec<Advance>> = BTreeMap::new();
    for advance in advances {
        by_unit.entry(advance.unit.clone()).or_default().push(advance);
    }
    for (unit, advances) in by_unit {
        let present = next.units.remove(&unit).unwrap_or_default();
        let wanted = target.units.get(&unit).unwrap_or(&nothing);
        let mut placement = UnitPlacement::compose(present.advanced(advances), &wanted.digests()).saying(wanted);
        // What is released in part is no placement to come back to.
        placement.asks = wanted.asks.filter(|_| wanted.clusters == placement.clusters);
        if !placement.clusters.is_empty() {
            next.units.insert(unit, placement);
        }
    }
    order::note(target, released, &mut next);
    in_turn::note(target, released, &mut next, now);
    next
}

impl UnitPlacement {
    fn advanced(self, advances: Vec<Advance>) -> Vec<(ClusterName, Placement, Variant)> {
        let mut entries: BTreeMap<ClusterName, (Placement, Variant)> = BTreeMap::new();
        for (cluster, placement) in self.clusters {
            if let Some(variant) = self.variants.get(&placement.variant) {
                entries.insert(cluster, (placement, variant.clone()));
            }
        }
        for advance in advances {
            match advance.to {
                Some(entry) => entries.insert(advance.cluster, entry),
                None => entries.remove(&advance.cluster),
            };
        }
        entries
            .into_iter()
            .map(|(cluster, (placement, variant))| (cluster, placement, variant))
            .collect()
    }
}

#[cfg(test)]
mod tests;
