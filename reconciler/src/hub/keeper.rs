//! The state repository, as the engine asks for it: looks, compare-and-swap writes, contents by digest.
//! Everything here blocks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use render::describe::Description;
use render::published::ReleaseRecord;
use render::{Digest, Published, Revision};
use tokio::time::Instant;

use super::engine::{Event, StateCommit, StateHead, StateRefs, Write};
use super::publish::{CommitId, Decision, StateError, StateRef, StateRepository, message};
use super::repository::Relation;
use crate::telemetry::elapsed_ms;

pub(super) use crate::fault::line as chain;

/// Reads and writes the state repository.
#[derive(Debug)]
pub(super) struct Keeper {
    repository: StateRepository,
    /// Contents of the newest plan, so that what was just written need not be read back.
    newest: Mutex<BTreeMap<Digest, Arc<Description>>>,
}

impl Keeper {
    /// A keeper of this repository.
    pub(super) fn new(repository: StateRepository) -> Self {
        Self {
            repository,
            newest: Mutex::default(),
        }
    }

    /// Where both refs stand. `rendered` is where the hub last knew that ref; without it, `released` says
    /// which commit it was made from. `writes` is the engine's count when the look began.
    pub(super) fn look(&self, rendered: Option<&Revision>, writes: u64) -> StateRefs {
        let released = self.head(StateRef::Released, None);
        let made_from = match &released {
            StateHead::At { commit, .. } => commit
                .published
                .record
                .as_ref()
                .and_then(|record| record.rendered.clone()),
            StateHead::Missing | StateHead::Unreadable(_) => None,
        };
        let known = rendered.cloned().or(made_from);
        StateRefs {
            writes,
            rendered: self.head(StateRef::Rendered, known.as_ref()),
            released,
        }
    }

    /// Where the repository is.
    pub(super) fn path(&self) -> &Path {
        self.repository.path()
    }

    /// When a commit of the state refs was made, in seconds since 1970; `None` where it is not here.
    pub(super) fn commit_seconds(&self, of: &Revision) -> Option<i64> {
        self.repository.seconds_of(of)
    }

    fn head(&self, which: StateRef, known: Option<&Revision>) -> StateHead {
        let head = || {
            let Some((commit, published)) = self.repository.read_published(which)? else {
                return Ok(StateHead::Missing);
            };
            let forward = known.is_none_or(|known| self.is_forward(known, commit));
            let commit = Box::new(self.state_commit(commit, published)?);
            Ok(StateHead::At { commit, forward })
        };
        head().unwrap_or_else(|error: StateError| StateHead::Unreadable(chain(&error)))
    }

    fn is_forward(&self, known: &Revision, now: CommitId) -> bool {
        let relation = self.known(known).and_then(|known| self.repository.relation(known, now));
        matches!(relation, Ok(Relation::Same | Relation::Descendant))
    }

    fn known(&self, revision: &Revision) -> Result<CommitId, StateError> {
        let unknown = || StateError::UnknownRevision {
            revision: revision.clone(),
        };
        self.repository.commit(revision)?.ok_or_else(unknown)
    }

    fn state_commit(&self, commit: CommitId, published: Arc<Published>) -> Result<StateCommit, StateError> {
        Ok(StateCommit {
            commit: commit.revision(),
            lineage: self.repository.lineage(commit)?,
            published,
        })
    }

    /// Does one write. Doing it twice is doing it once.
    pub(super) fn write(&self, write: Write, seconds: i64) -> Event {
        let written = match write {
            Write::Rendered { parent, next, contents } => {
                let written = self.commit(StateRef::Rendered, parent.as_ref(), next, &contents, seconds);
                *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = contents;
                written.map(Event::RenderedWritten)
            }
            Write::Proposal { base, next, contents } => self.propose(&base, next, &contents, seconds),
            Write::Released { parent, next } => {
                let written = self.commit(StateRef::Released, parent.as_ref(), next, &BTreeMap::new(), seconds);
                written.map(Event::ReleasedWritten)
            }
            Write::AdoptRendered { found, commit } => self.restore_rendered(found.as_ref(), &commit, seconds),
            Write::AdoptReleased { found, commit } => {
                let adopted = self.adopt(StateRef::Released, found.as_ref(), &commit);
                match adopted {
                    Ok(adopted) => Ok(Event::ReleasedWritten(adopted)),
                    Err(error @ StateError::Moved { .. }) => Err(error),
                    Err(error) => Ok(Event::AdoptionFailed {
                        commit,
                        message: chain(&error),
                    }),
                }
            }
        };
        written.unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "Could not write to the state repository."
            );
            Event::WriteRefused
        })
    }

    fn commit(
        &self,
        which: StateRef,
        parent: Option<&Revision>,
        next: Published,
        contents: &BTreeMap<Digest, Arc<Description>>,
        seconds: i64,
    ) -> Result<StateCommit, StateError> {
        let started = Instant::now();
        let parent = parent.map(|parent| self.known(parent)).transpose()?;
        let record = next.record.as_ref().ok_or(StateError::NoRecord)?;
        let message = message(&subject(which, record), "", record);
        // What one ref keeps or takes over has its content in the other.
        let other = match which {
            StateRef::Rendered => StateRef::Released,
            StateRef::Released => StateRef::Rendered,
        };
        let known_in: Vec<CommitId> = self.repository.head(other)?.into_iter().collect();
        let next = Arc::new(next);
        let decision = Decision {
            next: &next,
            contents,
            known_in: &known_in,
            message: &message,
            seconds,
        };
        let commit = self.repository.write_commit(parent, &decision)?;
        self.repository.advance(which, parent, commit, "decision")?;
        let name = self.repository.ref_name(which);
        tracing::debug!(component = name, revision = %commit, elapsed_ms = elapsed_ms(started), "Wrote decision.");
        self.state_commit(commit, self.repository.published_at(commit)?)
    }

    /// Proposes, and withdraws the proposals that this one takes the place of.
    fn propose(
        &self,
        base: &Revision,
        next: Published,
        contents: &BTreeMap<Digest, Arc<Description>>,
        seconds: i64,
    ) -> Result<Event, StateError> {
        let base = self.known(base)?;
        let record = next.record.as_ref().ok_or(StateError::NoRecord)?;
        let message = message(&subject(StateRef::Rendered, record), "", record);
        let known_in: Vec<CommitId> = self.repository.head(StateRef::Released)?.into_iter().collect();
        let next = Arc::new(next);
        let decision = Decision {
            next: &next,
            contents,
            known_in: &known_in,
            message: &message,
            seconds,
        };
        let proposal = self.repository.propose(base, &decision)?;
        let branch = proposal.map(|proposal| proposal.branch);
        for other in self.repository.proposals()? {
            // One with a person's commits on top is theirs: its parent is no commit of rendered.
            let stands_on = self.repository.proposal_base(&other)?;
            let replaced = match stands_on {
                Some(stands_on) => self.repository.relation(stands_on, base)? != Relation::Rewritten,
                None => false,
            };
            if Some(&other.branch) != branch.as_ref() && replaced {
                self.repository.withdraw(&other)?;
            }
        }
        Ok(Event::Proposed { branch })
    }

    fn adopt(&self, which: StateRef, found: Option<&Revision>, commit: &Revision) -> Result<StateCommit, StateError> {
        let found = found.map(|found| self.known(found)).transpose()?;
        let commit = self.known(commit)?;
        let adopted = self.state_commit(commit, self.repository.published_at(commit)?)?;
        self.repository.advance(which, found, commit, "put back")?;
        Ok(adopted)
    }

    /// Puts `rendered` back; where that commit is gone, it says again what was released.
    fn restore_rendered(&self, found: Option<&Revision>, commit: &Revision, seconds: i64) -> Result<Event, StateError> {
        match self.adopt(StateRef::Rendered, found, commit) {
            Ok(adopted) => Ok(Event::RenderedWritten(adopted)),
            Err(error @ StateError::Moved { .. }) => Err(error),
            Err(error) => {
                let Some((_, released)) = self.repository.read_published(StateRef::Released)? else {
                    return Err(error);
                };
                let mut next = Published::clone(&released);
                if let Some(record) = &mut next.record {
                    (record.sequence, record.rendered) = (None, None);
                }
                let again = self.commit(StateRef::Rendered, found, next, &BTreeMap::new(), seconds)?;
                Ok(Event::RenderedWritten(again))
            }
        }
    }

    /// The content with a digest: of the newest plan, or as it stands in a commit of `released`, checked.
    pub(super) fn content(&self, released: &Revision, digest: &Digest) -> Result<Arc<Description>, StateError> {
        if let Some(content) = self.newest.lock().unwrap_or_else(PoisonError::into_inner).get(digest) {
            return Ok(Arc::clone(content));
        }
        self.repository.content(self.known(released)?, digest).map(Arc::new)
    }
}

fn subject(which: StateRef, record: &ReleaseRecord) -> String {
    let source: String = record.source.as_str().chars().take(12).collect();
    match (which, record.sequence) {
        (StateRef::Released, Some(sequence)) => format!("Release {sequence} of {source}"),
        _ => format!("Render {source}"),
    }
}
