//! The newest commit of source that counts and of which nothing is rendered: a hub that restarts knows by it who may connect.
//!
//! It is the message of a commit at a ref of its own, so that hubs over one state know the same. That commit builds on the
//! one that it names, where it is here, which so stays readable after its branch was rewritten.

use render::Revision;

use super::content::write_tree;
use super::{CommitId, Proposal, StateError, StateRepository};
use crate::hub::repository::object_id;

const SOURCE: &str = "Source: ";
const RENDERED: &str = "Rendered: ";

/// What is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The commit of source.
    pub source: Revision,
    /// The one that `rendered` was made from by then; `None` where nothing was rendered.
    pub rendered: Option<Revision>,
}

impl Followed {
    fn parse(text: &str) -> Option<Self> {
        let of = |what: &str| {
            let named = text.lines().find_map(|line| line.strip_prefix(what));
            named.map(|named| Revision::parse(named.trim()).ok())
        };
        Some(Self {
            source: of(SOURCE)??,
            rendered: match of(RENDERED) {
                None => None,
                Some(named) => Some(named?),
            },
        })
    }

    fn to_text(&self) -> String {
        let rendered = self.rendered.iter();
        let rendered: String = rendered.map(|from| format!("{RENDERED}{from}\n")).collect();
        format!("Follow {}\n\n{SOURCE}{}\n{rendered}", self.source.short(), self.source)
    }
}

impl StateRepository {
    /// What is remembered. What stands there and says something else is an error: nothing may be concluded from it.
    pub fn followed(&self) -> Result<Option<Followed>, StateError> {
        Ok(self.followed_found()?.map(|(_, followed)| followed))
    }

    /// Remembers another one in the place of `expected`: what another hub noted meanwhile may be newer. Doing it twice is
    /// doing it once.
    pub fn follow(&self, expected: Option<&Revision>, followed: &Followed, seconds: i64) -> Result<(), StateError> {
        let found = self.followed_found()?;
        if found.as_ref().map(|(_, found)| found) == Some(followed) {
            return Ok(());
        }
        if found.as_ref().map(|(_, found)| &found.source) != expected {
            return Err(StateError::Moved {
                name: self.followed_ref().to_owned(),
                found: found.map(|(commit, _)| commit),
            });
        }
        let tree = write_tree(&self.repository.local(), Vec::new())?;
        let is_here = self.commit(&followed.source)?.is_some();
        let parent = object_id(&followed.source).filter(|_| is_here);
        let commit = self.commit_with(parent, tree, followed.to_text(), seconds)?;
        let found = found.map(|(commit, _)| self.at_followed(commit));
        self.point(self.followed_ref(), found.as_ref(), commit, seconds)
    }

    /// The ref that remembers it.
    pub fn followed_ref(&self) -> &str {
        &self.refs.followed
    }

    fn followed_found(&self) -> Result<Option<(CommitId, Followed)>, StateError> {
        let found = self.repository.reference(self.followed_ref());
        let Some(commit) = found.map_err(StateError::Unreadable)?.map(CommitId) else {
            return Ok(None);
        };
        let text = self.message_of(&self.at_followed(commit))?;
        let garbled = || StateError::FollowedGarbled {
            name: self.followed_ref().to_owned(),
        };
        Ok(Some((commit, Followed::parse(&text).ok_or_else(garbled)?)))
    }

    fn at_followed(&self, commit: CommitId) -> Proposal {
        Proposal {
            branch: self.followed_ref().to_owned(),
            commit,
        }
    }
}
