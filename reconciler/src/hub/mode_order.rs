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
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::blocking::blocking;
use super::keeper::chain;
use super::remote::Remote;
use super::repository::Relation;
use super::run::SharedState;
use super::source::{Source, SourceError};
use crate::limits::{MODE_ORDER_TRUSTED, MODE_ORDERS_MAX};
use crate::wire::{Envelope, Held, takes_mode};

/// A commit that a hub has accepted, and one that a cluster goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) own: Revision,
    pub(super) held: Revision,
}

/// Whether the first of two commits comes after the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It does, and always will.
    After,
    /// It does while the source stands where it stands now.
    AfterForNow,
    /// It does not, and never will.
    NotAfter,
    /// What is here of history does not say so; more of it may.
    Untold,
}

type Judge = dyn Fn(&Pair) -> Result<Order, SourceError> + Send + Sync;

/// What was said of two commits.
struct Answer {
    pair: Pair,
    comes_after: bool,
    /// When it was said, and after how much of history came, where it may be another one later.
    said: Option<(Instant, u64)>,
}

/// Answers, and remembers the newest ones: of two commits it is the same for every cluster.
pub(super) struct ModeOrder {
    judge: Arc<Judge>,
    /// Held while history is read, so that many clusters at once have it read one after another, and mostly once.
    known: Mutex<VecDeque<Answer>>,
    /// Counts how often more history came.
    deepened: Arc<watch::Sender<u64>>,
}

impl fmt::Debug for ModeOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ModeOrder").finish_non_exhaustive()
    }
}

impl ModeOrder {
    /// By the history of a source, of which a remote may have more, and by what a hub has accepted.
    pub(super) fn of(source: Arc<Source>, state: SharedState, remote: Option<Arc<Remote>>) -> Self {
        let deepened = remote.as_ref().map(|remote| remote.deepened()).unwrap_or_default();
        let by_history = move |pair: &Pair| {
            let state = state.read().unwrap_or_else(PoisonError::into_inner);
            let left: Vec<_> = state.left.iter().cloned().collect();
            drop(state);
            let order = comes_after(&source, &left, pair)?;
            if let (Order::Untold, Some(remote)) = (order, &remote) {
                remote.seek(&pair.held);
            }
            Ok(order)
        };
        Self {
            deepened,
            ..Self::by(by_history)
        }
    }

    /// By whoever knows. It may block.
    pub(super) fn by(judge: impl Fn(&Pair) -> Result<Order, SourceError> + Send + Sync + 'static) -> Self {
        Self {
            judge: Arc::new(judge),
            known: Mutex::default(),
            deepened: Arc::default(),
        }
    }

    /// Changes when more history came: what was not told by it may be now.
    pub(super) fn deepened(&self) -> watch::Receiver<u64> {
        self.deepened.subscribe()
    }

    /// Says that more history came.
    #[cfg(test)]
    pub(super) fn deepen(&self) {
        self.deepened.send_modify(|times| *times += 1);
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

    pub(super) async fn comes_after(&self, pair: &Pair) -> bool {
        let mut known = self.known.lock().await;
        let deepened = *self.deepened.borrow();
        known.retain(|answer| {
            let counts = |(at, after): (Instant, u64)| at.elapsed() < MODE_ORDER_TRUSTED && after == deepened;
            answer.said.is_none_or(counts)
        });
        if let Some(answer) = known.iter().find(|answer| answer.pair == *pair) {
            return answer.comes_after;
        }
        let (judge, asked) = (Arc::clone(&self.judge), pair.clone());
        let order = blocking(move || judge(&asked)).await.unwrap_or_else(|error| {
            let (own, held) = (&pair.own, &pair.held);
            tracing::warn!(%own, %held, error = chain(&error), "Could not tell which of two commits is newer.");
            Order::Untold
        });
        let lasts = matches!(order, Order::After | Order::NotAfter);
        let comes_after = matches!(order, Order::After | Order::AfterForNow);
        known.push_back(Answer {
            pair: pair.clone(),
            comes_after,
            said: (!lasts).then(|| (Instant::now(), deepened)),
        });
        while known.len() > MODE_ORDERS_MAX {
            known.pop_front();
        }
        comes_after
    }
}

/// Whether a commit comes after another one. `left` are heads that were accepted here before their history was rewritten.
fn comes_after(source: &Source, left: &[Revision], pair: &Pair) -> Result<Order, SourceError> {
    // A commit that is not here is in nobody's history here: an agent may name any.
    let is_here = source.commit_seconds(&pair.held).is_some();
    let is_in = |newer: &Revision| Ok::<_, SourceError>(source.relation(&pair.held, newer)? != Relation::Rewritten);
    if is_here && is_in(&pair.own)? {
        return Ok(Order::After);
    }
    if source.accept_rewrite(&pair.own, &pair.held)? {
        return Ok(Order::After);
    }
    // What was left may be packed away by now; then the new history says so itself, or nobody does. And it may be where the
    // source is again, ahead of this hub.
    let was_left = is_here && left.iter().any(|left| is_in(left).unwrap_or(false));
    if was_left && source.head().is_ok_and(|head| !is_in(&head.revision).unwrap_or(true)) {
        return Ok(Order::AfterForNow);
    }
    // A shallow copy's history may end before it says so.
    let is_told = !was_left && source.is_relation_told(&pair.held, &pair.own)?;
    Ok(if is_told { Order::NotAfter } else { Order::Untold })
}

#[cfg(test)]
mod tests;
