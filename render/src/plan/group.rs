//! The clusters of a unit that share one set of overrides: their variant is rendered once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::unit::{Context, UnitPlan};
use crate::describe::Description;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Unit;
use crate::limits::UNIT_BYTES_MAX;
use crate::localize::{self, Touching};
use crate::model::{ApplyPolicy, Cluster, DriftMode, Override, Subscription};
use crate::name::{ClusterName, ObjectKey, Revision, UnitKey, VariantName};
use crate::policy;
use crate::published::{Placement, UnitPlacement, Variant};
use crate::schedule::{Assignment, Divided};

/// A content with what it was made from.
#[derive(Clone, Debug)]
pub(super) struct Rendered {
    made_from: MadeFrom,
    pub(super) content: Arc<Description>,
}

/// Equal values, equal content with equal provenance.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MadeFrom {
    base: Digest,
    overrides: Vec<Arc<Override>>,
    divided: Divided,
    apply: ApplyPolicy,
}

/// The clusters that share one set of overrides, and what they lost of the one before.
pub(super) struct Group<'a> {
    pub(super) overrides: Vec<&'a Arc<Override>>,
    /// Those that made what the clusters have, and that change nothing since their object is none.
    lost: Vec<&'a Arc<Override>>,
    pub(super) assignments: BTreeMap<ClusterName, Assignment>,
}

pub(super) fn by_overrides<'a>(
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
pub(super) fn render_group(
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
pub(super) struct Made<'a> {
    pub(super) name: VariantName,
    pub(super) digest: Digest,
    pub(super) subscription: &'a Subscription,
}

impl Group<'_> {
    /// The entries of this group's clusters. One that is as it was keeps its revision, reasons and inputs,
    /// so that an equal decision writes nothing.
    pub(super) fn entries(
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
    pub(super) fn parted(self, clusters: &BTreeSet<ClusterName>) -> (Self, Self) {
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

    pub(super) fn kept(&self, previous: Option<&UnitPlacement>) -> Vec<(ClusterName, Placement, Variant)> {
        let clusters = self.assignments.keys();
        clusters.filter_map(|cluster| as_before(previous?, cluster)).collect()
    }

    /// The finding with the unit and the clusters that it holds; its words count all but the first by name.
    pub(super) fn blamed(&self, finding: Finding, unit: &UnitKey) -> Finding {
        let mut finding = finding.unit(unit).clusters(self.assignments.keys());
        if self.assignments.len() > 1 {
            let others = match self.assignments.len() - 1 {
                1 => "1 other cluster".to_owned(),
                count => format!("{count} other clusters"),
            };
            finding.message = format!("{}, also on {others}", finding.message);
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

/// What a cluster had, over again.
pub(super) fn as_before(previous: &UnitPlacement, cluster: &ClusterName) -> Option<(ClusterName, Placement, Variant)> {
    let (placement, variant) = previous.entry(cluster)?;
    Some((cluster.clone(), placement.clone(), variant.clone()))
}
