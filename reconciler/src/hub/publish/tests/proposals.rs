use super::{FleetState, State, open};
use crate::hub::publish::{StateError, StateRef};
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
    assert_eq!(state.repository.proposal_base(&proposal).expect("readable"), Some(base));
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

#[test]
fn every_way_of_merging_shows_in_rendered() {
    for merge in [
        ["merge", "--ff-only"].as_slice(),
        &["merge", "--no-ff", "-m", "merged"],
        &["merge", "--squash"],
    ] {
        let state = State::new();
        let base = state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "1"));
        let next = FleetState::new(1).with("shop/web", "2");
        let proposal = state
            .repository
            .propose(base, &next.decision())
            .expect("written")
            .expect("a change");
        state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
        state
            .fixture
            .git(&[merge, &["--quiet", &proposal.commit.to_string()]].concat());
        if merge.contains(&"--squash") {
            state.fixture.commit("squashed");
        }
        let (head, published) = state
            .repository
            .read_published(StateRef::Rendered)
            .expect("readable")
            .expect("there");
        assert_eq!(published, next.published, "{merge:?}");
        assert_eq!(
            state.repository.relation(base, head).expect("readable"),
            Relation::Descendant
        );
    }
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
