//! What can go wrong with the state repository. Under each of these nothing was changed.

use std::path::PathBuf;

use render::layout::LayoutError;
use render::{Digest, Revision, UnitKey};

use super::CommitId;
use crate::hub::repository::RepositoryError;

/// Why the state repository could not be read or written. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A ref name that Git does not allow.
    #[error("{name:?} is not a valid ref name; hint: a ref is named like flotilla/rendered")]
    RefName {
        /// As given.
        name: String,
    },
    /// Two of the refs cannot be there at once.
    #[error(
        "the refs {one} and {other} cannot both exist; hint: give --rendered-ref and --released-ref names that no other begins with"
    )]
    RefsCollide {
        /// One of them.
        one: String,
        /// The other.
        other: String,
    },
    /// The source branch is a ref that the hub writes.
    #[error(
        "the source branch {branch} is a ref that the hub writes; hint: name the branch that people push to with --branch"
    )]
    SourceIsOutput {
        /// Its full name.
        branch: String,
    },
    /// A revision that cannot be in this repository.
    #[error("the revision {revision} is not known here")]
    UnknownRevision {
        /// Which.
        revision: Revision,
    },
    /// A new repository could not be made.
    #[error("failed to create the state repository {path}")]
    Create {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: gix::Error,
    },
    /// Something was there and could not be read whole.
    #[error("the state repository could not be read")]
    Unreadable(#[source] RepositoryError),
    /// A commit that is not one of ours or was edited into something else.
    #[error("the commit {commit} is not a state of the fleet: {reason}")]
    NotAState {
        /// Which.
        commit: CommitId,
        /// What it lacks, or has too much.
        reason: String,
    },
    /// A decision without the record that makes a commit readable again.
    #[error("the decision has no release record")]
    NoRecord,
    /// A file of a commit that does not say what such a file says.
    #[error("failed to understand the state in the commit {commit}")]
    Layout {
        /// Which.
        commit: CommitId,
        /// Why.
        #[source]
        source: Box<LayoutError>,
    },
    /// A content that a decision names and nobody has.
    #[error("the content {digest} of {unit} is not known")]
    ContentMissing {
        /// The unit.
        unit: String,
        /// Its digest.
        digest: Digest,
    },
    /// Files that do not have the digest that the placement promises.
    #[error("the files of the content {promised} have the digest {found}")]
    ContentDiffers {
        /// As the placement says.
        promised: Digest,
        /// As it is.
        found: Digest,
    },
    /// Files of a content that cannot be read back.
    #[error("failed to read back a content")]
    ContentLayout {
        /// Why.
        #[source]
        source: Box<LayoutError>,
    },
    /// Manifests that a person left in a commit and that are no content.
    #[error("failed to read the manifests in {folder} of the commit {commit}")]
    Manifests {
        /// Which.
        commit: CommitId,
        /// Their folder.
        folder: String,
        /// Why.
        #[source]
        source: Box<LayoutError>,
    },
    /// An older placement that cannot be read.
    #[error("failed to understand how {unit} was placed")]
    Remembered {
        /// The unit.
        unit: UnitKey,
        /// Why.
        #[source]
        source: Box<LayoutError>,
    },
    /// The ref that remembers the followed commit does not say which.
    #[error(
        "the ref {name} does not say which commit of source is followed; hint: remove it, and the next commit is noted anew"
    )]
    FollowedGarbled {
        /// Its full name.
        name: String,
    },
    /// An object could not be written.
    #[error("failed to write to the state repository")]
    Write(#[source] gix::Error),
    /// A ref is not where the caller believed it to be; somebody else moved it.
    #[error("the ref {name} was moved by somebody else")]
    Moved {
        /// Its full name.
        name: String,
        /// Where it is now; `None` if it is gone.
        found: Option<CommitId>,
    },
    /// A ref could not be written although it is where the caller believed it to be.
    #[error("failed to move the ref {name}")]
    RefNotMoved {
        /// Its full name.
        name: String,
        /// Why.
        #[source]
        source: gix::Error,
    },
}

impl StateError {
    /// Whether what was read is whole, and is no state of the fleet: trying again changes nothing.
    pub fn is_malformed(&self) -> bool {
        matches!(
            self,
            Self::NotAState { .. } | Self::Layout { .. } | Self::ContentLayout { .. } | Self::Manifests { .. }
        )
    }
}

pub(super) fn missing(unit: &UnitKey, digest: Digest) -> StateError {
    StateError::ContentMissing {
        unit: unit.to_string(),
        digest,
    }
}
