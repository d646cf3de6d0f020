use std::collections::BTreeMap;

use render::Revision;

use super::super::{KeyNote, StateError};
use super::{State, open};

const BRANCH: &str = "flotilla/keys";

fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect()
}

/// A source with three clusters' files, two of them in folders.
fn state() -> State {
    let state = State::new();
    for path in ["clusters/oslo.yaml", "clusters/eu/rome.yaml", "paris.yaml"] {
        state.fixture.write(path, "one key # of mine\n");
    }
    state.fixture.commit("clusters");
    state
}

fn source(state: &State) -> Revision {
    Revision::parse(state.fixture.git(&["rev-parse", "main"])).expect("a commit")
}

fn propose(state: &State, wanted: &[(&str, &str)]) -> Option<String> {
    let repository = open(&state.fixture);
    let found = repository.keys_found().expect("readable");
    let proposed = repository.propose_keys(&source(state), &files(wanted), "Add keys\n", (&found, 1));
    proposed.expect("written")
}

fn tip(state: &State) -> String {
    state.fixture.git(&["rev-parse", BRANCH])
}

#[test]
fn many_agents_keys_are_one_proposal() {
    let state = state();
    let all = [
        ("clusters/oslo.yaml", "two keys # of mine\n"),
        ("clusters/eu/rome.yaml", "two keys # of mine\n"),
        ("paris.yaml", "two keys # of mine\n"),
    ];
    assert_eq!(propose(&state, &all[..1]).as_deref(), Some(BRANCH));
    assert_eq!(propose(&state, &all).as_deref(), Some(BRANCH));
    let first = tip(&state);
    for _ in 0..50 {
        propose(&state, &all);
    }
    assert_eq!(tip(&state), first, "it says so already");
    let git = |arguments: &[&str]| state.fixture.git(arguments);
    assert_eq!(git(&["rev-list", "--count", "main..flotilla/keys"]), "1");
    assert_eq!(
        git(&["diff", "--name-status", "main", BRANCH]),
        "M\tclusters/eu/rome.yaml\nM\tclusters/oslo.yaml\nM\tparis.yaml"
    );
    assert_eq!(git(&["show", "flotilla/keys:paris.yaml"]), "two keys # of mine");
    state.fsck();
}

#[test]
fn the_branch_follows_what_is_wished_and_goes_with_the_last_wish() {
    let state = state();
    propose(&state, &[("paris.yaml", "two\n"), ("clusters/oslo.yaml", "two\n")]);
    propose(&state, &[("paris.yaml", "two\n")]);
    let git = |arguments: &[&str]| state.fixture.git(arguments);
    assert_eq!(git(&["diff", "--name-only", "main", BRANCH]), "paris.yaml");
    // Another commit of source leaves a branch alone that goes with it, and no other one.
    let first = tip(&state);
    state.fixture.write("feeds/web.yaml", "web\n");
    state.fixture.commit("web");
    propose(&state, &[("paris.yaml", "two\n")]);
    assert_eq!(tip(&state), first);
    state.fixture.write("paris.yaml", "one, with a label\n");
    state.fixture.commit("a label");
    propose(&state, &[("paris.yaml", "two, with a label\n")]);
    assert_eq!(git(&["rev-parse", "flotilla/keys^"]), source(&state).to_string());
    assert_eq!(propose(&state, &[]), None);
    assert_eq!(git(&["for-each-ref", "refs/heads/flotilla/keys"]), "");
}

#[test]
fn what_a_person_put_on_it_stays() {
    let state = state();
    propose(&state, &[("paris.yaml", "two\n")]);
    state.fixture.git(&["checkout", "--quiet", BRANCH]);
    state.fixture.write("paris.yaml", "two, and a word\n");
    let theirs = state.fixture.commit("a word");
    assert_eq!(propose(&state, &[("paris.yaml", "three\n")]).as_deref(), Some(BRANCH));
    assert_eq!(propose(&state, &[]), None);
    assert_eq!(tip(&state), theirs);
}

#[test]
fn files_are_read_as_they_stand_in_a_commit() {
    let state = state();
    let texts = open(&state.fixture).source_texts(&source(&state), ["clusters/eu/rome.yaml", "clusters", "no/file"]);
    assert_eq!(
        texts.expect("readable"),
        files(&[("clusters/eu/rome.yaml", "one key # of mine\n")])
    );
}

#[test]
fn what_is_remembered_of_a_proposal_outlives_its_branch_and_is_no_branch() {
    let state = state();
    let repository = open(&state.fixture);
    let found = || repository.keys_found().expect("readable");
    let cluster = render::ClusterName::parse("oslo").expect("a valid name");
    let add = render::rekey::KeyChange::Add("k2".to_owned());
    let note = KeyNote {
        open: [(cluster, add)].into(),
        ..KeyNote::default()
    };
    assert_eq!(found().note, KeyNote::default());
    let mut first = found();
    propose(&state, &[("paris.yaml", "two\n")]);
    repository.note_keys(&mut first, &note, 1).expect("written");
    let asked = state.fixture.git(&["rev-parse", "refs/flotilla/keys-asked"]);
    repository
        .note_keys(&mut found(), &note, 2)
        .expect("it says so already");
    assert_eq!(state.fixture.git(&["rev-parse", "refs/flotilla/keys-asked"]), asked);
    assert!(found().branch.is_some());
    state.fixture.git(&["update-ref", "-d", "refs/heads/flotilla/keys"]);
    let gone = found();
    assert_eq!((gone.branch.is_some(), &gone.note), (false, &note));
    // Of two hubs one is first.
    let mut late = found();
    repository
        .note_keys(&mut found(), &KeyNote::default(), 3)
        .expect("written");
    let other = KeyNote {
        open: BTreeMap::new(),
        closed: [(note.open.keys().next().expect("one").clone(), Vec::new())].into(),
    };
    assert!(matches!(
        repository.note_keys(&mut late, &other, 4),
        Err(StateError::Moved { .. })
    ));
    state.fsck();
}
