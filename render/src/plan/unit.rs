//! One unit's plan: schedule it, localize each distinct variant once, keep what must be kept.

use std::collections::BTreeMap;

use serde_json::json;

use super::group::{Made, Rendered, as_before, by_overrides, render_group};
use crate::chart::PreviewRequest;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Unit;
use crate::localize::{self, Touching};
use crate::model::Cluster;
use crate::name::{Revision, UnitKey};
use crate::plan::overridden::Overridden;
use crate::plan::{Snapshot, previews};
use crate::policy;
use crate::predictor::Question;
use crate::published::UnitPlacement;
use crate::schedule::{self, Ledger};

/// What is the same for every unit of a plan.
pub(super) struct Context<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) schedule: schedule::Context<'a>,
    /// Over everything of the clusters that a plan looks at.
    pub(super) clusters: Digest,
    pub(super) overrides: localize::Index<'a>,
    /// Over all that is predicted, for units that have charts.
    pub(super) previews: Digest,
}

/// A unit's plan.
#[derive(Debug, Default)]
pub(super) struct UnitPlan {
    pub(super) placement: UnitPlacement,
    pub(super) contents: Vec<Rendered>,
    pub(super) findings: Vec<Finding>,
    /// Predictions that are still to be made.
    pub(super) pending: Vec<PreviewRequest>,
    /// Whether the room that clusters have decided something: it is not remembered.
    pub(super) by_room: bool,
    /// What predictors are to say of the unit.
    pub(super) questions: Vec<Question>,
    /// When time alone may decide otherwise.
    pub(super) again_at: Option<i64>,
    /// What the unit asks for, where it asked for something else before: an older placement may be found for it.
    pub(super) recalls: Option<Digest>,
    /// Whether a commit asked to place it anew, and it was.
    pub(super) rebalanced: bool,
}

impl UnitPlan {
    /// Whether it says of something that this revision made it so.
    pub(super) fn is_stamped(&self, revision: &Revision) -> bool {
        self.placement
            .variants
            .values()
            .any(|variant| variant.revision == *revision)
            || self
                .placement
                .clusters
                .values()
                .any(|placement| placement.revision == *revision)
    }
}

impl<'a> Context<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        let schedule = schedule::Context::new(
            &snapshot.fleet,
            &snapshot.reports,
            &snapshot.previous.units,
            &snapshot.moves,
            snapshot.now,
        );
        let overrides = localize::Index::new(&snapshot.fleet);
        Self {
            snapshot,
            schedule,
            clusters: clusters_digest(snapshot),
            overrides,
            previews: previews::digest(snapshot),
        }
    }

    pub(super) fn revision(&self) -> &'a Revision {
        &self.snapshot.revision
    }
}

fn clusters_digest(snapshot: &Snapshot) -> Digest {
    let clusters = snapshot.fleet.clusters.values();
    let looked_at = |cluster: &Cluster| {
        json!([
            cluster.name,
            cluster.namespace,
            cluster.labels,
            cluster.taints,
            cluster.drift
        ])
    };
    Digest::of_value(&clusters.map(looked_at).collect())
}

/// Plans one unit.
pub(super) fn plan_unit(
    context: &Context<'_>,
    ledger: &mut Ledger,
    (key, unit): (&UnitKey, &Unit),
    touching: &Touching<'_>,
    before: Option<&UnitPlan>,
) -> UnitPlan {
    let previous = context.snapshot.previous.units.get(key);
    if !unit.blocked.is_empty() {
        return UnitPlan {
            placement: kept(context, previous),
            ..UnitPlan::default()
        };
    }
    let inventory = Overridden::new(unit, touching);
    let scheduled = schedule::schedule_unit(&context.schedule, ledger, &inventory, unit);
    if scheduled.findings.iter().any(Finding::is_error) {
        return UnitPlan {
            placement: kept(context, previous),
            findings: scheduled.findings,
            ..UnitPlan::default()
        };
    }
    let mut planned = UnitPlan {
        findings: scheduled.findings,
        by_room: scheduled.by_room,
        questions: scheduled.questions,
        again_at: scheduled.again_at,
        recalls: recalls(previous, scheduled.asks),
        rebalanced: scheduled.rebalanced,
        ..UnitPlan::default()
    };
    let encrypted = policy::check_encrypted(&unit.base).into_iter();
    planned.findings.extend(encrypted.map(|finding| finding.unit(key)));
    let unused = policy::check_ignore_rules(&unit.base, &unit.subscription).into_iter();
    planned.findings.extend(unused.map(|finding| finding.unit(key)));
    let groups = by_overrides(context, touching, scheduled.assignments, previous);
    let mut entries = Vec::new();
    let mut newest = BTreeMap::new();
    for group in groups {
        match render_group(context, unit, &group, before) {
            Ok((rendered, warnings)) => {
                planned
                    .findings
                    .extend(warnings.into_iter().map(|finding| finding.unit(key)));
                let judged = previews::judge(
                    context.snapshot,
                    (key, unit),
                    &rendered.content,
                    group.assignments.keys(),
                );
                planned.findings.extend(judged.findings);
                planned.pending.extend(judged.pending);
                let (held, group) = group.parted(&judged.held);
                entries.extend(held.kept(previous));
                let name = localize::variant_name(&group.overrides);
                newest.insert(name.clone(), rendered.content.digest);
                let made = Made {
                    name,
                    digest: rendered.content.digest,
                    subscription: &unit.subscription,
                };
                entries.extend(group.entries(context, previous, &made));
                planned.contents.push(rendered);
            }
            Err(errors) => {
                planned
                    .findings
                    .extend(errors.into_iter().map(|finding| group.blamed(finding, key)));
                entries.extend(group.kept(previous));
            }
        }
    }
    planned.placement = UnitPlacement::compose(entries, &newest);
    planned.placement.depends_on = unit.subscription.apply.depends_on.clone();
    planned.placement.unplaced = scheduled.unplaced;
    planned.placement.in_turn = unit.subscription.placing.takes_some();
    planned.placement.lost = scheduled.lost;
    planned.placement.moved_at = previous.and_then(|previous| previous.moved_at);
    // What stays is not kept twice.
    if let Some(previous) = previous.filter(|previous| previous.clusters == planned.placement.clusters) {
        planned.placement.clusters = previous.clusters.clone();
    }
    // Where nothing else is other than before, the file stays as it is. But who found no room has asked, and may take
    // none of another's when a later commit is about something else.
    let has_asked_in_vain = !context.snapshot.moves.decided && !planned.placement.unplaced.is_empty();
    planned.placement.asks = previous.and_then(|previous| previous.asks);
    if has_asked_in_vain || previous != Some(&planned.placement) {
        planned.placement.asks = scheduled.asks;
    }
    planned
}

/// What an older placement is to be looked for by: what is asked for now, where that is something else. What a version
/// placed that remembered nothing has no older placement.
fn recalls(previous: Option<&UnitPlacement>, asks: Option<Digest>) -> Option<Digest> {
    let before = previous.and_then(|previous| previous.asks);
    let is_divided = |unit: &UnitPlacement| unit.clusters.values().any(|placement| !placement.replicas.is_empty());
    let is_unmarked = before.is_none() && previous.is_some_and(is_divided);
    asks.filter(|asks| before.as_ref() != Some(asks) && !is_unmarked)
}

/// What a unit that is held back keeps: everything, but on clusters that are no longer registered.
fn kept(context: &Context<'_>, previous: Option<&UnitPlacement>) -> UnitPlacement {
    let Some(previous) = previous else {
        return UnitPlacement::default();
    };
    let registered = previous
        .clusters
        .keys()
        .filter(|name| context.snapshot.fleet.clusters.contains_key(*name));
    let entries = registered.filter_map(|name| as_before(previous, name));
    UnitPlacement::compose(entries, &BTreeMap::new()).saying(previous)
}
