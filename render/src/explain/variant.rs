//! What the overrides of each variant change.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::cluster::Decision;
use crate::finding::Finding;
use crate::fleet::{Fleet, Unit};
use crate::localize::{self, Traced};
use crate::model::{Cluster, Override};
use crate::name::{ClusterName, Revision, VariantName};
use crate::published::{Placement, Variant};
use crate::schedule::Divided;

/// A variant, and what makes it differ from the Base.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VariantExplanation {
    /// Its name.
    pub variant: VariantName,
    /// Whether its clusters have it.
    pub standing: Standing,
    /// The clusters that have it, or are to have it, sorted.
    pub clusters: Vec<ClusterName>,
    /// The overrides that make it, in the order in which they apply, by label.
    pub overrides: Vec<String>,
    /// The commit that it was made from, where it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_from: Option<Revision>,
    /// What each step of the overrides that meet these clusters now does, in that order. Where the variant is held, that
    /// is what would be made in its place.
    pub steps: Vec<Traced>,
}

/// How a variant and its clusters stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Standing {
    /// It is made from the newest revision.
    Made,
    /// It is what the clusters had, and keep.
    Held,
    /// It would be the first that they have, and an Error keeps them from it.
    Blocked,
}

/// A cluster, as far as its variant goes.
pub(super) struct Told<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) decision: Decision,
    /// Whether the newest revision places the unit there.
    pub(super) is_wanted: bool,
    /// What it has.
    pub(super) before: Option<(&'a Placement, &'a Variant)>,
}

impl Told<'_> {
    /// Whether there is a variant to tell of: one that it has, or would have if it fitted.
    pub(super) fn has_variant(&self, is_known: bool) -> bool {
        self.decision.has_it() || (is_known && self.is_wanted && self.decision == Decision::Blocked)
    }

    fn standing(&self) -> Standing {
        match self.decision {
            Decision::Held => Standing::Held,
            Decision::Blocked => Standing::Blocked,
            Decision::Chosen | Decision::Kept | Decision::Tainted | Decision::LeftOut | Decision::NotMatched => {
                Standing::Made
            }
        }
    }
}

impl VariantExplanation {
    /// The steps that do not fit, as findings of the first of its clusters.
    pub(super) fn problems(&self) -> Vec<Finding> {
        let named = |finding: &Finding| match self.clusters.first() {
            Some(cluster) => finding.clone().cluster(cluster),
            None => finding.clone(),
        };
        self.steps
            .iter()
            .filter_map(|step| step.problem.as_ref())
            .map(named)
            .collect()
    }
}

/// Clusters of which the same is to be told.
struct Group<'a> {
    overrides: Vec<&'a Arc<Override>>,
    kept: Option<&'a Variant>,
    clusters: Vec<ClusterName>,
}

/// The variants of these clusters, each traced once, sorted by name.
pub(super) fn explain<'a>(
    fleet: &Fleet,
    unit: &Unit,
    clusters: impl Iterator<Item = Told<'a>>,
) -> Vec<VariantExplanation> {
    let index = localize::Index::new(fleet);
    let touching = index.touching(&unit.base);
    let divided = Divided::of(&unit.subscription);
    let mut groups: BTreeMap<(VariantName, Standing, VariantName), Group<'_>> = BTreeMap::new();
    for told in clusters {
        let overrides = match told.is_wanted {
            true => touching.for_cluster(told.cluster),
            false => Vec::new(),
        };
        let wanted = localize::variant_name(&overrides);
        let standing = told.standing();
        let kept = told.before.filter(|_| standing == Standing::Held);
        let name = kept.map_or_else(|| wanted.clone(), |(placement, _)| placement.variant.clone());
        let group = groups.entry((name, standing, wanted)).or_insert_with(|| Group {
            overrides,
            kept: kept.map(|(_, variant)| variant),
            clusters: Vec::new(),
        });
        group.clusters.push(told.cluster.name.clone());
    }
    let explained = |((variant, standing, _), group): ((VariantName, Standing, _), Group<'_>)| VariantExplanation {
        variant,
        standing,
        clusters: group.clusters,
        steps: localize::trace(&unit.base, &group.overrides, &divided),
        overrides: match group.kept {
            Some(kept) => kept.overrides.clone(),
            None => group.overrides.iter().map(|declared| declared.label()).collect(),
        },
        made_from: group.kept.map(|kept| kept.revision.clone()),
    };
    groups.into_iter().map(explained).collect()
}
