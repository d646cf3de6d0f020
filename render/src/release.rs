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
mod unfinished;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::by_object::ByObject;
use crate::digest::Digest;
use crate::guard::Holdings;
use crate::model::DependencyClusters;
use crate::name::{ClusterName, UnitKey};
use crate::published::{Placement, Published, UnitPlacement, Variant};
use crate::suspend::Suspensions;
use in_turn::Step;

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
    units.any(|unit| !unit.removed_after.is_empty() || needed_everywhere(unit).next().is_some())
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

/// The units that must be healthy on every cluster before this one is released.
fn needed_everywhere(unit: &UnitPlacement) -> impl Iterator<Item = &UnitKey> {
    let everywhere = unit
        .depends_on
        .iter()
        .filter(|needed| needed.clusters == DependencyClusters::All);
    everywhere.map(|needed| &needed.unit)
}

/// The units that need `unit` everywhere and are to leave a cluster.
fn leaving_with<'a>(
    target: &'a Published,
    released: &'a Published,
    unit: &'a UnitKey,
) -> impl Iterator<Item = &'a UnitKey> {
    let leaves = |key: &UnitKey, present: &UnitPlacement| {
        let stays = |cluster| {
            target
                .units
                .get(key)
                .is_some_and(|wanted| wanted.clusters.contains_key(cluster))
        };
        !present.clusters.keys().all(stays)
    };
    let needing = released.units.iter();
    let needing = needing
        .filter(move |(key, present)| needed_everywhere(present).any(|needed| needed == unit) && leaves(key, present));
    needing.map(|(key, _)| key)
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
                    comes_after.get_or_insert_with(|| self.comes_after(needed_everywhere(wanted)))
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

    /// What a new content of a unit that needs these everywhere has to wait for.
    fn comes_after<'u>(&self, mut needed: impl Iterator<Item = &'u UnitKey>) -> Option<Wait> {
        needed.find_map(|needed| {
            let unit = self.target.units.get(needed)?;
            unit.clusters.keys().find_map(|cluster| {
                // Where it is suspended it gets no further, and nobody waits for that.
                let suspended = self.suspensions.of(needed, cluster, self.now).is_some();
                let why = self.lacks(needed, unit, cluster).filter(|_| !suspended)?;
                Some((needed.clone(), cluster.clone(), why))
            })
        })
    }

    /// Why a unit is not there yet as the target has it.
    fn lacks(&self, key: &UnitKey, wanted: &UnitPlacement, cluster: &ClusterName) -> Option<WaitReason> {
        let (_, variant) = wanted.entry(cluster)?;
        let told = self.released.units.get(key).and_then(|unit| unit.entry(cluster));
        let is_told = told.is_some_and(|(_, told)| told.digest == variant.digest);
        let seen = self.observed.clusters.get(cluster).and_then(|units| units.get(key));
        match seen
            .filter(|seen| is_told && seen.digest == Some(variant.digest))
            .map(|seen| seen.outcome)
        {
            Some(Outcome::Healthy) => None,
            Some(Outcome::Failed) => Some(WaitReason::Failed),
            Some(Outcome::UnderWay) | None => Some(WaitReason::NotHealthy),
        }
    }

    /// What has to be gone before a unit leaves any cluster.
    fn leaves_after(&self, unit: &UnitKey, present: &UnitPlacement) -> Option<Wait> {
        let with = leaving_with(self.target, self.released, unit);
        let mut others = with.chain(&present.removed_after);
        others.find_map(|other| Some((other.clone(), self.still_on(other, present)?, WaitReason::StillThere)))
    }

    /// A cluster that a unit is to leave and has not left yet; a cluster that said nothing may still have it.
    fn still_on(&self, unit: &UnitKey, needed: &UnitPlacement) -> Option<ClusterName> {
        let stays = |cluster: &ClusterName| {
            let wanted = self.target.units.get(unit);
            wanted.is_some_and(|wanted| wanted.clusters.contains_key(cluster))
        };
        let told = self
            .released
            .units
            .get(unit)
            .into_iter()
            .flat_map(|unit| unit.clusters.keys());
        let seen = self
            .observed
            .clusters
            .iter()
            .filter(|(_, units)| units.contains_key(unit));
        let silent = needed
            .clusters
            .keys()
            .filter(|cluster| !self.observed.clusters.contains_key(*cluster));
        let mut all = told.chain(seen.map(|(cluster, _)| cluster)).chain(silent);
        all.find(|cluster| !stays(cluster)).cloned()
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
    note_order(target, released, &mut next);
    in_turn::note(target, released, &mut next, now);
    next
}

/// Of what is to leave, notes what has to be gone first: once that left `released`, nothing else says so.
fn note_order(target: &Published, released: &Published, next: &mut Published) {
    for (key, unit) in &mut next.units {
        let wanted = target.units.get(key);
        let stays = |cluster| wanted.is_some_and(|wanted| wanted.clusters.contains_key(cluster));
        if unit.clusters.keys().all(stays) {
            unit.removed_after.clear();
            continue;
        }
        let before = released.units.get(key).map(|unit| unit.removed_after.as_slice());
        let all: BTreeSet<_> = leaving_with(target, released, key)
            .chain(before.unwrap_or_default())
            .collect();
        unit.removed_after = all.into_iter().cloned().collect();
    }
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
mod tests {
    mod hand_over;
    mod in_turn;
    mod order;

    use std::sync::Arc;

    use super::*;
    use crate::Fleet;
    use crate::model::{Scheduling, SuspendedClusters, Suspension};
    use crate::published::tests::{entry, placement};
    use crate::selector::LabelSelector;

    fn published(units: &[(&str, UnitPlacement)]) -> Published {
        let units = units
            .iter()
            .map(|(unit, placement)| (unit.parse().expect("a valid unit"), placement.clone()));
        Published {
            record: None,
            units: units.collect(),
        }
    }

    /// Nobody said anything, and no content has an object.
    fn silence(states: &[&Published]) -> Observed {
        let units = states.iter().flat_map(|published| published.units.values());
        let digests = units.flat_map(|unit| unit.variants.values().map(|variant| variant.digest));
        let empty = || {
            Some(Arc::new(Holdings {
                objects: Vec::new(),
                orphan: false,
            }))
        };
        Observed {
            holdings: digests.map(|digest| (digest, empty())).collect(),
            ..Observed::default()
        }
    }

    #[track_caller]
    fn check(target: &Published, released: &Published, due: usize) {
        let advances = release(target, released, Suspensions::none(), &silence(&[target, released]), 0).advances;
        assert_eq!(advances.len(), due, "{advances:#?}");
        let next = advance(target, released, advances, 0);
        assert_eq!(next.units, target.units, "all at once ends at the target");
        assert!(
            release(target, &next, Suspensions::none(), &silence(&[target, &next]), 0) == Due::default(),
            "and stays there"
        );
    }

    #[test]
    fn all_at_once_follows_the_target_entry_by_entry() {
        let old = placement(&[entry("a", "default", "1"), entry("b", "default", "1")]);
        let new = placement(&[entry("a", "default", "2"), entry("b", "default", "2")]);
        let nothing = Published::default();
        check(&published(&[("t/web", old.clone())]), &nothing, 2);
        check(
            &published(&[("t/web", new.clone())]),
            &published(&[("t/web", old.clone())]),
            2,
        );
        check(&published(&[("t/web", new.clone())]), &published(&[("t/web", new)]), 0);
        check(&nothing, &published(&[("t/web", old)]), 2);
    }

    #[test]
    fn an_entry_that_is_not_advanced_keeps_its_older_content_beside_the_newer() {
        let old = published(&[(
            "t/web",
            placement(&[entry("a", "default", "1"), entry("b", "default", "1")]),
        )]);
        let new = published(&[(
            "t/web",
            placement(&[entry("a", "default", "2"), entry("b", "default", "2")]),
        )]);
        let only_a = release(&new, &old, Suspensions::none(), &silence(&[&new, &old]), 0)
            .advances
            .into_iter()
            .take(1)
            .collect();
        let mixed = advance(&new, &old, only_a, 0);
        let unit = &mixed.units[&"t/web".parse().expect("a valid unit")];
        let (a, b) = (
            ClusterName::parse("a").expect("valid"),
            ClusterName::parse("b").expect("valid"),
        );
        assert_eq!(unit.entry(&a).expect("a has it").0.variant.as_str(), "default");
        let (held, variant) = unit.entry(&b).expect("b keeps it");
        assert!(held.variant.as_str().starts_with("default-held-"), "{held:?}");
        assert_eq!(variant.digest, crate::Digest::of_bytes(b"1"));
        check(&new, &mixed, 1);
    }

    /// A fleet of clusters a and b that declares these Suspensions.
    fn suspended(declared: Vec<Suspension>) -> Fleet {
        use crate::fixture;
        let clusters = ["a", "b"].map(|name| fixture::cluster(name, &[("zone", name)]));
        let subscription = fixture::subscription(Scheduling::Replication, Vec::new());
        Fleet {
            suspensions: declared.into_iter().map(Arc::new).collect(),
            prune_budgets: Vec::new(),
            ..fixture::fleet(clusters, subscription, crate::Base::empty())
        }
    }

    fn suspension(unit: Option<&str>, clusters: Option<SuspendedClusters>, until: Option<i64>) -> Suspension {
        Suspension {
            objects: Vec::new(),
            name: "held".to_owned(),
            unit: unit.map(|unit| unit.parse().expect("a valid unit")),
            clusters,
            reason: String::new(),
            until,
            file: "policies/held.yaml".into(),
            line: 1,
        }
    }

    fn named(name: &str) -> Option<SuspendedClusters> {
        Some(SuspendedClusters {
            names: vec![ClusterName::parse(name).expect("a valid cluster")],
            selector: None,
        })
    }

    fn in_zone(zone: &str) -> Option<SuspendedClusters> {
        let selector = LabelSelector {
            match_labels: BTreeMap::from([("zone".to_owned(), zone.to_owned())]),
            ..LabelSelector::default()
        };
        Some(SuspendedClusters {
            names: Vec::new(),
            selector: Some(selector),
        })
    }

    /// Who advances, as `unit cluster`, where t/web and t/api are new on a and b.
    #[track_caller]
    fn advancing(held: Suspension, now: i64, expected: &[&str]) {
        let new = placement(&[entry("a", "default", "1"), entry("b", "default", "1")]);
        let (target, fleet) = (
            published(&[("t/web", new.clone()), ("t/api", new)]),
            suspended(vec![held]),
        );
        let due = release(
            &target,
            &Published::default(),
            fleet.suspensions(),
            &silence(&[&target]),
            now,
        );
        let found: Vec<_> = due
            .advances
            .iter()
            .map(|advance| format!("{} {}", advance.unit, advance.cluster))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_suspended_is_not_released_and_everything_else_is() {
        advancing(suspension(Some("t/web"), None, None), 0, &["t/api a", "t/api b"]);
        advancing(suspension(None, named("a"), None), 0, &["t/api b", "t/web b"]);
        advancing(suspension(None, in_zone("b"), None), 0, &["t/api a", "t/web a"]);
        advancing(
            suspension(Some("t/web"), named("a"), None),
            0,
            &["t/api a", "t/api b", "t/web b"],
        );
        advancing(
            suspension(Some("t/other"), None, None),
            0,
            &["t/api a", "t/api b", "t/web a", "t/web b"],
        );
    }

    #[test]
    fn a_suspension_ends_at_its_time() {
        let held = suspension(Some("t/web"), None, Some(100));
        advancing(held.clone(), 99, &["t/api a", "t/api b"]);
        advancing(held.clone(), 100, &["t/api a", "t/api b", "t/web a", "t/web b"]);
        let fleet = suspended(vec![held, suspension(None, named("a"), Some(50))]);
        let next = |now| fleet.suspensions().next_end(now);
        assert_eq!([next(0), next(50), next(100)], [Some(50), Some(100), None]);
    }

    #[test]
    fn of_two_suspensions_the_longer_one_counts() {
        let (short, long) = (
            suspension(None, named("a"), Some(50)),
            suspension(Some("t/web"), None, None),
        );
        for declared in [vec![short.clone(), long.clone()], vec![long, short]] {
            let fleet = suspended(declared);
            let (unit, a) = ("t/web".parse().expect("valid"), ClusterName::parse("a").expect("valid"));
            let found = fleet.suspensions().of(&unit, &a, 0).expect("both hold it");
            assert_eq!(found.until, None);
        }
    }

    #[test]
    fn a_removal_waits_as_well_also_on_a_cluster_that_is_not_registered() {
        let old = published(&[(
            "t/web",
            placement(&[entry("a", "default", "1"), entry("gone", "default", "1")]),
        )]);
        let fleet = suspended(vec![suspension(Some("t/web"), in_zone("a"), None)]);
        let due = release(&Published::default(), &old, fleet.suspensions(), &silence(&[&old]), 0);
        assert_eq!(due.advances, [], "nobody knows the labels of a cluster that is gone");
    }

    proptest::proptest! {
        /// Contents 0 (none) to 3 of two units on two clusters, before and after; any of the four is suspended.
        #[test]
        fn a_suspended_entry_never_changes_and_the_others_reach_the_target(
            before in proptest::array::uniform4(0_u8..4),
            after in proptest::array::uniform4(0_u8..4),
            held in proptest::array::uniform4(proptest::bool::ANY),
        ) {
            let places = [("t/api", "a"), ("t/api", "b"), ("t/web", "a"), ("t/web", "b")];
            let state = |contents: [u8; 4]| {
                let unit = |name: &str| {
                    let of = places.iter().zip(contents).filter(|((unit, _), content)| *unit == name && *content > 0);
                    let entries: Vec<_> = of.map(|((_, cluster), content)| entry(cluster, "default", &content.to_string())).collect();
                    placement(&entries)
                };
                let units = ["t/api", "t/web"].map(|name| (name, unit(name)));
                published(&units.into_iter().filter(|(_, unit)| !unit.clusters.is_empty()).collect::<Vec<_>>())
            };
            let (released, target) = (state(before), state(after));
            let declared = places.iter().zip(held).filter(|(_, held)| *held);
            let fleet = suspended(declared.map(|((unit, cluster), _)| suspension(Some(unit), named(cluster), None)).collect());
            let due = release(&target, &released, fleet.suspensions(), &silence(&[&target, &released]), 0);
            let next = advance(&target, &released, due.advances, 0);
            for ((unit, cluster), held) in places.iter().zip(held) {
                let content = |from: &Published| {
                    let unit = from.units.get(&unit.parse::<UnitKey>().expect("valid"))?;
                    let (_, variant) = unit.entry(&ClusterName::parse(*cluster).expect("valid"))?;
                    Some(variant.digest)
                };
                proptest::prop_assert_eq!(content(&next), content(if held { &released } else { &target }));
            }
            proptest::prop_assert!(
                release(&target, &next, fleet.suspensions(), &silence(&[&target, &next]), 0) == Due::default(),
                "what is held is not due again"
            );
            let resumed = release(&target, &next, Suspensions::none(), &silence(&[&target, &next]), 0);
            proptest::prop_assert_eq!(advance(&target, &next, resumed.advances, 0).units, target.units, "and resuming ends at the target");
        }
    }
}
