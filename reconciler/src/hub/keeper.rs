//! The state repository, as the engine asks for it: looks, compare-and-swap writes, contents by digest.
//! Everything here blocks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use render::describe::Description;
use render::guard::Holdings;
use render::published::ReleaseRecord;
use render::{Digest, Published, Revision};
use tokio::time::Instant;

use super::engine::{Event, Proposed, StateCommit, StateHead, StateRefs, Write};
use super::following::BuildsOn;
use super::keys::HubKeys;
use super::peers::PeerKeys;
use super::publish::{CommitId, Decision, Marks, StateError, StateRef, StateRepository, message};
use super::repository::Relation;
use super::source::Source;
use crate::telemetry::elapsed_ms;

pub(super) use crate::fault::line as chain;

/// Reads and writes the state repository.
pub(super) struct Keeper {
    repository: StateRepository,
    /// Contents of the newest plan, so that what was just written need not be read back.
    newest: Mutex<BTreeMap<Digest, Arc<Description>>>,
    /// The hub's own keys, by which its proposals are known; none for a keeper that proposes nothing.
    keys: Option<HubKeys>,
    /// Those of other hubs.
    others: Arc<PeerKeys>,
    /// What was found out last of the commit that is followed: whether it builds on what `rendered` was made from.
    pub(super) newer: Mutex<Option<BuildsOn>>,
    /// And whether the accepted one builds on it.
    pub(super) left_behind: Mutex<Option<BuildsOn>>,
}

/// Where the hub last knew its refs.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// `rendered`.
    pub(super) rendered: Option<Revision>,
    /// `released`.
    pub(super) released: Option<Revision>,
    /// The proposal that waits.
    pub(super) proposed: Option<Proposed>,
    /// Whether keys of agents are proposed.
    pub(super) keys: bool,
    /// The commit of source that is accepted.
    pub(super) accepted: Option<Revision>,
}

/// Without the hub's keys.
impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Keeper");
        shown.field("repository", &self.repository).finish_non_exhaustive()
    }
}

impl Keeper {
    /// A keeper of this repository.
    pub(super) fn new(repository: StateRepository) -> Self {
        Self {
            repository,
            newest: Mutex::default(),
            keys: None,
            others: Arc::default(),
            newer: Mutex::default(),
            left_behind: Mutex::default(),
        }
    }

    /// One whose proposals are known by these keys from those of other hubs.
    pub(super) fn with_keys(self, keys: HubKeys, others: Arc<PeerKeys>) -> Self {
        Self {
            keys: Some(keys),
            others,
            ..self
        }
    }

    /// By which keys it knows its own proposals.
    pub(super) fn marks(&self) -> Marks {
        let keys = self.keys.as_ref().map(|keys| keys.borrow().clone());
        Marks {
            own: keys
                .iter()
                .flat_map(|keys| keys.iter())
                .map(|key| key.public())
                .collect(),
            others: self.others.all(),
        }
    }

    /// Where both refs stand, and whether the branch of the proposal that waits is there. Where `rendered` is not
    /// known, `released` says which commit it was made from. `writes` is the engine's count when the look began.
    pub(super) fn look(&self, source: &Source, known: &Known, writes: u64) -> StateRefs {
        let released = self.head(StateRef::Released, known.released.as_ref());
        let made_from = match &released {
            StateHead::At { commit, .. } => commit
                .published
                .record
                .as_ref()
                .and_then(|record| record.rendered.clone()),
            StateHead::Missing | StateHead::Malformed { .. } | StateHead::Unreadable(_) => None,
        };
        let rendered = known.rendered.clone().or(made_from);
        // Whether it can be read is said of the refs.
        let is_gone = |proposed: &&Proposed| matches!(self.repository.is_there(&proposed.branch), Ok(false));
        let gone = known.proposed.as_ref().filter(is_gone);
        let rendered_head = self.head(StateRef::Rendered, rendered.as_ref());
        StateRefs {
            writes,
            followed: self.followed(source, known.accepted.as_ref(), (&rendered_head, &released)),
            rendered: rendered_head,
            released,
            proposal_gone: gone.is_some(),
            keys_gone: known.keys && matches!(self.repository.is_there(self.repository.keys_branch()), Ok(false)),
            proposed_instead: gone.and_then(|gone| self.proposed_instead(rendered.as_ref()?, gone)),
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
        self.try_head(which, known)
            .unwrap_or_else(|error| StateHead::Unreadable(chain(&error)))
    }

    fn try_head(&self, which: StateRef, known: Option<&Revision>) -> Result<StateHead, StateError> {
        let Some(commit) = self.repository.head(which)? else {
            return Ok(StateHead::Missing);
        };
        let forward = known.is_none_or(|known| self.is_forward(known, commit));
        match self.repository.read_published(which) {
            Ok(Some((commit, published))) => {
                let commit = Box::new(self.state_commit(commit, published)?);
                Ok(StateHead::At { commit, forward })
            }
            Ok(None) => Ok(StateHead::Missing),
            Err(error) if error.is_malformed() => {
                let last = match known.map(|known| self.known(known)).transpose() {
                    Ok(Some(last)) => Some(Box::new(self.state_commit(last, self.repository.published_at(last)?)?)),
                    Ok(None) | Err(_) => None,
                };
                Ok(StateHead::Malformed {
                    commit: commit.revision(),
                    message: chain(&error),
                    last,
                    forward,
                })
            }
            Err(error) => Err(error),
        }
    }

    fn is_forward(&self, known: &Revision, now: CommitId) -> bool {
        let relation = self.known(known).and_then(|known| self.repository.relation(known, now));
        matches!(relation, Ok(Relation::Same | Relation::Descendant))
    }

    pub(super) fn known(&self, revision: &Revision) -> Result<CommitId, StateError> {
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
            Write::Proposal {
                base,
                next,
                contents,
                commits,
            } => self.propose(&base, next, &contents, commits, seconds),
            Write::Withdraw { rendered, open } => self.withdraw(&rendered, open),
            Write::Registrations {
                source,
                wanted,
                elsewhere,
            } => self.register(&source, (wanted, elsewhere), seconds),
            Write::AgentKeys { fleet, done, asked } => self.replace_keys(&fleet, (done, asked), seconds),
            Write::Follow { found, followed } => self.follow(found.as_ref(), &followed, seconds),
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
        written.unwrap_or_else(|error| match error {
            // Another hub was first, or a person: it is looked where the refs stand now.
            StateError::Moved { name, .. } => {
                tracing::debug!(component = name, "Found the ref moved by somebody else.");
                Event::WriteRefused
            }
            error => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "Could not write to the state repository."
                );
                Event::WriteFailed {
                    message: self.with_remedy(chain(&error)),
                }
            }
        })
    }

    /// Why a write failed, with what a person does about it where that is known.
    fn with_remedy(&self, why: String) -> String {
        if why.to_lowercase().contains("no space left on device") {
            return format!("{why}; free some space on the disk of {}", self.path().display());
        }
        let names = [StateRef::Rendered, StateRef::Released].map(|which| self.repository.ref_name(which));
        let above = |name: &str| -> Option<String> {
            let is_there = |parent: &&str| matches!(self.repository.is_there(parent), Ok(true));
            let mut parents = name.match_indices('/').map(|(at, _)| &name[..at]);
            parents.find(is_there).map(str::to_owned)
        };
        match names.into_iter().find_map(above) {
            Some(branch) => {
                let (branch, name) = (short(&branch), short(names[0]));
                format!(
                    "{why}; Git cannot have {name} beside a branch {branch}: rename that with git branch -m {branch} <name>, or name other refs with --rendered-ref and --released-ref"
                )
            }
            None => why,
        }
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
        let decision = self.decision(which, next, contents, message, seconds)?;
        let commit = self.repository.write_commit(parent, &decision.borrowed())?;
        self.repository.advance(which, parent, commit, "decision")?;
        let name = self.repository.ref_name(which);
        tracing::debug!(component = name, revision = %commit, elapsed_ms = elapsed_ms(started), "Wrote decision.");
        self.state_commit(commit, self.repository.published_at(commit)?)
    }

    /// A decision for a ref. What one ref keeps or takes over has its content in the other.
    pub(super) fn decision<'a>(
        &self,
        which: StateRef,
        next: Published,
        contents: &'a BTreeMap<Digest, Arc<Description>>,
        message: String,
        seconds: i64,
    ) -> Result<OwnedDecision<'a>, StateError> {
        let other = match which {
            StateRef::Rendered => StateRef::Released,
            StateRef::Released => StateRef::Rendered,
        };
        Ok(OwnedDecision {
            next: Arc::new(next),
            contents,
            known_in: self.repository.head(other)?.into_iter().collect(),
            message,
            seconds,
        })
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

    /// The objects of a content that is published: of the newest plan, or as it stands in `base`, or in a state ref.
    /// `None` where it is in none of them, or cannot be read.
    pub(super) fn holdings(&self, base: Option<&Revision>, digest: &Digest) -> Option<Holdings> {
        if let Some(base) = base
            && let Ok(content) = self.content(base, digest)
        {
            return Some(Holdings::of(&content));
        }
        let heads = [StateRef::Rendered, StateRef::Released].map(|which| self.repository.head(which));
        let mut heads = heads.into_iter().filter_map(|head| head.ok().flatten());
        let found = heads.find_map(|head| self.repository.content(head, digest).ok());
        found.map(|content| Holdings::of(&content))
    }

    /// The repository itself.
    pub(super) fn repository(&self) -> &StateRepository {
        &self.repository
    }

    /// The content with a digest: of the newest plan, or as it stands in a commit of `released`, checked.
    pub(super) fn content(&self, released: &Revision, digest: &Digest) -> Result<Arc<Description>, StateError> {
        if let Some(content) = self.newest.lock().unwrap_or_else(PoisonError::into_inner).get(digest) {
            return Ok(Arc::clone(content));
        }
        self.repository.content(self.known(released)?, digest).map(Arc::new)
    }
}

/// A decision with what it is made of.
pub(super) struct OwnedDecision<'a> {
    next: Arc<Published>,
    contents: &'a BTreeMap<Digest, Arc<Description>>,
    known_in: Vec<CommitId>,
    message: String,
    seconds: i64,
}

impl OwnedDecision<'_> {
    pub(super) fn borrowed(&self) -> Decision<'_> {
        Decision {
            next: &self.next,
            contents: self.contents,
            known_in: &self.known_in,
            message: &self.message,
            seconds: self.seconds,
        }
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

fn subject(which: StateRef, record: &ReleaseRecord) -> String {
    let source = record.source.short();
    match (which, record.sequence) {
        (StateRef::Released, Some(sequence)) => format!("Release {sequence} of {source}"),
        _ => format!("Render {source}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::publish::{Author, StateRefs};
    use crate::hub::repository::fixture::Fixture;

    #[test]
    fn a_write_that_fails_says_what_to_do() {
        let people = Fixture::new();
        people.write("a.yaml", "a: 1\n");
        people.commit("one");
        let source = Source::open(people.file("."), "main").expect("it opens");
        let open = StateRepository::open(people.file("."), StateRefs::default(), Author::default(), &source);
        let keeper = Keeper::new(open.expect("it opens"));
        assert_eq!(keeper.with_remedy("anything".to_owned()), "anything");
        let full = keeper.with_remedy("failed to write: No space left on device (os error 28)".to_owned());
        assert!(full.contains("free some space on the disk of /"), "{full}");
        people.git(&["branch", "flotilla"]);
        let beside = keeper.with_remedy("failed to move the ref".to_owned());
        assert!(
            beside.contains("flotilla/rendered beside a branch flotilla"),
            "{beside}"
        );
        assert!(beside.contains("git branch -m flotilla"), "{beside}");
    }
}
