//! What every file says first, and what no file says.

use super::{sources, workspace};

#[test]
fn every_door_says_what_the_room_is() {
    for path in sources::files_named(".rs") {
        let is_door = ["mod.rs", "lib.rs", "main.rs"]
            .iter()
            .any(|door| path.ends_with(&format!("/{door}")));
        if is_door {
            let text = sources::read(&path);
            assert!(
                text.starts_with("//! "),
                "{path} begins with what enters, what leaves, what is not here"
            );
            let first = text.lines().next().unwrap_or_default();
            assert!(first.len() > "//! Door.".len(), "{path} says more than a word: {first}");
        }
    }
}

#[test]
fn no_test_is_switched_off_and_none_expects_a_panic() {
    for path in sources::files_named(".rs") {
        let text = sources::read(&path);
        for attribute in ["ignore", "should_panic"] {
            let written = format!("#[{attribute}");
            assert!(
                !text.contains(&written),
                "{path}: assert today's behaviour and say what is wrong with it"
            );
        }
    }
}

/// Limits are constants with a reason each, in one module per crate, and no queue or body is without one.
#[test]
fn everything_has_a_limit() {
    for member in ["render", "tunnel", "reconciler"] {
        let (file, folder) = (format!("{member}/src/limits.rs"), format!("{member}/src/limits/"));
        let files = sources::files_named(".rs").into_iter();
        let mut found = 0;
        for path in files.filter(|path| *path == file || path.starts_with(&folder)) {
            let text = sources::read(&path);
            let lines: Vec<_> = text.lines().collect();
            for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("const ")) {
                let documented = at > 0 && lines[at - 1].trim_start().starts_with("///");
                assert!(documented, "{path}: `{}` says why it is that much", line.trim());
                found += 1;
            }
        }
        assert!(
            found > 0,
            "{file} holds the limits of {member}, or the files of its folder do"
        );
    }
    for (path, text) in shipped_by_all() {
        for unbounded in [
            "unbounded_channel",
            "unbounded_send",
            "mpsc::channel()",
            "usize::MAX).await",
        ] {
            assert!(
                !text.contains(unbounded),
                "{path} names {unbounded}, which has no limit"
            );
        }
    }
}

/// What every crate but the tests ships.
pub(super) fn shipped_by_all() -> Vec<(String, String)> {
    let crates = workspace::CRATES
        .into_iter()
        .filter(|name| !["tests", "harness"].contains(name));
    crates.flat_map(sources::shipped).collect()
}
