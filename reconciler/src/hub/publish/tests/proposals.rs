use std::sync::Arc;

use render::{Digest, Revision};

use super::{FleetState, State, open};
use crate::hub::publish::{CommitId, Proposal, Standing, StateError, StateRef};
use crate::hub::repository::Relation;

#[test]
fn a_proposal_is_a_branch_named_by_what_it_proposes() {
    let state = State::new();
    let base = state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "1"));
    let next = FleetState::new(1).with("shop/web", "2");
    let proposal = state
        .repository
        .propose(base, &next.decision())
        .expect("written")
        .expect("a change");
    let name = proposal
        .branch
        .strip_prefix("refs/heads/flotilla/proposed/")
        .expect("the prefix");
    assert!(
        name.len() == 12 && name.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{name}"
    );
    assert_eq!(
        state.repository.head(StateRef::Rendered).expect("readable"),
        Some(base),
        "nothing is approved yet"
    );
    let mut later = next.clone();
    later.message = "said otherwise".to_owned();
    let again = open(&state.fixture)
        .propose(base, &later.decision())
        .expect("written")
        .expect("a change");
    assert_eq!(again, proposal, "the same proposal is not made twice");
    assert_eq!(
        state.repository.proposals().expect("readable"),
        std::slice::from_ref(&proposal)
    );
    assert_eq!(
        state.repository.standing(&proposal).expect("readable"),
        Standing::Ours { base }
    );
    state.fsck();
}

#[test]
fn nothing_to_propose_is_no_branch() {
    let state = State::new();
    let fleet = FleetState::new(1).with("shop/web", "1");
    let base = state.publish(StateRef::Rendered, &fleet);
    assert_eq!(
        state.repository.propose(base, &fleet.decision()).expect("compared"),
        None
    );
    assert_eq!(state.repository.proposals().expect("readable"), []);
}

/// A rendered, a proposal on it, and what it proposes.
fn proposed() -> (State, CommitId, Proposal, FleetState) {
    let state = State::new();
    let base = state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "1"));
    let next = FleetState::new(1).with("shop/web", "2");
    let proposal = propose(&state, base, &next);
    (state, base, proposal, next)
}

#[track_caller]
fn propose(state: &State, base: CommitId, next: &FleetState) -> Proposal {
    let proposal = state.repository.propose(base, &next.decision()).expect("written");
    proposal.expect("a change")
}

fn rendered(state: &State) -> CommitId {
    let head = state.repository.head(StateRef::Rendered).expect("readable");
    head.expect("there")
}

fn names(state: &State) -> Vec<String> {
    let proposals = state.repository.proposals().expect("readable");
    proposals.into_iter().map(|proposal| proposal.branch).collect()
}

#[test]
fn every_way_of_merging_shows_in_rendered_and_leaves_no_proposal() {
    for merge in [
        &["merge", "--quiet", "--ff-only"][..],
        &["merge", "--quiet", "--no-ff", "-m", "merged"],
        &["merge", "--quiet", "--squash"],
        // As a rebase does on a host of Git: the same change as another commit.
        &["-c", "user.name=Bo", "cherry-pick", "--no-commit"],
    ] {
        let (state, base, proposal, next) = proposed();
        state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
        state.fixture.git(&[merge, &[&proposal.commit.to_string()]].concat());
        if merge.contains(&"--squash") || merge.contains(&"--no-commit") {
            state.fixture.commit("another commit");
        }
        let (head, published) = state
            .repository
            .read_published(StateRef::Rendered)
            .expect("readable")
            .expect("there");
        assert_eq!(published, next.published, "{merge:?}");
        assert_eq!(state.tree(head), state.tree(proposal.commit), "{merge:?}");
        assert_eq!(
            state.repository.relation(base, head).expect("readable"),
            Relation::Descendant
        );
        assert_eq!(
            state.repository.propose(head, &next.decision()).expect("compared"),
            None
        );
        let kept = state.repository.withdraw_all(head, None, false).expect("withdrawn");
        assert_eq!((kept, names(&state)), (Vec::new(), Vec::new()), "{merge:?}");
        state.fsck();
    }
}

#[test]
fn a_proposal_on_another_commit_than_rendered_is_replaced() {
    let (state, base, stale, next) = proposed();
    let moved = state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "3"));
    let refused = state.repository.propose(base, &next.decision());
    assert!(matches!(refused, Err(StateError::Moved { .. })), "{refused:?}");
    let fresh = propose(&state, moved, &next);
    assert_ne!(fresh.branch, stale.branch);
    state
        .repository
        .withdraw_all(moved, Some(&fresh), true)
        .expect("withdrawn");
    assert_eq!(names(&state), [fresh.branch]);
}

#[test]
fn equal_decisions_come_to_one_proposal_whatever_commit_of_source_they_are_made_from() {
    let (state, base, proposal, next) = proposed();
    let mut later = next.clone();
    let record = Arc::make_mut(&mut later.published).record.as_mut().expect("set");
    record.source = Revision::parse("f".repeat(40)).expect("forty hex digits");
    assert_eq!(
        propose(&state, base, &later),
        proposal,
        "a newer commit that changes nothing more"
    );

    // Another hub, or one that was killed, wrote its own all the same.
    let other = state.write(Some(base), &later);
    let name = Digest::of_bytes(format!("{base}\n{}\n", state.tree(other)).as_bytes()).short(12);
    state
        .fixture
        .git(&["branch", &format!("flotilla/proposed/{name}"), &other.to_string()]);
    assert_eq!(names(&state).len(), 2);
    let (one, two) = (propose(&state, base, &next), propose(&state, base, &later));
    assert_eq!(one, two, "both come to the same");
    state
        .repository
        .withdraw_all(base, Some(&one), true)
        .expect("withdrawn");
    assert_eq!(names(&state), [one.branch]);

    let changed = FleetState::new(1).with("shop/web", "4");
    assert_ne!(
        propose(&state, base, &changed).commit,
        one.commit,
        "another decision is another proposal"
    );
}

#[test]
fn an_open_proposal_stays_until_nothing_is_to_be_decided() {
    let (state, base, proposal, _) = proposed();
    state.repository.withdraw_all(base, None, false).expect("withdrawn");
    assert_eq!(names(&state), [proposal.branch]);
    state.repository.withdraw_all(base, None, true).expect("withdrawn");
    assert_eq!(names(&state), Vec::<String>::new());
}

#[test]
fn a_branch_with_commits_of_people_is_kept_and_named_until_it_is_merged() {
    let (state, _, proposal, _) = proposed();
    let branch = proposal.branch.trim_start_matches("refs/heads/");
    state.fixture.git(&["checkout", "--quiet", branch]);
    state.fixture.write("README.md", "a remark");
    state.fixture.commit("a remark");
    let named = vec![proposal.branch.clone()];
    let withdraw = |open| {
        state
            .repository
            .withdraw_all(rendered(&state), None, open)
            .expect("looked at")
    };
    assert_eq!(withdraw(true), named);
    state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "5"));
    assert_eq!(withdraw(true), named, "also where it is stale");
    assert_eq!(names(&state), named);
    state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
    state
        .fixture
        .git(&["merge", "--quiet", "-X", "theirs", "-m", "merged", branch]);
    assert_eq!(withdraw(false), Vec::<String>::new());
    assert_eq!(names(&state), Vec::<String>::new(), "nothing of it is lost");
}

#[test]
fn a_branch_that_a_person_forced_elsewhere_is_theirs() {
    let (state, base, proposal, next) = proposed();
    let branch = proposal.branch.trim_start_matches("refs/heads/");
    state.fixture.git(&["checkout", "--quiet", branch]);
    state.fixture.git(&[
        "commit",
        "--quiet",
        "--amend",
        "--reset-author",
        "-m",
        "with other words",
    ]);
    let amended = state.fixture.head();
    assert_eq!(
        state
            .repository
            .standing(&propose(&state, base, &next))
            .expect("readable"),
        Standing::Ours { base },
        "the same content on the same base is the same proposal, whoever worded it"
    );
    state
        .fixture
        .write("units/shop/web/default/ConfigMap_shop_web.yaml", "edited: []\n");
    state
        .fixture
        .git(&["commit", "--quiet", "--all", "--amend", "-m", "with other content"]);
    let theirs = propose(&state, base, &next);
    assert_eq!(theirs.branch, proposal.branch, "it has the name of what is proposed");
    assert_ne!(theirs.commit.to_string(), amended);
    assert_eq!(state.repository.standing(&theirs).expect("readable"), Standing::Theirs);
}

#[test]
fn a_proposal_with_commits_of_people_is_left_alone() {
    let state = State::new();
    let base = state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "1"));
    let next = FleetState::new(1).with("shop/web", "2");
    let proposal = state
        .repository
        .propose(base, &next.decision())
        .expect("written")
        .expect("a change");
    let branch = proposal.branch.trim_start_matches("refs/heads/");
    state.fixture.git(&["checkout", "--quiet", branch]);
    let theirs = state.fixture.commit("a remark");
    let again = state
        .repository
        .propose(base, &next.decision())
        .expect("written")
        .expect("a change");
    assert_eq!(again.commit.to_string(), theirs);
    let withdrawn = state.repository.withdraw(&proposal);
    assert!(matches!(withdrawn, Err(StateError::Moved { .. })), "{withdrawn:?}");
    state.repository.withdraw(&again).expect("it points where we think");
    assert_eq!(state.repository.proposals().expect("readable"), []);
}
