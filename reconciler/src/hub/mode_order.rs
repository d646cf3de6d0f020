//! Which of two source commits comes after the other, for modes that two hubs told.
//!
//! In: the commit that a hub has accepted, and the one whose mode a cluster goes by. Out: whether the first comes after the
//! second: it builds on it, or takes its place after a rewritten history, by somebody's word. A hub that lags behind does not
//! know the other commit, or has it ahead of its own, and cannot say so. Whether a mode is told is deliberately not decided
//! here.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};

use render::Revision;
use tokio::sync::Mutex;

use super::blocking::blocking;
use super::keeper::chain;
use super::repository::Relation;
use super::run::SharedState;
use super::source::{Source, SourceError};
use crate::limits::MODE_ORDERS_MAX;
use crate::wire::{Envelope, Held, takes_mode};

/// A commit that a hub has accepted, and one that a cluster goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) own: Revision,
    pub(super) held: Revision,
}

type Judge = dyn Fn(&Pair) -> Result<bool, SourceError> + Send + Sync;

/// Answers, and remembers the newest ones: of two commits it is the same for every cluster.
pub(super) struct ModeOrder {
    judge: Arc<Judge>,
    /// Held while history is read, so that many clusters at once have it read one after another, and mostly once.
    known: Mutex<VecDeque<(Pair, bool)>>,
}

impl fmt::Debug for ModeOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ModeOrder").finish_non_exhaustive()
    }
}

impl ModeOrder {
    /// By the history of a source, and by what a hub has accepted.
    pub(super) fn of(source: Arc<Source>, state: SharedState) -> Self {
        Self::by(move |pair| {
            let state = state.read().unwrap_or_else(PoisonError::into_inner);
            let left: Vec<_> = state.left.iter().cloned().collect();
            drop(state);
            comes_after(&source, &left, pair)
        })
    }

    /// By whoever knows. It may block.
    pub(super) fn by(judge: impl Fn(&Pair) -> Result<bool, SourceError> + Send + Sync + 'static) -> Self {
        Self {
            judge: Arc::new(judge),
            known: Mutex::default(),
        }
    }

    /// An envelope with the hub's word that its mode comes after the one that the cluster goes by, where that is so and
    /// makes a difference.
    pub(super) async fn placed(&self, envelope: Arc<Envelope>, held: Option<&Held>) -> Arc<Envelope> {
        if takes_mode(held, &envelope) {
            return envelope;
        }
        let (Some(own), Some(held)) = (&envelope.mode_source, held.and_then(|held| held.mode_source.as_ref())) else {
            return envelope;
        };
        let pair = Pair {
            own: own.clone(),
            held: held.clone(),
        };
        if !self.comes_after(&pair).await {
            return envelope;
        }
        Arc::new(Envelope {
            mode_instead: Some(pair.held),
            ..Envelope::clone(&envelope)
        })
    }

    async fn comes_after(&self, pair: &Pair) -> bool {
        let mut known = self.known.lock().await;
        if let Some((_, answer)) = known.iter().find(|(known, _)| known == pair) {
            return *answer;
        }
        let (judge, asked) = (Arc::clone(&self.judge), pair.clone());
        match blocking(move || judge(&asked)).await {
            Ok(answer) => {
                known.push_back((pair.clone(), answer));
                while known.len() > MODE_ORDERS_MAX {
                    known.pop_front();
                }
                answer
            }
            Err(error) => {
                let (own, held) = (&pair.own, &pair.held);
                tracing::warn!(%own, %held, error = chain(&error), "Could not tell which of two commits is newer.");
                false
            }
        }
    }
}

/// Whether a commit comes after another one. `left` are heads that were accepted here before their history was rewritten.
fn comes_after(source: &Source, left: &[Revision], pair: &Pair) -> Result<bool, SourceError> {
    // A commit that is not here is in nobody's history here: it is not looked for, since an agent may name any.
    let is_here = source.commit_seconds(&pair.held).is_some();
    let is_in = |newer: &Revision| Ok::<_, SourceError>(source.relation(&pair.held, newer)? != Relation::Rewritten);
    if is_here && is_in(&pair.own)? {
        return Ok(true);
    }
    // What was left may be packed away by now; then the new history says so itself, or nobody does.
    let was_left = is_here && left.iter().any(|left| is_in(left).unwrap_or(false));
    Ok(was_left || source.accept_rewrite(&pair.own, &pair.held)?)
}

#[cfg(test)]
mod tests;
