//! Verify: whether the files of a commit of `released` are those that its source revisions make.
//!
//! In: what the commit says, plans of the revisions that it names, and at last its files. Out: every path that is
//! not as it should be, and what could not be decided. Making the plans, and finding the commits for them, is a
//! shell's matter.

mod under_way;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::describe::Description;
use crate::fleet::Fleet;
use crate::layout::{self, PLACEMENTS_FOLDER, RELEASE_FILE, UNITS_FOLDER};
use crate::model::Approval;
use crate::name::{ClusterName, Revision, UnitKey, VariantName};
use crate::plan::{Plan, deltas};
use crate::published::{Placement, Published, UnitPlacement, Variant};
use crate::tree::{SourceEntry, SourceTree};
use under_way::{is_said_longer, is_step};

/// Who has a content: a unit and a variant of it.
type Owner = (UnitKey, VariantName);

/// What a commit should be, put together from plans of the revisions that it names.
#[derive(Clone, Debug)]
pub struct Verification {
    /// What the commit says.
    said: Published,
    /// The same, but units under way are as `rendered` wants them.
    wanted: Published,
    /// What it should say once nothing is under way; begins as what is wanted.
    expected: Published,
    /// What it should say of units under way.
    moving: BTreeMap<UnitKey, UnitPlacement>,
    contents: BTreeMap<Owner, Arc<Description>>,
    verdict: Verdict,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Paths that are not as they should be, each with what is wrong. A folder ends with `/`.
    pub differing: BTreeSet<(String, String)>,
    /// Paths of which it could not be decided, each with why.
    pub undecided: BTreeSet<(String, String)>,
}

impl Verification {
    /// Nothing is rendered again yet.
    pub fn new(said: Published) -> Self {
        Self {
            wanted: said.clone(),
            expected: said.clone(),
            moving: BTreeMap::new(),
            said,
            contents: BTreeMap::new(),
            verdict: Verdict::default(),
        }
    }

    /// Tells units under way apart: some of their clusters wait until others are healthy. Where each cluster stands
    /// between what was released before and what `rendered` wants, it is what is wanted that revisions have to decide.
    pub fn under_way(mut self, before: &Published, rendered: &Published) -> Self {
        let nothing = UnitPlacement::default();
        for (key, said) in &self.said.units {
            let wanted = rendered.units.get(key).unwrap_or(&nothing);
            let before = before.units.get(key).unwrap_or(&nothing);
            if is_step(before, said, wanted) {
                self.moving.insert(key.clone(), said.clone());
                self.wanted.units.insert(key.clone(), wanted.clone());
            }
        }
        self.expected = self.wanted.clone();
        self
    }

    /// Every revision that something of the commit was made from, sorted.
    pub fn revisions(&self) -> BTreeSet<Revision> {
        let of_unit = |unit: &UnitPlacement| {
            let variants = unit.variants.values().map(|variant| variant.revision.clone());
            let placements = unit.clusters.values().map(|placement| placement.revision.clone());
            variants.chain(placements).collect::<Vec<_>>()
        };
        let units = self.said.units.values().chain(self.wanted.units.values());
        units.flat_map(of_unit).collect()
    }

    /// What the revisions are to be planned on: every cluster has the units that it has, since a taint leaves what is
    /// there, but none as a plan would make it, so that all of it is made anew.
    pub fn unsettled(&self) -> Published {
        let unit = |(key, unit): (&UnitKey, &UnitPlacement)| {
            let mut anew = UnitPlacement {
                lost: unit.lost.clone(),
                ..UnitPlacement::default()
            };
            for (cluster, placement) in &unit.clusters {
                let Some(variant) = unit.variants.get(&placement.variant) else {
                    continue;
                };
                let mut placement = placement.clone();
                placement.variant = unsettled();
                // Without overrides: a cluster whose override was lost keeps what it has, and this is nobody's.
                anew.variants.entry(unsettled()).or_insert_with(|| Variant {
                    overrides: Vec::new(),
                    ..variant.clone()
                });
                anew.clusters.insert(cluster.clone(), placement);
            }
            (key.clone(), anew)
        };
        Published {
            record: None,
            units: self.wanted.units.iter().map(unit).collect(),
        }
    }

    /// Takes from the plan of a revision, made on [`Self::unsettled`], all that the commit has from it. What room
    /// clusters had is not known any more: where replicas were divided by it, what the commit says of them stands, for
    /// a placement of the same inputs.
    pub fn planned(&mut self, revision: &Revision, plan: &Plan, fleet: &Fleet) {
        let nothing = UnitPlacement::default();
        for (key, said) in &self.said.units {
            let again = plan.units.get(key).unwrap_or(&nothing);
            for (name, variant) in said.variants.iter().filter(|(_, said)| said.revision == *revision) {
                let same = variant_again(said, name, variant, again);
                match same.and_then(|same| Some((same, plan.contents.get(&same.digest)?))) {
                    Some((same, content)) => {
                        self.contents.insert((key.clone(), name.clone()), Arc::clone(content));
                        let moving = self.moving.get_mut(key);
                        let known = moving.unwrap_or_else(|| expected(&mut self.expected, key));
                        known.remade(name, same);
                    }
                    None => self.verdict.differs(
                        format!("{}/", layout::unit_folder(key, name)),
                        format!("is said to be of {revision}, which does not render it"),
                    ),
                }
            }
        }
        for (key, wanted) in &self.wanted.units {
            let again = plan.units.get(key).unwrap_or(&nothing);
            let is_moving = self.moving.contains_key(key);
            for (name, variant) in wanted.variants.iter().filter(|_| is_moving) {
                let same = variant_again(wanted, name, variant, again).filter(|_| variant.revision == *revision);
                same.into_iter()
                    .for_each(|same| expected(&mut self.expected, key).remade(name, same));
            }
            let subscription = fleet.units.get(key).map(|unit| &unit.subscription);
            let by_room = subscription.is_some_and(|subscription| subscription.scheduling.is_by_room());
            // Why a cluster was among the best depended on who had the unit then.
            let was_chosen = subscription.is_some_and(|subscription| subscription.placing.is_a_choice());
            // It is not known any more who was silent.
            let may_differ = by_room || !wanted.lost.is_empty();
            for (cluster, placement) in wanted
                .clusters
                .iter()
                .filter(|(_, wanted)| wanted.revision == *revision)
            {
                let again = again.clusters.get(cluster).cloned().map(|mut again| {
                    let took_over = wanted.moved_at.is_some() && is_said_longer(&again.reasons, &placement.reasons);
                    if was_chosen || took_over {
                        again.reasons.clone_from(&placement.reasons);
                    }
                    again
                });
                let decided = placement_again(placement, again.as_ref(), may_differ);
                let path = || layout::placement_path(key);
                let is_none_of_it = || format!("says of {cluster} what {revision} does not decide");
                match decided {
                    // No file says it, so that it is compared here.
                    Again::Known(same) if is_moving && same != *placement => {
                        self.verdict.differs(path(), is_none_of_it());
                    }
                    Again::Known(same) => {
                        expected(&mut self.expected, key).clusters.insert(cluster.clone(), same);
                    }
                    Again::Other => self.verdict.differs(path(), is_none_of_it()),
                    Again::Unknown => self.verdict.is_undecided(
                        path(),
                        format!("the replicas of {cluster} depended on clusters that are no longer in it"),
                    ),
                }
            }
        }
    }

    /// Says that a revision cannot be planned again: what the commit has from it cannot be decided.
    pub fn unknown(&mut self, revision: &Revision, why: &str) {
        for (key, said) in &self.said.units {
            for (name, variant) in &said.variants {
                if variant.revision == *revision {
                    let folder = format!("{}/", layout::unit_folder(key, name));
                    self.verdict.is_undecided(folder, why.to_owned());
                }
            }
        }
        for (key, wanted) in &self.wanted.units {
            if wanted
                .clusters
                .values()
                .any(|placement| placement.revision == *revision)
            {
                self.verdict.is_undecided(layout::placement_path(key), why.to_owned());
            }
        }
    }

    /// Compares who has what with a plan of the newest revision, made on [`Self::expected`]. What is suspended
    /// may be older, however long ago the Suspension ended.
    ///
    /// Where people approve, a Suspension counts before the revision that has it is released: then an older entry
    /// that is not held by this revision's own Suspensions is undecided.
    pub fn decided(&mut self, revision: &Revision, plan: &Plan, fleet: &Fleet) {
        let suspensions = fleet.suspensions();
        for delta in deltas(&self.expected.units, &plan.units) {
            let is_held = |cluster: &ClusterName| suspensions.of(&delta.unit, cluster, i64::MIN).is_some();
            let mut differing = delta
                .clusters
                .iter()
                .map(|change| &change.cluster)
                .filter(|cluster| !is_held(cluster));
            let Some(first) = differing.next() else {
                continue;
            };
            let more = match differing.count() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let path = layout::placement_path(&delta.unit);
            let what = format!("is not what {revision} decides for {first}{more}");
            match fleet.spec.approval {
                Approval::None => self.verdict.differs(path, what),
                Approval::Required => {
                    let why = format!("{what}, unless a Suspension held it that was not approved yet");
                    self.verdict.is_undecided(path, why);
                }
            }
        }
    }

    /// Says that the newest revision cannot be planned again: whether the commit says all of it cannot be decided.
    pub fn undecided(&mut self, why: &str) {
        self.verdict
            .is_undecided(format!("{PLACEMENTS_FOLDER}/"), why.to_owned());
    }

    /// What the commit should say once nothing is under way, as far as it was rendered again.
    pub fn expected(&self) -> &Published {
        &self.expected
    }

    /// Compares the files byte for byte. Files elsewhere are people's own.
    pub fn verdict(mut self, tree: &SourceTree) -> Verdict {
        let mut files = self.files();
        let unknown: Vec<String> = self.folders_unknown();
        let is_unknown = |path: &str| unknown.iter().any(|folder| path.starts_with(folder.as_str()));
        for (path, entry) in tree.files.iter().filter(|(path, _)| is_ours(path) && !is_unknown(path)) {
            match (files.remove(&**path), entry) {
                (None, _) => self.verdict.differs(path.to_string(), "is in no decision".to_owned()),
                (Some(bytes), SourceEntry::File(file)) if *file.bytes == *bytes => {}
                (Some(_), _) => self.verdict.differs(path.to_string(), DIFFERS.to_owned()),
            }
        }
        for path in files.into_keys() {
            self.verdict.differs(path, "is missing".to_owned());
        }
        self.verdict
    }

    /// Every file that the commit should have, as far as it is known.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut add = |(path, text): (String, String)| files.insert(path, text.into_bytes());
        if let Some(record) = &self.expected.record {
            add(layout::release_file(record));
        }
        for unit in self.said.units.keys().chain(self.expected.units.keys()) {
            let placement = self.moving.get(unit).or_else(|| self.expected.units.get(unit));
            if let Some(placement) = placement {
                add(layout::placement_file(unit, placement));
            }
        }
        for ((unit, variant), content) in &self.contents {
            let folder = layout::unit_folder(unit, variant);
            let described = layout::description_files(content).into_iter();
            files.extend(described.map(|(name, bytes)| (format!("{folder}/{name}"), bytes)));
        }
        files
    }

    /// Folders of contents that could not be rendered again; said already.
    fn folders_unknown(&self) -> Vec<String> {
        let variants = self.said.units.iter().flat_map(|(unit, placement)| {
            let names = placement.variants.keys();
            names.map(move |name| (unit.clone(), name.clone()))
        });
        variants
            .filter(|owner| !self.contents.contains_key(owner))
            .map(|(unit, name)| format!("{}/", layout::unit_folder(&unit, &name)))
            .collect()
    }
}

impl Verdict {
    /// Whether every byte is as it is rendered again.
    pub fn is_same(&self) -> bool {
        self.differing.is_empty() && self.undecided.is_empty()
    }

    fn differs(&mut self, path: String, what: String) {
        self.differing.insert((path, what));
    }

    fn is_undecided(&mut self, path: String, why: String) {
        self.undecided.insert((path, why));
    }
}

const DIFFERS: &str = "differs";

/// A name that no plan gives to a variant.
fn unsettled() -> VariantName {
    VariantName::parse("unsettled").expect("it has letters alone")
}

fn expected<'a>(published: &'a mut Published, unit: &UnitKey) -> &'a mut UnitPlacement {
    published.units.entry(unit.clone()).or_default()
}

impl UnitPlacement {
    /// With a variant as it was made again.
    fn remade(&mut self, name: &VariantName, same: &Variant) {
        if let Some(known) = self.variants.get_mut(name) {
            known.digest = same.digest;
            known.overrides.clone_from(&same.overrides);
        }
    }
}

/// What a variant is when it is made again: the one with the same content and overrides, or else, where somebody
/// changed the one or the other, the one that a cluster of it gets.
fn variant_again<'a>(
    said: &UnitPlacement,
    name: &VariantName,
    variant: &Variant,
    again: &'a UnitPlacement,
) -> Option<&'a Variant> {
    let is_same = |other: &&Variant| other.digest == variant.digest && other.overrides == variant.overrides;
    let made = || again.variants.iter().filter(|(name, _)| **name != unsettled());
    if let Some(same) = made().map(|(_, made)| made).find(is_same) {
        return Some(same);
    }
    let mut clusters = said.clusters.iter().filter(|(_, placement)| placement.variant == *name);
    clusters.find_map(|(cluster, _)| {
        let (placement, made) = again.entry(cluster)?;
        (placement.variant != unsettled()).then_some(made)
    })
}

/// What became of a placement when it was decided again.
enum Again {
    Known(Placement),
    /// It is not placed so.
    Other,
    /// It depends on what is no longer known.
    Unknown,
}

fn placement_again(said: &Placement, again: Option<&Placement>, may_differ: bool) -> Again {
    match again {
        Some(again) if again.variant.plain() == said.variant.plain() => {
            let is_divided = !again.replicas.is_empty() || !said.replicas.is_empty();
            // Replicas are shared with the clusters of that time, not of now.
            let is_as_said = may_differ && again.replicas == said.replicas;
            if is_divided && again.inputs != said.inputs && !is_as_said {
                return Again::Unknown;
            }
            if may_differ {
                return Again::Known(said.clone());
            }
            Again::Known(Placement {
                variant: said.variant.clone(),
                revision: said.revision.clone(),
                ..again.clone()
            })
        }
        _ => Again::Other,
    }
}

/// Whether a path is one that a hub writes.
fn is_ours(path: &str) -> bool {
    let folder = path.split('/').next().unwrap_or_default();
    path == RELEASE_FILE || [PLACEMENTS_FOLDER, UNITS_FOLDER].contains(&folder)
}

#[cfg(test)]
mod tests;
