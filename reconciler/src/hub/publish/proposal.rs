//! Proposals: branches for people to merge.
//!
//! A merge, a squash, a rebase and a fast-forward all show as `rendered` having moved; what was approved is
//! what stands there then.

use gix::refs::Target;
use gix::refs::transaction::{PreviousValue, RefEdit};
use render::Digest;
use render::plan::deltas;

use super::{CommitId, Decision, StateError, StateRef, StateRepository};
use crate::hub::repository::{Relation, RepositoryError, commit};

/// A branch that proposes a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Full name of the branch.
    pub branch: String,
    /// Where it points.
    pub commit: CommitId,
}

/// Whose a proposal's branch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As the hub wrote it, on this commit of `rendered`.
    Ours {
        /// The commit that it was made against.
        base: CommitId,
    },
    /// A person put commits on it or in its place.
    Theirs,
}

impl StateRepository {
    /// Proposes a decision on top of `base`, which must be where `rendered` stands. The branch is named by base
    /// and outcome. One that proposes the same is left as it is, also with commits of people on top, whatever
    /// commit of source it was made from: an equal decision is no other one. `None` if there is nothing to
    /// propose.
    pub fn propose(&self, base: CommitId, decision: &Decision<'_>) -> Result<Option<Proposal>, StateError> {
        let found = self.head(StateRef::Rendered)?;
        if found != Some(base) {
            let name = self.ref_name(StateRef::Rendered).to_owned();
            return Err(StateError::Moved { name, found });
        }
        let tree = self.write_index(Some(base), decision)?.tree;
        if self.index(base)?.tree == tree {
            return Ok(None);
        }
        if let Some(equal) = self.equal(base, decision)? {
            return Ok(Some(equal));
        }
        let branch = self.branch_name(base, tree);
        let present = self.repository.reference(&branch).map_err(StateError::Unreadable)?;
        if let Some(commit) = present.map(CommitId) {
            return Ok(Some(Proposal { branch, commit }));
        }
        let commit = self.write_commit(Some(base), decision)?;
        self.edit_ref(&branch, None, decision.seconds, |name| {
            RefEdit::update(name, commit.0, PreviousValue::MustNotExist, "propose")
        })?;
        Ok(Some(Proposal { branch, commit }))
    }

    /// The first proposal of the hub on the same base that gives every cluster the same. Two hubs, or one that
    /// was killed before it knew what it had written, come to the same one.
    fn equal(&self, base: CommitId, decision: &Decision<'_>) -> Result<Option<Proposal>, StateError> {
        for proposal in self.proposals()? {
            if self.standing(&proposal)? != (Standing::Ours { base }) {
                continue;
            }
            let proposed = self.published_at(proposal.commit)?;
            if deltas(&proposed.units, &decision.next.units).is_empty() {
                return Ok(Some(proposal));
            }
        }
        Ok(None)
    }

    /// All proposals there are, by name.
    pub fn proposals(&self) -> Result<Vec<Proposal>, StateError> {
        let prefix = self.refs.proposed_prefix.as_str();
        let mut proposals = self
            .repository
            .read(|repo| list(repo, prefix))
            .map_err(StateError::Unreadable)?;
        proposals.sort_by(|a, b| a.branch.cmp(&b.branch));
        Ok(proposals)
    }

    /// Whether a branch is there, whatever it points at.
    pub fn is_there(&self, branch: &str) -> Result<bool, StateError> {
        let found = self.repository.reference(branch).map_err(StateError::Unreadable)?;
        Ok(found.is_some())
    }

    /// Whose a proposal is. Its name tells: a commit more, or another one, has another name.
    pub fn standing(&self, proposal: &Proposal) -> Result<Standing, StateError> {
        let found = self.repository.read(|repo| commit(repo, proposal.commit.0));
        let found = found.map_err(StateError::Unreadable)?;
        Ok(match found.parents.as_slice() {
            [base] if self.branch_name(CommitId(*base), found.tree) == proposal.branch => {
                Standing::Ours { base: CommitId(*base) }
            }
            _ => Standing::Theirs,
        })
    }

    /// Removes the proposals that wait for nothing, and says which are people's and stay.
    ///
    /// Without anything lost, that is: those that are in `rendered` already, and the hub's own that stand on
    /// another commit than `rendered`, which is where a squash and a rebase leave them. `open` removes the hub's
    /// own on `rendered` too. `keep` stays whatever it is.
    pub fn withdraw_all(
        &self,
        rendered: CommitId,
        keep: Option<&Proposal>,
        open: bool,
    ) -> Result<Vec<String>, StateError> {
        let mut theirs = Vec::new();
        for proposal in self.proposals()? {
            if keep.is_some_and(|keep| keep.branch == proposal.branch) {
                continue;
            }
            match self.standing(&proposal)? {
                Standing::Ours { base } if base == rendered && !open => continue,
                Standing::Theirs if self.relation(proposal.commit, rendered)? == Relation::Rewritten => {
                    theirs.push(proposal.branch);
                    continue;
                }
                Standing::Ours { .. } | Standing::Theirs => {}
            }
            match self.withdraw(&proposal) {
                // A person who pushes to it at this moment has made it theirs.
                Err(StateError::Moved { found: Some(_), .. }) => theirs.push(proposal.branch),
                Err(StateError::Moved { found: None, .. }) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(theirs)
    }

    /// Removes a proposal's branch if it still points where it did.
    pub fn withdraw(&self, proposal: &Proposal) -> Result<(), StateError> {
        let expected = PreviousValue::MustExistAndMatch(Target::Object(proposal.commit.0));
        self.edit_ref(&proposal.branch, Some(proposal.commit), 0, |name| {
            RefEdit::delete(name, expected)
        })
    }

    fn branch_name(&self, base: CommitId, tree: gix::ObjectId) -> String {
        let name = Digest::of_bytes(format!("{base}\n{tree}\n").as_bytes()).short(12);
        format!("{}{name}", self.refs.proposed_prefix)
    }
}

/// The branches below a prefix. What is no branch of commits is nobody's proposal.
pub(super) fn list(repo: &gix::Repository, prefix: &str) -> Result<Vec<Proposal>, RepositoryError> {
    let failed = |source: gix::Error| RepositoryError::Ref {
        name: prefix.to_owned(),
        source,
    };
    let platform = repo.references().map_err(failed)?;
    let mut proposals = Vec::new();
    for reference in platform.prefixed(prefix).map_err(failed)? {
        let reference = reference.map_err(failed)?;
        if let Some(id) = reference.try_id() {
            proposals.push(Proposal {
                branch: reference.name().as_bstr().to_string(),
                commit: CommitId(id.detach()),
            });
        }
    }
    Ok(proposals)
}
