use std::time::{Duration, SystemTime};

use super::{FleetState, State, open};
use crate::hub::publish::{Author, StateError, StateRef, StateRefs, StateRepository};
use crate::hub::repository::fixture::Fixture;
use crate::hub::source::Source;

#[test]
fn one_ref_in_other_refs_out() {
    let fixture = Fixture::new();
    fixture.commit("one");
    for branch in [
        "flotilla/rendered",
        "flotilla/released",
        "flotilla/proposed/0123456789ab",
        "flotilla",
    ] {
        let source = Source::open(fixture.path(), branch).expect("a valid name");
        let opened = StateRepository::open(fixture.path(), StateRefs::default(), Author::default(), &source);
        assert!(matches!(opened, Err(StateError::SourceIsOutput { .. })), "{branch}");
    }
}

#[test]
fn a_state_repository_of_its_own_may_have_any_branch_as_source() {
    let fixture = Fixture::new();
    fixture.commit("one");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.git");
    StateRepository::create(&path).expect("created");
    let source = Source::open(fixture.path(), "flotilla/rendered").expect("a valid name");
    let state = StateRepository::open(&path, StateRefs::default(), Author::default(), &source).expect("another one");
    assert_eq!(state.head(StateRef::Released).expect("readable"), None);
    let commit = state
        .write_commit(None, &FleetState::new(1).with("shop/web", "1").decision())
        .expect("written");
    state.advance(StateRef::Released, None, commit, "first").expect("moved");
    assert_eq!(state.head(StateRef::Released).expect("readable"), Some(commit));
}

#[test]
fn names_that_cannot_stand_beside_each_other_are_refused() {
    #[track_caller]
    fn check(rendered: &str, released: &str, proposed: &str) {
        let fixture = Fixture::new();
        let source = Source::open(fixture.path(), "main").expect("opens");
        let refs = StateRefs {
            rendered: rendered.to_owned(),
            released: released.to_owned(),
            proposed_prefix: proposed.to_owned(),
            ..StateRefs::default()
        };
        let opened = StateRepository::open(fixture.path(), refs, Author::default(), &source);
        assert!(matches!(
            opened,
            Err(StateError::RefsCollide { .. } | StateError::RefName { .. })
        ));
    }
    check("same", "refs/heads/same", "p/");
    check("a", "a/b", "p/");
    check("a", "b", "a/");
    check("a..b", "b", "p/");
}

#[test]
fn a_lock_left_by_a_killed_process_is_removed_and_a_fresh_one_is_not() {
    let state = State::new();
    state.publish(StateRef::Released, &FleetState::new(1).with("shop/web", "1"));
    let path = state.fixture.file(".git/refs/heads/flotilla/released.lock");
    let lock = std::fs::File::create(&path).expect("created");
    let again = open(&state.fixture);
    assert!(path.exists(), "somebody may be writing");
    let at = again.head(StateRef::Released).expect("readable");
    let next = again.write_commit(at, &FleetState::new(2).decision()).expect("written");
    let moved = again.advance(StateRef::Released, at, next, "blocked");
    assert!(matches!(moved, Err(StateError::RefNotMoved { .. })), "got {moved:?}");
    lock.set_modified(SystemTime::now() - Duration::from_secs(3_600))
        .expect("set");
    let blocked = again.advance(StateRef::Released, at, next, "finds it");
    assert!(
        matches!(blocked, Err(StateError::RefNotMoved { .. })),
        "got {blocked:?}"
    );
    assert!(!path.exists(), "nobody holds a lock for an hour");
    again.advance(StateRef::Released, at, next, "free").expect("moved");
}

#[test]
fn stale_locks_are_removed_when_the_repository_is_opened() {
    let state = State::new();
    let folder = state.fixture.file(".git/refs/heads/flotilla/proposed");
    std::fs::create_dir_all(&folder).expect("created");
    let locks = [
        folder.join("0123456789ab.lock"),
        state.fixture.file(".git/packed-refs.lock"),
    ];
    for path in &locks {
        let lock = std::fs::File::create(path).expect("created");
        lock.set_modified(SystemTime::now() - Duration::from_secs(3_600))
            .expect("set");
    }
    open(&state.fixture);
    assert!(locks.iter().all(|path| !path.exists()));
}
