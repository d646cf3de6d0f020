//! The changes between what is rendered, or another revision, and the revision that is planned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context as _;
use render::describe::Description;
use render::guard::{Evidence, Exceeded, Holdings};
use render::load::LoadMemo;
use render::model::{DeletionPolicy, DriftMode};
use render::nearest::hint;
use render::plan::{
    Alike, Change, ClusterDelta, Delta, Fixed, Memo, ObjectChange, Part, PredictedChange, Share, Staying,
    UnplacedChange, changes_charts, deltas, fixed, plan, settle, unplaced_changes,
};
use render::schedule::RebalanceWord;
use render::suspend::Suspensions;
use render::{ClusterName, Digest, Finding, Fleet, ObjectKey, Plan, Published, Revision, UnitKey};
use serde::Serialize;

use super::dependants::{ClusterDependants, Removals};
use super::summary::Summary;
use super::{Revisions, immutable};
use crate::cli::rooms::Rooms;
use crate::hub::publish::{CommitId, StateRepository};
use crate::hub::source::Source;
use crate::hub::{Leaving, Memories, Rules, Words, departed, departed_findings, judged, load_revision};

/// A plan as it is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    /// What it is compared with: a revision, or nothing.
    pub(super) from: Option<Revision>,
    /// The revision that was planned.
    pub(super) to: Revision,
    /// How much that is.
    pub(super) summary: Summary,
    /// Units that change.
    pub(super) units: Vec<UnitChange>,
    /// What is wrong, sorted.
    pub(super) findings: Vec<Finding>,
    /// What goes or stays behind with what is removed, as the clusters say; empty where nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) dependants: Vec<ClusterDependants>,
    /// The parts that change charts, to be predicted.
    #[serde(skip)]
    pub(super) charts: Vec<Part>,
    /// Lists that go beyond a budget, and are held.
    #[serde(skip)]
    pub(super) exceeded: Vec<Exceeded>,
}

impl Shown {
    /// What leaves each cluster, or would if no budget held it.
    pub(super) fn removals(&self) -> Removals {
        let mut removals = Removals::new();
        for group in self.units.iter().flat_map(|unit| &unit.groups) {
            let removed = group.objects.iter().filter(|change| change.change == Change::Removed);
            let removed: Vec<_> = removed.map(|change| change.object.clone()).collect();
            for cluster in group.clusters.iter().filter(|_| !removed.is_empty()) {
                removals
                    .entry(cluster.clone())
                    .or_default()
                    .extend(removed.iter().cloned());
            }
        }
        for removal in self.exceeded.iter().flat_map(|list| &list.removals) {
            let of_cluster = removals.entry(removal.cluster.clone()).or_default();
            of_cluster.insert(removal.object.clone());
        }
        removals
    }
}

/// One unit's changes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnitChange {
    pub(super) unit: UnitKey,
    /// Whether no cluster has it any more.
    pub(super) removed: bool,
    /// Clusters that change alike, together.
    pub(super) groups: Vec<Group>,
    /// What changes inside the releases of its charts, as far as it is predicted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) predicted: Vec<PredictedChange>,
    /// Divided objects of which another number finds no place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) unplaced: BTreeMap<ObjectKey, UnplacedChange>,
    /// What keeps some of these clusters as they are until it ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) held: Vec<Held>,
}

/// Clusters that a Suspension keeps from a change.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Held {
    /// File and line, why, and until when.
    pub(super) by: String,
    pub(super) clusters: Vec<ClusterName>,
}

/// Clusters that change alike.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    pub(super) clusters: Vec<ClusterName>,
    pub(super) from: Option<Share>,
    pub(super) to: Option<Share>,
    /// What is done there about fields that others change.
    pub(super) drift: DriftMode,
    pub(super) objects: Vec<ObjectChange>,
    /// Objects that differ in a field which cannot change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) immutable: Vec<Fixed>,
}

/// What the plan is compared with.
struct Before {
    revision: Option<Revision>,
    published: Published,
    contents: Contents,
}

/// Where contents come from.
enum Contents {
    Planned(BTreeMap<Digest, Arc<Description>>),
    Committed(Box<StateRepository>, CommitId),
    None,
}

pub(super) fn shown(arguments: &Revisions, rooms: &Rooms<'_>) -> anyhow::Result<Shown> {
    shown_with(arguments, rooms, &[])
}

/// As [`shown`], as if the newest commit said these words too.
pub(super) fn shown_with(arguments: &Revisions, rooms: &Rooms<'_>, words: &[RebalanceWord]) -> anyhow::Result<Shown> {
    let source = arguments.clone.open()?;
    let to = source
        .resolve(&arguments.to)
        .with_context(|| format!("failed to find {}", arguments.to))?;
    let mut before = before(arguments, &source, rooms)?;
    let published = std::mem::take(&mut before.published);
    let planned = guarded(&source, &to, published, (&before, rooms, words))?;
    let deltas = deltas(&planned.previous.units, &planned.plan.units);
    let mut parts = Vec::new();
    for delta in &deltas {
        parts.extend(parts_of(delta, &before.contents, &planned.plan.contents)?);
    }
    let mut groups: BTreeMap<UnitKey, Vec<Group>> = BTreeMap::new();
    for part in settle(&parts, &planned.staying) {
        groups.entry(part.unit.clone()).or_default().push(Group::of(part));
    }
    let suspensions = planned.fleet.suspensions();
    let mut unplaced = unplaced_changes(&planned.previous.units, &planned.plan.units);
    let mut change = |delta: Delta| UnitChange {
        removed: !planned.plan.units.contains_key(&delta.unit),
        groups: groups.remove(&delta.unit).unwrap_or_default(),
        predicted: Vec::new(),
        unplaced: unplaced.remove(&delta.unit).unwrap_or_default(),
        held: held(&delta, suspensions, planned.now),
        unit: delta.unit,
    };
    let mut units: Vec<_> = deltas.into_iter().map(&mut change).collect();
    // What finds no place may be all that changes.
    let rest: Vec<_> = unplaced.keys().cloned().collect();
    units.extend(rest.into_iter().map(|unit| UnitChange {
        unplaced: unplaced.remove(&unit).unwrap_or_default(),
        ..UnitChange::none(unit)
    }));
    units.sort_by(|a, b| a.unit.cmp(&b.unit));
    let refused = immutable::findings(&units, &planned.fleet);
    let mut findings: Vec<_> = planned.findings.into_iter().chain(refused).collect();
    findings.sort();
    Ok(Shown {
        from: before.revision,
        to,
        summary: Summary::of(&units, &findings),
        units,
        findings,
        dependants: Vec::new(),
        charts: parts.into_iter().filter(changes_charts).collect(),
        exceeded: planned.exceeded,
    })
}

fn before(arguments: &Revisions, source: &Source, rooms: &Rooms<'_>) -> anyhow::Result<Before> {
    if let Some(from) = &arguments.from {
        let revision = source.resolve(from).with_context(|| format!("failed to find {from}"))?;
        let plan = planned(source, &revision, rooms)?;
        let published = Published {
            record: None,
            units: plan.units,
        };
        return Ok(Before {
            revision: Some(revision),
            published,
            contents: Contents::Planned(plan.contents),
        });
    }
    if let Some(rendered) = arguments.clone.rendered(source)? {
        let record = rendered.published.record.as_ref();
        return Ok(Before {
            revision: record.map(|record| record.source.clone()),
            contents: Contents::Committed(Box::new(rendered.state), rendered.commit),
            published: rendered.published,
        });
    }
    Ok(Before {
        revision: None,
        published: Published::default(),
        contents: Contents::None,
    })
}

struct Planned {
    fleet: Arc<Fleet>,
    previous: Arc<Published>,
    plan: render::Plan,
    findings: Vec<Finding>,
    exceeded: Vec<Exceeded>,
    staying: Staying,
    /// As of when, in seconds since 1970.
    now: i64,
}

/// A revision on a fleet that is on no cluster yet.
fn planned(source: &Source, revision: &Revision, rooms: &Rooms<'_>) -> anyhow::Result<Plan> {
    let (fleet, _) = load_revision(source, revision, &mut LoadMemo::default())
        .with_context(|| format!("failed to read {revision}"))?;
    let snapshot = rooms.snapshot(&fleet.into(), Arc::default())?;
    Ok(plan(&snapshot, &mut Memo::default()))
}

/// As the hub plans it, with what must not go held back.
fn guarded(
    source: &Source,
    revision: &Revision,
    previous: Published,
    (before, rooms, said): (&Before, &Rooms<'_>, &[RebalanceWord]),
) -> anyhow::Result<Planned> {
    let unreadable = || format!("failed to read {revision}");
    let (fleet, found) = load_revision(source, revision, &mut LoadMemo::default()).with_context(unreadable)?;
    let (fleet, previous) = (Arc::new(fleet), Arc::new(previous));
    let departed = departed(source, &fleet, &previous, None).with_context(unreadable)?;
    let since = before.revision.as_ref();
    let mut words = Words::read(source, &fleet, since, &BTreeMap::new()).with_context(unreadable)?;
    for word in said {
        words
            .add(&fleet, word)
            .then_some(())
            .with_context(|| unknown(&fleet, word))?;
    }
    let found = found.into_iter().chain(departed_findings(&departed));
    let mut found: Vec<Finding> = found.chain(words.findings).collect();
    let orphaned = departed
        .clusters
        .iter()
        .filter(|(_, left)| left.deletion_policy == DeletionPolicy::Orphan);
    let clusters = orphaned.map(|(name, _)| name.clone()).collect();
    let rules = Rules::read(source, &fleet, before.revision.as_ref(), None).with_context(unreadable)?;
    let holdings = |digest: &Digest| {
        before
            .contents
            .of(digest)
            .map(|content| Arc::new(Holdings::of(&content)))
    };
    let evidence = Evidence {
        budgets: &rules.budgets,
        allowed: &rules.allowed,
        holdings: &holdings,
    };
    let mut snapshot = rooms.snapshot(&fleet, Arc::clone(&previous))?;
    snapshot.moves.rebalance = words.rebalance;
    let memo = &mut Memo::default();
    let plan = match &before.contents {
        Contents::Committed(state, _) => {
            let memories = Memories { source, since, state };
            let (plan, trouble) = memories.plan(&mut snapshot, memo).with_context(unreadable)?;
            found.extend(trouble);
            plan
        }
        Contents::Planned(_) | Contents::None => plan(&snapshot, memo),
    };
    let (plan, findings, exceeded) = judged(&snapshot, plan, found, &evidence);
    let leaving = Leaving {
        source,
        fleet: &fleet,
        previous: &previous,
        decided: before.revision.as_ref(),
        units: &plan.units,
        accepted: None,
        departed: &departed.clusters,
        holdings: &holdings,
        let_go: &BTreeSet::new(),
    };
    let (units, _) = leaving.orphaned().with_context(unreadable)?;
    Ok(Planned {
        fleet,
        previous,
        plan,
        findings,
        exceeded,
        staying: Staying { clusters, units },
        now: snapshot.now,
    })
}

/// That a word names no unit, with what may have been meant.
fn unknown(fleet: &Fleet, word: &RebalanceWord) -> String {
    let names: Vec<String> = fleet.units.keys().map(ToString::to_string).collect();
    let hint = hint(&word.to_string(), names.iter().map(String::as_str));
    format!("no unit is {word}{hint}")
}

/// The clusters of a unit that change alike, with their contents.
fn parts_of(delta: &Delta, old: &Contents, new: &BTreeMap<Digest, Arc<Description>>) -> anyhow::Result<Vec<Part>> {
    let alike = delta.alike().into_iter();
    let part = |Alike { clusters, from, to }: Alike| {
        let (before, after) = (old.content(from.as_ref())?, new_content(to.as_ref(), new, old)?);
        Ok(Part::new(delta.unit.clone(), clusters, (from, before), (to, after)))
    };
    alike.map(part).collect()
}

impl UnitChange {
    /// One of which nothing changes.
    fn none(unit: UnitKey) -> Self {
        Self {
            unit,
            removed: false,
            groups: Vec::new(),
            predicted: Vec::new(),
            unplaced: BTreeMap::new(),
            held: Vec::new(),
        }
    }
}

impl Group {
    fn of(part: Part) -> Self {
        Self {
            drift: part.drift(),
            immutable: fixed(&part),
            clusters: part.clusters,
            from: part.from,
            to: part.to,
            objects: part.objects,
        }
    }
}

/// Which of a unit's changes wait for a Suspension to end; `now` is in seconds since 1970.
fn held(delta: &Delta, suspensions: Suspensions<'_>, now: i64) -> Vec<Held> {
    let mut held: BTreeMap<String, Vec<ClusterName>> = BTreeMap::new();
    for ClusterDelta { cluster, .. } in &delta.clusters {
        if let Some(suspension) = suspensions.of(&delta.unit, cluster, now) {
            held.entry(suspension.label()).or_default().push(cluster.clone());
        }
    }
    held.into_iter().map(|(by, clusters)| Held { by, clusters }).collect()
}

/// The content of a share in the plan; one that is held back is where it was before.
fn new_content(
    share: Option<&Share>,
    new: &BTreeMap<Digest, Arc<Description>>,
    old: &Contents,
) -> anyhow::Result<Option<Arc<Description>>> {
    match share.and_then(|share| new.get(&share.digest)) {
        Some(content) => Ok(Some(Arc::clone(content))),
        None => old.content(share),
    }
}

impl Contents {
    fn content(&self, share: Option<&Share>) -> anyhow::Result<Option<Arc<Description>>> {
        let Some(share) = share else { return Ok(None) };
        match self {
            Self::Planned(contents) => Ok(contents.get(&share.digest).cloned()),
            Self::Committed(state, commit) => Ok(Some(Arc::new(state.content(*commit, &share.digest)?))),
            Self::None => Ok(None),
        }
    }

    fn of(&self, digest: &Digest) -> Option<Arc<Description>> {
        match self {
            Self::Planned(contents) => contents.get(digest).cloned(),
            Self::Committed(state, commit) => state.content(*commit, digest).ok().map(Arc::new),
            Self::None => None,
        }
    }
}
