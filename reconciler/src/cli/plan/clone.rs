//! The clone that is looked at, and what the hub rendered in it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use render::Published;

use crate::hub::publish::{Author, CommitId, StateRef, StateRefs, StateRepository};
use crate::hub::source::Source;

/// The ref of the approved target, unless it is said otherwise.
const RENDERED_REF: &str = "flotilla/rendered";

/// Which clone.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct CloneOptions {
    /// The repository, or a clone of it. What is not committed does not count.
    #[arg(long, env = "FLOTILLA_REPOSITORY", default_value = ".")]
    pub(in crate::cli) repository: PathBuf,
    /// Its branch.
    #[arg(long, env = "FLOTILLA_BRANCH", default_value = "main")]
    branch: String,
    /// The ref of the approved target.
    #[arg(long, default_value = RENDERED_REF)]
    rendered_ref: String,
}

/// What the hub rendered.
pub(in crate::cli) struct Rendered {
    pub(in crate::cli) published: Published,
    pub(in crate::cli) state: StateRepository,
    pub(in crate::cli) commit: CommitId,
}

impl CloneOptions {
    /// A clone with its branch, and the ref that a hub writes unless it is told otherwise.
    pub(in crate::cli) fn at(repository: &Path, branch: &str) -> Self {
        Self {
            repository: repository.to_owned(),
            branch: branch.to_owned(),
            rendered_ref: RENDERED_REF.to_owned(),
        }
    }

    /// Opens it.
    pub(in crate::cli) fn open(&self) -> anyhow::Result<Source> {
        Source::open(&self.repository, &self.branch)
            .with_context(|| format!("failed to open {}", self.repository.display()))
    }

    /// What the rendered ref says here; a clone has the hub's refs as those of its remote.
    pub(in crate::cli) fn rendered(&self, source: &Source) -> anyhow::Result<Option<Rendered>> {
        for place in ["", "refs/remotes/origin/"] {
            let own = StateRefs::default();
            let refs = StateRefs {
                rendered: format!("{place}{}", self.rendered_ref),
                released: format!("{place}{}", own.released),
                ..own
            };
            let state = StateRepository::open(&self.repository, refs, Author::default(), source)?;
            // Only what differs from it is read whole below; without it, everything is.
            let _known = state.read_published(StateRef::Released);
            if let Some((commit, published)) = state.read_published(StateRef::Rendered)? {
                let published = Published::clone(&published);
                return Ok(Some(Rendered {
                    published,
                    state,
                    commit,
                }));
            }
        }
        Ok(None)
    }
}
