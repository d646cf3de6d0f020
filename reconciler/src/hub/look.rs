//! One look at the source branch: where it stands, and how that is to what was accepted. Blocks.

use std::sync::{Mutex, PoisonError};

use render::Revision;
use tokio::time::Instant;

use super::engine::{Head, JudgedBy, Relation};
use super::keeper::chain;
use super::options::OnRewrite;
use super::repository;
use super::source::{Source, SourceError};
use crate::telemetry::elapsed_ms;

/// Looks. What cannot be read is said so, and is never taken for an empty branch.
///
/// Also says whether the accepted commit builds on the newest one that the state repository names, as far as that can be said.
pub(super) fn look(source: &Source, judged_by: &JudgedBy, on_rewrite: OnRewrite) -> (Head, bool) {
    let started = Instant::now();
    let accepted = judged_by.accepted.as_ref();
    let newer = judged_by.named.as_ref();
    let newer = newer.filter(|from| accepted.is_some_and(|accepted| descends(source, accepted, from)));
    let head = || {
        let revision = source.head()?.revision;
        if accepted != Some(&revision) {
            tracing::debug!(%revision, elapsed_ms = elapsed_ms(started), "Saw revision.");
        }
        let relation = match accepted {
            None => Relation::Follows,
            Some(accepted) => relation(source, accepted, &revision, on_rewrite)?,
        };
        let is_behind = relation == Relation::Follows && newer.is_some_and(|newer| descends(source, &revision, newer));
        let relation = if is_behind { Relation::Behind } else { relation };
        Ok(Head::At { revision, relation })
    };
    let head = head().unwrap_or_else(|error: SourceError| match error {
        SourceError::BranchMissing { branch, .. } => Head::BranchMissing { branch },
        error => Head::Unreadable { message: chain(&error) },
    });
    (head, newer.is_none())
}

/// Whether a commit builds on another one; not where either is not here.
fn descends(source: &Source, older: &Revision, newer: &Revision) -> bool {
    matches!(source.relation(older, newer), Ok(repository::Relation::Descendant))
}

/// Says once that a source cannot be followed, and once that it can again: a look is made every few seconds.
#[derive(Default)]
pub(super) struct Told(Mutex<Option<String>>);

impl Told {
    pub(super) fn seen(&self, head: &Head, source: &Source) {
        let trouble = match head {
            Head::At { .. } => None,
            Head::Unreadable { message } => Some(message.clone()),
            Head::BranchMissing { branch } => Some(format!(
                "there is no {branch} in {}; push it, or name another with --branch",
                source.path().display()
            )),
        };
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *told == trouble {
            return;
        }
        match &trouble {
            Some(error) => tracing::warn!(error, "Could not read source."),
            None => tracing::info!("Could read source again."),
        }
        *told = trouble;
    }
}

fn relation(
    source: &Source,
    accepted: &Revision,
    head: &Revision,
    on_rewrite: OnRewrite,
) -> Result<Relation, SourceError> {
    match source.relation(accepted, head)? {
        repository::Relation::Same | repository::Relation::Descendant => Ok(Relation::Follows),
        repository::Relation::Rewritten
            if on_rewrite == OnRewrite::Follow || source.accept_rewrite(head, accepted)? =>
        {
            Ok(Relation::RewriteAccepted)
        }
        repository::Relation::Rewritten => Ok(Relation::Rewritten),
    }
}
