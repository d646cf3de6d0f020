use super::{open, revision};
use crate::hub::repository::RepositoryError;
use crate::hub::repository::fixture::{Fixture, git};
use crate::hub::source::{Source, SourceError};

#[test]
fn the_head_is_the_branch_also_where_a_tag_has_its_name() {
    let fixture = Fixture::new();
    let old = fixture.commit("one");
    fixture.git(&["tag", "main", &old]);
    let new = fixture.commit("two");
    let head = open(&fixture).head().expect("the branch is there");
    assert_eq!(
        head.revision,
        revision(&new),
        "a tag must never decide what is delivered"
    );
}

#[test]
fn packed_refs_are_read() {
    let fixture = Fixture::new();
    let head = fixture.commit("one");
    let source = open(&fixture);
    fixture.git(&["pack-refs", "--all"]);
    assert_eq!(source.head().expect("readable").revision, revision(&head));
}

#[test]
fn a_bare_repository_is_read() {
    let fixture = Fixture::new();
    let head = fixture.commit("one");
    let bare = tempfile::tempdir().expect("a folder");
    git(
        bare.path(),
        &["clone", "--quiet", "--bare", &fixture.path().to_string_lossy(), "r.git"],
    );
    let source = Source::open(bare.path().join("r.git"), "main").expect("opens");
    assert_eq!(source.head().expect("readable").revision, revision(&head));
}

#[test]
fn a_missing_branch_is_a_state_of_its_own() {
    let fixture = Fixture::new();
    let source = open(&fixture);
    assert!(
        matches!(source.head(), Err(SourceError::BranchMissing { .. })),
        "nothing committed yet"
    );
    fixture.commit("one");
    source.head().expect("now it is there");
    fixture.git(&["branch", "-m", "main", "trunk"]);
    assert!(matches!(source.head(), Err(SourceError::BranchMissing { .. })));
}

#[test]
fn a_repository_that_is_gone_is_unreadable_and_not_a_missing_branch() {
    let fixture = Fixture::new();
    let head = fixture.commit("one");
    let source = open(&fixture);
    std::fs::rename(fixture.file(".git"), fixture.file("away")).expect("renamed");
    assert!(matches!(source.head(), Err(SourceError::Unreadable(_))));
    std::fs::rename(fixture.file("away"), fixture.file(".git")).expect("renamed");
    assert_eq!(source.head().expect("it is back").revision, revision(&head));
}

#[test]
fn a_repository_replaced_by_another_one_is_read_anew() {
    let fixture = Fixture::new();
    fixture.write("a.yaml", "a: 1\n");
    fixture.commit("one");
    let source = open(&fixture);
    source
        .tree(&source.head().expect("readable").revision)
        .expect("readable");
    std::fs::remove_dir_all(fixture.file(".git")).expect("removed");
    fixture.git(&["init", "--quiet", "--initial-branch=main", "."]);
    fixture.write("b.yaml", "b: 1\n");
    let head = fixture.commit("another root");
    assert_eq!(source.head().expect("readable").revision, revision(&head));
    assert_eq!(source.tree(&revision(&head)).expect("readable").files.len(), 2);
}

#[test]
fn a_head_whose_commit_is_lost_is_unreadable() {
    let fixture = Fixture::new();
    let head = fixture.commit("one");
    fixture.lose(&head);
    assert!(matches!(open(&fixture).head(), Err(SourceError::Unreadable(_))));
}

#[test]
fn a_branch_that_stands_for_another_is_refused() {
    let fixture = Fixture::new();
    fixture.commit("one");
    fixture.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    let source = Source::open(fixture.path(), "alias").expect("opens");
    let Err(SourceError::Unreadable(RepositoryError::SymbolicRef { name })) = source.head() else {
        unreachable!("an alias could lead to a ref that the hub writes");
    };
    assert_eq!(name, "refs/heads/alias");
}

#[test]
fn refs_in_another_form_are_named_as_such() {
    let fixture = Fixture::new();
    fixture.commit("one");
    fixture.git(&["config", "core.repositoryFormatVersion", "1"]);
    fixture.git(&["config", "extensions.refStorage", "reftable"]);
    assert!(matches!(
        Source::open(fixture.path(), "main"),
        Err(SourceError::Unreadable(RepositoryError::RefStorage { .. }))
    ));
}

#[test]
fn branch_names_are_checked_at_the_door() {
    let fixture = Fixture::new();
    for name in ["", "a..b", "a b", "HEAD~1", "main@{yesterday}", "-x/.lock", "refs/"] {
        assert!(
            matches!(Source::open(fixture.path(), name), Err(SourceError::BranchName { .. })),
            "{name:?} is no branch name"
        );
    }
    for name in ["main", "refs/heads/main", "team/fleet"] {
        Source::open(fixture.path(), name).expect("a branch name");
    }
}

#[test]
fn another_hash_is_named_as_unreadable_and_not_as_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    git(folder.path(), &["init", "--quiet", "--object-format=sha256", "."]);
    git(folder.path(), &["commit", "--quiet", "--allow-empty", "-m", "one"]);
    let opened = Source::open(folder.path(), "main");
    let Err(SourceError::Unreadable(error @ RepositoryError::ObjectFormat { .. })) = opened else {
        unreachable!("got {opened:?}");
    };
    assert!(error.to_string().contains("--object-format=sha1"), "{error}");
}

#[test]
fn people_name_commits_in_their_own_way() {
    let fixture = Fixture::new();
    let first = fixture.commit("one");
    fixture.git(&["tag", "-a", "-m", "a tag", "v1"]);
    let second = fixture.commit("two");
    let source = open(&fixture);
    let cases = [("HEAD", &second), ("main", &second), ("HEAD~1", &first), ("v1", &first)];
    for (spec, id) in cases {
        assert_eq!(source.resolve(spec).expect(spec), revision(id), "{spec}");
    }
    assert_eq!(source.resolve(&first[..12]).expect("unique"), revision(&first));
    for spec in ["", "nothing", "HEAD~9", "0000000"] {
        assert!(
            matches!(source.resolve(spec), Err(SourceError::NoCommit { .. })),
            "{spec:?}"
        );
    }
}
