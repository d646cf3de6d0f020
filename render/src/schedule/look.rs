//! What scheduling sees of clusters, for whoever explains it: how good each is for a unit, and what room it has there.
//!
//! Nothing is decided here, and nothing is deducted.

use std::collections::BTreeMap;

use crate::capacity::{Fit, Workload};
use crate::model::{Cluster, Subscription};
use crate::name::{ClusterName, ObjectKey};
use crate::predictor::Question;
use crate::published::UnitPlacement;
use crate::schedule::candidates::search;
use crate::schedule::context::Context;
use crate::schedule::ledger::{Asking, Ledger, Workloads};
use crate::schedule::narrowed::scores_of;
use crate::schedule::predictions::{Promised, prediction};
use crate::schedule::score::{self, Score};

/// How good a cluster is for a unit, among those that may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What speaks for it.
    pub score: Score,
    /// Its place, from 1.
    pub place: usize,
}

/// Every cluster that a subscriber matches and no taint excludes.
pub fn standings(
    context: &Context<'_>,
    subscription: &Subscription,
    previous: Option<&UnitPlacement>,
) -> BTreeMap<ClusterName, Standing> {
    let found = search(context.sight(subscription, previous, false));
    let scores = scores_of(subscription, previous, &found);
    let ranked = score::ranked(&subscription.key, &scores).into_iter().enumerate();
    let standing = |(place, name): (usize, &ClusterName)| {
        let score = scores.get(name).copied().unwrap_or_default();
        let place = place + 1;
        (name.clone(), Standing { score, place })
    };
    ranked.map(standing).collect()
}

/// How many replicas of each object have room in a cluster, those that it has included; where pods keep apart or are
/// spread, no more than the object asks for are counted. `Err` says why nobody knows.
pub fn rooms(
    context: &Context<'_>,
    ledger: &mut Ledger,
    subscription: &Subscription,
    (cluster, workloads): (&Cluster, &Workloads),
) -> Result<BTreeMap<ObjectKey, Fit>, String> {
    context.reports.of(&cluster.name)?;
    let mut rooms = BTreeMap::new();
    for (object, workload) in workloads {
        let asking = Asking {
            unit: &subscription.key,
            object,
            requirements: &workload.requirements,
        };
        let fit = ledger.room(&context.books(), cluster, asking, workload.replicas)?;
        rooms.insert(object.clone(), fit);
    }
    Ok(rooms)
}

/// How many more replicas of an object fit by a cluster's predictor, and when that was asked; or why nobody knows.
pub type PredictorWord = Result<(u64, i64), String>;

/// What a cluster's predictor says of each object; nothing where it has none.
pub fn predictor_words(
    context: &Context<'_>,
    (cluster, workloads): (&Cluster, &Workloads),
) -> BTreeMap<ObjectKey, PredictorWord> {
    let word = |(object, workload): (&ObjectKey, &Workload)| {
        let question = Question::about(cluster, &workload.requirements)?;
        let said = prediction(context.reports, &Promised::default(), &question, context.now);
        Some((object.clone(), said.map(|said| (said.said, said.at))))
    };
    workloads.iter().filter_map(word).collect()
}
