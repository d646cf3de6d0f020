use super::{FleetState, State, open};
use crate::hub::publish::{StateError, StateRef};
use crate::hub::repository::Relation;

#[test]
fn a_ref_that_somebody_moved_is_left_where_it_is() {
    let state = State::new();
    let first = state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "1"));
    let ours = state.write(Some(first), &FleetState::new(2).with("shop/web", "2"));
    state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
    let theirs = state.fixture.commit("by hand");
    let moved = state
        .repository
        .advance(StateRef::Rendered, Some(first), ours, "too late");
    let Err(StateError::Moved { found: Some(found), .. }) = moved else {
        unreachable!("got {moved:?}");
    };
    assert_eq!(found.to_string(), theirs);
    assert_eq!(state.fixture.git(&["rev-parse", "flotilla/rendered"]), theirs);
}

#[test]
fn a_ref_that_should_not_exist_or_is_gone_is_not_made() {
    let state = State::new();
    let first = state.publish(StateRef::Released, &FleetState::new(1).with("shop/web", "1"));
    let other = state.write(None, &FleetState::new(1).with("shop/web", "2"));
    let again = state
        .repository
        .advance(StateRef::Released, None, other, "not the first");
    assert!(matches!(again, Err(StateError::Moved { found: Some(_), .. })));
    state.fixture.git(&["update-ref", "-d", "refs/heads/flotilla/released"]);
    let gone = state.repository.advance(StateRef::Released, Some(first), first, "gone");
    assert!(matches!(gone, Err(StateError::Moved { found: None, .. })));
    assert_eq!(state.repository.head(StateRef::Released).expect("readable"), None);
}

#[test]
fn moving_a_ref_twice_to_the_same_commit_is_moving_it_once() {
    let state = State::new();
    let first = state.publish(StateRef::Released, &FleetState::new(1).with("shop/web", "1"));
    let second = state.publish(StateRef::Released, &FleetState::new(2).with("shop/web", "2"));
    let again = |expected| state.repository.advance(StateRef::Released, expected, second, "again");
    again(Some(first)).expect("it is there already");
    again(None).expect("it is there already");
}

#[test]
fn of_writers_at_once_each_lands_after_the_other_or_not_at_all() {
    let state = State::new();
    state.publish(StateRef::Released, &FleetState::new(0).with("shop/web", "0"));
    let handles = [open(&state.fixture), open(&state.fixture), open(&state.fixture)];
    std::thread::scope(|scope| {
        for (writer, handle) in handles.iter().enumerate() {
            scope.spawn(move || {
                for step in 0..10 {
                    let fleet = FleetState::new(1).with("shop/web", &format!("{writer} {step}"));
                    loop {
                        let parent = handle.head(StateRef::Released).expect("readable");
                        let commit = handle.write_commit(parent, &fleet.decision()).expect("written");
                        match handle.advance(StateRef::Released, parent, commit, "race") {
                            Ok(()) => break,
                            Err(StateError::Moved { .. } | StateError::RefNotMoved { .. }) => {}
                            Err(other) => unreachable!("{other:?}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(state.fixture.git(&["rev-list", "--count", "flotilla/released"]), "31");
    state.fsck();
}

#[test]
fn packed_refs_are_moved_as_well() {
    let state = State::new();
    let first = state.publish(StateRef::Released, &FleetState::new(1).with("shop/web", "1"));
    state.fixture.git(&["pack-refs", "--all"]);
    let second = state.publish(StateRef::Released, &FleetState::new(2).with("shop/web", "2"));
    assert_ne!(first, second);
    assert_eq!(
        state.fixture.git(&["rev-parse", "flotilla/released"]),
        second.to_string()
    );
}

#[test]
fn the_lineage_is_the_root_of_the_first_parents() {
    let state = State::new();
    let first = state.publish(StateRef::Released, &FleetState::new(1).with("shop/web", "1"));
    let second = state.publish(StateRef::Released, &FleetState::new(2).with("shop/web", "2"));
    let third = state.publish(StateRef::Released, &FleetState::new(3).with("shop/web", "3"));
    for commit in [second, third, first] {
        assert_eq!(state.repository.lineage(commit).expect("readable"), first.revision());
    }
    let other = state.write(None, &FleetState::new(9).with("shop/web", "other root"));
    assert_eq!(state.repository.lineage(other).expect("readable"), other.revision());
    assert_eq!(
        state.repository.relation(third, first).expect("readable"),
        Relation::Rewritten,
        "rewound"
    );
    assert_eq!(
        state.repository.relation(first, third).expect("readable"),
        Relation::Descendant
    );
}

#[test]
fn a_ref_is_put_back_to_a_commit_that_clusters_name() {
    let state = State::new();
    let first = state.publish(StateRef::Released, &FleetState::new(1).with("shop/web", "1"));
    let second = state.publish(StateRef::Released, &FleetState::new(2).with("shop/web", "2"));
    state
        .fixture
        .git(&["update-ref", "refs/heads/flotilla/released", &first.to_string()]);
    let fresh = open(&state.fixture);
    let named = fresh.commit(&second.revision()).expect("readable");
    assert_eq!(named, Some(second), "rewound, and still there");
    fresh
        .advance(StateRef::Released, Some(first), second, "adopt what clusters hold")
        .expect("moved");
    let unknown = super::source_revision();
    assert_eq!(fresh.commit(&unknown).expect("readable"), None);
}
