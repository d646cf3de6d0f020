use std::collections::BTreeMap;

use render::{ClusterName, Revision};
use tunnel::PublicKey;

use super::super::{Elsewhere, Marks, OtherHubs, Registrations, StateRepository};
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
    let alone = (&Marks::default(), &Elsewhere::default());
    let proposed = open(&state.fixture).propose_registrations(&source(state), wanted, alone, 1);
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

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

/// A hub with one key, beside one with another.
fn marks(own: u8, others: &[u8]) -> Marks {
    Marks {
        own: vec![key(own)],
        others: others.iter().copied().map(key).collect(),
    }
}

fn elsewhere(hubs: OtherHubs, asked: &[&str], registered: &[&str]) -> Elsewhere {
    Elsewhere {
        hubs,
        asked: asked.iter().map(|cluster| (name(cluster), [key(7)].into())).collect(),
        registered: registered.iter().copied().map(name).collect(),
    }
}

fn write(
    state: &State,
    repository: &StateRepository,
    wanted: &BTreeMap<ClusterName, String>,
    as_known: (&Marks, &Elsewhere),
) -> Registrations {
    let written = repository.propose_registrations(&source(state), wanted, as_known, 1);
    written.expect("written")
}

#[test]
fn what_another_hub_proposes_is_its_own_to_take_back() {
    let state = State::new();
    let repository = open(&state.fixture);
    let (first, second) = (marks(1, &[2]), marks(2, &[1]));
    let (oslo, rome) = (wanted(&[("oslo", "oslo\n")]), wanted(&[("rome", "rome\n")]));
    let silent = elsewhere(OtherHubs::Silent, &[], &[]);
    let told = elsewhere(OtherHubs::Told, &[], &[]);
    let nobody = Elsewhere::default();
    write(&state, &repository, &oslo, (&first, &silent));
    for as_known in [&silent, &told, &nobody] {
        write(&state, &repository, &rome, (&second, as_known));
        assert_eq!(branches(&state), ["flotilla/register-oslo", "flotilla/register-rome"]);
    }
    // Its own goes, unless somebody else is heard to ask for it.
    let oslo_asks_elsewhere = elsewhere(OtherHubs::Silent, &["oslo"], &[]);
    let same = format!("with {}\n", key(7));
    write(
        &state,
        &repository,
        &wanted(&[("oslo", &same)]),
        (&first, &oslo_asks_elsewhere),
    );
    write(&state, &repository, &wanted(&[]), (&first, &oslo_asks_elsewhere));
    assert_eq!(branches(&state).len(), 2, "with the same key");
    write(&state, &repository, &oslo, (&first, &silent));
    write(&state, &repository, &wanted(&[]), (&first, &oslo_asks_elsewhere));
    assert_eq!(branches(&state), ["flotilla/register-rome"], "with another one");
    write(&state, &repository, &oslo, (&first, &silent));
    write(&state, &repository, &wanted(&[]), (&first, &silent));
    assert_eq!(branches(&state), ["flotilla/register-rome"]);
    // What is registered nobody asks for, whoever proposed it.
    write(
        &state,
        &repository,
        &wanted(&[]),
        (&first, &elsewhere(OtherHubs::Silent, &[], &["rome"])),
    );
    assert!(branches(&state).is_empty());
}

#[test]
fn what_a_hub_proposed_that_nobody_knows_goes_once_all_others_say_that_nobody_asks() {
    let state = State::new();
    let repository = open(&state.fixture);
    let (gone, here) = (marks(9, &[]), marks(1, &[2]));
    let alone = Elsewhere::default();
    let oslo = wanted(&[("oslo", "oslo\n")]);
    write(&state, &repository, &oslo, (&gone, &alone));
    for as_known in [
        alone.clone(),
        elsewhere(OtherHubs::Silent, &[], &[]),
        elsewhere(OtherHubs::Told, &["oslo"], &[]),
    ] {
        write(&state, &repository, &wanted(&[]), (&here, &as_known));
        assert_eq!(branches(&state), ["flotilla/register-oslo"], "{as_known:?}");
    }
    write(
        &state,
        &repository,
        &wanted(&[]),
        (&here, &elsewhere(OtherHubs::Told, &[], &[])),
    );
    assert!(branches(&state).is_empty());
}

#[test]
fn of_two_keys_for_one_cluster_at_two_hubs_the_first_stays_and_both_hubs_know() {
    let state = State::new();
    let repository = open(&state.fixture);
    let (first, second) = (marks(1, &[2]), marks(2, &[1]));
    let (one, other) = (wanted(&[("oslo", "one\n")]), wanted(&[("oslo", "other\n")]));
    let told = elsewhere(OtherHubs::Told, &["oslo"], &[]);
    write(&state, &repository, &one, (&first, &told));
    for _ in 0..3 {
        let found = write(&state, &repository, &other, (&second, &told));
        assert!(found.contested.contains(&name("oslo")) && found.branches.is_empty());
        let found = write(&state, &repository, &one, (&first, &told));
        assert!(found.contested.is_empty() && found.branches.contains_key(&name("oslo")));
    }
    let file = ["show", "flotilla/register-oslo:clusters/oslo.yaml"];
    assert_eq!(state.fixture.git(&file), "one");
    // The same key asked for at both is one branch; and its own hub may follow another key of its agent.
    write(&state, &repository, &one, (&second, &told));
    write(&state, &repository, &other, (&first, &told));
    assert_eq!(state.fixture.git(&file), "other");
}

#[test]
fn whatever_two_hubs_know_what_one_proposes_stays_while_it_is_asked_for() {
    let names = ["oslo", "rome", "bern"];
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    let mut roll = |below: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % below
    };
    let state = State::new();
    let repository = open(&state.fixture);
    // Told of each other, or not.
    for pair in [[marks(1, &[2]), marks(2, &[1])], [marks(3, &[]), marks(4, &[])]] {
        let mut asked: [Vec<&str>; 2] = Default::default();
        for _ in 0..60 {
            let at = usize::try_from(roll(2)).expect("it is small");
            let mut some = |_: &&str| roll(2) == 0;
            asked[at] = names.iter().copied().filter(&mut some).collect();
            // Each knows what the other one once said, or less, or nothing.
            let heard: Vec<_> = names.iter().copied().filter(&mut some).collect();
            let hubs = match (pair[at].others.is_empty(), roll(2)) {
                (true, _) => OtherHubs::None,
                (false, 0) => OtherHubs::Silent,
                (false, _) => OtherHubs::Told,
            };
            let files: Vec<_> = asked[at].iter().map(|name| (*name, *name)).collect();
            let as_known = elsewhere(hubs, &heard, &[]);
            let mark = format!("Asked-At-Hub: {}", pair[1 - at].own[0]);
            let is_theirs = |branch: &String| {
                let message = state.fixture.git(&["log", "-1", "--format=%B", branch]);
                message.contains(&mark)
            };
            let theirs: Vec<_> = branches(&state).into_iter().filter(is_theirs).collect();
            write(&state, &repository, &wanted(&files), (&pair[at], &as_known));
            let there = branches(&state);
            for name in &asked[at] {
                assert!(
                    there.contains(&format!("flotilla/register-{name}")),
                    "{name} in {there:?}"
                );
            }
            for branch in theirs {
                assert!(
                    there.contains(&branch),
                    "{branch} is another hub's, and not in {there:?}"
                );
            }
        }
        for hub in &pair {
            write(
                &state,
                &repository,
                &wanted(&[]),
                (hub, &elsewhere(OtherHubs::Silent, &[], &[])),
            );
        }
        assert!(branches(&state).is_empty(), "each took back its own");
    }
}
