//! Proposals: branches for people to merge.
//!
//! A merge, a squash, a rebase and a fast-forward all show as `rendered` having moved; what was approved is
//! what stands there then.

use gix::refs::Target;
use gix::refs::transaction::{PreviousValue, RefEdit};
use render::Digest;

use super::{CommitId, Decision, StateError, StateRepository};
use crate::hub::repository::{RepositoryError, first_parent};

/// A branch that proposes a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Full name of the branch.
    pub branch: String,
    /// Where it points.
    pub commit: CommitId,
}

impl StateRepository {
    /// Proposes a decision on top of `base`, the rendered commit it was made against. The branch is named
    /// by base and outcome, so that the same proposal has the same branch; one that is there already, also
    /// with commits of people on top, is left as it is. `None` if there is nothing to propose.
    pub fn propose(&self, base: CommitId, decision: &Decision<'_>) -> Result<Option<Proposal>, StateError> {
        let tree = self.write_index(Some(base), decision)?.tree;
        if self.index(base)?.tree == tree {
            return Ok(None);
        }
        let name = Digest::of_bytes(format!("{base}\n{tree}\n").as_bytes()).short(12);
        let branch = format!("{}{name}", self.refs.proposed_prefix);
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

    /// The rendered commit that a proposal was made against; `None` if it has no parent.
    pub fn proposal_base(&self, proposal: &Proposal) -> Result<Option<CommitId>, StateError> {
        let parent = self.repository.read(|repo| first_parent(repo, proposal.commit.0));
        Ok(parent.map_err(StateError::Unreadable)?.map(CommitId))
    }

    /// Removes a proposal's branch if it still points where it did.
    pub fn withdraw(&self, proposal: &Proposal) -> Result<(), StateError> {
        let expected = PreviousValue::MustExistAndMatch(Target::Object(proposal.commit.0));
        self.edit_ref(&proposal.branch, Some(proposal.commit), 0, |name| {
            RefEdit::delete(name, expected)
        })
    }
}

fn list(repo: &gix::Repository, prefix: &str) -> Result<Vec<Proposal>, RepositoryError> {
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
