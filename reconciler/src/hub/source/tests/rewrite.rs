use super::{open, revision};
use crate::hub::repository::fixture::{Fixture, git};
use crate::hub::source::{Relation, Source, SourceError};

#[test]
fn history_that_went_on_is_told_from_history_rewritten() {
    let fixture = Fixture::new();
    let first = revision(&fixture.commit("one"));
    let second = revision(&fixture.commit("two"));
    fixture.git(&["checkout", "--quiet", "-b", "side", "HEAD~1"]);
    let side = revision(&fixture.commit("side"));
    fixture.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "main"]);
    let merged = revision(&fixture.head());
    fixture.git(&["checkout", "--quiet", "--orphan", "other"]);
    let unrelated = revision(&fixture.commit("another root"));
    let source = open(&fixture);
    let relation = |old, new| source.relation(old, new).expect("readable");
    assert_eq!(relation(&first, &first), Relation::Same);
    assert_eq!(relation(&first, &second), Relation::Descendant);
    assert_eq!(
        relation(&second, &merged),
        Relation::Descendant,
        "through the second parent"
    );
    assert_eq!(
        relation(&second, &first),
        Relation::Rewritten,
        "reset to an older commit"
    );
    assert_eq!(relation(&second, &side), Relation::Rewritten, "amended");
    assert_eq!(relation(&second, &unrelated), Relation::Rewritten);
}

#[test]
fn an_accepted_head_that_was_pruned_is_a_rewrite_and_a_hole_is_an_error() {
    let fixture = Fixture::new();
    let root = fixture.commit("root");
    let middle = fixture.commit("middle");
    let head = revision(&fixture.commit("head"));
    let source = open(&fixture);
    let gone = revision("0123456789012345678901234567890123456789");
    assert_eq!(
        source.relation(&gone, &head).expect("all of the new history is there"),
        Relation::Rewritten
    );
    fixture.lose(&middle);
    let asked = open(&fixture).relation(&revision(&root), &head);
    assert!(matches!(asked, Err(SourceError::Unreadable(_))), "got {asked:?}");
}

#[test]
fn a_shallow_clone_reads_up_to_its_edge() {
    let fixture = Fixture::new();
    for subject in ["one", "two", "three"] {
        fixture.commit(subject);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", fixture.path().display());
    git(folder.path(), &["clone", "--quiet", "--depth=2", &url, "r"]);
    let source = Source::open(folder.path().join("r"), "main").expect("opens");
    let head = source.head().expect("readable").revision;
    let old = |spec: &str| revision(&fixture.git(&["rev-parse", spec]));
    assert_eq!(
        source.relation(&old("HEAD~1"), &head).expect("readable"),
        Relation::Descendant
    );
    assert_eq!(
        source.relation(&old("HEAD~2"), &head).expect("readable"),
        Relation::Rewritten
    );
}

#[track_caller]
fn check(message: &str, accepts: bool) {
    let fixture = Fixture::new();
    let old = fixture.commit("old");
    fixture.git(&["checkout", "--quiet", "--orphan", "new"]);
    let message = message
        .replace("OLD12", &old[..12])
        .replace("OLD11", &old[..11])
        .replace("OLD", &old);
    let head = fixture.commit(&message);
    fixture.commit("on top");
    let source = open(&fixture);
    for head in [head, fixture.head()] {
        let answer = source
            .accept_rewrite(&revision(&head), &revision(&old))
            .expect("readable");
        assert_eq!(answer, accepts, "{message:?}");
    }
}

#[test]
fn a_trailer_with_the_old_head_accepts_a_rewrite() {
    check("new\n\nAccept-Rewrite: OLD", true);
    check(
        "new\n\nwhy: it leaked\nand more\n\naccept-rewrite: OLD\nSigned-off-by: Ann <a@example.com>",
        true,
    );
    check("new\n\nAccept-Rewrite: OLD12", true);
}

#[test]
fn whoever_accepts_the_loss_of_a_later_head_accepts_that_of_the_earlier_one() {
    let fixture = Fixture::new();
    let published = fixture.commit("published");
    let later = fixture.commit("changed nothing that is published");
    fixture.git(&["checkout", "--quiet", "--orphan", "new"]);
    let check = |trailer: &str, old: &str, accepts: bool| {
        let head = fixture.commit(&format!("new\n\nAccept-Rewrite: {trailer}"));
        let answer = open(&fixture).accept_rewrite(&revision(&head), &revision(old));
        assert_eq!(answer.expect("readable"), accepts, "{trailer} of {old}");
    };
    check(&"0".repeat(40), &published, false);
    check(&published, &later, false);
    check(&later, &published, true);
}

#[test]
fn what_is_not_such_a_trailer_accepts_nothing() {
    check("new", false);
    check("Accept-Rewrite: OLD", false);
    check("new\n\nAccept-Rewrite: OLD\n\nmore text follows it", false);
    check("new\n\nplease do not add Accept-Rewrite: OLD", false);
    check("new\n\nAccept-Rewrite: OLD11", false);
    check("new\n\nAccept-Rewrite: ", false);
    check("new\n\nAccept-Rewrite: 0123456789012345678901234567890123456789", false);
}
