//! Names that only certain files may say.

use super::doors::shipped_by_all;
use super::{sources, workspace};

/// The files that may start a process: what gix lacks, Helm, a person's own git, and the sibling binaries.
const STARTS_PROCESSES: [&str; 4] = [
    "reconciler/src/hub/git.rs",
    "reconciler/src/apply/helm/program.rs",
    "reconciler/src/cli/git.rs",
    "reconciler/src/cli/sibling.rs",
];

fn starts_processes(text: &str) -> bool {
    let imports = text.match_indices("process::{").any(|(at, _)| {
        let names = text[at..].split('}').next().unwrap_or_default();
        names.split(['{', ',', ' ', '\n']).any(|name| name == "Command")
    });
    imports || text.contains("process::Command")
}

#[test]
fn processes_are_started_in_four_files_at_most() {
    for (path, text) in shipped_by_all() {
        let allowed = STARTS_PROCESSES.contains(&path.as_str());
        assert!(allowed || !starts_processes(&text), "{path} must not start processes");
    }
    assert!(
        starts_processes("use std::process::{Child, Command};"),
        "an import in braces is seen"
    );
    assert!(
        !starts_processes("use std::process::{Child, ExitCode};"),
        "other names are none of this rule"
    );
}

#[test]
fn yaml_libraries_are_named_in_one_file_per_crate() {
    for member in workspace::CRATES {
        for library in ["serde_saphyr", "serde_yaml"] {
            let naming: Vec<_> = sources::shipped(member)
                .into_iter()
                .filter(|(_, text)| names(text, library))
                .map(|(path, _)| path)
                .collect();
            assert!(
                naming.len() <= 1,
                "{library} is named in {naming:?}: one file is its door"
            );
        }
    }
}

/// Whether code, and not a comment, says `name`.
fn names(text: &str, name: &str) -> bool {
    text.lines()
        .any(|line| !line.trim_start().starts_with("//") && line.contains(&format!("{name}::")))
}

#[test]
fn pure_code_names_no_disk_environment_or_clock() {
    for (path, text) in sources::shipped("render") {
        for impure in [
            "std::fs",
            "std::env",
            "std::time::Instant",
            "SystemTime",
            "std::net",
            "std::thread",
            "HashMap",
            "HashSet",
        ] {
            assert!(
                !names_word(&text, impure),
                "{path} names {impure}: the same snapshot gives the same bytes"
            );
        }
    }
}

fn names_word(text: &str, word: &str) -> bool {
    text.lines()
        .any(|line| !line.trim_start().starts_with("//") && line.contains(word))
}

#[test]
fn one_file_knows_where_the_inputs_are() {
    // In halves, so that this file does not say them either.
    let places = ["inputs", "vectors", "cases", "spec", "design"].map(|folder| format!("shared{}{folder}", '/'));
    let variable = ["FLOTILLA", "INPUTS"].join("_");
    for path in sources::files().into_iter().filter(|path| path != "tests/inputs.rs") {
        let Some(text) = sources::read_text(&path) else {
            continue;
        };
        let named = places.iter().chain([&variable]).find(|place| text.contains(*place));
        assert!(
            named.is_none(),
            "{path} names {}, which only tests/inputs.rs knows",
            named.map_or("", String::as_str)
        );
    }
}

#[test]
fn no_file_names_the_place_it_was_made_at() {
    let places = [
        concat!("/wo", "rk/"),
        concat!(".lib", "rary"),
        concat!("/ro", "ot/"),
        concat!("static.crates", ".io"),
        concat!("index.crates", ".io"),
    ];
    for path in sources::files() {
        let Some(text) = sources::read_text(&path) else {
            continue;
        };
        for place in places {
            let line = text.lines().find(|line| line.contains(place));
            assert!(line.is_none(), "{path} names {place}: {}", line.unwrap_or_default());
        }
    }
}
