//! Every way in which a person merges, and what the proposal says to them.

use flotilla_tests::{Flotilla, eventually};

use super::{Gated, LIMIT};

/// Merges a branch into `rendered` in the person's clone.
type Merge = fn(&Gated, &str);

fn merge_commit(gated: &Gated, branch: &str) {
    gated.checkout();
    gated.git(&[
        "merge",
        "--quiet",
        "--no-ff",
        "-m",
        "Approve",
        &format!("origin/{branch}"),
    ]);
    gated.push_rendered();
}

fn squash(gated: &Gated, branch: &str) {
    gated.checkout();
    gated.git(&["merge", "--quiet", "--squash", &format!("origin/{branch}")]);
    gated.git(&["commit", "--quiet", "-m", "Approve as one commit"]);
    gated.push_rendered();
}

fn rebase(gated: &Gated, branch: &str) {
    gated.checkout();
    gated.git(&["checkout", "--quiet", "-B", "rebased", &format!("origin/{branch}")]);
    gated.git(&["rebase", "--quiet", "--force-rebase", "rendered"]);
    gated.push_rendered();
}

fn fast_forward(gated: &Gated, branch: &str) {
    gated.fast_forward(branch);
}

#[test]
fn every_way_of_merging_releases_once_and_removes_the_proposal() {
    let gated = Gated::start();
    let ways: [(&str, Merge); 4] = [
        ("merge", merge_commit),
        ("squash", squash),
        ("rebase", rebase),
        ("fast-forward", fast_forward),
    ];
    for ((way, merge), sequence) in ways.into_iter().zip(3..) {
        let commit = gated.greet(way);
        let branch = gated.until_proposed("Change shop/web on 1 cluster");
        gated.assert_still(
            sequence - 1,
            std::slice::from_ref(&branch),
            "nothing is released before a merge",
        );
        let proposed = gated.repository.head(&branch);
        merge(&gated, &branch);
        gated.until_sequence(sequence);
        gated.until_no_proposal();
        gated.assert_still(sequence, &[], "released once, and proposed no more");
        assert!(gated.greeting().contains(way), "{way}: {}", gated.greeting());
        let record = gated.repository.read("flotilla/released", "release.yaml").unwrap();
        assert!(
            record.contains(&commit) && record.contains("mergedProposal"),
            "{record}"
        );
        let is_the_same = gated.repository.head("flotilla/rendered") == proposed;
        assert_eq!(is_the_same, way == "fast-forward", "{way} is what it is called");
    }
    gated.repository.git_bare(&["fsck", "--strict"]).expect_ok();
}

#[test]
fn a_proposal_reads_well_in_a_review() {
    let gated = Gated::start();
    gated.greet("hi");
    gated.repository.remove("subscriptions/office.yaml");
    gated.repository.remove("feeds/web/farewell.yaml");
    let commit = gated.repository.push_files("Close the office\n\nFor good.", &[]);
    let branch = gated.until_proposed("Remove");
    let message = gated.repository.message(&branch);
    let (short, before) = (&commit[..12], &gated.repository.head("main~1").unwrap()[..12]);
    let expected = format!(
        "\
Change 2 units on 1 cluster

Removed:
- staff/office from oslo

Changed:
- shop/web on oslo
    - ConfigMap shop/farewell
    ~ ConfigMap shop/greeting

Commits of source, newest first:
- {short} Close the office
- {before} Say hi

To approve, merge this branch into flotilla/rendered.

Source-Revision: {commit}
Cause: mergedProposal
Render-Version: 1

"
    );
    assert_eq!(message.trim_end(), expected.trim_end());
    assert!(!message.contains("goodbye"), "values are the diff's to show");
}

#[test]
fn what_was_merged_while_no_hub_ran_is_released_once() {
    let mut gated = Gated::start();
    gated.greet("hi");
    let branch = gated.until_proposed("Change shop/web");
    gated.kill();
    squash(&gated, &branch);
    gated.restart();
    gated.until_sequence(3);
    gated.until_no_proposal();
    gated.assert_still(3, &[], "released once");
    assert!(gated.greeting().contains("hi"));
}

#[test]
fn two_hubs_and_one_that_starts_again_come_to_one_proposal() {
    let mut gated = Gated::start();
    gated.greet("hi");
    let branch = gated.until_proposed("Change shop/web");
    let commit = gated.repository.head(&branch);
    // As after a crash between writing the branch and noting it.
    gated.kill();
    gated.restart();
    gated.until_reason("Approved", "MergeAwaited");
    let _other = second_hub(&gated);
    gated.assert_still(2, std::slice::from_ref(&branch), "one proposal, and the same");
    assert_eq!(gated.repository.head(&branch), commit);
    // A commit that changes nothing more gives the reviewers nothing new to look at.
    gated.repository.push_files("Explain", &[("README.md", "what this is")]);
    gated.assert_still(2, std::slice::from_ref(&branch), "an equal decision is no other one");
    assert_eq!(gated.repository.head(&branch), commit);
    merge_commit(&gated, &branch);
    gated.until_no_proposal();
    gated.until_sequence(3);
    gated.assert_still(3, &[], "two hubs release one merge once");
}

/// Another hub on the same repository, as during a rolling update.
fn second_hub(gated: &Gated) -> Flotilla {
    let mut other = gated.arguments.clone();
    for name in ["--listen", "--api"] {
        let at = other.iter().position(|argument| argument == name).unwrap();
        other[at + 1] = format!("127.0.0.1:{}", flotilla_tests::ports::free());
    }
    Flotilla::hub(&other)
}

#[test]
fn two_hubs_release_side_by_side_and_never_backwards() {
    let gated = Gated::start();
    let fleet =
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec: {approval: none}\n";
    let open = gated.repository.push_files("Ask nobody", &[("fleet.yaml", fleet)]);
    eventually(LIMIT, "the open gate is seen", || {
        let fleet = gated.get(&["fleets", "fleet"])?;
        let accepted = fleet["status"]["accepted"].as_str().unwrap_or_default();
        if accepted.contains(&open) {
            Ok(())
        } else {
            Err(accepted.to_owned())
        }
    });
    gated.greet("hi");
    let last = gated.until_proposed("Change shop/web");
    gated.fast_forward(&last);
    gated.until_sequence(3);
    gated.until_no_proposal();
    let _other = second_hub(&gated);
    let mut highest = gated.sequence();
    for push in 0..12 {
        gated.greet(&format!("hello {push}"));
        let now = gated.sequence();
        assert!(now >= highest, "released went back from {highest:?} to {now:?}");
        highest = now;
    }
    eventually(LIMIT, "the last push is released", || {
        let now = gated.sequence();
        assert!(now >= highest, "released went back from {highest:?} to {now:?}");
        highest = now;
        let text = gated.greeting();
        if text.contains("hello 11") { Ok(()) } else { Err(text) }
    });
    let end = gated.sequence().expect("it was released");
    gated.assert_still(end, &[], "neither hub puts anything back");
    let log = ["rev-list", "--count", "--first-parent", "flotilla/released"];
    let commits = gated.repository.git_bare(&log).expect_ok();
    assert_eq!(commits.trim(), end.to_string(), "each commit is one step further");
}

#[test]
fn a_proposal_merged_into_source_is_a_finding_and_changes_nothing() {
    let gated = Gated::start();
    gated.greet("hi");
    let branch = gated.until_proposed("Change shop/web");
    gated.git(&["fetch", "--quiet"]);
    gated.git(&[
        "merge",
        "--quiet",
        "--allow-unrelated-histories",
        "-m",
        "Merge the wrong way",
        &format!("origin/{branch}"),
    ]);
    gated.repository.push();
    let message = gated.until_reason("Valid", "ErrorsFound");
    assert!(message.contains("release.yaml"), "{message}");
    let status = gated.flotilla(&["status"]).stdout;
    assert!(status.contains("take that back with git revert"), "{status}");
    gated.assert_still(2, &[branch], "the proposal waits as before");
    gated.git(&["revert", "--no-edit", "-m", "1", "HEAD"]);
    gated.repository.push();
    gated.until_reason("Valid", "NoErrors");
}
