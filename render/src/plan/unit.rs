//! One unit's plan: schedule it, localize each distinct variant once, keep what must be kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use crate::chart::PreviewRequest;
use crate::describe::Description;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Unit;
use crate::limits::UNIT_BYTES_MAX;
use crate::localize::{self, Touching};
use crate::model::{ApplyPolicy, Cluster, DriftMode, Override, Subscription};
use crate::name::{ClusterName, ObjectKey, Revision, UnitKey, VariantName};
use crate::plan::overridden::Overridden;
use crate::plan::{Snapshot, previews};
use crate::policy;
use crate::predictor::Question;
use crate::published::{Placement, UnitPlacement, Variant};
use crate::schedule::{self, Assignment, Divided, Ledger};

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

/// A content with what it was made from.
#[derive(Clone, Debug)]
pub(super) struct Rendered {
    made_from: MadeFrom,
    pub(super) content: Arc<Description>,
}

/// Equal values, equal content with equal provenance.
#[derive(Clone, Debug, PartialEq)]
struct MadeFrom {
    base: Digest,
    overrides: Vec<Arc<Override>>,
    divided: Divided,
    apply: ApplyPolicy,
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

    fn revision(&self) -> &'a Revision {
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
    // Where nothing else is other than before, the file stays as it is.
    planned.placement.asks = previous.and_then(|previous| previous.asks);
    if previous != Some(&planned.placement) {
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

/// What a cluster had, over again.
fn as_before(previous: &UnitPlacement, cluster: &ClusterName) -> Option<(ClusterName, Placement, Variant)> {
    let (placement, variant) = previous.entry(cluster)?;
    Some((cluster.clone(), placement.clone(), variant.clone()))
}

/// The clusters that share one set of overrides, and what they lost of the one before.
struct Group<'a> {
    overrides: Vec<&'a Arc<Override>>,
    /// Those that made what the clusters have, and that change nothing since their object is none.
    lost: Vec<&'a Arc<Override>>,
    assignments: BTreeMap<ClusterName, Assignment>,
}

fn by_overrides<'a>(
    context: &Context<'a>,
    touching: &Touching<'a>,
    assignments: BTreeMap<ClusterName, Assignment>,
    previous: Option<&UnitPlacement>,
) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<(Vec<String>, Vec<String>), Group<'a>> = BTreeMap::new();
    for (name, assignment) in assignments {
        let Some(cluster) = context.snapshot.fleet.clusters.get(&name) else {
            continue;
        };
        let overrides = touching.for_cluster(cluster);
        let lost = lost(context, cluster, previous);
        let labels = |overrides: &[&Arc<Override>]| overrides.iter().map(|declared| declared.label()).collect();
        let group = groups
            .entry((labels(&overrides), labels(&lost)))
            .or_insert_with(|| Group {
                overrides,
                lost,
                assignments: BTreeMap::new(),
            });
        group.assignments.insert(name, assignment);
    }
    groups.into_values().collect()
}

/// The overrides that made what the cluster has, are meant for it still, and name an object that is none now: a slip,
/// by which it would fall back to the Base. One that was removed, or is for other clusters now, is none of them.
fn lost<'a>(context: &Context<'a>, cluster: &Cluster, previous: Option<&UnitPlacement>) -> Vec<&'a Arc<Override>> {
    let of_nothing = &context.snapshot.fleet.of_nothing;
    let Some((_, variant)) = previous.and_then(|unit| unit.entry(&cluster.name)) else {
        return Vec::new();
    };
    let made = |item: &&Arc<Override>| item.meets(cluster) && variant.overrides.contains(&item.label());
    of_nothing.iter().filter(made).collect()
}

fn lost_override(lost: &Override) -> Finding {
    let message = format!(
        "what is delivered was made with {}, which changes no object now: it is kept",
        lost.label()
    );
    Finding::error("OverrideUnusable", message)
        .at(lost.file.as_ref(), lost.line)
        .field("spec.feed")
        .hint("correct its feed; to take back what it changes, remove the override")
}

/// Renders a group's variant once, or says what does not fit. The second part are warnings.
fn render_group(
    context: &Context<'_>,
    unit: &Unit,
    group: &Group<'_>,
    before: Option<&UnitPlan>,
) -> Result<(Rendered, Vec<Finding>), Vec<Finding>> {
    if !group.lost.is_empty() {
        return Err(group.lost.iter().map(|lost| lost_override(lost)).collect());
    }
    let made_from = MadeFrom {
        base: unit.base.digest,
        overrides: group.overrides.iter().map(|declared| Arc::clone(declared)).collect(),
        divided: Divided::of(&unit.subscription),
        apply: policy_of(context, unit, group),
    };
    let mut known = before.map(|before| before.contents.iter()).into_iter().flatten();
    let content = match known.find(|rendered| rendered.made_from == made_from) {
        Some(rendered) => Arc::clone(&rendered.content),
        None => {
            let described = localize::localize(&unit.base, &group.overrides, &made_from.divided)?;
            Arc::new(described.under(made_from.apply.clone()))
        }
    };
    if content.bytes > UNIT_BYTES_MAX {
        return Err(vec![too_large(unit, content.bytes)]);
    }
    let secrets = policy::check_secrets(&unit.base, &content, context.snapshot.fleet.spec.plaintext_secrets());
    if secrets.iter().any(Finding::is_error) {
        Err(secrets)
    } else {
        Ok((Rendered { made_from, content }, secrets))
    }
}

/// How the unit's objects are applied on a group's clusters: what its Subscription says, and which objects are suspended.
fn policy_of(context: &Context<'_>, unit: &Unit, group: &Group<'_>) -> ApplyPolicy {
    let clusters: Vec<_> = group.assignments.keys().collect();
    let delivers = |key: &ObjectKey| unit.base.objects.iter().any(|object| object.key == *key);
    let suspensions = context.snapshot.fleet.suspensions();
    ApplyPolicy {
        enforce_for_seconds: context.snapshot.fleet.spec.enforce_for_seconds,
        apply_set_labels: context.snapshot.fleet.spec.apply_set_labels,
        suspended: suspensions.objects(&unit.subscription.key, &clusters, delivers),
        replica_paths: Divided::of(&unit.subscription).declared().to_vec(),
        ..unit.subscription.apply.clone()
    }
}

fn too_large(unit: &Unit, bytes: usize) -> Finding {
    let mib = |bytes: usize| bytes.div_ceil(1 << 20);
    let message = format!(
        "its {} objects take {} MiB, and one unit may take {} MiB",
        unit.base.objects.len(),
        mib(bytes),
        mib(UNIT_BYTES_MAX)
    );
    let subscription = &unit.subscription;
    Finding::error("UnitTooLarge", message)
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.feeds")
        .hint("divide its feeds among several Subscriptions")
}

/// A variant that was made for a group.
struct Made<'a> {
    name: VariantName,
    digest: Digest,
    subscription: &'a Subscription,
}

impl Group<'_> {
    /// The entries of this group's clusters. One that is as it was keeps its revision, reasons and inputs,
    /// so that an equal decision writes nothing.
    fn entries(
        &self,
        context: &Context<'_>,
        previous: Option<&UnitPlacement>,
        made: &Made<'_>,
    ) -> Vec<(ClusterName, Placement, Variant)> {
        let Made { name, digest, .. } = made;
        let before = previous.map(|unit| unit.variants.values()).into_iter().flatten();
        let overrides: Vec<String> = self.overrides.iter().map(|declared| declared.label()).collect();
        let same = before
            .into_iter()
            .find(|variant| variant.digest == *digest && variant.overrides == overrides);
        let variant = match same {
            Some(variant) => variant.clone(),
            None => Variant {
                digest: *digest,
                revision: context.revision().clone(),
                overrides,
            },
        };
        let entry = |(cluster, assignment): (&ClusterName, &Assignment)| {
            let before = previous.and_then(|unit| unit.clusters.get(cluster));
            let drift = made.subscription.drift_on(context.snapshot.fleet.clusters.get(cluster));
            let is_same = |before: &&Placement| {
                before.variant.plain() == *name
                    && before.replicas == assignment.replicas
                    && before.drift == drift
                    && before.leaves_at == assignment.leaves_at
            };
            let same = before.filter(is_same);
            let placement = match same {
                Some(before) => Placement {
                    variant: name.clone(),
                    ..before.clone()
                },
                None => Placement {
                    drift,
                    ..placement(name, assignment, context.revision())
                },
            };
            (cluster.clone(), placement, variant.clone())
        };
        self.assignments.iter().map(entry).collect()
    }

    /// Those of these clusters, and the others.
    fn parted(self, clusters: &BTreeSet<ClusterName>) -> (Self, Self) {
        let (held, others) = self
            .assignments
            .into_iter()
            .partition(|(name, _)| clusters.contains(name));
        let part = |assignments| Self {
            overrides: self.overrides.clone(),
            lost: self.lost.clone(),
            assignments,
        };
        (part(held), part(others))
    }

    fn kept(&self, previous: Option<&UnitPlacement>) -> Vec<(ClusterName, Placement, Variant)> {
        let clusters = self.assignments.keys();
        clusters.filter_map(|cluster| as_before(previous?, cluster)).collect()
    }

    /// The finding with the unit and the clusters that it holds; its words count all but the first by name.
    fn blamed(&self, finding: Finding, unit: &UnitKey) -> Finding {
        let mut finding = finding.unit(unit).clusters(self.assignments.keys());
        if self.assignments.len() > 1 {
            finding.message = format!(
                "{}, also on {} other clusters",
                finding.message,
                self.assignments.len() - 1
            );
        }
        finding
    }
}

fn placement(name: &VariantName, assignment: &Assignment, revision: &Revision) -> Placement {
    Placement {
        variant: name.clone(),
        replicas: assignment.replicas.clone(),
        drift: DriftMode::default(),
        revision: revision.clone(),
        reasons: assignment.reasons.clone(),
        inputs: assignment.inputs,
        capacity: assignment.capacity.clone(),
        leaves_at: assignment.leaves_at,
    }
}
