//! What is known of the room in each cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::capacity::Capacity;
use crate::digest::Digest;
use crate::name::ClusterName;
use crate::predictor::Predicted;

/// What clusters said of their room, as far as it may be believed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reports {
    /// Cluster → what is known. One that is not here never said anything that can be believed.
    pub clusters: BTreeMap<ClusterName, Report>,
    /// Cluster → why nothing is known of it, where that was said: it cannot tell, or what it told first cannot be.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<ClusterName, String>,
    /// The sequence of `released` that tells clusters just what the placements before say; `None` where those are
    /// ahead of it. A report that includes it leaves nothing to be deducted.
    pub sequence: Option<u64>,
    /// Since when clusters are silent, or are heard of. One that is not here was never heard of.
    pub presence: BTreeMap<ClusterName, Presence>,
    /// Cluster → [key of a question](crate::predictor::Question::key) → what its predictor said.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub predicted: BTreeMap<ClusterName, BTreeMap<Digest, Predicted>>,
    /// Clusters that are there may not have said yet what they have: nothing is placed by room meanwhile.
    pub waiting: bool,
}

/// Since when a cluster is silent, or is heard of again; in seconds since 1970 by the hub's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Presence {
    /// It is connected since then.
    HeardSince(i64),
    /// It is silent since then; as long as the hub runs, where it was not heard of since that began.
    SilentSince(i64),
}

/// What one cluster said of its room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What it said last.
    pub capacity: Arc<Capacity>,
    /// When, in seconds since 1970 by the hub's clock.
    pub at: i64,
    /// Why it is not to be relied on; `None` where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// Why what a cluster says of its room is not to be relied on; `None` where it may be.
pub fn doubt(capacity: &Capacity) -> Option<String> {
    let error = capacity.check().err()?;
    Some(format!("what it says of its room cannot be: {error}"))
}

/// Why nobody knows the room of a cluster that said nothing.
pub const NOT_SAID: &str = "it has not said what room it has";

impl Reports {
    /// A cluster's room, or why nobody knows it.
    pub(super) fn of(&self, cluster: &ClusterName) -> Result<&Report, String> {
        match self.clusters.get(cluster) {
            None => Err(match self.unknown.get(cluster) {
                Some(why) => why.clone(),
                None => NOT_SAID.to_owned(),
            }),
            Some(Report { doubt: Some(doubt), .. }) => Err(doubt.clone()),
            Some(report) => Ok(report),
        }
    }
}
