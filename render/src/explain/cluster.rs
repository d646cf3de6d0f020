//! One cluster's part of an explanation.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{Cluster, Subscription};
use crate::name::{ClusterName, ObjectKey, VariantName};
use crate::published::UnitPlacement;
use crate::schedule::{Assignment, SubscriberMatch, why};

/// Why a cluster has a unit or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterExplanation {
    /// Which.
    pub cluster: ClusterName,
    /// What was decided.
    pub decision: Decision,
    /// Why, in sentences for people.
    pub reasons: Vec<String>,
    /// Every subscriber, and whether it matches.
    pub subscribers: Vec<SubscriberMatch>,
    /// Which variant it gets; `None` where it gets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<VariantName>,
    /// Its replicas, where they are divided.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub replicas: BTreeMap<ObjectKey, u64>,
}

/// What was decided about a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// It has the unit: a subscriber matches and no taint stands against it.
    Chosen,
    /// It keeps the unit, though nothing would place it there now.
    Kept,
    /// It keeps the unit as it was, since the unit has an error.
    Held,
    /// A subscriber matches, and a taint that is not tolerated stands against it.
    Tainted,
    /// No subscriber matches.
    NotMatched,
    /// A subscriber matches, and the unit's error keeps it from being placed.
    Blocked,
}

impl Decision {
    /// Whether the cluster has the unit.
    pub fn has_it(self) -> bool {
        matches!(self, Self::Chosen | Self::Kept | Self::Held)
    }
}

/// What every cluster's explanation looks at.
pub(super) struct Explain<'a> {
    pub(super) subscription: &'a Subscription,
    pub(super) assignments: &'a BTreeMap<ClusterName, Assignment>,
    pub(super) previous: Option<&'a UnitPlacement>,
    /// Whether an Error holds the whole unit.
    pub(super) held: bool,
}

impl Explain<'_> {
    pub(super) fn cluster(&self, cluster: &Cluster) -> ClusterExplanation {
        let before = self.previous.and_then(|unit| unit.clusters.get(&cluster.name));
        let why = why(self.subscription, cluster, before.is_some());
        let assignment = self.assignments.get(&cluster.name);
        let excluded = why.taint.as_ref().is_some_and(|taint| taint.excludes);
        let matches = why.matches();
        let decision = match (assignment, before) {
            (_, Some(_)) if self.held => Decision::Held,
            (_, None) if self.held && matches => Decision::Blocked,
            (Some(_), _) if matches && !excluded => Decision::Chosen,
            (Some(_), _) => Decision::Kept,
            (None, _) if matches => Decision::Tainted,
            (None, _) => Decision::NotMatched,
        };
        let mut reasons = match (decision, assignment) {
            (Decision::Chosen | Decision::Kept, Some(assignment)) => assignment.reasons.clone(),
            (Decision::Held, _) => vec!["keeps what it had, since the unit has an error".to_owned()],
            (Decision::Blocked, _) => vec!["matches, and is not placed while the unit has an error".to_owned()],
            (Decision::NotMatched, _) => vec!["no subscriber matches".to_owned()],
            _ => Vec::new(),
        };
        if let Some(taint) = why.taint.as_ref().filter(|_| !matches!(decision, Decision::Chosen)) {
            let effect = if taint.excludes {
                ""
            } else {
                ", which leaves what is there"
            };
            reasons.push(format!("taint {} is not tolerated{effect}", taint.taint));
        }
        if let (true, Some(before), Decision::Tainted | Decision::NotMatched) = (before.is_some(), before, decision) {
            reasons.push(format!(
                "it has it since {}, and leaves with this revision",
                before.revision.short()
            ));
        }
        let replicas = match (decision, assignment, before) {
            (Decision::Held, _, Some(before)) => before.replicas.clone(),
            (_, Some(assignment), _) => assignment.replicas.clone(),
            _ => BTreeMap::new(),
        };
        ClusterExplanation {
            cluster: cluster.name.clone(),
            decision,
            reasons,
            subscribers: why.subscribers,
            variant: None,
            replicas,
        }
    }
}
