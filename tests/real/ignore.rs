//! `.flotillaignore`, judged by `git check-ignore`.

use std::collections::BTreeSet;
use std::sync::Arc;

use flotilla_tests::repository::git;
use flotilla_tests::scratch;
use render::load::load;
use render::tree::{SourceEntry, SourceFile, SourceTree};
use render::{Previous, Revision};

/// Files that the patterns below are about.
const FILES: &[&str] = &[
    "a.yaml",
    "b.yaml",
    "secret.enc.yaml",
    "drafts/keep.yaml",
    "drafts/old.yaml",
    "drafts/deep/x.yaml",
    "docs/a.yaml",
    "docs/sub/b.yaml",
    "app/docs/a.yaml",
    "app/drafts/x.yaml",
    "app/tests/x.yaml",
    "app/base/one.yaml",
    "app/base/two.yaml",
    "samples/x.yaml",
    "samples/y/z.yaml",
    "app/samples/x.yaml",
    "tests/x.yaml",
    "Tests/x.yaml",
    "with space.yaml",
    "trailing /x.yaml",
    "#hash.yaml",
    "!bang.yaml",
    "[x].yaml",
    "x.yaml",
    "a-b/c.yaml",
    "a/b/c/d.yaml",
    "a/c/d.yaml",
    "file1.yaml",
    "file2.yaml",
    "file10.yaml",
    "star*.yaml",
];

/// Rules: the folder of each file of rules (empty for the root, else ending with a slash), and its lines.
const RULES: &[&[(&str, &str)]] = &[
    &[("", "*.enc.yaml")],
    &[("", "drafts/")],
    &[("", "drafts/\n!drafts/keep.yaml")],
    &[("", "drafts/*\n!drafts/keep.yaml")],
    &[("", "/drafts")],
    &[("", "drafts")],
    &[("", "/docs/**")],
    &[("", "docs/**")],
    &[("", "**/docs")],
    &[("", "**/docs/a.yaml")],
    &[("", "docs/")],
    &[("", "tests/")],
    &[("", "samples/*")],
    &[("", "tests/\nsamples/*")],
    &[("", "/samples/*\n!/samples/y/\n/samples/y/*\n!/samples/y/z.yaml")],
    &[("", "app/**/x.yaml")],
    &[("", "a/**/d.yaml")],
    &[("", "a/*/d.yaml")],
    &[("", "app/*")],
    &[("", "app/*\n!app/base")],
    &[("", "app/\n!app/base/one.yaml")],
    &[("", "*\n!*/\n!*.enc.yaml")],
    &[("", "*\n!a.yaml")],
    &[("", "/*\n!/app")],
    &[("", "/a.yaml")],
    &[("", "x.yaml")],
    &[("", "/x.yaml")],
    &[("", "file?.yaml")],
    &[("", "file[0-9].yaml")],
    &[("", "file[!1].yaml")],
    &[("", "\\#hash.yaml")],
    &[("", "#hash.yaml")],
    &[("", "\\!bang.yaml")],
    &[("", "\\[x\\].yaml")],
    &[("", "with space.yaml")],
    &[("", "a.yaml   ")],
    &[("", "trailing\\ /")],
    &[("", "star\\*.yaml")],
    &[("", "\n\n# a remark\n\nb.yaml\n")],
    &[("", "a.yaml\r\nb.yaml\r\n")],
    &[("", "TESTS/")],
    &[("", "drafts/deep")],
    &[("", "deep/")],
    &[("", "*.yaml"), ("app/", "!base/\n!*.yaml")],
    &[("", "app/"), ("app/", "!base/one.yaml")],
    &[("", "one.yaml"), ("app/base/", "!one.yaml\ntwo.yaml")],
    &[("app/", "/x.yaml\n/docs")],
    &[("app/", "docs/a.yaml"), ("", "!app/docs/a.yaml")],
];

/// What Git leaves out.
fn by_git(rules: &[(&str, &str)]) -> BTreeSet<String> {
    let folder = scratch::folder("ignore");
    git(&folder, &["init", "--quiet", "."]).expect_ok();
    for (at, lines) in rules {
        std::fs::create_dir_all(folder.join(at)).unwrap();
        std::fs::write(folder.join(at).join(".gitignore"), lines).unwrap();
    }
    let arguments = ["-c", "core.quotePath=false", "check-ignore", "--no-index", "--"];
    let said = git(&folder, &[&arguments[..], FILES].concat());
    // It fails where nothing is left out, and puts odd names in quotes.
    let unquoted = |line: &str| line.trim_matches('"').replace("\\\"", "\"");
    said.stdout.lines().map(unquoted).collect()
}

/// What we leave out: every file is broken, and a file that is looked at is a Finding.
fn by_flotilla(rules: &[(&str, &str)]) -> BTreeSet<String> {
    let file = |text: &str| SourceEntry::File(SourceFile::from_bytes(text.as_bytes().to_vec()));
    let broken = FILES.iter().map(|path| (Arc::from(*path), file("{")));
    let rules = rules
        .iter()
        .map(|(at, lines)| (Arc::from(format!("{at}.flotillaignore")), file(lines)));
    let tree = SourceTree {
        revision: Revision::parse("1".repeat(40)).unwrap(),
        files: broken.chain(rules).collect(),
    };
    let (_, findings) = load(&tree, &Previous::default());
    let seen: BTreeSet<_> = findings.into_iter().map(|finding| finding.file).collect();
    let unseen = FILES.iter().filter(|path| !seen.contains(**path));
    unseen.map(|path| (*path).to_owned()).collect()
}

#[test]
fn files_are_left_out_as_git_leaves_them_out() {
    for rules in RULES {
        assert_eq!(by_flotilla(rules), by_git(rules), "{rules:?}");
    }
    assert!(by_flotilla(&[]).is_empty(), "every file is looked at without rules");
}
