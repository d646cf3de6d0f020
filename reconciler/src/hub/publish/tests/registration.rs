use std::collections::BTreeMap;

use render::{ClusterName, Revision};

use super::{State, open};

fn name(text: &str) -> ClusterName {
    ClusterName::parse(text).expect("a valid name")
}

fn wanted(files: &[(&str, &str)]) -> BTreeMap<ClusterName, String> {
    let file = |(cluster, text): &(&str, &str)| (name(cluster), (*text).to_owned());
    files.iter().map(file).collect()
}

fn source(state: &State) -> Revision {
    Revision::parse(state.fixture.git(&["rev-parse", "main"])).expect("a commit")
}

/// The branches of registrations, by what Git says.
fn branches(state: &State) -> Vec<String> {
    let listed = state.fixture.git(&[
        "for-each-ref",
        "--format=%(refname:short)",
        "refs/heads/flotilla/register-*",
    ]);
    listed.lines().map(str::to_owned).collect()
}

fn propose(state: &State, wanted: &BTreeMap<ClusterName, String>) {
    let proposed = open(&state.fixture).propose_registrations(&source(state), wanted, 1);
    let proposed = proposed.expect("written");
    assert!(proposed.branches.keys().eq(wanted.keys()), "each has its branch");
}

#[test]
fn fifty_joins_of_one_agent_are_one_branch_that_adds_one_file() {
    let state = State::new();
    state.fixture.write("clusters/rome.yaml", "rome\n");
    state.fixture.commit("rome");
    for _ in 0..50 {
        propose(&state, &wanted(&[("oslo", "oslo\n")]));
    }
    assert_eq!(branches(&state), ["flotilla/register-oslo"]);
    let git = |arguments: &[&str]| state.fixture.git(arguments);
    assert_eq!(git(&["rev-list", "--count", "main..flotilla/register-oslo"]), "1");
    assert_eq!(
        git(&["diff", "--name-status", "main", "flotilla/register-oslo"]),
        "A\tclusters/oslo.yaml"
    );
    assert_eq!(git(&["show", "flotilla/register-oslo:clusters/oslo.yaml"]), "oslo");
    state.fsck();
}

#[test]
fn another_key_takes_the_branch_over_and_who_is_registered_has_none() {
    let state = State::new();
    propose(&state, &wanted(&[("oslo", "one\n"), ("rome", "rome\n")]));
    propose(&state, &wanted(&[("oslo", "two\n"), ("rome", "rome\n")]));
    let file = ["show", "flotilla/register-oslo:clusters/oslo.yaml"];
    assert_eq!(state.fixture.git(&file), "two");
    propose(&state, &wanted(&[("rome", "rome\n")]));
    assert_eq!(branches(&state), ["flotilla/register-rome"]);
    propose(&state, &wanted(&[]));
    assert!(branches(&state).is_empty());
}

#[test]
fn what_a_person_put_on_a_branch_stays() {
    let state = State::new();
    propose(&state, &wanted(&[("oslo", "one\n")]));
    state.fixture.git(&["checkout", "--quiet", "flotilla/register-oslo"]);
    state.fixture.write("clusters/oslo.yaml", "with labels\n");
    let theirs = state.fixture.commit("add labels");
    propose(&state, &wanted(&[("oslo", "two\n")]));
    propose(&state, &wanted(&[]));
    assert_eq!(state.fixture.git(&["rev-parse", "flotilla/register-oslo"]), theirs);
}

#[test]
fn a_hundred_agents_at_once_have_a_hundred_branches_each_whole() {
    let state = State::new();
    let names: Vec<_> = (0..100).map(|number| format!("c{number}")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "a file\n")).collect();
    propose(&state, &wanted(&files[..50]));
    // As after a crash in the middle.
    propose(&state, &wanted(&files));
    assert_eq!(branches(&state).len(), 100);
    for name in &names {
        let branch = format!("flotilla/register-{name}:clusters/{name}.yaml");
        assert_eq!(state.fixture.git(&["show", &branch]), "a file");
    }
}
