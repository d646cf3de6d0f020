//! How a commit is made: by the person's own git, alone, or not at all.

use std::os::unix::fs::PermissionsExt as _;

use super::Work;

const SUSPEND: [&str; 4] = ["suspend", "shop/web", "--reason", "frozen for the fair"];

/// A hook of the clone.
fn hook(work: &Work, name: &str, script: &str) {
    let path = work.repository.work().join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_commit_is_the_persons_own_and_holds_the_change_alone() {
    let work = Work::new();
    work.repository.write("notes.txt", "mine");
    hook(&work, "commit-msg", "printf '\\nTicket: 7\\n' >> \"$1\"");
    let output = work.run(&SUSPEND);
    let printed = output.expect_ok();
    assert_eq!(printed.trim(), work.head(), "stdout is the commit's id");
    assert_eq!(work.changed(), ["A policies/suspend-shop-web.yaml"]);
    let shown = work.git(&["log", "-1", "--format=%an <%ae>|%s|%b"]);
    assert_eq!(
        shown.replace('\n', " "),
        "Ada <ada@example.com>|Suspend shop/web|frozen for the fair  Ticket: 7",
        "the person, what was done, why, and what their hook added"
    );
    assert_eq!(work.git(&["status", "--porcelain"]), "?? notes.txt");
    assert_ne!(
        work.repository.head("main"),
        Some(work.head()),
        "nothing is pushed unasked"
    );
}

#[test]
fn a_hook_that_says_no_leaves_the_clone_as_it_was() {
    let work = Work::new();
    hook(&work, "pre-commit", "echo 'ask the fair first' >&2; exit 1");
    work.refuses(&SUSPEND, "ask the fair first");
    work.refuses(&SUSPEND, "nothing was changed");
}

#[test]
fn push_pushes_and_a_push_that_fails_says_that_the_commit_is_made() {
    let work = Work::new();
    work.git(&["branch", "--set-upstream-to=origin/main"]);
    work.run(&[&SUSPEND[..], &["--push"]].concat()).expect_ok();
    assert_eq!(work.repository.head("main"), Some(work.head()));
    work.git(&["remote", "set-url", "origin", "gone.git"]);
    let output = work.run(&["resume", "shop/web", "--push"]);
    assert_eq!(output.code(), Some(1));
    assert!(
        output.stderr.contains("the commit is made and was not pushed"),
        "{output:?}"
    );
}

#[test]
fn a_dry_run_prints_the_diff_and_changes_nothing() {
    let work = Work::new();
    let before = work.git(&["count-objects"]);
    let head = work.head();
    let diff = work.run(&[&SUSPEND[..], &["--dry-run"]].concat()).expect_ok();
    assert!(diff.contains("+++ b/policies/suspend-shop-web.yaml"), "{diff}");
    assert!(diff.contains("\n+  reason: frozen for the fair\n"), "{diff}");
    assert_eq!((work.head(), work.git(&["count-objects"])), (head, before));
    assert_eq!(work.git(&["status", "--porcelain"]), "");
}

#[test]
fn other_staged_changes_are_refused_or_left_staged() {
    let work = Work::new();
    work.repository.write("notes.txt", "mine");
    work.git(&["add", "notes.txt"]);
    work.refuses(&SUSPEND, "other changes are staged");
    work.run(&[&SUSPEND[..], &["--allow-staged"]].concat()).expect_ok();
    assert_eq!(work.changed(), ["A policies/suspend-shop-web.yaml"]);
    assert_eq!(
        work.git(&["status", "--porcelain"]),
        "A  notes.txt",
        "it is staged as before"
    );
}

#[test]
fn what_cannot_be_committed_is_refused_before_anything_is_written() {
    let work = Work::new();
    work.repository.git(&["config", "--unset", "user.name"]);
    work.repository.git(&["config", "--unset", "user.email"]);
    work.repository.git(&["config", "user.useConfigOnly", "true"]);
    work.refuses(&SUSPEND, "git does not know who you are");
    let work = Work::new();
    work.git(&["checkout", "--quiet", "--detach"]);
    work.refuses(&SUSPEND, "no branch is checked out");
    let work = Work::new();
    std::os::unix::fs::symlink("/tmp", work.repository.work().join("policies")).unwrap();
    work.refuses(&SUSPEND, "is a symlink, and is not written through");
    let work = Work::new();
    work.repository.write(".gitignore", "policies/\n");
    work.repository.commit("Ignore policies");
    work.refuses(&SUSPEND, "nothing was changed");
    let nowhere = flotilla_tests::scratch::folder("nowhere").display().to_string();
    work.refuses(
        &["suspend", "shop/web", "-C", &nowhere],
        "is in no clone of the fleet repository",
    );
}
