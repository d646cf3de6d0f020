//! The commit that is followed.

use render::Revision;

use super::{State, open, source_revision};
use crate::hub::publish::{CommitId, Followed, StateError};

const REF: &str = "refs/flotilla/followed";

fn head(state: &State) -> Revision {
    Revision::parse(state.fixture.head()).expect("git prints full ids")
}

#[test]
fn the_commit_that_is_followed_reads_back_and_stays_readable_after_its_branch_was_rewritten() {
    let state = State::new();
    let repository = open(&state.fixture);
    assert_eq!(repository.followed().expect("readable"), None);
    let first = Followed {
        source: head(&state),
        rendered: None,
    };
    state.fixture.commit("revoked");
    let second = Followed {
        source: head(&state),
        rendered: Some(first.source.clone()),
    };
    for (found, followed) in [(None, &first), (Some(&first.source), &second)] {
        repository.follow(found, followed, 1).expect("written");
        let at = state.fixture.git(&["rev-parse", REF]);
        repository.follow(found, followed, 2).expect("it says so already");
        assert_eq!(
            state.fixture.git(&["rev-parse", REF]),
            at,
            "doing it twice is doing it once"
        );
        assert_eq!(repository.followed().expect("readable").as_ref(), Some(followed));
    }
    state.fixture.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    state.fixture.git(&["reflog", "expire", "--expire=now", "--all"]);
    state.fixture.git(&["gc", "--quiet", "--prune=now"]);
    let kept = state.fixture.git(&["cat-file", "-t", second.source.as_str()]);
    assert_eq!(kept, "commit", "nothing else leads to it any more");
    state.fsck();
}

#[test]
fn a_commit_that_is_followed_and_is_in_another_repository_is_remembered_too() {
    let state = State::new();
    let followed = Followed {
        source: source_revision(),
        rendered: None,
    };
    open(&state.fixture).follow(None, &followed, 1).expect("written");
    assert_eq!(open(&state.fixture).followed().expect("readable"), Some(followed));
}

#[test]
fn what_another_hub_noted_meanwhile_is_not_noted_over() {
    let state = State::new();
    let repository = open(&state.fixture);
    let [one, two, three] = ["one", "two", "three"].map(|message| {
        state.fixture.commit(message);
        Followed {
            source: head(&state),
            rendered: None,
        }
    });
    repository.follow(None, &one, 1).expect("written");
    repository.follow(Some(&one.source), &three, 2).expect("written");
    let at = state.fixture.git(&["rev-parse", REF]);
    for found in [None, Some(&one.source)] {
        let late = repository.follow(found, &two, 3);
        let stands = |found: &Option<CommitId>| found.map(|found| found.to_string()) == Some(at.clone());
        assert!(
            matches!(&late, Err(StateError::Moved { name, found }) if name == REF && stands(found)),
            "{late:?}"
        );
    }
    assert_eq!(repository.followed().expect("readable"), Some(three));
}

#[test]
fn what_somebody_put_where_the_followed_commit_is_remembered_is_an_error_and_not_nothing() {
    let state = State::new();
    for message in [
        "by hand",
        "Follow it\n\nSource: main",
        "Follow it\n\nSource: 0123456789abcdef0123456789abcdef01234567\nRendered: none",
    ] {
        state.fixture.commit(message);
        state.fixture.git(&["update-ref", REF, "HEAD"]);
        let found = open(&state.fixture).followed();
        assert!(
            matches!(found, Err(StateError::FollowedGarbled { .. })),
            "{message}: {found:?}"
        );
    }
}
