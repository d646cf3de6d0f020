//! Whether history went on or was rewritten, whether somebody said that it may be, and what came in between.

use render::Revision;

use super::branch::{Source, SourceError, known};
use crate::hub::repository::{
    Relation, commits_since, is_relation_told, merge_base, relation, revision, trailer_values, trailers,
};
use crate::limits::HISTORY_COMMITS_MAX;

/// The trailer that accepts a rewritten history; its value is the head that was accepted before.
pub const ACCEPT_REWRITE: &str = "Accept-Rewrite";

/// Fewest hex digits of a shortened head in that trailer; Git's own short ids are unique far below it.
const HEAD_DIGITS_MIN: usize = 12;

impl Source {
    /// How `head` relates to the revision that was accepted before it.
    pub fn relation(&self, accepted: &Revision, head: &Revision) -> Result<Relation, SourceError> {
        let (old, new) = (known(accepted)?, known(head)?);
        self.repository
            .read(|repo| relation(repo, old, new))
            .map_err(SourceError::Unreadable)
    }

    /// Whether enough of a shallow clone's history is here for [`Self::relation`].
    pub fn is_relation_told(&self, accepted: &Revision, head: &Revision) -> Result<bool, SourceError> {
        let (old, new) = (known(accepted)?, known(head)?);
        self.repository
            .read(|repo| is_relation_told(repo, old, new))
            .map_err(SourceError::Unreadable)
    }

    /// What a trailer says in the commits that `head` builds on and `since` does not, each with its commit.
    pub fn trailer_values(
        &self,
        head: &Revision,
        since: Option<&Revision>,
        token: &str,
    ) -> Result<Vec<(Revision, String)>, SourceError> {
        let from = known(head)?;
        let until = since.map(known).transpose()?;
        let found = self
            .repository
            .read(|repo| trailer_values(repo, from, until, HISTORY_COMMITS_MAX, token));
        let found = found.map_err(SourceError::Unreadable)?.into_iter();
        Ok(found.map(|(id, value)| (revision(id), value)).collect())
    }

    /// The newest `max` commits that `head` builds on and `since` does not; `head` alone where `since` is not here.
    pub fn commits_since(
        &self,
        head: &Revision,
        since: Option<&Revision>,
        max: usize,
    ) -> Result<Vec<Revision>, SourceError> {
        let from = known(head)?;
        let until = since.map(known).transpose()?;
        let found = self.repository.read(|repo| commits_since(repo, from, until, max));
        let found = found.map_err(SourceError::Unreadable)?;
        Ok(found.into_iter().map(revision).collect())
    }

    /// The newest revision that two build on; `None` where there is none here.
    pub fn merge_base(&self, one: &Revision, other: &Revision) -> Result<Option<Revision>, SourceError> {
        let (one, other) = (known(one)?, known(other)?);
        let base = self.repository.read(|repo| merge_base(repo, one, other));
        Ok(base.map_err(SourceError::Unreadable)?.map(revision))
    }

    /// Whether a commit of the new history, `head` or one of the newest thousand that it builds on, carries
    /// the trailer `Accept-Rewrite: <old head>`. The old history cannot: it would have to name its own head.
    /// Naming in full a descendant of `old` will do: a hub that starts knows only the commit it published
    /// last, and whoever accepted the loss of what came later accepted this one's as well.
    pub fn accept_rewrite(&self, head: &Revision, old: &Revision) -> Result<bool, SourceError> {
        let from = known(head)?;
        let accepted = known(old)?;
        let later = |repo: &gix::Repository, value: &str| {
            let named = Revision::parse(value).ok().and_then(|named| known(&named).ok());
            named.is_some_and(|named| matches!(relation(repo, accepted, named), Ok(Relation::Descendant)))
        };
        self.repository
            .read(|repo| {
                let names_old = |token: &str, value: &str| {
                    token.eq_ignore_ascii_case(ACCEPT_REWRITE) && (names(value, old) || later(repo, value))
                };
                trailers(repo, from, HISTORY_COMMITS_MAX, names_old)
            })
            .map_err(SourceError::Unreadable)
    }
}

fn names(value: &str, old: &Revision) -> bool {
    value.len() >= HEAD_DIGITS_MIN && old.as_str().starts_with(&value.to_ascii_lowercase())
}
