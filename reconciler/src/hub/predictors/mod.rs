//! Asks the predictors that clusters' files name, and remembers what they said for as long as it counts.
//!
//! In: the questions of a plan. Out: answers for the next one. A plan never waits for a slow predictor: what comes
//! later is an event of its own. What an answer means is deliberately not here: see [`render::predictor`].

mod ask;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use render::predictor::{Outcome, Predicted, Question};
use render::{ClusterName, Digest};
use tokio::sync::Semaphore;

use ask::Asker;

use crate::hub::clock::seconds;
use crate::limits::{PREDICTIONS_AT_ONCE_MAX, PREDICTIONS_MAX};

/// Whose answer to what.
type Key = (ClusterName, Digest);

/// Asks, and remembers.
pub(super) struct Predictors {
    asker: Asker,
    at_once: Semaphore,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    answers: BTreeMap<Key, Predicted>,
    /// Being asked.
    asking: BTreeSet<Key>,
    /// Counts how often all was forgotten.
    epoch: u64,
}

impl Predictors {
    /// Who knows nothing yet.
    pub(super) fn new() -> Self {
        Self {
            asker: Asker::new(),
            at_once: Semaphore::new(PREDICTIONS_AT_ONCE_MAX),
            known: Mutex::default(),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was answered and still counts.
    pub(super) fn answers(&self, now: i64) -> BTreeMap<ClusterName, BTreeMap<Digest, Predicted>> {
        let mut known = self.known();
        known.answers.retain(|_, answer| answer.is_fresh(now));
        let mut answers: BTreeMap<ClusterName, BTreeMap<Digest, Predicted>> = BTreeMap::new();
        for ((cluster, key), answer) in &known.answers {
            answers.entry(cluster.clone()).or_default().insert(*key, answer.clone());
        }
        answers
    }

    /// Takes up those of these that have no answer and that nobody asks yet.
    pub(super) fn take_up(&self, questions: BTreeMap<Key, Question>, now: i64) -> Vec<(Key, Question)> {
        let mut known = self.known();
        let known = &mut *known;
        let is_open = |key: &Key| known.answers.get(key).is_none_or(|answer| !answer.is_fresh(now));
        let open: Vec<_> = questions.into_iter().filter(|(key, _)| is_open(key)).collect();
        let free = PREDICTIONS_MAX.saturating_sub(known.answers.len() + known.asking.len());
        let open = open.into_iter().filter(|(key, _)| !known.asking.contains(key));
        let taken: Vec<_> = open.take(free).collect();
        known.asking.extend(taken.iter().map(|(key, _)| key.clone()));
        taken
    }

    /// Asks, and remembers what was said or that nothing was.
    pub(super) async fn ask(self: Arc<Self>, key: Key, question: Question) {
        // The semaphore is never closed.
        let _permit = self.at_once.acquire().await;
        let (at, epoch) = (seconds(), self.known().epoch);
        let outcome = match self.asker.ask(&question).await {
            Ok(replicas) => Outcome::Replicas(replicas),
            Err(error) => {
                let why = error.to_string();
                tracing::warn!(cluster = %question.cluster, error = %why, "Predictor gave no answer.");
                Outcome::Trouble(why)
            }
        };
        self.remember(key, Predicted { at, outcome }, epoch);
    }

    /// Remembers an answer to what was asked in an epoch.
    pub(super) fn remember(&self, key: Key, answer: Predicted, epoch: u64) {
        let mut known = self.known();
        known.asking.remove(&key);
        // What was released meanwhile may take what it saw.
        if known.epoch == epoch {
            known.answers.insert(key, answer);
        }
    }

    /// Forgets what was said: clusters are told of other replicas, which take room.
    pub(super) fn forget(&self) {
        let mut known = self.known();
        known.answers.clear();
        known.epoch += 1;
    }
}

#[cfg(test)]
mod tests;
