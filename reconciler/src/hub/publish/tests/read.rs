use super::{FleetState, State, description, open};
use crate::hub::publish::{StateError, StateRef};

#[test]
fn what_was_written_is_read_back_by_another_process() {
    let state = State::new();
    let fleet = FleetState::new(7)
        .with("shop/web", "1")
        .with_variant("shop/web", "0a1b2c3d", "2")
        .with("infra/dns.v1", "3");
    let commit = state.publish(StateRef::Released, &fleet);
    let (found, published) = open(&state.fixture)
        .read_published(StateRef::Released)
        .expect("readable")
        .expect("there");
    assert_eq!(found, commit);
    assert_eq!(published, fleet.published);
}

#[test]
fn a_missing_ref_is_none_and_a_missing_repository_is_an_error() {
    let state = State::new();
    assert_eq!(
        state.repository.read_published(StateRef::Rendered).expect("readable"),
        None
    );
    std::fs::rename(state.fixture.file(".git"), state.fixture.file("away")).expect("renamed");
    assert!(matches!(
        state.repository.read_published(StateRef::Rendered),
        Err(StateError::Unreadable(_))
    ));
}

#[test]
fn a_lost_object_is_an_error_and_never_a_smaller_fleet() {
    for path in [
        "release.yaml",
        "placements",
        "placements/shop",
        "placements/shop/web.yaml",
        "units",
        "units/shop/web",
    ] {
        let state = State::new();
        let commit = state.publish(
            StateRef::Rendered,
            &FleetState::new(1).with("shop/web", "1").with("a/b", "2"),
        );
        state
            .fixture
            .lose(&state.fixture.git(&["rev-parse", &format!("{commit}:{path}")]));
        let read = open(&state.fixture).read_published(StateRef::Rendered);
        assert!(
            matches!(read, Err(StateError::Unreadable(_))),
            "{path} is lost: {read:?}"
        );
    }
}

#[test]
fn a_branch_with_something_else_on_it_is_not_an_empty_fleet() {
    let state = State::new();
    state.fixture.write("README.md", "hello");
    state.fixture.commit("people's own");
    state.fixture.git(&["branch", "flotilla/rendered"]);
    let read = state.repository.read_published(StateRef::Rendered);
    assert!(matches!(read, Err(StateError::NotAState { .. })), "{read:?}");
}

#[test]
fn a_placement_with_conflict_markers_is_an_error() {
    let state = State::new();
    state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "1"));
    state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
    state
        .fixture
        .write("placements/shop/web.yaml", "<<<<<<< ours\n=======\n>>>>>>> theirs\n");
    state.fixture.commit("a bad merge");
    assert!(matches!(
        state.repository.read_published(StateRef::Rendered),
        Err(StateError::Layout { .. })
    ));
}

/// What is wrong with `rendered` after a person's commit on it.
#[track_caller]
fn check_no_state(mend: impl FnOnce(&State), words: &[&str]) {
    let state = State::new();
    let fleet = FleetState::new(1).with("shop/web", "1").with("shop/api", "2");
    state.publish(StateRef::Rendered, &fleet);
    state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
    mend(&state);
    state.fixture.commit("by hand");
    match state.repository.read_published(StateRef::Rendered) {
        Err(error @ StateError::NotAState { .. }) => {
            let said = error.to_string();
            assert!(
                error.is_malformed() && words.iter().all(|word| said.contains(word)),
                "{said}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn contents_without_their_placement_are_no_removal() {
    let words = ["units/shop/web is there", "placements/shop/web.yaml", "remove both"];
    let drop_placement = |state: &State| drop(state.fixture.git(&["rm", "--quiet", "placements/shop/web.yaml"]));
    check_no_state(drop_placement, &words);
    let drop_both = |state: &State| {
        drop(
            state
                .fixture
                .git(&["rm", "-r", "--quiet", "placements/shop/web.yaml", "units/shop/web"]),
        )
    };
    let state = State::new();
    let fleet = FleetState::new(1).with("shop/web", "1").with("shop/api", "2");
    state.publish(StateRef::Rendered, &fleet);
    state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
    drop_both(&state);
    state.fixture.commit("taken back");
    let (_, published) = state
        .repository
        .read_published(StateRef::Rendered)
        .expect("readable")
        .expect("there");
    assert_eq!(published.units.len(), 1, "both are gone: that is a removal");
}

#[test]
fn a_hand_edit_that_no_agent_could_be_sent_is_no_state() {
    let grow = |state: &State| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: big, namespace: shop}}\ndata: {{a: {}}}\n",
            "x".repeat(render::limits::UNIT_BYTES_MAX)
        );
        state
            .fixture
            .write("units/shop/web/default/ConfigMap_shop_big.yaml", text);
    };
    check_no_state(grow, &["units/shop/web/default takes 61 MiB", "may take 60 MiB"]);
}

#[test]
fn a_content_is_read_by_digest_and_checked() {
    let state = State::new();
    let commit = state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "1"));
    let wanted = description("1");
    assert_eq!(
        open(&state.fixture).content(commit, &wanted.digest).expect("there"),
        wanted
    );
    let other = description("other").digest;
    assert!(matches!(
        state.repository.content(commit, &other),
        Err(StateError::ContentMissing { .. })
    ));
}

#[test]
fn a_content_of_released_that_was_edited_by_hand_is_refused() {
    let state = State::new();
    let old = state.publish(StateRef::Released, &FleetState::new(1).with("shop/web", "1"));
    state.fixture.git(&["checkout", "--quiet", "flotilla/released"]);
    let path = "units/shop/web/default/ConfigMap_shop_web.yaml";
    let text = std::fs::read_to_string(state.fixture.file(path)).expect("it was written");
    state.fixture.write(path, text.replace("web", "wob"));
    state.fixture.commit("a hand edit");
    let fresh = open(&state.fixture);
    let (head, _) = fresh
        .read_published(StateRef::Released)
        .expect("readable")
        .expect("there");
    let read = fresh.content(head, &description("1").digest);
    assert!(matches!(read, Err(StateError::ContentDiffers { .. })), "{read:?}");
    assert!(
        state.repository.content(old, &description("1").digest).is_ok(),
        "the commit before still has it"
    );
}

#[test]
fn packing_under_an_open_repository_does_no_harm() {
    let state = State::new();
    let first = state.publish(StateRef::Released, &FleetState::new(1).with("shop/web", "1"));
    let reader = open(&state.fixture);
    reader.published_at(first).expect("readable");
    let second = state.publish(StateRef::Released, &FleetState::new(2).with("shop/web", "2"));
    state.fixture.git(&["gc", "--quiet", "--prune=now"]);
    reader.published_at(second).expect("readable after packing");
    reader
        .content(first, &description("1").digest)
        .expect("readable after packing");
}
