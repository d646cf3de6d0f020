use std::collections::BTreeMap;
use std::sync::Arc;

use super::{FleetState, State, chart, description, open, unit_key};
use crate::hub::publish::{StateError, StateRef};

#[test]
fn git_reads_what_is_written() {
    let state = State::new();
    let fleet = FleetState::new(7)
        .with("shop/web", "1")
        .with_variant("shop/web", "0a1b2c3d", "2");
    let commit = state.publish(StateRef::Released, &fleet);
    state.fsck();
    let shown = state.fixture.git(&[
        "log",
        "-1",
        "--format=%an <%ae> %at %s|%(trailers:only,unfold)",
        &commit.to_string(),
    ]);
    assert_eq!(
        shown,
        "flotilla <flotilla@localhost> 1700000000 publish the test fleet|\
         Source-Revision: 0123456789abcdef0123456789abcdef01234567\nCause: sourceCommit\nSequence: 7\nRender-Version: 1"
    );
    let folders: Vec<String> = state
        .files(commit)
        .iter()
        .map(|path| {
            path.rsplit_once('/')
                .map_or(path.as_str(), |(folder, _)| folder)
                .to_owned()
        })
        .collect();
    assert_eq!(
        folders,
        [
            "placements/shop",
            "release.yaml",
            "units/shop/web/0a1b2c3d",
            "units/shop/web/0a1b2c3d",
            "units/shop/web/default",
            "units/shop/web/default"
        ]
    );
}

#[test]
fn the_files_of_a_chart_are_written_as_a_folder_and_read_back() {
    let state = State::new();
    let files = [
        ("templates/web.yaml", "a: {{ b }}\n"),
        ("templates-2", "x"),
        ("charts/sub/Chart.yaml", ""),
    ];
    let content = chart(&files);
    let digest = content.digest;
    let fleet = FleetState::new(7)
        .with("shop/web", "1")
        .with_content("shop/chart", "default", content.clone());
    let commit = state.publish(StateRef::Released, &fleet);
    state.fsck();
    let folder = "units/shop/chart/default/HelmChart.fleet.flotilla.dev_web.chart";
    for (path, text) in files {
        let written = state.fixture.git(&["show", &format!("{commit}:{folder}/{path}")]);
        assert_eq!(written, text.trim_end(), "{path}");
    }
    let read = open(&state.fixture).content(commit, &digest).expect("it is there");
    assert_eq!(read, content);
    // One template changes one file.
    let changed = [("templates/web.yaml", "a: {{ c }}\n"), files[1], files[2]];
    let next = FleetState::new(8)
        .with("shop/web", "1")
        .with_content("shop/chart", "default", chart(&changed));
    let next = state.publish(StateRef::Released, &next);
    let differing = state.fixture.git(&[
        "diff",
        "--name-only",
        &commit.to_string(),
        &next.to_string(),
        "--",
        "units",
    ]);
    assert_eq!(differing, format!("{folder}/templates/web.yaml"));
}

#[test]
fn the_same_decision_gives_the_same_tree_whatever_was_there() {
    let state = State::new();
    let fleet = FleetState::new(3).with("shop/web", "1").with("a/b", "2");
    let fresh = state.write(None, &fleet);
    let other = state.write(None, &FleetState::new(1).with("shop/api", "9").with("shop/web", "0"));
    let after = state.write(Some(other), &fleet);
    assert_eq!(state.tree(fresh), state.tree(after));
}

#[test]
fn an_equal_tree_writes_nothing() {
    let state = State::new();
    let fleet = FleetState::new(1).with("shop/web", "1");
    let first = state.publish(StateRef::Rendered, &fleet);
    assert_eq!(state.write(Some(first), &fleet), first);
    assert_eq!(
        open(&state.fixture)
            .write_commit(Some(first), &fleet.decision())
            .expect("written"),
        first
    );
}

#[test]
fn units_and_variants_that_are_gone_leave_nothing_behind() {
    let state = State::new();
    let both = FleetState::new(1)
        .with("shop/web", "1")
        .with_variant("shop/web", "0a1b2c3d", "2")
        .with("infra/dns", "3");
    let first = state.publish(StateRef::Rendered, &both);
    let second = state.write(Some(first), &FleetState::new(2).with("shop/web", "1"));
    let files = state.files(second).join(" ");
    assert!(!files.contains("infra") && !files.contains("0a1b2c3d"), "{files}");
    let third = state.write(Some(second), &FleetState::new(3));
    assert_eq!(state.files(third), ["release.yaml"]);
    state.fsck();
}

#[test]
fn a_change_of_one_unit_shows_as_that_alone() {
    let state = State::new();
    let first = state.publish(
        StateRef::Rendered,
        &FleetState::new(1).with("shop/web", "1").with("a/b", "2"),
    );
    let second = state.publish(
        StateRef::Rendered,
        &FleetState::new(1).with("shop/web", "changed").with("a/b", "2"),
    );
    let changed = state
        .fixture
        .git(&["diff", "--name-only", &first.to_string(), &second.to_string()]);
    assert!(changed.lines().all(|path| path.contains("shop/web")), "{changed}");
}

#[test]
fn contents_not_given_come_from_where_they_stand() {
    let state = State::new();
    let fleet = FleetState::new(1).with("shop/web", "1");
    let rendered = state.publish(StateRef::Rendered, &fleet);
    let fresh = open(&state.fixture);
    let mut release = fleet.clone().without_contents();
    release.known_in = vec![rendered];
    let released = fresh
        .write_commit(None, &release.decision())
        .expect("found in rendered");
    fresh.content(released, &description("1").digest).expect("whole");
    let mut moved = FleetState::new(2);
    let placement = fleet.published.units[&unit_key("shop/web")].clone();
    Arc::make_mut(&mut moved.published)
        .units
        .insert(unit_key("other/name"), placement);
    let commit = fresh
        .write_commit(Some(released), &moved.decision())
        .expect("found in the parent, under another unit");
    fresh.content(commit, &description("1").digest).expect("whole");
}

#[test]
fn a_content_that_nobody_has_is_an_error_and_writes_no_commit() {
    let state = State::new();
    let fleet = FleetState::new(1).with("shop/web", "1").without_contents();
    let written = state.repository.write_commit(None, &fleet.decision());
    assert!(matches!(written, Err(StateError::ContentMissing { .. })), "{written:?}");
}

#[test]
fn a_content_under_another_ones_digest_is_refused() {
    let state = State::new();
    let mut fleet = FleetState::new(1).with("shop/web", "1");
    fleet.contents = BTreeMap::from([(description("1").digest, Arc::new(description("2")))]);
    let written = state.repository.write_commit(None, &fleet.decision());
    assert!(matches!(written, Err(StateError::ContentDiffers { .. })), "{written:?}");
}

#[test]
fn a_content_edited_by_hand_is_not_carried_on() {
    let state = State::new();
    let fleet = FleetState::new(1).with("shop/web", "1");
    let first = state.publish(StateRef::Rendered, &fleet);
    state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
    let path = state
        .files(first)
        .into_iter()
        .find(|path| path.starts_with("units/"))
        .expect("there");
    let edited = std::fs::read_to_string(state.fixture.file(&path))
        .expect("readable")
        .replace("web", "wob");
    state.fixture.write(&path, edited);
    state.fixture.commit("a hand edit");
    let fresh = open(&state.fixture);
    let mut release = fleet.clone().without_contents();
    release.known_in = vec![
        state
            .repository
            .head(StateRef::Rendered)
            .expect("readable")
            .expect("there"),
    ];
    let written = fresh.write_commit(None, &release.decision());
    assert!(
        written.is_err(),
        "released must not take over what does not match its digest"
    );
    fresh
        .write_commit(None, &fleet.decision())
        .expect("the content itself is at hand");
}

#[test]
fn files_of_people_stay() {
    let state = State::new();
    state.publish(StateRef::Rendered, &FleetState::new(1).with("shop/web", "1"));
    state.fixture.git(&["checkout", "--quiet", "flotilla/rendered"]);
    state.fixture.write("README.md", "what this branch is");
    state.fixture.commit("explain");
    let commit = state.publish(StateRef::Rendered, &FleetState::new(2).with("shop/web", "2"));
    assert!(state.files(commit).contains(&"README.md".to_owned()));
}

#[test]
fn a_decision_without_a_record_is_refused() {
    let state = State::new();
    let mut fleet = FleetState::new(1);
    Arc::make_mut(&mut fleet.published).record = None;
    assert!(matches!(
        state.repository.write_commit(None, &fleet.decision()),
        Err(StateError::NoRecord)
    ));
}

#[test]
fn nothing_in_subject_or_body_passes_for_a_trailer() {
    let state = State::new();
    let mut fleet = FleetState::new(1).with("shop/web", "1");
    let record = fleet.published.record.clone().expect("set");
    fleet.message = crate::hub::publish::message("a\n\nSequence: 99", "b\n\nSequence: 98\n\n", &record);
    let commit = state.write(None, &fleet);
    let format = "--format=%(trailers:key=Sequence,valueonly)";
    assert_eq!(state.fixture.git(&["log", "-1", format, &commit.to_string()]), "1");
}
