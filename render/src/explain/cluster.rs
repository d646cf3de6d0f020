//! One cluster's part of an explanation.

use std::collections::BTreeMap;

use serde::Serialize;

use super::room::{RoomExplanation, ScoreExplanation};
use crate::by_object::ByObject;
use crate::finding::Finding;
use crate::model::{Cluster, DriftMode, Subscription};
use crate::name::{ClusterName, VariantName};
use crate::published::{Placement, UnitPlacement};
use crate::schedule::{Assignment, ChoiceRule, LeftOut, SubscriberMatch, Why, why};
use crate::suspend::Suspensions;

/// Why a cluster has a unit or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterExplanation {
    /// Which.
    pub cluster: ClusterName,
    /// What was decided.
    pub decision: Decision,
    /// By which rule it has it not, or keeps it; `None` where it is simply chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// Why, in sentences for people.
    pub reasons: Vec<String>,
    /// What speaks for it, where it may have the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<ScoreExplanation>,
    /// What is known of its room; `None` where nothing of the unit has replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<RoomExplanation>,
    /// Every subscriber, and whether it matches.
    pub subscribers: Vec<SubscriberMatch>,
    /// Which variant it gets; `None` where it gets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<VariantName>,
    /// Its replicas, where they are divided.
    #[serde(skip_serializing_if = "ByObject::is_empty")]
    pub replicas: ByObject,
    /// Its replicas in what is published.
    #[serde(skip_serializing_if = "ByObject::is_empty")]
    pub had: ByObject,
    /// What is done there about what others change; `None` where it does not have the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftMode>,
    /// The Suspension that keeps it at what it was told, by its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended_by: Option<String>,
}

/// What was decided about a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// It has the unit: a subscriber matches and no taint stands against it.
    Chosen,
    /// It keeps the unit, though nothing would place it there now.
    Kept,
    /// It keeps the unit as it was, since an Error holds it there.
    Held,
    /// A subscriber matches, and a taint that is not tolerated stands against it.
    Tainted,
    /// A subscriber matches, and others are better.
    LeftOut,
    /// No subscriber matches.
    NotMatched,
    /// A subscriber matches, and the unit's error keeps it from being placed.
    Blocked,
}

/// The rule that decided about a cluster which the unit is not simply placed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Rule {
    /// What is asked of every cluster.
    Filter(Filter),
    /// Others are better.
    Choice(ChoiceRule),
}

/// What is asked of every cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Filter {
    /// `subscribers`: none matches its labels.
    Selector,
    /// A taint that is not tolerated.
    Taint,
    /// An Error holds what is there, or keeps the unit away.
    Error,
    /// Nothing would place the unit there, and no better placement can be made.
    NoBetter,
}

impl Rule {
    fn of(decision: Decision, left_out: Option<&LeftOut>) -> Option<Self> {
        let filter = match decision {
            Decision::Chosen => return None,
            Decision::LeftOut => return left_out.map(|left_out| Self::Choice(left_out.by)),
            Decision::NotMatched => Filter::Selector,
            Decision::Tainted => Filter::Taint,
            Decision::Held | Decision::Blocked => Filter::Error,
            Decision::Kept => Filter::NoBetter,
        };
        Some(Self::Filter(filter))
    }
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
    /// Clusters that match and are not taken: why.
    pub(super) left_out: &'a BTreeMap<ClusterName, LeftOut>,
    pub(super) previous: Option<&'a UnitPlacement>,
    /// The Errors that hold the unit, as a whole or on some clusters.
    pub(super) errors: &'a [Finding],
    pub(super) suspensions: Suspensions<'a>,
    pub(super) now: i64,
}

impl Explain<'_> {
    pub(super) fn cluster(&self, cluster: &Cluster) -> ClusterExplanation {
        let name = &cluster.name;
        let before = self.previous.and_then(|unit| unit.clusters.get(name));
        let why = why(self.subscription, cluster, before.is_some());
        let assignment = self.assignments.get(name);
        let error = self.errors.iter().find(|error| error.concerns(name));
        let left_out = self.left_out.get(name);
        let decision = decision(&why, assignment, before, error);
        let decision = match decision {
            Decision::Tainted if left_out.is_some() => Decision::LeftOut,
            decision => decision,
        };
        let replicas = match (decision, assignment, before) {
            (Decision::Held, _, Some(before)) => before.replicas.clone(),
            (_, Some(assignment), _) => assignment.replicas.clone(),
            _ => ByObject::default(),
        };
        let drift = match (decision, before) {
            (Decision::Held, Some(before)) => before.drift,
            _ => self.subscription.drift_on(Some(cluster)),
        };
        let held = self.suspensions.of(&self.subscription.key, name, self.now);
        ClusterExplanation {
            cluster: name.clone(),
            decision,
            rule: Rule::of(decision, left_out),
            reasons: reasons(decision, &why, assignment, before, error)
                .into_iter()
                .chain(left_out.map(|left_out| left_out.why.clone()))
                .collect(),
            score: None,
            capacity: None,
            subscribers: why.subscribers,
            variant: None,
            replicas,
            had: before.map(|before| before.replicas.clone()).unwrap_or_default(),
            drift: decision.has_it().then_some(drift),
            suspended_by: held.map(|suspension| suspension.label()),
        }
    }
}

fn decision(
    why: &Why,
    assignment: Option<&Assignment>,
    before: Option<&Placement>,
    error: Option<&Finding>,
) -> Decision {
    let excluded = why.taint.as_ref().is_some_and(|taint| taint.excludes);
    let matches = why.matches();
    match (assignment, before) {
        (_, Some(_)) if error.is_some() => Decision::Held,
        (_, None) if error.is_some() && matches => Decision::Blocked,
        (Some(_), _) if matches && !excluded => Decision::Chosen,
        (Some(_), _) => Decision::Kept,
        (None, _) if matches => Decision::Tainted,
        (None, _) => Decision::NotMatched,
    }
}

fn reasons(
    decision: Decision,
    why: &Why,
    assignment: Option<&Assignment>,
    before: Option<&Placement>,
    error: Option<&Finding>,
) -> Vec<String> {
    // What an Error without a cluster holds is the whole unit, whoever is placed.
    let whole = error.is_some_and(|error| error.cluster.is_none());
    let error = error.map(held_by).unwrap_or_default();
    let mut reasons = match (decision, assignment) {
        (Decision::Held, None) if !whole => vec![format!("would lose it, and keeps what it had: {error}")],
        // What stands as it was placed stands for the reasons of that time.
        (Decision::Chosen | Decision::Kept, Some(assignment)) => match before {
            Some(before) if before.replicas == assignment.replicas && !before.replicas.is_empty() => {
                before.reasons.to_vec()
            }
            _ => assignment.reasons.to_vec(),
        },
        (Decision::Held, _) => vec![format!("keeps what it had, since the unit has an error: {error}")],
        (Decision::Blocked, _) => vec![format!(
            "matches, and is not placed while the unit has an error: {error}"
        )],
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
    if let (Some(before), Decision::Tainted | Decision::NotMatched | Decision::LeftOut) = (before, decision) {
        reasons.push(format!(
            "it has it since {}, and leaves with this revision",
            before.revision.short()
        ));
    }
    reasons
}

/// Which Error holds, shortly: its words stand among the findings.
fn held_by(error: &Finding) -> String {
    match (error.file.as_str(), error.line) {
        ("", _) => error.reason.clone(),
        (file, 0) => format!("{} at {file}", error.reason),
        (file, line) => format!("{} at {file}:{line}", error.reason),
    }
}
