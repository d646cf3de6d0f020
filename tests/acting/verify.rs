//! `verify`: what a hub released is what its source renders, and what somebody changed there is found.

use flotilla_tests::eventually;

use super::{FILES, Hub, LIMIT, Work};

const GREETING: &str = "units/shop/web/default/ConfigMap_shop_greeting.yaml";
const PLACEMENT: &str = "placements/shop/web.yaml";

fn greet(work: &Work, text: &str) {
    let greeting = format!("{}data: {{text: {text}}}\n", FILES[3].1);
    work.repository.write("feeds/web/greeting.yaml", greeting);
    work.repository.commit(&format!("Say {text}"));
    work.repository.push();
}

/// A clone in which the hub's refs are fetched.
fn released() -> (Work, Hub) {
    let work = Work::new();
    greet(&work, "hello");
    let hub = Hub::start(&work);
    work.git(&["fetch", "--quiet"]);
    (work, hub)
}

/// A person's commit on top of what is released.
fn tamper(work: &Work, change: impl Fn()) {
    work.git(&["switch", "--quiet", "--detach", "--force", "origin/flotilla/released"]);
    change();
    work.repository.commit("Tamper");
}

/// A text of a file that is checked out, replaced.
fn replace(work: &Work, path: &str, from: &str, to: &str) {
    let text = std::fs::read_to_string(work.repository.work().join(path)).unwrap();
    assert!(text.contains(from), "{from:?} is not in {text}");
    work.repository.write(path, text.replace(from, to));
}

#[test]
fn what_was_released_verifies_in_a_clone_and_in_the_bare_repository() {
    let (work, _hub) = released();
    let released = work.repository.head("flotilla/released").unwrap();
    let bare = work.repository.bare().display().to_string();
    for more in [&[][..], &["--repository", &bare], &["--revision", &released]] {
        let output = work.run(&[&["verify"], more].concat());
        assert_eq!(output.expect_ok(), format!("OK {released}\n"));
    }
}

#[test]
fn an_entry_that_a_suspension_holds_verifies_beside_a_newer_one() {
    let work = Work::new();
    for cluster in ["paris", "rome"] {
        let file = FILES[1].1.replace("oslo", cluster);
        work.repository.write(&format!("clusters/{cluster}.yaml"), file);
    }
    greet(&work, "hello");
    let hub = Hub::start(&work);
    work.run(&["suspend", "shop/web", "--cluster", "paris"]).expect_ok();
    work.repository.push();
    greet(&work, "bye");
    work.run(&["reconcile", "--wait", "--server", &hub.api]).expect_ok();
    eventually(LIMIT, "two contents are released", || {
        let placement = work.repository.read("flotilla/released", PLACEMENT).unwrap_or_default();
        placement.contains("default-held-").then_some(()).ok_or(placement)
    });
    work.git(&["fetch", "--quiet"]);
    let released = work.repository.head("flotilla/released").unwrap();
    assert_eq!(work.run(&["verify"]).expect_ok(), format!("OK {released}\n"));
}

#[test]
fn a_released_commit_that_was_tampered_with_is_found() {
    let (work, _hub) = released();
    let check = |change: &dyn Fn(), expected: &str| {
        tamper(&work, change);
        let output = work.run(&["verify", "--revision", "HEAD"]);
        assert_eq!(output.code(), Some(1), "{output:?}");
        assert!(output.stdout.contains(expected), "{expected:?} is not in {output:?}");
        assert!(!output.stdout.contains("OK"), "{output:?}");
    };
    check(
        &|| replace(&work, GREETING, "hello", "bye"),
        &format!("{GREETING} differs\n"),
    );
    let extra = "units/shop/web/default/extra.yaml";
    check(
        &|| work.repository.write(extra, "a: b\n"),
        &format!("{extra} is in no decision\n"),
    );
    check(
        &|| work.repository.remove(GREETING),
        &format!("{GREETING} is missing\n"),
    );
    check(
        &|| replace(&work, PLACEMENT, "  oslo:", "  paris:"),
        &format!("{PLACEMENT} is not what "),
    );
    check(
        &|| replace(&work, PLACEMENT, "every cluster", "nobody"),
        &format!("{PLACEMENT} differs\n"),
    );
    let other_version = || {
        replace(&work, GREETING, "hello", "bye");
        replace(&work, "release.yaml", "renderVersion: 1", "renderVersion: 7");
    };
    check(&other_version, &format!("{GREETING} differs\n"));
    let output = work.run(&["verify", "--revision", "HEAD"]);
    assert!(output.stderr.contains("rendered by render version 7"), "{output:?}");
}

#[test]
fn what_was_edited_on_rendered_is_said_to_be() {
    let (work, hub) = released();
    work.git(&["switch", "--quiet", "--detach", "--force", "origin/flotilla/rendered"]);
    replace(&work, GREETING, "hello", "by hand");
    work.repository.commit("By hand");
    work.git(&["push", "--quiet", "origin", "HEAD:flotilla/rendered"]);
    work.git(&["switch", "--quiet", "main"]);
    work.run(&["reconcile", "--server", &hub.api]).expect_ok();
    let edited = eventually(LIMIT, "the edit is released", || {
        work.git(&["fetch", "--quiet"]);
        let text = work.git(&["log", "--format=%H", "-S", "by hand", "origin/flotilla/released"]);
        text.lines().last().map(str::to_owned).ok_or(text)
    });
    let output = work.run(&["verify", "--revision", &edited]);
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert!(
        output.stdout.contains(&format!("{GREETING} differs, as in rendered\n")),
        "{output:?}"
    );
    assert!(output.stderr.contains("rendered was edited by hand"), "{output:?}");
}

#[test]
fn what_cannot_be_rendered_again_is_named() {
    let (work, _hub) = released();
    let head = work.head();
    let gone = "f".repeat(40);
    tamper(&work, || {
        replace(&work, "release.yaml", &head, &gone);
        replace(&work, PLACEMENT, &head, &gone);
    });
    let output = work.run(&["verify", "--revision", "HEAD"]);
    assert_eq!(output.code(), Some(2), "{output:?}");
    let folder = GREETING.rsplit_once('/').unwrap().0;
    let words = format!("not verified: {folder}/: the source commit {gone}");
    assert!(output.stderr.contains(&words), "{output:?}");
    for (revision, words) in [
        ("main", "is no commit of released"),
        ("nowhere", "failed to find nowhere"),
    ] {
        let output = work.run(&["verify", "--revision", revision]);
        assert_eq!(output.code(), Some(2), "{output:?}");
        assert!(output.stderr.contains(words), "{output:?}");
    }
}
