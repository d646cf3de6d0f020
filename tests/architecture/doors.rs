//! What every file says first, and what no file says.

use super::{sources, workspace};

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

/// What every crate but the tests ships.
pub(super) fn shipped_by_all() -> Vec<(String, String)> {
    let crates = workspace::CRATES
        .into_iter()
        .filter(|name| !["tests", "harness"].contains(name));
    crates.flat_map(sources::shipped).collect()
}
