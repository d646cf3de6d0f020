//! Which commit of source is followed, as the engine asks for it. Blocks.

use std::sync::{Mutex, PoisonError};

use render::Revision;

use super::engine::{Event, NoteUnclear, Noted, StateCommit, StateHead};
use super::keeper::{Keeper, chain};
use super::publish::{Followed, StateError};
use super::repository::Relation;
use super::source::Source;

/// Whether one commit builds on another one: they are the same at most looks.
#[derive(Clone, Debug)]
pub(super) struct BuildsOn {
    newer: Revision,
    older: Revision,
    is_so: bool,
}

impl Keeper {
    /// The commit that is noted, and whether it is newer than the one that `rendered` was made from.
    pub(super) fn followed(
        &self,
        source: &Source,
        accepted: Option<&Revision>,
        (rendered, released): (&StateHead, &StateHead),
    ) -> Result<Option<Noted>, NoteUnclear> {
        let unreadable = |error: StateError| NoteUnclear {
            message: chain(&error),
            sought: Vec::new(),
        };
        let Some(followed) = self.repository().followed().map_err(unreadable)? else {
            return Ok(None);
        };
        let from = made_from(rendered).or_else(|| made_from(released));
        let counts = match from {
            Some(from) if Some(&from) != followed.rendered.as_ref() => {
                builds_on(&self.newer, source, &followed.source, &from)
                    .ok_or_else(|| self.unsaid(followed.source.clone(), from))?
            }
            // It was when it was noted, and nothing was rendered since.
            from => from.as_ref() != Some(&followed.source),
        };
        let accepted = accepted.filter(|accepted| counts && **accepted != followed.source);
        let is_left_behind =
            accepted.and_then(|accepted| builds_on(&self.left_behind, source, accepted, &followed.source));
        Ok(Some(Noted {
            counts,
            is_left_behind: is_left_behind == Some(true),
            source: followed.source,
        }))
    }

    /// Taken for an older one, a note would let in again whom it shut out.
    fn unsaid(&self, followed: Revision, from: Revision) -> NoteUnclear {
        let name = self.repository().followed_ref();
        NoteUnclear {
            message: format!(
                "the history of source that is here does not say whether {followed}, which {name} names, is newer than {from}; hint: push a branch that holds it, or remove that ref where nothing of it is to count"
            ),
            sought: vec![followed, from],
        }
    }

    /// Remembers which one it is.
    pub(super) fn follow(
        &self,
        found: Option<&Revision>,
        followed: &Followed,
        seconds: i64,
    ) -> Result<Event, StateError> {
        self.repository().follow(found, followed, seconds)?;
        Ok(Event::Followed(followed.source.clone()))
    }
}

/// Whether `newer` builds on `older`, and is another one; `None` where the history that is here does not say it. What was
/// found out last is `known`.
fn builds_on(known: &Mutex<Option<BuildsOn>>, source: &Source, newer: &Revision, older: &Revision) -> Option<bool> {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let of_these = |known: &&BuildsOn| known.newer == *newer && known.older == *older;
    if let Some(known) = known.as_ref().filter(of_these) {
        return Some(known.is_so);
    }
    let is_so = source.relation(older, newer).ok()? == Relation::Descendant;
    if !is_so && !source.is_relation_told(older, newer).ok()? {
        return None;
    }
    *known = Some(BuildsOn {
        newer: newer.clone(),
        older: older.clone(),
        is_so,
    });
    Some(is_so)
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
    use crate::hub::repository::fixture::{Fixture, git};

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
            let found = keeper.followed(&source, None, (rendered, released));
            assert_eq!(
                keeper.followed(&source, None, (rendered, released)),
                found,
                "asked again it says the same"
            );
            let noted = found.expect("it is readable");
            noted.filter(|noted| noted.counts).map(|noted| noted.source)
        };
        let missing = || StateHead::Missing;
        assert_eq!(counts(&rendered(&one), &missing()), None);
        let followed = Followed {
            source: three.clone(),
            rendered: Some(one.clone()),
        };
        assert!(matches!(keeper.follow(None, &followed, 1), Ok(Event::Followed(noted)) if noted == three));
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
        let unclear = keeper.followed(&source, None, (&rendered(&two), &missing()));
        let unclear = unclear.expect_err("it is not taken for an older one");
        assert_eq!(unclear.sought, [three.clone(), two.clone()]);
        assert!(unclear.message.contains("refs/flotilla/followed"), "{unclear:?}");
        assert_eq!(
            counts(&rendered(&one), &missing()),
            Some(three),
            "nothing was rendered since: nobody counts"
        );
    }

    #[test]
    fn a_note_is_left_behind_where_the_accepted_commit_builds_on_it_and_not_where_it_is_of_another_history() {
        let people = Fixture::new();
        let [one, two, three] = ["one", "two", "three"].map(|message| revision(&people.commit(message)));
        people.git(&["checkout", "--quiet", "--orphan", "other"]);
        let other = revision(&people.commit("another history"));
        let source = Source::open(people.path(), "main").expect("it opens");
        let open = StateRepository::open(people.path(), StateRefs::default(), Author::default(), &source);
        let keeper = Keeper::new(open.expect("it opens"));
        let followed = Followed {
            source: two.clone(),
            rendered: Some(one.clone()),
        };
        keeper.follow(None, &followed, 1).expect("written");
        let is_left_behind = |accepted: Option<&Revision>, from: &Revision| {
            let noted = keeper.followed(&source, accepted, (&rendered(from), &StateHead::Missing));
            noted.expect("it is readable").expect("it is noted").is_left_behind
        };
        assert!(is_left_behind(Some(&three), &one));
        assert!(is_left_behind(Some(&three), &one), "asked again it says the same");
        for accepted in [None, Some(&one), Some(&two), Some(&other)] {
            assert!(!is_left_behind(accepted, &one), "{accepted:?}");
        }
        assert!(!is_left_behind(Some(&three), &three), "it does not count any more");
    }

    #[test]
    fn a_note_of_which_a_shallow_copy_does_not_say_that_it_is_older_is_not_taken_for_that() {
        let people = Fixture::new();
        let [one, two, three, four] = ["one", "two", "three", "four"].map(|message| revision(&people.commit(message)));
        people.git(&["checkout", "--quiet", "--orphan", "other"]);
        let other = revision(&people.commit("another history"));
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("file://{}", people.path().display());
        git(
            folder.path(),
            &["clone", "--quiet", "--depth=2", "--branch=main", &url, "r"],
        );
        let copy = folder.path().join("r");
        git(&copy, &["fetch", "--quiet", &url, "other"]);
        let source = Source::open(&copy, "main").expect("it opens");
        let open = StateRepository::open(&copy, StateRefs::default(), Author::default(), &source);
        let keeper = Keeper::new(open.expect("it opens"));
        let note = |found: Option<&Revision>, noted: &Revision| {
            let followed = Followed {
                source: noted.clone(),
                rendered: Some(one.clone()),
            };
            keeper.follow(found, &followed, 1).expect("written");
        };
        let counts = |from: &Revision| {
            let noted = keeper.followed(&source, None, (&rendered(from), &StateHead::Missing));
            noted.map(|noted| noted.expect("it is noted").counts)
        };
        note(None, &four);
        assert_eq!(counts(&three), Ok(true));
        assert_eq!(
            counts(&two).expect_err("its edge is before that").sought,
            [four.clone(), two]
        );
        note(Some(&four), &other);
        assert_eq!(counts(&three), Ok(false), "that history is here to its root");
    }
}
