//! What predictors say of clusters, beside what those report of themselves.

use std::collections::BTreeMap;

use crate::model::Cluster;
use crate::name::ClusterName;
use crate::predictor::{Outcome, Question};
use crate::schedule::Reports;
use crate::schedule::reports::Presence;
use crate::schedule::share::Room;
use crate::shared::Shared;
use crate::time::rfc3339;

/// What part of the room that predictors see was promised by this plan already, in trillionths. A prediction is about
/// one template; what another one of the same cluster takes is deducted in proportion.
#[derive(Debug, Default)]
pub(super) struct Promised(BTreeMap<ClusterName, u128>);

const WHOLE: u128 = 1_000_000_000_000;

impl Promised {
    /// What is left of a prediction.
    fn left(&self, cluster: &ClusterName, predicted: u64) -> u64 {
        let promised = self.0.get(cluster).copied().unwrap_or_default().min(WHOLE);
        u64::try_from(u128::from(predicted) * (WHOLE - promised) / WHOLE).unwrap_or(predicted)
    }

    /// Deducts replicas of which so many had been predicted to fit.
    pub(super) fn add(&mut self, cluster: &ClusterName, replicas: u64, predicted: u64) {
        let part = u128::from(replicas) * WHOLE / u128::from(predicted.max(1));
        *self.0.entry(cluster.clone()).or_default() += part;
    }
}

/// A prediction as it counts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prediction {
    /// So many more were said to fit.
    pub(super) said: u64,
    /// Less what this plan has promised since.
    left: u64,
    /// When the predictor was asked, in seconds since 1970.
    pub(super) at: i64,
}

/// What a cluster's predictor says, or why nobody knows.
pub(super) fn prediction(
    reports: &Reports,
    promised: &Promised,
    question: &Question,
    now: i64,
) -> Result<Prediction, String> {
    let cluster = &question.cluster;
    if let Some(Presence::SilentSince(since)) = reports.presence.get(cluster) {
        return Err(format!("it is not heard of since {}", rfc3339(*since)));
    }
    let answers = reports.predicted.get(cluster);
    let answer = answers.and_then(|answers| answers.get(&question.key()));
    match answer.filter(|answer| answer.is_fresh(now)) {
        None => Err("its predictor has said nothing within a minute".to_owned()),
        Some(answer) => match &answer.outcome {
            Outcome::Trouble(why) => Err(format!("its predictor failed: {why}")),
            Outcome::Replicas(said) => Ok(Prediction {
                said: *said,
                left: promised.left(cluster, *said),
                at: answer.at,
            }),
        },
    }
}

/// The room of a cluster, in words too.
pub(super) struct Judged {
    pub(super) room: Room,
    pub(super) text: Shared<String>,
    /// What a predictor said, where one was asked.
    pub(super) prediction: Option<Prediction>,
}

impl Judged {
    /// Of a cluster that has no predictor.
    pub(super) fn without((room, text): (Room, Shared<String>)) -> Self {
        Self {
            room,
            text,
            prediction: None,
        }
    }

    /// Of one that has a predictor, where nothing is added: it need not report itself to give replicas up.
    pub(super) fn not_asked(reports_itself: bool, own: (Room, Shared<String>)) -> Self {
        match own.0 {
            Room::Frozen if !reports_itself => Self::without((Room::Unbounded, Shared::default())),
            _ => Self::without(own),
        }
    }

    /// The less of what a cluster reports and what its predictor says; what that says alone where the cluster never
    /// reported.
    pub(super) fn least(
        (cluster, reports): (&Cluster, &Reports),
        own: (Room, Shared<String>),
        had: u64,
        prediction: Result<Prediction, String>,
    ) -> Self {
        let reports_itself = reports.clusters.contains_key(&cluster.name);
        let (room, text) = match (own, &prediction) {
            ((Room::Frozen, why), _) if reports_itself => (Room::Frozen, why),
            (_, Err(why)) => (Room::Frozen, format!("no more: {why}").into()),
            ((Room::Replicas(own), text), Ok(Prediction { left, .. })) => {
                let room = own.min(had.saturating_add(*left));
                (
                    Room::Replicas(room),
                    format!("{}, and for {left} more by its predictor", *text).into(),
                )
            }
            (_, Ok(Prediction { left, .. })) => {
                let room = had.saturating_add(*left);
                (
                    Room::Replicas(room),
                    format!("has room for {left} more by its predictor").into(),
                )
            }
        };
        Self {
            room,
            text,
            prediction: prediction.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::cluster_name;

    #[test]
    fn what_a_plan_promised_is_left_out_of_what_was_predicted() {
        let mut promised = Promised::default();
        let a = cluster_name("a");
        assert_eq!(promised.left(&a, 7), 7);
        promised.add(&a, 2, 7);
        assert_eq!(promised.left(&a, 7), 5, "the same template again");
        assert_eq!(promised.left(&a, 14), 10, "one of half the size");
        assert_eq!(promised.left(&cluster_name("b"), 7), 7);
        promised.add(&a, 9, 7);
        assert_eq!(promised.left(&a, 7), 0);
    }
}
