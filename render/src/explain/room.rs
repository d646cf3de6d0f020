//! What room a cluster has for a unit's objects, and how good it is for the unit.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::capacity::Fit;
use crate::model::Cluster;
use crate::name::ObjectKey;
use crate::schedule::{self, Ledger, PredictorWord, Reports, Standing, Workloads};

/// What speaks for a cluster, part by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoreExplanation {
    /// All parts together: the greater is the better.
    pub total: i64,
    /// That it has the unit.
    pub placed: i64,
    /// The weights of the preferences that it meets.
    pub preferred: i64,
    /// What taints take away that ask to prefer others.
    pub taint: i64,
    /// Its place among the clusters that may have the unit, from 1. It counts where not all of them are taken.
    pub place: usize,
}

impl From<Standing> for ScoreExplanation {
    fn from(Standing { score, place }: Standing) -> Self {
        Self {
            total: score.total(),
            placed: score.placed,
            preferred: score.preferred,
            taint: score.taint,
            place,
        }
    }
}

/// What is known of a cluster's room.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomExplanation {
    /// When it said so, in seconds since 1970 by the hub's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// How long ago that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    /// The newest sequence of `released` that it has counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Why nobody relies on it: it keeps what it has, and gets no more. Empty where it is relied on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub frozen: String,
    /// Object → how many of it have room there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub objects: BTreeMap<ObjectKey, ObjectRoom>,
    /// Object → what the cluster's predictor says of it; the less of both counts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub predicted: BTreeMap<ObjectKey, PredictedRoom>,
}

/// What a predictor says of an object.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictedRoom {
    /// So many more fit; `None` where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
    /// When it was asked, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// Why nobody knows: the cluster gets no more then.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trouble: String,
}

impl From<PredictorWord> for PredictedRoom {
    fn from(word: PredictorWord) -> Self {
        match word {
            Ok((more, at)) => Self {
                more: Some(more),
                at: Some(at),
                trouble: String::new(),
            },
            Err(trouble) => Self {
                trouble,
                ..Self::default()
            },
        }
    }
}

/// How many replicas of an object have room in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRoom {
    /// So many, those that it has included.
    pub replicas: u64,
    /// Whether it may be fewer, since something is asked for that nodes do not tell.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// Nodes that could take one, as far as labels and taints go.
    pub nodes: u64,
    /// Why other nodes cannot, or cannot take one more → how many.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<&'static str, u64>,
}

/// What is known of a cluster's room for these objects.
pub(super) fn room(
    context: &schedule::Context<'_>,
    ledger: &mut Ledger,
    subscription: &crate::model::Subscription,
    (cluster, workloads): (&Cluster, &Workloads),
) -> RoomExplanation {
    let reports: &Reports = context.reports;
    let report = reports.clusters.get(&cluster.name);
    let rooms = schedule::rooms(context, ledger, subscription, (cluster, workloads));
    let predicted = schedule::predictor_words(context, (cluster, workloads));
    let (rooms, frozen) = match rooms {
        Ok(rooms) => (rooms, String::new()),
        // The predictor's word counts alone.
        Err(_) if report.is_none() && !predicted.is_empty() => (BTreeMap::new(), String::new()),
        Err(why) => (BTreeMap::new(), why),
    };
    let object = |(object, fit): (ObjectKey, Fit)| {
        let room = ObjectRoom {
            replicas: fit.replicas,
            at_most: workloads
                .get(&object)
                .is_some_and(|workload| workload.requirements.asks_more),
            nodes: fit.nodes,
            refused: fit.refused,
        };
        (object, room)
    };
    RoomExplanation {
        at: report.map(|report| report.at),
        age_seconds: report.map(|report| context.now.saturating_sub(report.at).max(0)),
        sequence: report.and_then(|report| report.capacity.sequence),
        frozen,
        objects: rooms.into_iter().map(object).collect(),
        predicted: predicted
            .into_iter()
            .map(|(object, word)| (object, word.into()))
            .collect(),
    }
}
