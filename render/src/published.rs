//! What stands in `rendered` and `released`: who has which variant of which unit, and why.
//!
//! Contents are named by digest and are not here; [`crate::layout`] is the form as files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::by_object::ByObject;
use crate::digest::Digest;
use crate::model::{DeletionPolicy, Dependency, DriftMode};
use crate::name::{ClusterName, ObjectKey, Revision, UnitKey, VariantName};
use crate::shared::Shared;

/// The decisions of one commit of `rendered` or `released`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Published {
    /// `release.yaml`; `None` before the first commit.
    pub record: Option<ReleaseRecord>,
    /// Unit → its placement. A unit without clusters has no entry.
    pub units: BTreeMap<UnitKey, UnitPlacement>,
}

/// Unit → clusters that it left, with its objects staying → when, in seconds since 1970.
pub type Orphaned = BTreeMap<UnitKey, BTreeMap<ClusterName, i64>>;

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
    /// The commit of `rendered` that was released; absent in `rendered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered: Option<Revision>,
    /// Clusters whose file is gone, and what becomes of what they have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub departed: BTreeMap<ClusterName, Departure>,
    /// Units that left a cluster while their word was `deletionPolicy: Orphan`: unit → cluster → when, in seconds since
    /// 1970. A cluster that was away may hold an older word.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub orphaned: Orphaned,
    /// Raised when a new version of this program renders other bytes from the same input.
    pub render_version: u32,
}

/// A cluster whose file is gone. It may be away when that happens: when it comes back, it is known by its old keys, for
/// this alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Departure {
    /// The keys that its file named last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public_keys: Vec<String>,
    /// The context of the hub's `--kubeconfig` that its file named last, where it has no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_context: Option<String>,
    /// What its file said last of what becomes of its objects.
    pub deletion_policy: DeletionPolicy,
    /// The source commit without it, by which it was decided.
    pub source: Revision,
    /// When that commit was made, in seconds since 1970.
    pub since: i64,
    /// The units that it had, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<UnitKey>,
}

impl Departure {
    /// How long a cluster may be away and still be known when it comes back, in seconds: a quarter of a year.
    pub const SECONDS_MAX: i64 = 90 * 24 * 60 * 60;

    /// What becomes of its objects, in words.
    pub fn outcome(&self) -> &'static str {
        match self.deletion_policy {
            DeletionPolicy::Delete => "is removed when it comes back",
            DeletionPolicy::Orphan => "stays, as nobody's",
        }
    }
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
    /// Replicas that had no place before, and now fit.
    Placement,
    /// Clusters that are silent lost their share to others, or a taint's delay is over.
    Failover,
    /// A commit asked to place units anew.
    Rebalance,
}

/// One unit's placement: `placements/<namespace>/<name>.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitPlacement {
    /// Variant → what it is. Every variant named by a cluster, no other.
    pub variants: BTreeMap<VariantName, Variant>,
    /// Cluster → its placement.
    pub clusters: Shared<BTreeMap<ClusterName, Placement>>,
    /// The units that must be healthy first, as the newest decision has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// Divided objects of which some replicas found no place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unplaced: BTreeMap<ObjectKey, Unplaced>,
    /// Over what the unit asked for when it was placed so, whatever its clusters were: a later revision that asks for the
    /// same is placed so again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Digest>,
    /// When a decision that no source commit caused moved it last, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_at: Option<i64>,
    /// Clusters that were silent and lost their share to others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<ClusterName, Lost>,
    /// In `released`, where the unit is to leave: the units that needed it everywhere and leave too. They go first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_after: Vec<UnitKey>,
    /// Not all clusters that match have it, so that one that gets it stands in for one that leaves.
    #[serde(default, skip_serializing_if = "is_false")]
    pub in_turn: bool,
    /// In `released`, while some of its clusters are to get less: those that got more. They have to be healthy first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub awaited: BTreeMap<ClusterName, Awaited>,
}

/// A cluster that got more of a unit, while others are to get less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// When it was told, in seconds since 1970.
    pub since: i64,
    /// The sequence with which it was told what it is to have now: what it said before is of something else.
    pub sequence: u64,
}

/// A cluster that was silent for so long that others got its share, or what would have been it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// When it was heard of last, in seconds since 1970 by the hub's clock.
    pub since: i64,
    /// When it was decided.
    pub at: i64,
    /// It keeps what it had then, and got no part of what was shared out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keeps: bool,
    /// It came back since and is a cluster like others: this counts against the budget of failover, and is nothing else.
    #[serde(default, skip_serializing_if = "is_false")]
    pub returned: bool,
}

/// Replicas of an object that found no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unplaced {
    /// So many.
    pub replicas: u64,
    /// Of so many in all.
    pub of: u64,
}

/// What was known of a cluster's room when replicas were placed there by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// When the cluster said so, in seconds since 1970 by the hub's clock.
    pub at: i64,
    /// The newest sequence whose replicas it had counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Object → how many of it have room there, those that it had included.
    pub room: ByObject,
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
    #[serde(default, skip_serializing_if = "ByObject::is_empty")]
    pub replicas: ByObject,
    /// What is done about fields that somebody else changed there.
    #[serde(default, skip_serializing_if = "DriftMode::is_default")]
    pub drift: DriftMode,
    /// The source commit that placed it so.
    pub revision: Revision,
    /// Why this cluster has it, and this many; sentences for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Shared<Vec<String>>,
    /// Digest of what the scheduler looked at when it placed it so.
    pub inputs: Digest,
    /// What was known of the cluster's room then, where that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Evidence>,
    /// When it leaves the cluster, since a taint there is tolerated for a while only; in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_at: Option<i64>,
}

impl UnitPlacement {
    /// With what another one says of the unit as a whole: everything beside its clusters, and what leaves them last.
    pub fn saying(self, other: &Self) -> Self {
        Self {
            depends_on: other.depends_on.clone(),
            unplaced: other.unplaced.clone(),
            asks: other.asks,
            moved_at: other.moved_at,
            lost: other.lost.clone(),
            in_turn: other.in_turn,
            ..self
        }
    }

    /// A cluster's placement with its variant; `None` where the cluster has none.
    pub fn entry(&self, cluster: &ClusterName) -> Option<(&Placement, &Variant)> {
        let placement = self.clusters.get(cluster)?;
        Some((placement, self.variants.get(&placement.variant)?))
    }

    /// What is noted of a cluster that is lost, or did not come back for good yet.
    pub fn loss(&self, cluster: &ClusterName) -> Option<&Lost> {
        self.lost.get(cluster).filter(|lost| !lost.returned)
    }

    /// How many replicas of an object a cluster has; none where the object is not divided.
    pub fn replicas(&self, cluster: &ClusterName, object: &ObjectKey) -> u64 {
        let placement = self.clusters.get(cluster);
        let replicas = placement.and_then(|placement| placement.replicas.get(object));
        replicas.copied().unwrap_or_default()
    }

    /// Variant name → digest.
    pub fn digests(&self) -> BTreeMap<VariantName, Digest> {
        self.variants
            .iter()
            .map(|(name, variant)| (name.clone(), variant.digest))
            .collect()
    }

    /// Puts entries together, each with its own variant. Where one variant name stands for two contents,
    /// the content that `newest` names keeps the name and the other is filed as `<name>-held-<8 hex>`.
    pub fn compose(
        entries: impl IntoIterator<Item = (ClusterName, Placement, Variant)>,
        newest: &BTreeMap<VariantName, Digest>,
    ) -> Self {
        let mut unit = Self::default();
        let mut clusters = Vec::new();
        for (cluster, mut placement, variant) in entries {
            let plain = placement.variant.plain();
            let is_other = |digest: &Digest| *digest != variant.digest;
            let taken = newest.get(&plain).is_some_and(is_other)
                || unit
                    .variants
                    .get(&plain)
                    .is_some_and(|present| is_other(&present.digest));
            placement.variant = if taken { plain.held(&variant.digest) } else { plain };
            unit.variants.entry(placement.variant.clone()).or_insert(variant);
            clusters.push((cluster, placement));
        }
        // A map that is made at once has no gaps.
        unit.clusters = clusters.into_iter().collect();
        unit
    }
}

impl Published {
    /// The sequence of the commit that follows this one in `released`.
    pub fn next_sequence(&self) -> u64 {
        let record = self.record.as_ref();
        record.and_then(|record| record.sequence).unwrap_or_default() + 1
    }
}

impl VariantName {
    /// The name without the suffix of a held content.
    pub fn plain(&self) -> Self {
        let stem = self.as_str().split_once("-held-").map(|(stem, _)| stem);
        stem.and_then(|stem| Self::parse(stem).ok())
            .unwrap_or_else(|| self.clone())
    }

    /// The name under which an older content is filed beside a newer one.
    fn held(&self, digest: &Digest) -> Self {
        let name = format!("{}-held-{}", self.plain(), digest.short(8));
        Self::parse(name).unwrap_or_else(|_| self.clone())
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn revision() -> Revision {
        Revision::parse("a".repeat(40)).expect("forty hex digits")
    }

    /// A cluster with a variant whose digest is made from `content`.
    pub(crate) fn entry(cluster: &str, variant: &str, content: &str) -> (ClusterName, Placement, Variant) {
        let placement = Placement {
            variant: VariantName::parse(variant).expect("a valid variant"),
            replicas: ByObject::default(),
            drift: DriftMode::default(),
            revision: revision(),
            reasons: Default::default(),
            inputs: Digest::of_bytes(b"inputs"),
            capacity: None,
            leaves_at: None,
        };
        let variant = Variant {
            digest: Digest::of_bytes(content.as_bytes()),
            revision: revision(),
            overrides: Vec::new(),
        };
        (
            ClusterName::parse(cluster).expect("a valid cluster"),
            placement,
            variant,
        )
    }

    pub(crate) fn placement(entries: &[(ClusterName, Placement, Variant)]) -> UnitPlacement {
        UnitPlacement::compose(entries.iter().cloned(), &BTreeMap::new())
    }

    #[test]
    fn two_contents_of_one_name_are_filed_apart_whatever_their_order() {
        let newest = BTreeMap::from([(VariantName::default_variant(), Digest::of_bytes(b"new"))]);
        let (old, new) = (entry("a", "default", "old"), entry("b", "default", "new"));
        let one = UnitPlacement::compose([old.clone(), new.clone()], &newest);
        let other = UnitPlacement::compose([new, old], &newest);
        assert_eq!(one, other);
        assert_eq!(one.variants.len(), 2);
        assert_eq!(
            one.variants[&VariantName::default_variant()].digest,
            Digest::of_bytes(b"new")
        );
    }

    #[test]
    fn a_held_content_takes_its_plain_name_back_when_it_is_alone() {
        let unit = placement(&[entry("a", "default-held-0123abcd", "old")]);
        assert!(unit.variants.contains_key(&VariantName::default_variant()), "{unit:?}");
    }
}
