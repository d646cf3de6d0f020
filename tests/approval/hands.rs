//! People's own commits on `rendered`: good ones, bad ones, and those that take something back.

use flotilla_tests::{Flotilla, eventually};

use super::{GREETING, Gated, LIMIT};

/// Edits the rendered greeting by hand, and pushes that.
fn edit(gated: &Gated, from: &str, to: &str) -> String {
    gated.checkout();
    let text = gated.repository.read("flotilla/rendered", GREETING).unwrap();
    assert!(text.contains(from), "{text}");
    gated.repository.write(GREETING, text.replace(from, to));
    let commit = gated.repository.commit("By hand");
    gated.push_rendered();
    commit
}

#[test]
fn a_manifest_edited_on_rendered_is_released_and_proposed_back() {
    let gated = Gated::start();
    edit(&gated, "hello", "by hand");
    gated.until_sequence(3);
    assert!(gated.greeting().contains("by hand"), "what is merged is approved");
    let back = gated.until_proposed("~ ConfigMap shop/greeting");
    gated.assert_still(
        3,
        std::slice::from_ref(&back),
        "and stays until a person says otherwise",
    );
    gated.git(&["fetch", "--quiet"]);
    let work = gated.repository.work().display().to_string();
    let plan = Flotilla::run(&["plan", "--repository", &work]);
    assert_eq!(plan.code(), Some(1), "{plan:?}");
    assert!(plan.stdout.contains(r#"/data/text: "by hand" -> "hello""#), "{plan:?}");
    gated.fast_forward(&back);
    gated.until_sequence(4);
    assert!(gated.greeting().contains("hello"));
    gated.until_no_proposal();
}

#[test]
fn a_merge_that_is_reverted_is_taken_back_and_proposed_again() {
    let gated = Gated::start();
    gated.greet("hi");
    let branch = gated.until_proposed("Say hi");
    gated.fast_forward(&branch);
    gated.until_sequence(3);
    gated.until_no_proposal();
    gated.checkout();
    gated.git(&["revert", "--no-edit", "HEAD"]);
    gated.push_rendered();
    gated.until_sequence(4);
    assert!(gated.greeting().contains("hello"), "{}", gated.greeting());
    let again = gated.until_proposed("Say hi");
    assert_ne!(again, branch);
    // To have it so for good, source says so.
    gated.greet("hello");
    gated.until_no_proposal();
    gated.assert_still(4, &[], "both say the same");
}

/// A person breaks `rendered`; `words` are in what the hub says of it.
#[track_caller]
fn check_malformed(gated: &mut Gated, path: &str, text: Option<&str>, words: &[&str]) {
    let sequence = gated.sequence().unwrap();
    gated.checkout();
    match text {
        Some(text) => gated.repository.write(path, text),
        None => gated.repository.remove(path),
    }
    let commit = gated.repository.commit("A bad merge");
    gated.push_rendered();
    let message = gated.until_reason("StateKept", "RenderedMalformed");
    for word in words
        .iter()
        .chain(&[commit.as_str(), "git revert", "flotilla/rendered"])
    {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
    let pushed = gated.greet(&format!("while {sequence}"));
    gated.assert_still(sequence, &[], "nothing is released or proposed");
    let status = gated.flotilla(&["status"]).stdout;
    assert!(status.contains(words[0]), "{status}");

    // A hub that starts on it says the same, and knows what was released.
    gated.kill();
    gated.restart();
    gated.until_reason("StateKept", "RenderedMalformed");
    eventually(LIMIT, "source is followed all the same", || {
        let fleet = gated.get(&["fleets", "fleet"])?;
        let accepted = fleet["status"]["accepted"].as_str().unwrap_or_default();
        accepted.contains(&pushed).then_some(()).ok_or(fleet.to_string())
    });
    gated.assert_still(sequence, &[], "nothing is released or proposed");

    gated.checkout();
    gated.git(&["revert", "--no-edit", "HEAD"]);
    gated.push_rendered();
    gated.until_reason("StateKept", "Kept");
    let branch = gated.until_proposed(&pushed);
    gated.fast_forward(&branch);
    gated.until_sequence(sequence + 1);
    gated.until_no_proposal();
}

#[test]
fn a_commit_that_is_no_state_of_the_fleet_holds_everything_until_it_is_mended() {
    let mut gated = Gated::start();
    let conflict = "<<<<<<< HEAD\nkind: Release\n=======\n>>>>>>> other\n";
    check_malformed(&mut gated, "release.yaml", Some(conflict), &["release.yaml"]);
    check_malformed(
        &mut gated,
        GREETING,
        Some("kind: [\n"),
        &["units/shop/web/default", "ConfigMap_shop_greeting.yaml"],
    );
    check_malformed(
        &mut gated,
        "units/staff/office",
        None,
        &["placements/staff/office.yaml", "units/staff/office/default"],
    );
    check_malformed(
        &mut gated,
        "placements/staff/office.yaml",
        None,
        &["units/staff/office", "placements/staff/office.yaml", "remove both"],
    );
}

#[test]
fn a_malformed_commit_that_is_reset_is_forgotten() {
    let gated = Gated::start();
    let good = gated.repository.head("flotilla/rendered").unwrap();
    edit(&gated, "apiVersion: v1", "apiVersion: [");
    gated.until_reason("StateKept", "RenderedMalformed");
    gated.git(&[
        "push",
        "--quiet",
        "--force",
        "origin",
        &format!("{good}:flotilla/rendered"),
    ]);
    gated.until_reason("StateKept", "Kept");
    gated.assert_still(2, &[], "nothing was released");
    gated.greet("hi");
    gated.until_proposed("Say hi");
}
