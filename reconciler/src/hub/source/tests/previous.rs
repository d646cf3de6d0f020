use std::sync::Arc;

use render::Previous;
use render::tree::SourceFile;

use super::{open, revision};
use crate::hub::repository::fixture::Fixture;
use crate::hub::source::SourceError;

fn parses(_path: &str, file: &SourceFile) -> bool {
    !file.bytes.starts_with(b"bad")
}

fn previous(fixture: &Fixture, paths: &[&str]) -> Previous {
    let source = open(fixture);
    let tree = source.tree(&revision(&fixture.head())).expect("readable");
    let paths: Vec<Arc<str>> = paths.iter().map(|path| Arc::from(*path)).collect();
    source
        .previous(&tree, &paths, &parses)
        .expect("the history is readable")
}

fn last_good(previous: &Previous, path: &str) -> Option<String> {
    let file = previous.last_good.get(path)?;
    Some(String::from_utf8_lossy(&file.bytes).into_owned())
}

fn names(previous: &Previous) -> (Vec<&str>, Vec<&str>) {
    (
        previous.new_files.iter().map(|path| &**path).collect(),
        previous.vanished.keys().map(|path| &**path).collect(),
    )
}

#[test]
fn the_newest_content_that_parsed_is_found() {
    let fixture = Fixture::new();
    for content in ["good 1", "good 2", "bad 3", "bad 4"] {
        fixture.write("d/a.yaml", content);
        fixture.commit(content);
        fixture.write("other.yaml", content);
        fixture.commit("something else");
    }
    let previous = previous(&fixture, &["d/a.yaml"]);
    assert_eq!(last_good(&previous, "d/a.yaml").as_deref(), Some("good 2"));
    assert_eq!(names(&previous), (vec![], vec![]));
}

#[test]
fn a_file_that_never_parsed_is_new_and_what_vanished_with_it_is_kept() {
    let fixture = Fixture::new();
    fixture.write("kept.yaml", "good");
    fixture.write("gone.yaml", "good");
    fixture.commit("before");
    fixture.git(&["rm", "--quiet", "gone.yaml"]);
    fixture.write("new.yaml", "bad 1");
    fixture.commit("adds a broken file and moves objects into it");
    fixture.write("new.yaml", "bad 2");
    fixture.commit("tries to repair it");
    let previous = previous(&fixture, &["new.yaml"]);
    assert_eq!(names(&previous), (vec!["new.yaml"], vec!["gone.yaml"]));
    assert_eq!(&*previous.vanished["gone.yaml"].bytes, b"good");
}

#[test]
fn a_file_that_was_broken_from_the_root_on_is_new() {
    let fixture = Fixture::new();
    fixture.write("a.yaml", "bad");
    fixture.commit("root");
    fixture.commit("more");
    assert_eq!(names(&previous(&fixture, &["a.yaml"])), (vec!["a.yaml"], vec![]));
}

#[test]
fn content_from_before_a_deliberate_removal_does_not_come_back() {
    let fixture = Fixture::new();
    fixture.write("a.yaml", "good");
    fixture.write("b.yaml", "good");
    fixture.commit("one");
    fixture.git(&["rm", "--quiet", "a.yaml"]);
    fixture.commit("removed");
    fixture.write("a.yaml", "bad");
    fixture.commit("added again");
    let previous = previous(&fixture, &["a.yaml"]);
    assert_eq!(last_good(&previous, "a.yaml"), None);
    assert_eq!(names(&previous), (vec!["a.yaml"], vec![]));
}

#[test]
fn a_merge_counts_as_the_commit_that_brought_it() {
    let fixture = Fixture::new();
    fixture.write("old.yaml", "good");
    fixture.commit("root");
    fixture.git(&["checkout", "--quiet", "-b", "side"]);
    fixture.git(&["rm", "--quiet", "old.yaml"]);
    fixture.commit("removes");
    fixture.write("new.yaml", "bad");
    fixture.commit("adds");
    fixture.git(&["checkout", "--quiet", "main"]);
    fixture.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "side"]);
    assert_eq!(
        names(&previous(&fixture, &["new.yaml"])),
        (vec!["new.yaml"], vec!["old.yaml"])
    );
}

#[test]
fn several_files_are_searched_at_once() {
    let fixture = Fixture::new();
    fixture.write("a.yaml", "good a");
    fixture.write("b.yaml", "bad b");
    fixture.commit("one");
    fixture.write("a.yaml", "bad");
    fixture.write("b.yaml", "good b");
    fixture.commit("two");
    fixture.write("b.yaml", "bad");
    fixture.write("c.yaml", "bad");
    fixture.commit("three");
    let previous = previous(&fixture, &["a.yaml", "b.yaml", "c.yaml"]);
    assert_eq!(last_good(&previous, "a.yaml").as_deref(), Some("good a"));
    assert_eq!(last_good(&previous, "b.yaml").as_deref(), Some("good b"));
    assert_eq!(names(&previous), (vec!["c.yaml"], vec![]));
}

#[test]
fn a_hole_in_the_history_is_an_error() {
    let fixture = Fixture::new();
    fixture.write("a.yaml", "good");
    let first = fixture.commit("one");
    fixture.write("a.yaml", "bad");
    fixture.commit("two");
    let source = open(&fixture);
    let tree = source.tree(&revision(&fixture.head())).expect("readable");
    fixture.lose(&first);
    let asked = open(&fixture).previous(&tree, &["a.yaml".into()], &parses);
    assert!(matches!(asked, Err(SourceError::Unreadable(_))));
}
