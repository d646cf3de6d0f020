//! What the rules of the guard look at together: what each unit has on each cluster, what it is to have, and what is
//! held so far.

use std::collections::{BTreeMap, BTreeSet};

use super::holdings::{Held, Same};
use super::predicted::{self, ByPlace};
use super::{Evidence, claims, moves};
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::plan::{Plan, Snapshot, deltas};
use crate::published::{Published, UnitPlacement};
use crate::suspend::Suspensions;

/// A unit on a cluster.
pub(super) type Place = (UnitKey, ClusterName);

pub(super) struct Scene<'a> {
    pub(super) fleet: &'a Fleet,
    previous: &'a Published,
    planned: &'a BTreeMap<UnitKey, UnitPlacement>,
    contents: BTreeMap<Digest, Held<'a>>,
    /// Places that change: what they had and what they are to have.
    pub(super) changes: BTreeMap<Place, (Option<Digest>, Option<Digest>)>,
    /// Objects that more than one unit has, had or is to have.
    pub(super) shared: Vec<(ObjectKey, Vec<UnitKey>)>,
    /// Units whose newest content is not known whole, since something is wrong with them.
    pub(super) troubled: BTreeSet<UnitKey>,
    /// What charts are predicted to bring.
    pub(super) predicted: ByPlace,
    suspensions: Suspensions<'a>,
    now: i64,
    held: BTreeSet<Place>,
    /// Places that an object is on its way to, and waits: that it is with another unit until then is said already.
    heirs: BTreeSet<Place>,
    findings: Vec<Finding>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, plan: &'a Plan, evidence: &Evidence<'_>) -> Self {
        let previous: &Published = &snapshot.previous;
        let mut scene = Self {
            fleet: &snapshot.fleet,
            previous,
            planned: &plan.units,
            contents: BTreeMap::new(),
            changes: BTreeMap::new(),
            shared: Vec::new(),
            troubled: troubled(&snapshot.fleet, plan),
            predicted: predicted::of_plan(plan, &snapshot.chart_previews),
            suspensions: snapshot.fleet.suspensions(),
            now: snapshot.now,
            held: BTreeSet::new(),
            heirs: BTreeSet::new(),
            findings: Vec::new(),
        };
        for delta in deltas(&previous.units, &plan.units) {
            for change in delta.clusters {
                // From a cluster that is registered no more nothing is removed by this.
                if scene.fleet.clusters.contains_key(&change.cluster) {
                    let digest = |share: Option<crate::plan::Share>| share.map(|share| share.digest);
                    let place = (delta.unit.clone(), change.cluster);
                    scene.changes.insert(place, (digest(change.from), digest(change.to)));
                }
            }
        }
        let planned = plan.units.values().flat_map(|unit| unit.variants.values());
        let mut wanted: BTreeSet<Digest> = planned.map(|variant| variant.digest).collect();
        wanted.extend(scene.changes.values().filter_map(|(from, _)| *from));
        for digest in wanted {
            let held = match plan.contents.get(&digest) {
                Some(content) => Some(Held::Planned(content)),
                None => (evidence.holdings)(&digest).map(Held::Published),
            };
            if let Some(held) = held {
                scene.contents.insert(digest, held);
            }
        }
        scene.keep_unreadable();
        scene.shared = scene.shared();
        scene
    }

    /// What a place has of which nobody can say what it is stays as it is.
    fn keep_unreadable(&mut self) {
        let unreadable = |(place, (from, _)): (&Place, &(Option<Digest>, Option<Digest>))| {
            let digest = from.filter(|from| !self.contents.contains_key(from))?;
            Some((place.clone(), digest))
        };
        let unreadable: Vec<_> = self.changes.iter().filter_map(unreadable).collect();
        for (place, digest) in unreadable {
            let message = format!(
                "what {} has cannot be read, so that nobody can say what would go",
                place.0
            );
            let finding = Finding::error("ContentUnreadable", format!("{message} ({})", digest.short(8)))
                .unit(&place.0)
                .cluster(&place.1);
            self.findings.push(finding);
            self.held.insert(place);
        }
    }

    /// Every object of more than one unit, before or after.
    fn shared(&self) -> Vec<(ObjectKey, Vec<UnitKey>)> {
        let mut digests: BTreeMap<&UnitKey, BTreeSet<Digest>> = BTreeMap::new();
        for (unit, placement) in self.planned {
            let variants = placement.variants.values().map(|variant| variant.digest);
            digests.entry(unit).or_default().extend(variants);
        }
        for ((unit, _), (from, _)) in &self.changes {
            digests.entry(unit).or_default().extend(*from);
        }
        let mut keys: Vec<(Same<'_>, &UnitKey)> = Vec::new();
        for (unit, digests) in &digests {
            let held = digests.iter().filter_map(|digest| self.contents.get(digest));
            let mut own: Vec<_> = held.flat_map(Held::keys).map(Same).collect();
            own.sort_unstable();
            own.dedup();
            keys.extend(own.into_iter().map(|key| (key, *unit)));
        }
        keys.sort_unstable();
        let of_one_object = keys.chunk_by(|(one, _), (other, _)| one == other);
        let shared = of_one_object.filter(|chunk| chunk.len() > 1).map(|chunk| {
            let units = chunk.iter().map(|(_, unit)| (*unit).clone());
            (chunk[0].0.0.clone(), units.collect())
        });
        shared.collect()
    }

    /// Applies the rules about single objects until they change nothing any more. Each round holds more places, and
    /// there are no more than there are.
    pub(super) fn settle(&mut self) {
        loop {
            let before = self.held.len();
            claims::check(self);
            predicted::check(self);
            moves::check(self);
            if self.held.len() == before {
                return;
            }
        }
    }

    /// Holds a place at what it has; whether it was not held before.
    pub(super) fn hold(&mut self, place: Place) -> bool {
        self.held.insert(place)
    }

    pub(super) fn is_held(&self, unit: &UnitKey, cluster: &ClusterName) -> bool {
        // A set of pairs cannot be asked with borrowed halves.
        !self.held.is_empty() && self.held.contains(&(unit.clone(), cluster.clone()))
    }

    /// Notes that an object waits to come to a place.
    pub(super) fn awaits(&mut self, place: Place) {
        self.heirs.insert(place);
    }

    pub(super) fn is_awaiting(&self, place: &Place) -> bool {
        self.heirs.contains(place)
    }

    pub(super) fn say(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Whether a Suspension keeps the place from what is planned for it.
    pub(super) fn is_suspended(&self, unit: &UnitKey, cluster: &ClusterName) -> bool {
        self.suspensions.of(unit, cluster, self.now).is_some()
    }

    pub(super) fn content(&self, digest: Option<Digest>) -> Option<&Held<'a>> {
        self.contents.get(&digest?)
    }

    /// What a place has.
    pub(super) fn before(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<&Held<'a>> {
        self.content(digest(self.previous.units.get(unit), cluster))
    }

    /// What a place is to have if nothing holds it.
    pub(super) fn planned(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<&Held<'a>> {
        self.content(digest(self.planned.get(unit), cluster))
    }

    /// Every content that a unit is planned with.
    pub(super) fn all_planned(&self) -> impl Iterator<Item = (&'a UnitKey, &Held<'a>)> {
        self.planned.iter().flat_map(move |(unit, placement)| {
            let digests = placement.variants.values().map(|variant| variant.digest);
            digests.filter_map(move |digest| Some((unit, self.content(Some(digest))?)))
        })
    }

    /// Whether what is planned for a place is what it has.
    pub(super) fn is_unchanged(&self, unit: &UnitKey, cluster: &ClusterName) -> bool {
        let before = digest(self.previous.units.get(unit), cluster);
        before.is_some() && before == digest(self.planned.get(unit), cluster)
    }

    /// What a place gets.
    pub(super) fn after(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<&Held<'a>> {
        if self.is_held(unit, cluster) {
            self.before(unit, cluster)
        } else {
            self.planned(unit, cluster)
        }
    }

    /// The registered clusters that have a unit, or are to have it.
    pub(super) fn clusters(&self, unit: &UnitKey) -> BTreeSet<ClusterName> {
        let of = |placement: Option<&UnitPlacement>| {
            let names = placement.map(|placement| placement.clusters.keys().cloned());
            names.into_iter().flatten().collect::<Vec<_>>()
        };
        let mut clusters: BTreeSet<ClusterName> = of(self.planned.get(unit)).into_iter().collect();
        clusters.extend(of(self.previous.units.get(unit)));
        clusters.retain(|cluster| self.fleet.clusters.contains_key(cluster));
        clusters
    }

    /// Every place that has something, with its content.
    pub(super) fn places(&self) -> impl Iterator<Item = (&'a UnitKey, &'a ClusterName, Digest)> {
        let units = self.previous.units.iter();
        units.flat_map(|(unit, placement)| {
            let names = placement.clusters.keys();
            names.filter_map(move |cluster| Some((unit, cluster, digest(Some(placement), cluster)?)))
        })
    }

    /// The placements of units that are held somewhere.
    pub(super) fn held_units(&self) -> BTreeMap<UnitKey, UnitPlacement> {
        let units: BTreeSet<&UnitKey> = self.held.iter().map(|(unit, _)| unit).collect();
        units
            .into_iter()
            .map(|unit| (unit.clone(), self.placement(unit)))
            .collect()
    }

    fn placement(&self, unit: &UnitKey) -> UnitPlacement {
        let nothing = UnitPlacement::default();
        let planned = self.planned.get(unit).unwrap_or(&nothing);
        let previous = self.previous.units.get(unit).unwrap_or(&nothing);
        let clusters: BTreeSet<&ClusterName> = planned.clusters.keys().chain(previous.clusters.keys()).collect();
        let entry = |cluster: &ClusterName| {
            let from = if self.is_held(unit, cluster) { previous } else { planned };
            let (placement, variant) = from.entry(cluster)?;
            Some((cluster.clone(), placement.clone(), variant.clone()))
        };
        let entries = clusters.into_iter().filter_map(entry);
        // A content that no cluster gets takes no name from one that some cluster keeps.
        let going = planned
            .clusters
            .iter()
            .filter(|(cluster, _)| !self.is_held(unit, cluster));
        let used: BTreeSet<_> = going.map(|(_, placement)| &placement.variant).collect();
        let plain = planned
            .digests()
            .into_iter()
            .filter(|(name, _)| name.plain() == *name && used.contains(name));
        let word = if self.planned.contains_key(unit) {
            planned
        } else {
            previous
        };
        UnitPlacement::compose(entries, &plain.collect()).saying(word)
    }

    pub(super) fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }
}

fn digest(placement: Option<&UnitPlacement>, cluster: &ClusterName) -> Option<Digest> {
    placement?.entry(cluster).map(|(_, variant)| variant.digest)
}

fn troubled(fleet: &Fleet, plan: &Plan) -> BTreeSet<UnitKey> {
    let blocked = fleet.units.iter().filter(|(_, unit)| !unit.blocked.is_empty());
    let errors = plan.findings.iter().filter(|finding| finding.is_error());
    let failed = errors.filter_map(|finding| finding.unit.clone());
    blocked.map(|(key, _)| key.clone()).chain(failed).collect()
}
