//! Every invariant of ARCHITECTURE.md has a test of its name.

use super::{sources, test_names};

/// A row of the table: number, and the tests that prove the invariant, or none while it is not built.
struct Invariant {
    number: usize,
    tests: Vec<String>,
    pending: bool,
}

/// The table under the heading of the invariants: `| 1 | what holds | tests |`.
fn listed() -> Vec<Invariant> {
    let text = sources::read("ARCHITECTURE.md");
    let (_, section) = text
        .split_once("## Invariants")
        .expect("ARCHITECTURE.md has the invariants");
    let section = section.split("\n## ").next().unwrap_or_default();
    section.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Invariant> {
    let cells: Vec<_> = line.split('|').map(str::trim).collect();
    let [_, number, _, tests, _] = cells[..] else {
        return None;
    };
    let names = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Some(Invariant {
        number: number.parse().ok()?,
        tests: names,
        pending: tests.contains("not built yet"),
    })
}

#[test]
fn every_invariant_has_a_test_of_its_name() {
    let listed = listed();
    let numbers: Vec<_> = listed.iter().map(|invariant| invariant.number).collect();
    assert_eq!(
        numbers,
        (1..=13).collect::<Vec<_>>(),
        "ARCHITECTURE.md lists thirteen invariants"
    );
    let tests = test_names::all();
    let mut broken = Vec::new();
    for Invariant {
        number,
        tests: named,
        pending,
    } in listed
    {
        if named.is_empty() && !pending {
            broken.push(format!(
                "invariant {number} names no test, and does not say that it is not built yet"
            ));
        }
        let missing = named.into_iter().filter(|name| !tests.contains(name));
        broken.extend(missing.map(|name| format!("invariant {number}: no test is called {name}")));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
