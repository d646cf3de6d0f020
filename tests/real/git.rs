//! Real `git` does what the journeys do to a fleet repository.

use flotilla_tests::Repository;

#[test]
fn a_push_moves_the_branch_that_the_hub_reads() {
    let repository = Repository::with_files(&[("fleet.yaml", "kind: Fleet\n"), ("feeds/a b.yaml", "kind: A\n")]);
    let first = repository.head("main").expect("main was pushed");
    let second = repository.push_files("second", &[("fleet.yaml", "kind: Fleet # 2\n")]);
    assert_ne!(first, second);
    assert_eq!(repository.head("main"), Some(second));
    assert_eq!(repository.files("main"), ["feeds/a b.yaml", "fleet.yaml"]);
    assert_eq!(
        repository.read("main", "fleet.yaml").as_deref(),
        Some("kind: Fleet # 2\n")
    );
    assert_eq!(repository.commits("main"), 2);
    assert_eq!(repository.message("main").trim(), "second");
    assert_eq!(
        repository.head("flotilla/rendered"),
        None,
        "a ref that is not there is none, and no error"
    );
}

#[test]
fn a_rewritten_history_needs_force() {
    let repository = Repository::with_files(&[("fleet.yaml", "kind: Fleet\n")]);
    repository.push_files("second", &[("fleet.yaml", "kind: Fleet # 2\n")]);
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let other = repository.commit("another second");
    let refused = flotilla_tests::repository::git(repository.work(), &["push", "--quiet", "origin", "main"]);
    assert!(!refused.status.success(), "git refuses to rewrite without force");
    repository.force_push();
    assert_eq!(repository.head("main"), Some(other));
}
