use std::sync::Arc;

use render::tree::{SourceEntry, SourceFile};

use super::{open, revision};
use crate::hub::repository::fixture::Fixture;
use crate::hub::source::SourceError;

fn file<'a>(tree: &'a render::SourceTree, path: &str) -> &'a SourceFile {
    match tree.files.get(path) {
        Some(SourceEntry::File(file)) => file,
        other => unreachable!("{path} is {other:?}"),
    }
}

#[test]
fn a_tree_has_every_file_whatever_the_worktree_says() {
    let fixture = Fixture::new();
    fixture.write("fleet.yaml", "kind: Fleet\n");
    fixture.write("feeds/a/b.yaml", "b");
    fixture.write("feeds/a.yaml", "a");
    fixture.write("feeds-x", "");
    let head = fixture.commit("one");
    fixture.write("fleet.yaml", "not committed");
    let tree = open(&fixture).tree(&revision(&head)).expect("readable");
    let paths: Vec<&str> = tree.files.keys().map(|path| &**path).collect();
    assert_eq!(paths, ["feeds-x", "feeds/a.yaml", "feeds/a/b.yaml", "fleet.yaml"]);
    assert_eq!(&*file(&tree, "fleet.yaml").bytes, b"kind: Fleet\n");
    assert_eq!(
        &*file(&tree, "fleet.yaml").id,
        fixture.git(&["rev-parse", "HEAD:fleet.yaml"])
    );
}

#[test]
fn an_empty_commit_has_an_empty_tree() {
    let fixture = Fixture::new();
    let head = fixture.commit("nothing");
    assert!(
        open(&fixture)
            .tree(&revision(&head))
            .expect("readable")
            .files
            .is_empty()
    );
}

#[test]
fn what_is_not_a_plain_file_is_named_and_left_unread() {
    let fixture = Fixture::new();
    std::os::unix::fs::symlink("../outside", fixture.file("link")).expect("linked");
    fixture.write("large.yaml", vec![b'#'; render::limits::FILE_BYTES_MAX + 1]);
    fixture.write("fits.yaml", vec![b'#'; render::limits::FILE_BYTES_MAX]);
    fixture.commit("one");
    let commit = fixture.head();
    fixture.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{commit},module"),
    ]);
    fixture.git(&["commit", "--quiet", "-m", "two"]);
    let tree = open(&fixture).tree(&revision(&fixture.head())).expect("readable");
    assert!(matches!(&tree.files["link"], SourceEntry::Symlink(target) if &**target == "../outside"));
    assert!(matches!(tree.files["large.yaml"], SourceEntry::TooLarge(size) if size == 8_388_609));
    assert!(matches!(tree.files["fits.yaml"], SourceEntry::File(_)));
    assert!(matches!(tree.files["module"], SourceEntry::Submodule));
}

#[test]
fn a_bad_name_blocks_itself_and_hides_nobody() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::new();
    let name = std::ffi::OsStr::from_bytes(b"a\xff.yaml");
    std::fs::write(fixture.path().join(name), "x").expect("Linux allows it");
    fixture.write("a%FF.yaml", "the true one");
    fixture.write("ümlaut.yaml", "fine");
    let head = fixture.commit("one");
    let tree = open(&fixture).tree(&revision(&head)).expect("the others stay readable");
    assert_eq!(&*file(&tree, "a%FF.yaml").bytes, b"the true one");
    assert!(matches!(tree.files["a%FF.yaml%"], SourceEntry::BadName));
    assert_eq!(&*file(&tree, "ümlaut.yaml").bytes, b"fine");
}

#[test]
fn names_that_lead_out_of_the_tree_are_bad_names() {
    let fixture = Fixture::new();
    fixture.write("x", "content");
    fixture.commit("one");
    let blob = fixture.git(&["rev-parse", "HEAD:x"]);
    let mut raw = b"100644 ..\0".to_vec();
    raw.extend((0..20).map(|at| u8::from_str_radix(&blob[2 * at..2 * at + 2], 16).expect("hex")));
    fixture.write("raw", &raw);
    let tree = fixture.git(&["hash-object", "-t", "tree", "--literally", "-w", "raw"]);
    let head = fixture.git(&["commit-tree", &tree, "-m", "evil"]);
    let tree = open(&fixture).tree(&revision(&head)).expect("readable");
    assert!(matches!(tree.files["%2E%2E"], SourceEntry::BadName));
    assert_eq!(tree.files.len(), 1);
}

#[test]
fn any_lost_object_makes_an_error_and_never_a_smaller_tree() {
    for path in ["HEAD:a/b/c.yaml", "HEAD:a/b", "HEAD:a", "HEAD^{tree}", "HEAD"] {
        let fixture = Fixture::new();
        fixture.write("a/b/c.yaml", "c");
        fixture.write("d.yaml", "d");
        let head = fixture.commit("one");
        fixture.lose(&fixture.git(&["rev-parse", path]));
        let read = open(&fixture).tree(&revision(&head));
        assert!(matches!(read, Err(SourceError::Unreadable(_))), "{path} is lost");
    }
}

#[test]
fn an_object_with_another_ones_content_is_an_error() {
    let fixture = Fixture::new();
    fixture.write("a.yaml", "a");
    fixture.write("b.yaml", "b");
    let head = fixture.commit("one");
    let blob = |path: &str| fixture.loose(&fixture.git(&["rev-parse", &format!("HEAD:{path}")]));
    let (from, to) = (blob("a.yaml"), blob("b.yaml"));
    std::fs::remove_file(&to).expect("removed");
    std::fs::copy(from, to).expect("copied");
    assert!(matches!(
        open(&fixture).tree(&revision(&head)),
        Err(SourceError::Unreadable(_))
    ));
}

#[test]
fn a_truncated_object_is_an_error() {
    let fixture = Fixture::new();
    fixture.write("a.yaml", "a: 1\n".repeat(1000));
    let head = fixture.commit("one");
    let path = fixture.loose(&fixture.git(&["rev-parse", "HEAD:a.yaml"]));
    let bytes = std::fs::read(&path).expect("readable");
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("written");
    assert!(matches!(
        open(&fixture).tree(&revision(&head)),
        Err(SourceError::Unreadable(_))
    ));
}

#[test]
fn a_replacement_object_does_not_change_what_a_revision_says() {
    let fixture = Fixture::new();
    fixture.write("a.yaml", "true");
    let head = fixture.commit("one");
    fixture.write("a.yaml", "false");
    let other = fixture.commit("two");
    fixture.git(&["replace", &head, &other]);
    let tree = open(&fixture).tree(&revision(&head)).expect("readable");
    assert_eq!(&*file(&tree, "a.yaml").bytes, b"true");
}

#[test]
fn packing_under_an_open_source_does_no_harm() {
    let fixture = Fixture::new();
    for number in 0..50 {
        fixture.write(&format!("f{number}.yaml"), format!("n: {number}\n"));
    }
    let first = fixture.commit("one");
    let source = open(&fixture);
    source.tree(&revision(&first)).expect("readable");
    fixture.write("g.yaml", "new");
    let second = fixture.commit("two");
    fixture.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(source.tree(&revision(&second)).expect("readable").files.len(), 51);
}

#[test]
fn unchanged_files_are_shared_with_the_tree_before() {
    let fixture = Fixture::new();
    let path = |number: usize| format!("feeds/{}/f{number}.yaml", number / 100);
    let first = fixture.import((0..6_000).map(|number| (path(number), format!("n: {number}\n"))), &[]);
    let source = open(&fixture);
    let old = source.tree(&revision(&first)).expect("readable");
    let change = [(path(700), "n: changed\n".to_owned())];
    let second = fixture.import(change, &[("feeds/9/f900.yaml", "moved.yaml")]);
    let begin = std::time::Instant::now();
    let new = source.tree(&revision(&second)).expect("readable");
    let elapsed = begin.elapsed();
    assert_eq!(new.files.len(), 6_000);
    let same = |old_path: &str, path: &str| Arc::ptr_eq(&file(&old, old_path).bytes, &file(&new, path).bytes);
    assert!(same("feeds/7/f701.yaml", "feeds/7/f701.yaml"), "in a changed folder");
    assert!(same("feeds/8/f800.yaml", "feeds/8/f800.yaml"), "in an unchanged folder");
    assert!(same("feeds/9/f900.yaml", "moved.yaml"), "a moved file");
    assert!(!same("feeds/7/f700.yaml", "feeds/7/f700.yaml"), "the changed one");
    assert!(elapsed.as_millis() < 1_000, "reading a change took {elapsed:?}");
    println!("re-read of 6,000 files after a small change: {elapsed:?}");
}
