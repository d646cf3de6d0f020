use super::{open, revision};
use crate::hub::repository::fixture::Fixture;
use crate::hub::source::{Sought, Source};
use crate::limits::KEY_COMMITS_MAX;

fn sought(path: &str, text: &str) -> Sought {
    Sought {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

/// Commits what is there so many seconds after 1970.
fn commit_at(fixture: &Fixture, seconds: i64) {
    let date = format!("@{seconds} +0000");
    fixture.git(&["add", "--all"]);
    let name = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
    let status = std::process::Command::new("git")
        .current_dir(fixture.path())
        .args(name)
        .args(["commit", "--quiet", "--allow-empty", "-m", "a change"])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .status();
    assert!(status.expect("git is installed").success());
}

fn introduced(fixture: &Fixture, wanted: &[Sought]) -> Vec<Option<i64>> {
    let head = revision(&fixture.head());
    open(fixture)
        .introduced(&head, wanted, KEY_COMMITS_MAX)
        .expect("it is readable")
}

#[test]
fn a_text_is_as_old_as_the_commit_that_brought_it_to_stay() {
    let fixture = Fixture::new();
    let mut at = 1_000;
    let mut write = |path: &str, text: &str| {
        fixture.write(path, text);
        at += 100;
        commit_at(&fixture, at);
    };
    write("clusters/a.yaml", "key one");
    write("clusters/b.yaml", "key two");
    write("clusters/a.yaml", "key one, key three");
    write("clusters/b.yaml", "none");
    write("feeds/web.yaml", "something else");
    write("clusters/b.yaml", "key two again");
    write("feeds/web.yaml", "something else again");
    let wanted = [
        sought("clusters/a.yaml", "key one"),
        sought("clusters/a.yaml", "key three"),
        sought("clusters/b.yaml", "key two"),
        sought("clusters/b.yaml", "key four"),
        sought("clusters/none.yaml", "key one"),
    ];
    let found = introduced(&fixture, &wanted);
    assert_eq!(found, [Some(1_100), Some(1_300), Some(1_600), None, None]);
}

#[test]
fn a_file_that_moved_keeps_the_age_of_its_text() {
    let fixture = Fixture::new();
    fixture.write("clusters/old.yaml", "key one");
    commit_at(&fixture, 1_000);
    fixture.git(&["mv", "clusters/old.yaml", "clusters/new.yaml"]);
    commit_at(&fixture, 2_000);
    std::fs::create_dir(fixture.file("europe")).expect("a folder");
    fixture.git(&["mv", "clusters/new.yaml", "europe/new.yaml"]);
    fixture.write("europe/new.yaml", "key one, key two");
    commit_at(&fixture, 3_000);
    let wanted = [
        sought("europe/new.yaml", "key one"),
        sought("europe/new.yaml", "key two"),
    ];
    assert_eq!(introduced(&fixture, &wanted), [Some(1_000), Some(3_000)]);
}

#[test]
fn what_is_older_than_the_commits_that_are_there_or_looked_at_is_not_known() {
    let fixture = Fixture::new();
    fixture.import([("clusters/a.yaml".to_owned(), "key one".to_owned())], &[]);
    let wanted = [sought("clusters/a.yaml", "key one")];
    assert_eq!(introduced(&fixture, &wanted), [Some(1_700_000_000)]);
    for text in ["one", "two"] {
        fixture.import([("feeds/web.yaml".to_owned(), text.to_owned())], &[]);
    }
    let clone = tempfile::tempdir().expect("a folder");
    let from = format!("file://{}", fixture.path().display());
    let to = clone.path().display().to_string();
    fixture.git(&["clone", "--quiet", "--depth", "2", &from, &to]);
    let source = Source::open(clone.path(), "main").expect("it is a repository");
    let found = source.introduced(&revision(&fixture.head()), &wanted, KEY_COMMITS_MAX);
    assert_eq!(
        found.expect("it is readable"),
        [None],
        "a shallow clone does not say it"
    );
    let source = open(&fixture);
    let head = revision(&fixture.head());
    let within = |commits| source.introduced(&head, &wanted, commits).expect("it is readable");
    assert_eq!(within(2), [None], "it is older than the two that are looked at");
    assert_eq!(within(3), [Some(1_700_000_000)]);
}
