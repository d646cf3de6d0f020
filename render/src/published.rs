//! What stands in `rendered` and `released`: who has which variant of which unit, and why.
//!
//! Contents are named by digest and are not here; [`crate::layout`] is the form as files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::name::{ClusterName, ObjectKey, Revision, UnitKey, VariantName};

/// The decisions of one commit of `rendered` or `released`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Published {
    /// `release.yaml`; `None` before the first commit.
    pub record: Option<ReleaseRecord>,
    /// Unit → its placement. A unit without clusters has no entry.
    pub units: BTreeMap<UnitKey, UnitPlacement>,
}

/// `release.yaml`: what led to a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseRecord {
    /// What kind of decision it was.
    pub cause: Cause,
    /// The source commit that the decision was made on.
    pub source: Revision,
    /// +1 per commit of `released`; absent in `rendered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Raised when a new version of this program renders other bytes from the same input.
    pub render_version: u32,
}

/// The version of rendering that this build has.
pub const RENDER_VERSION: u32 = 1;

/// What kind of decision a commit records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// A commit of source.
    SourceCommit,
    /// A merged proposal.
    MergedProposal,
}

/// One unit's placement: `placements/<namespace>/<name>.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitPlacement {
    /// Variant → what it is. Every variant named by a cluster, no other.
    pub variants: BTreeMap<VariantName, Variant>,
    /// Cluster → its placement.
    pub clusters: BTreeMap<ClusterName, Placement>,
}

/// A variant of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Variant {
    /// Digest of its Description.
    pub digest: Digest,
    /// The source commit since which it has this content.
    pub revision: Revision,
    /// The overrides that made it, in the order in which they were applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
}

/// One cluster's share of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Which variant it gets.
    pub variant: VariantName,
    /// Object → replicas, where they are divided; put in at dispatch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replicas: BTreeMap<ObjectKey, u64>,
    /// The source commit that placed it so.
    pub revision: Revision,
    /// Why this cluster has it, and this many; sentences for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Digest of what the scheduler looked at when it placed it so.
    pub inputs: Digest,
}

impl UnitPlacement {
    /// A cluster's placement with its variant; `None` where the cluster has none.
    pub fn entry(&self, cluster: &ClusterName) -> Option<(&Placement, &Variant)> {
        let placement = self.clusters.get(cluster)?;
        Some((placement, self.variants.get(&placement.variant)?))
    }

    /// Puts entries together, each with its own variant. Where one variant name stands for two contents,
    /// the content that `newest` names keeps the name and the other is filed as `<name>-held-<8 hex>`.
    pub fn compose(
        entries: impl IntoIterator<Item = (ClusterName, Placement, Variant)>,
        newest: &BTreeMap<VariantName, Digest>,
    ) -> Self {
        let mut unit = Self::default();
        for (cluster, mut placement, variant) in entries {
            let stem = placement
                .variant
                .as_str()
                .split("-held-")
                .next()
                .unwrap_or("default")
                .to_owned();
            let plain = VariantName::parse(stem.clone()).unwrap_or_else(|_| VariantName::default_variant());
            let held = newest.get(&plain).is_some_and(|digest| *digest != variant.digest)
                || unit
                    .variants
                    .get(&plain)
                    .is_some_and(|present| present.digest != variant.digest);
            placement.variant = if held {
                VariantName::parse(format!("{stem}-held-{}", variant.digest.short(8))).unwrap_or(plain)
            } else {
                plain
            };
            unit.variants.entry(placement.variant.clone()).or_insert(variant);
            unit.clusters.insert(cluster, placement);
        }
        unit
    }
}
