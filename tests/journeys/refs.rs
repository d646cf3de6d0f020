//! Refs that move otherwise than forward: the source's are held or waited for, the hub's are put back.

use flotilla_tests::{Flotilla, eventually, pool};
use tunnel::SecretKey;

use super::still::{
    Picture, assert_objects_unchanged, assert_unchanged, git_bare, objects, until_connected, until_reason, until_refs,
};
use super::support::{Fleet, GREETING, LIMIT, config_map};

const ALL: &[&str] = &pool::NAMES;
const REFS: [&str; 2] = ["refs/heads/flotilla/rendered", "refs/heads/flotilla/released"];

fn greeting(text: &str) -> String {
    config_map(GREETING.0, GREETING.1, text)
}

fn greet(fleet: &Fleet, text: &str) -> String {
    fleet.push("Greet otherwise", &[("feeds/web/greeting.yaml", &greeting(text))])
}

/// Rewrites the newest commit, as `git push --force` does after an amended one.
fn rewrite(fleet: &Fleet, text: &str) {
    fleet.repository.write("feeds/web/greeting.yaml", greeting(text));
    fleet
        .repository
        .git(&["commit", "--quiet", "--all", "--amend", "-m", "Greet as never before"]);
    fleet.repository.force_push();
}

#[test]
fn a_rewritten_history_is_held_until_a_commit_accepts_it() {
    let mut fleet = Fleet::start_in_use();
    let old = greet(&fleet, "hello there");
    fleet.until_text(ALL, GREETING, "hello there");
    let before = Picture::of(&fleet);
    rewrite(&fleet, "rewritten");
    until_reason(&fleet, "SourceVerified", "HistoryRewritten");
    assert_unchanged(&fleet, &before, "a rewritten history changes nothing");
    fleet
        .repository
        .commit(&format!("Greet all over again\n\nAccept-Rewrite: {old}"));
    fleet.repository.push();
    fleet.until_text(ALL, GREETING, "rewritten");
    until_reason(&fleet, "SourceVerified", "Read");

    // What was rewritten while no hub ran is held all the same.
    fleet.kill_hub();
    let before = Picture::of(&fleet);
    rewrite(&fleet, "behind the back");
    fleet.start_hub(&[]);
    until_reason(&fleet, "SourceVerified", "HistoryRewritten");
    assert_unchanged(&fleet, &before, "a history rewritten without a hub changes nothing");
    fleet.kill_hub();
    fleet.start_hub(&["--on-rewrite", "follow"]);
    fleet.until_text(ALL, GREETING, "behind the back");
}

#[test]
fn a_key_that_a_commit_took_away_stays_away_over_a_restart_before_a_rewritten_history() {
    let mut fleet = Fleet::start_in_use();
    let rendered = fleet.repository.head(REFS[0]);
    let other = SecretKey::generate().expect("there is randomness").public().to_string();
    let file = format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {{name: bogota, labels: {{place: bogota}}}}\n\
         spec: {{publicKeys: ['{other}']}}\n"
    );
    let old = fleet.push("Lock bogota out", &[("clusters/bogota.yaml", &file)]);
    until_logged(fleet.agent("bogota"), "revoked");
    until_followed(&fleet, &old);
    assert_eq!(fleet.repository.head(REFS[0]), rendered, "nothing is rendered for it");

    fleet.kill_hub();
    fleet.kill_agent("bogota");
    fleet.repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    fleet
        .repository
        .write("feeds/web/greeting.yaml", greeting("taken back"));
    fleet.repository.commit("Greet otherwise");
    fleet.repository.force_push();
    git_bare(&fleet, &["gc", "--quiet", "--prune=now"]);
    fleet.start_hub(&[]);
    fleet.start_agent("bogota");
    until_reason(&fleet, "SourceVerified", "HistoryRewritten");
    until_logged(fleet.hub(), "Agent connected.");
    until_logged(fleet.agent("bogota"), "identity-refused");
    let log = fleet.agent("bogota").log();
    assert!(!log.contains("Connected to hub."), "{log}");
}

#[track_caller]
fn until_logged(child: &Flotilla, words: &str) {
    eventually(LIMIT, &format!("{words:?} is logged"), || {
        let log = child.log();
        log.contains(words).then_some(()).ok_or(log)
    });
}

#[track_caller]
fn until_followed(fleet: &Fleet, commit: &str) {
    eventually(LIMIT, "a commit is noted as followed", || {
        let note = fleet
            .repository
            .git_bare(&["log", "-1", "--format=%B", "refs/flotilla/followed"]);
        let said = note.ok()?;
        said.contains(commit).then_some(()).ok_or(said)
    });
}

fn delete(fleet: &Fleet, name: &str) {
    git_bare(fleet, &["update-ref", "-d", name]);
}

fn rewind(fleet: &Fleet, name: &str) {
    git_bare(fleet, &["update-ref", name, &format!("{name}~1")]);
}

#[test]
fn state_refs_moved_under_the_hub_are_put_back() {
    let fleet = Fleet::start_in_use();
    greet(&fleet, "hello there");
    fleet.until_text(ALL, GREETING, "hello there");
    let before = Picture::of(&fleet);
    for name in REFS {
        for broken in [delete, rewind] {
            broken(&fleet, name);
            until_refs(&fleet, before.refs(), "a ref that was moved is put back");
        }
    }
    REFS.iter().for_each(|name| delete(&fleet, name));
    until_refs(&fleet, before.refs(), "both are put back");
    assert_unchanged(&fleet, &before, "nothing else was written");
    greet(&fleet, "and on it goes");
    fleet.until_text(ALL, GREETING, "and on it goes");
}

#[test]
fn state_refs_moved_behind_the_hub_lose_nothing_that_clusters_hold() {
    let mut fleet = Fleet::start_in_use();
    greet(&fleet, "hello there");
    fleet.until_text(ALL, GREETING, "hello there");
    let before = objects(&fleet);
    for (what, names, broken) in [
        ("a deleted released", &REFS[1..], delete as fn(&Fleet, &str)),
        ("both deleted", &REFS[..], delete),
        ("a rewound released", &REFS[1..], rewind),
        ("both rewound", &REFS[..], rewind),
    ] {
        fleet.kill_hub();
        names.iter().for_each(|name| broken(&fleet, name));
        fleet.start_hub(&[]);
        until_connected(&fleet);
        assert_objects_unchanged(&fleet, &before, what);
    }
    // The sequence after the rewound one is taken, by something else.
    fleet.kill_hub();
    REFS.iter().for_each(|name| rewind(&fleet, name));
    greet(&fleet, "rewound and pushed");
    fleet.start_hub(&[]);
    fleet.until_text(ALL, GREETING, "rewound and pushed");
}

#[test]
fn a_missing_branch_or_repository_changes_nothing() {
    let mut fleet = Fleet::start_in_use();
    let before = Picture::of(&fleet);
    git_bare(&fleet, &["update-ref", "-d", "refs/heads/main"]);
    until_reason(&fleet, "SourceVerified", "BranchMissing");
    assert_unchanged(&fleet, &before, "a missing branch changes nothing");
    fleet.repository.push();
    until_reason(&fleet, "SourceVerified", "Read");
    assert_unchanged(&fleet, &before, "the branch that is back says what it said");

    let away = fleet.repository.bare().with_extension("away");
    std::fs::rename(fleet.repository.bare(), &away).unwrap();
    until_reason(&fleet, "SourceVerified", "Unreadable");
    assert_objects_unchanged(&fleet, &objects(&fleet), "a repository that is away changes nothing");
    fleet.hub().assert_running();
    std::fs::rename(&away, fleet.repository.bare()).unwrap();
    greet(&fleet, "back again");
    fleet.until_text(ALL, GREETING, "back again");
}
