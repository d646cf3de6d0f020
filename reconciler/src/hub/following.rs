//! Which commit of source is followed, as the engine asks for it. Blocks.

use std::sync::PoisonError;

use render::Revision;

use super::engine::{Event, StateCommit, StateHead};
use super::keeper::{Keeper, chain};
use super::publish::{Followed, StateError};
use super::repository::Relation;
use super::source::Source;

/// Whether a followed commit builds on the one that `rendered` was made from: they are the same at most looks.
#[derive(Clone, Debug)]
pub(super) struct Newer {
    followed: Revision,
    from: Revision,
    is_newer: bool,
}

impl Keeper {
    /// The commit that is followed, where it is newer than the one that `rendered` was made from.
    pub(super) fn followed(
        &self,
        source: &Source,
        rendered: &StateHead,
        released: &StateHead,
    ) -> Result<Option<Revision>, String> {
        let followed = self.repository().followed().map_err(|error| chain(&error))?;
        let from = made_from(rendered).or_else(|| made_from(released));
        Ok(followed
            .filter(|followed| self.is_newer(source, followed, from.as_ref()))
            .map(|followed| followed.source))
    }

    /// Remembers which one it is.
    pub(super) fn follow(&self, followed: &Followed, seconds: i64) -> Result<Event, StateError> {
        self.repository().follow(followed, seconds)?;
        Ok(Event::Followed(followed.source.clone()))
    }

    fn is_newer(&self, source: &Source, followed: &Followed, from: Option<&Revision>) -> bool {
        let Some(from) = from.filter(|from| Some(*from) != followed.rendered.as_ref()) else {
            // It was when it was noted, and nothing was rendered since.
            return from != Some(&followed.source);
        };
        let mut known = self.newer.lock().unwrap_or_else(PoisonError::into_inner);
        let of_these = |known: &&Newer| known.followed == followed.source && known.from == *from;
        if let Some(known) = known.as_ref().filter(of_these) {
            return known.is_newer;
        }
        let builds_on = match source.relation(from, &followed.source) {
            Ok(relation) => relation == Relation::Descendant,
            Err(_) => return false,
        };
        if builds_on || matches!(source.is_relation_told(from, &followed.source), Ok(true)) {
            *known = Some(Newer {
                followed: followed.source.clone(),
                from: from.clone(),
                is_newer: builds_on,
            });
        }
        builds_on
    }
}

/// The commit of source that a state ref was made from.
fn made_from(head: &StateHead) -> Option<Revision> {
    let from = |commit: &StateCommit| Some(commit.published.record.as_ref()?.source.clone());
    match head {
        StateHead::At { commit, .. } => from(commit),
        StateHead::Malformed { last, .. } => from(last.as_ref()?),
        StateHead::Missing | StateHead::Unreadable(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use render::Published;
    use render::published::{Cause, RENDER_VERSION, ReleaseRecord};

    use super::*;
    use crate::hub::publish::{Author, StateRefs, StateRepository};
    use crate::hub::repository::fixture::Fixture;

    fn revision(id: &str) -> Revision {
        Revision::parse(id).expect("git prints full ids")
    }

    fn rendered(source: &Revision) -> StateHead {
        let record = ReleaseRecord {
            cause: Cause::SourceCommit,
            source: source.clone(),
            sequence: None,
            rendered: None,
            departed: Default::default(),
            orphaned: Default::default(),
            render_version: RENDER_VERSION,
        };
        let commit = StateCommit {
            commit: source.clone(),
            lineage: source.clone(),
            published: Arc::new(Published {
                record: Some(record),
                ..Published::default()
            }),
        };
        StateHead::At {
            commit: Box::new(commit),
            forward: true,
        }
    }

    #[test]
    fn a_note_counts_while_it_is_newer_than_what_is_rendered() {
        let people = Fixture::new();
        let [one, two, three, four] = ["one", "two", "three", "four"].map(|message| revision(&people.commit(message)));
        let source = Source::open(people.path(), "main").expect("it opens");
        let open = StateRepository::open(people.path(), StateRefs::default(), Author::default(), &source);
        let keeper = Keeper::new(open.expect("it opens"));
        let counts = |rendered: &StateHead, released: &StateHead| {
            let found = keeper.followed(&source, rendered, released);
            assert_eq!(
                keeper.followed(&source, rendered, released),
                found,
                "asked again it says the same"
            );
            found.expect("it is readable")
        };
        let missing = || StateHead::Missing;
        assert_eq!(counts(&rendered(&one), &missing()), None);
        let followed = Followed {
            source: three.clone(),
            rendered: Some(one.clone()),
        };
        assert!(matches!(keeper.follow(&followed, 1), Ok(Event::Followed(noted)) if noted == three));
        assert_eq!(counts(&rendered(&one), &missing()), Some(three.clone()));
        // While nobody ran, a person merged what an older commit proposed.
        assert_eq!(counts(&rendered(&two), &missing()), Some(three.clone()));
        assert_eq!(counts(&missing(), &rendered(&two)), Some(three.clone()));
        assert_eq!(counts(&missing(), &missing()), Some(three.clone()), "both were lost");
        assert_eq!(counts(&rendered(&three), &missing()), None);
        assert_eq!(counts(&rendered(&four), &missing()), None);
        // Another history was rendered since, and the old one is gone.
        people.git(&["checkout", "--quiet", "--orphan", "other"]);
        let other = revision(&people.commit("another history"));
        assert_eq!(counts(&rendered(&other), &missing()), None);
        people.lose(three.as_str());
        assert_eq!(counts(&rendered(&two), &missing()), None);
        assert_eq!(
            counts(&rendered(&one), &missing()),
            Some(three),
            "nothing was rendered since: nobody counts"
        );
    }
}
