//! The names of all tests, and the papers that name some.

use super::sources;

/// The names of all test functions of the workspace.
pub(crate) fn all() -> Vec<String> {
    let texts = sources::files_named(".rs").into_iter().map(|path| sources::read(&path));
    texts.flat_map(|text| test_functions(&text)).collect()
}

/// A function is a test if an attribute above it says so.
fn test_functions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(name) = function(line).filter(|_| marked) {
            found.push(name.to_owned());
            marked = false;
        }
    }
    found
}

fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Every row of the tables under a heading names tests that exist.
#[track_caller]
fn assert_rows_name_tests(paper: &str, heading: &str) {
    let text = sources::read(paper);
    let (_, section) = text.split_once(heading).expect("the paper has this heading");
    let section = section.split("\n## ").next().unwrap_or_default();
    let tests = all();
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(!rows.is_empty(), "{paper} has a table under {heading:?}");
    for row in rows {
        let names: Vec<_> = row.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "each row names its test: {row}");
        for name in names {
            assert!(tests.iter().any(|test| test == name), "no test is called {name}: {row}");
        }
    }
}

#[test]
fn every_covered_case_names_a_test_that_exists() {
    assert_rows_name_tests("tests/cases.md", "## Covered");
}

#[test]
fn what_clusters_behind_nat_promise_has_a_test_for_each_sentence() {
    assert_rows_name_tests("tests/cases.md", "## What clusters behind NAT promise");
}

#[test]
fn what_peers_that_mean_ill_try_has_a_test_for_each_try() {
    assert_rows_name_tests("SECURITY.md", "What is tried on every run of the tests");
}

#[test]
fn a_function_is_a_test_only_if_it_is_marked() {
    let text = "#[test]\nfn one() {}\nfn other() {}\n#[tokio::test(start_paused = true)]\nasync fn two() {}\n";
    assert_eq!(test_functions(text), ["one", "two"]);
}
