//! While a proposal waits: what overtakes it, what people do to its branch, and what is shown meanwhile.

use flotilla_tests::eventually;

use super::{Gated, LIMIT, config_map};

#[test]
fn a_proposal_that_source_or_rendered_overtook_is_replaced() {
    let gated = Gated::start();
    gated.greet("hi");
    let first = gated.until_proposed("Say hi");
    let newer = gated.greet("hey");
    let second = gated.until_proposed(&newer);
    assert_ne!(first, second);
    let message = gated.repository.message(&second);
    assert!(message.contains("Say hey") && message.contains("Say hi"), "{message}");

    // Somebody approves something else meanwhile.
    gated.checkout();
    gated.repository.write("README.md", "what this branch is");
    gated.repository.commit("Explain");
    let base = gated.git(&["rev-parse", "HEAD"]);
    gated.push_rendered();
    let third = eventually(LIMIT, "it is proposed on what is there now", || {
        let proposals = gated.proposals();
        match proposals.as_slice() {
            [one] if gated.repository.head(&format!("{one}~1")).as_ref() == Some(&base) => Ok(one.clone()),
            other => Err(format!("{other:?}")),
        }
    });
    gated.assert_still(2, std::slice::from_ref(&third), "one proposal is left");
    gated.fast_forward(&third);
    gated.until_sequence(3);
    assert!(gated.greeting().contains("hey"));
    assert!(
        gated.repository.read("flotilla/rendered", "README.md").is_some(),
        "people's own files stay"
    );

    // What is taken back in source is proposed no more.
    gated.greet("oops");
    gated.until_proposed("Say oops");
    gated.greet("hey");
    gated.until_no_proposal();
    gated.assert_still(3, &[], "nothing waits");
}

#[test]
fn a_branch_that_people_worked_on_is_kept_and_named() {
    let gated = Gated::start();
    gated.greet("hi");
    let branch = gated.until_proposed("Say hi");
    gated.git(&["fetch", "--quiet"]);
    gated.git(&["checkout", "--quiet", "-B", "theirs", &format!("origin/{branch}")]);
    gated.repository.write("REVIEW.md", "to be discussed");
    gated.repository.commit("A remark");
    gated.git(&["push", "--quiet", "origin", &format!("HEAD:{branch}")]);
    gated.git(&["checkout", "--quiet", "main"]);
    let theirs = gated.repository.head(&branch);
    gated.greet("hey");
    eventually(LIMIT, "the newer decision is proposed beside it", || {
        match gated.proposals().len() {
            2 => Ok(()),
            count => Err(format!("{count} proposals")),
        }
    });
    let message = gated.until_reason("Approved", "MergeAwaited");
    assert!(
        message.contains(&format!("people put commits on {branch}")),
        "{message}"
    );
    assert_eq!(gated.repository.head(&branch), theirs);
    // Merged after all, it is released and leaves nothing behind.
    gated.fast_forward(&branch);
    gated.until_sequence(3);
    assert!(gated.greeting().contains("hi"));
    let next = gated.until_proposed("Say hey");
    assert_ne!(next, branch);
}

#[test]
fn a_removed_proposal_is_proposed_again_and_a_reset_rendered_is_put_back() {
    let gated = Gated::start();
    gated.greet("hi");
    let branch = gated.until_proposed("Say hi");
    gated.git(&["push", "--quiet", "origin", "--delete", &branch]);
    assert_eq!(gated.until_proposed("Say hi"), branch);
    gated.fast_forward(&branch);
    gated.until_sequence(3);
    gated.until_no_proposal();
    let rendered = gated.repository.head("flotilla/rendered").unwrap();
    gated.git(&[
        "push",
        "--quiet",
        "--force",
        "origin",
        &format!("{rendered}~1:flotilla/rendered"),
    ]);
    eventually(LIMIT, "rendered is put back", || {
        let found = gated.repository.head("flotilla/rendered");
        if found.as_ref() == Some(&rendered) {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    });
    gated.assert_still(3, &[], "nothing was released again");
}

#[test]
fn what_waits_is_shown_with_the_command_that_merges_it() {
    let gated = Gated::start();
    let released = gated.repository.head("main").unwrap();
    let commit = gated.greet("hi");
    let branch = gated.until_proposed("Say hi");
    let message = gated.until_reason("Approved", "MergeAwaited");
    let command = format!("git fetch && git push origin origin/{branch}:flotilla/rendered");
    assert!(
        message.contains(&command) && message.contains(&commit[..12]),
        "{message}"
    );
    let status = gated.flotilla(&["status"]).stdout;
    assert!(status.contains(&command) && status.contains(&commit[..12]), "{status}");

    let revision = |unit: &[&str]| {
        gated.get(unit).unwrap()["status"]["revision"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let web = ["subscriptions", "web", "--namespace", "shop"];
    let office = ["subscriptions", "office", "--namespace", "staff"];
    assert!(
        revision(&web).contains(&released),
        "what waits is not shown as there: {}",
        revision(&web)
    );
    assert!(
        revision(&office).contains(&commit),
        "what does not change is as new as source"
    );
    let conditions = gated.get(&web).unwrap()["status"]["conditions"].to_string();
    assert!(
        conditions.contains("MergeAwaited") && conditions.contains(&command),
        "{conditions}"
    );
    let conditions = gated.get(&office).unwrap()["status"]["conditions"].to_string();
    assert!(!conditions.contains("MergeAwaited"), "{conditions}");

    gated.fast_forward(&branch);
    gated.until_reason("Approved", "Merged");
    gated.until_sequence(3);
    assert!(revision(&web).contains(&commit), "{}", revision(&web));
    assert!(!gated.flotilla(&["status"]).stdout.contains("git push"));
}

#[test]
fn a_fleet_that_asks_for_approval_no_more_says_so_in_a_merged_decision() {
    let gated = Gated::start();
    let fleet = gated
        .repository
        .read("main", "fleet.yaml")
        .unwrap()
        .replace("required", "none");
    let files = [
        ("fleet.yaml", fleet.as_str()),
        ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "free")),
    ];
    gated.repository.push_files("Ask no more", &files);
    let branch = gated.until_proposed("Ask no more");
    gated.fast_forward(&branch);
    gated.until_sequence(3);
    gated.until_no_proposal();
    gated.greet("at once");
    gated.until_sequence(4);
    assert!(gated.greeting().contains("at once"));
}
