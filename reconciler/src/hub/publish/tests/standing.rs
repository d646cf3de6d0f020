//! What people leave on `rendered`: taken as it stands, or refused with its place.

use super::{FleetState, State, description, open, unit_key};
use crate::hub::publish::{StateError, StateRef};

const MAP: &str = "units/shop/web/default/ConfigMap_shop_web.yaml";

/// A rendered with two units, checked out.
fn checked_out() -> (State, FleetState) {
    let state = State::new();
    let fleet = FleetState::new(1).with("shop/web", "1").with("a/b", "2");
    state.publish(StateRef::Rendered, &fleet);
    state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
    (state, fleet)
}

fn edit(state: &State, from: &str, to: &str) {
    let text = std::fs::read_to_string(state.fixture.file(MAP)).expect("it was written");
    assert!(text.contains(from), "{text}");
    state.fixture.write(MAP, text.replace(from, to));
    state.fixture.commit("by hand");
}

#[test]
fn manifests_edited_by_hand_count_as_they_stand() {
    let (state, fleet) = checked_out();
    edit(&state, "\"1\"", "edited");
    let fresh = open(&state.fixture);
    for repository in [&fresh, &state.repository, &fresh] {
        let (commit, published) = repository
            .read_published(StateRef::Rendered)
            .expect("readable")
            .expect("there");
        let digests = published.units[&unit_key("shop/web")].digests();
        let digest = digests.values().next().expect("it has a variant");
        assert_ne!(
            *digest,
            description("1").digest,
            "the placement's promise does not count"
        );
        let content = repository.content(commit, digest).expect("the files do");
        let text = String::from_utf8(content.to_json()).expect("canonical JSON is UTF-8");
        assert!(text.contains("edited"), "{text}");
        assert_eq!(
            published.units[&unit_key("a/b")],
            fleet.published.units[&unit_key("a/b")]
        );

        // Released as it stands, and put back by the decision that source stands for.
        let mut release = fleet.clone().without_contents();
        release.published = published;
        release.known_in = vec![commit];
        let released = repository.write_commit(None, &release.decision()).expect("found");
        repository.content(released, digest).expect("released as it stands");
        let back = repository
            .write_commit(Some(commit), &fleet.decision())
            .expect("written");
        assert_eq!(state.tree(back), state.tree(state.write(None, &fleet)), "put back");
    }
    state.fsck();
}

#[test]
fn an_object_removed_by_hand_is_removed() {
    let (state, _) = checked_out();
    state.fixture.git(&["rm", "--quiet", MAP]);
    state.fixture.commit("without it");
    let (commit, published) = state
        .repository
        .read_published(StateRef::Rendered)
        .expect("readable")
        .expect("there");
    let digests = published.units[&unit_key("shop/web")].digests();
    let content = state.repository.content(commit, digests.values().next().expect("one"));
    assert_eq!(content.expect("readable").objects.len(), 1);
}

#[test]
fn what_is_taken_back_is_what_it_was() {
    let (state, fleet) = checked_out();
    edit(&state, "\"1\"", "edited");
    let read = || {
        let read = state.repository.read_published(StateRef::Rendered);
        read.expect("readable").expect("there").1
    };
    assert_ne!(read(), fleet.published);
    // What is remembered of the edited commit says nothing of this one, whose placement is the same file.
    state.fixture.git(&["revert", "--no-edit", "HEAD"]);
    assert_eq!(read(), fleet.published);
}

#[track_caller]
fn refused(state: &State, words: &[&str]) {
    let error = open(&state.fixture)
        .read_published(StateRef::Rendered)
        .expect_err("it is no state of the fleet");
    assert!(error.is_malformed(), "{error:?}");
    let text = crate::fault::line(&error);
    let head = state.fixture.head();
    for word in words.iter().chain(&[head.as_str()]) {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn what_is_no_state_of_the_fleet_is_refused_with_commit_and_file() {
    let cases: [(&str, &str, &[&str]); 5] = [
        ("release.yaml", "cause: [\n", &["release.yaml"]),
        ("release.yaml", "cause: merged\n", &["release.yaml"]),
        (
            "placements/shop/web.yaml",
            "<<<<<<< HEAD\n=======\n>>>>>>> other\n",
            &["placements/shop/web.yaml"],
        ),
        (
            MAP,
            "<<<<<<< HEAD\n",
            &["units/shop/web/default", "ConfigMap_shop_web.yaml"],
        ),
        (
            MAP,
            "a: b\n",
            &["units/shop/web/default", "ConfigMap_shop_web.yaml", "kind"],
        ),
    ];
    for (path, text, words) in cases {
        let (state, _) = checked_out();
        state.fixture.write(path, text);
        state.fixture.commit("a bad merge");
        refused(&state, words);
    }
}

#[test]
fn a_placement_that_names_a_variant_that_is_not_there_is_refused() {
    let (state, _) = checked_out();
    state.fixture.git(&["rm", "-r", "--quiet", "units/shop/web"]);
    state.fixture.commit("half of it");
    refused(
        &state,
        &["placements/shop/web.yaml", "units/shop/web/default", "is not there"],
    );
    let (state, _) = checked_out();
    let path = "placements/shop/web.yaml";
    let text = std::fs::read_to_string(state.fixture.file(path)).expect("it was written");
    state
        .fixture
        .write(path, text.replace("variant: default", "variant: \"0a1b2c3d\""));
    state.fixture.commit("a variant by hand");
    refused(&state, &[path, "0a1b2c3d"]);
    let (state, _) = checked_out();
    state.fixture.git(&["rm", "--quiet", "release.yaml"]);
    state.fixture.commit("no record");
    refused(&state, &["release.yaml is missing"]);
}

#[test]
fn a_lost_manifest_is_unreadable_and_not_malformed() {
    let (state, _) = checked_out();
    edit(&state, "\"1\"", "edited");
    state
        .fixture
        .lose(&state.fixture.git(&["rev-parse", &format!("HEAD:{MAP}")]));
    let error = open(&state.fixture).read_published(StateRef::Rendered);
    assert!(matches!(error, Err(StateError::Unreadable(_))), "{error:?}");
}
