//! Mistakes that people make, each with the one message that it gets: its place, and what to do.
//!
//! Enters: the tables beside this file, which say what is set up, what is typed, and what comes of it, word for
//! word. `UPDATE_GOLDEN=1` writes what comes of it anew, to be read before it is committed. Leaves: a judgement
//! of the real `flotilla`. Deliberately not here: what a mistake holds back, which the journeys follow.

mod case;
mod play;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use case::{Case, Table};
use flotilla_tests::{Flotilla, Repository, eventually, ports};

/// How long a hub may take to begin on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

const FLEET: &str =
    "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec: {approval: none}\n";

/// Fewer would mean that a table was not read.
const LEAST: [(&str, usize); 4] = [("repository", 84), ("flags", 65), ("files", 30), ("network", 12)];

#[test]
fn every_mistake_in_a_repository_has_its_message() {
    check(0);
}

#[test]
fn every_mistake_in_flags_has_its_message() {
    check(1);
}

#[test]
fn every_mistake_in_files_has_its_message() {
    check(2);
}

#[test]
fn whatever_is_not_there_or_not_let_in_is_said() {
    check(3);
}

/// Plays a table, two at a time, and compares it with what its file says.
#[track_caller]
fn check(table: usize) {
    let (name, least) = LEAST[table];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("mistakes/{name}.txt"));
    let text = fs::read_to_string(&path).unwrap();
    let table = Table::read(&text);
    assert!(table.cases.len() >= least, "{name} has {} mistakes", table.cases.len());
    let began = play::Beginning::new();
    let only = std::env::var("MISTAKE").unwrap_or_default();
    let (next, played) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = table.cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = if case.name.contains(&only) {
                        play::play(&began, case)
                    } else {
                        case.expected.clone()
                    };
                    played.lock().unwrap().push((case.name.clone(), found));
                }
            });
        }
    });
    let played = played.into_inner().unwrap();
    let found = |case: &Case| &played.iter().find(|(name, _)| *name == case.name).unwrap().1;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, table.written(found)).unwrap();
        return;
    }
    let wrong: Vec<_> = table
        .cases
        .iter()
        .filter(|case| *found(case) != case.expected)
        .collect();
    let told = wrong.iter().map(|case| {
        let (expected, found) = (case.expected.join("\n"), found(case).join("\n"));
        format!("## {}\nexpected:\n{expected}\nfound:\n{found}\n", case.name)
    });
    assert!(wrong.is_empty(), "{}", told.collect::<Vec<_>>().join("\n"));
}

/// What a hub makes without being told where is not in the tree.
#[test]
fn a_hub_that_is_given_no_key_leaves_none_in_the_tree() {
    let repository = Repository::with_files(&[("fleet.yaml", FLEET)]);
    let [listen, api] = [0; 2].map(|_| format!("127.0.0.1:{}", ports::free()));
    let bare = repository.bare().display().to_string();
    let hub = Flotilla::hub(&["--repository", &bare, "--listen", &listen, "--api", &api]);
    eventually(LIMIT, "the hub has its key", || {
        let log = hub.log();
        log.contains("Listening for agents.").then_some(()).ok_or(log)
    });
    let made = |folder: &Path| folder.join("flotilla-hub.key").exists();
    let own = fs::read_link(format!("/proc/{}/cwd", hub.id())).unwrap();
    assert!(made(&own), "it is where the hub was started: {}", own.display());
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tree = tree.parent().unwrap();
    assert!(!own.starts_with(tree), "{}", own.display());
    assert!(
        !made(tree) && !made(&tree.join("tests")),
        "a test left its hub's key in the tree"
    );
}

/// Rules that hold for every message, whatever it says.
#[test]
fn no_message_has_a_backtrace_a_secret_or_says_a_thing_twice() {
    for (name, _) in LEAST {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("mistakes/{name}.txt"));
        let text = fs::read_to_string(path).unwrap();
        for case in Table::read(&text).cases {
            let said = case.expected.join("\n");
            for bad in ["backtrace", "panicked", "s3cr3t", "Os {", "Error(", "None", "RUST_"] {
                assert!(!said.contains(bad), "{}: {said}", case.name);
            }
            let errors = case
                .expected
                .iter()
                .filter(|line| line.starts_with("> error: "))
                .count();
            assert!(errors <= 1, "{} has one message: {said}", case.name);
            for line in &case.expected {
                let parts: Vec<_> = line.split(": ").filter(|part| part.len() > 12).collect();
                let repeated = parts.iter().enumerate().any(|(at, part)| parts[..at].contains(part));
                assert!(!repeated, "{} says nothing twice: {line}", case.name);
            }
        }
    }
}
