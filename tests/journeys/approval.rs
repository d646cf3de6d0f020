//! A fleet that asks for approval: nothing reaches a cluster before a person merged it. What people do with branches,
//! in every way, is judged without clusters, in `approval`.

use flotilla_tests::{Flotilla, eventually, pool};

use super::still::until_reason;
use super::support::{FAREWELL, FLEET, Fleet, GREETING, LIMIT, RULES, config_map};

const ALL: &[&str] = &pool::NAMES;

/// Waits for the one proposal whose message has these words, and gives its branch.
#[track_caller]
fn until_proposed(fleet: &Fleet, words: &str) -> String {
    let pattern = "refs/heads/flotilla/proposed/";
    eventually(LIMIT, &format!("{words:?} is proposed"), || {
        let listed = fleet
            .repository
            .git_bare(&["for-each-ref", "--format=%(refname:lstrip=2)", pattern])
            .ok()?;
        let branch = listed.trim();
        let message = fleet.repository.git_bare(&["log", "-1", "--format=%B", branch]).ok()?;
        match message.contains(words) {
            true => Ok(branch.to_owned()),
            false => Err(message),
        }
    })
}

#[test]
fn what_a_person_merges_reaches_every_cluster_and_nothing_else_does() {
    let fleet = Fleet::start_in_use();
    fleet.push(
        "Ask for approval",
        &[("fleet.yaml", &FLEET.replace("none", "required"))],
    );
    // Pushed together with the next, the gate would be the one before both.
    eventually(LIMIT, "the fleet asks for approval", || {
        let get = ["get", "fleets", "fleet", "-o", "json", "--server", &fleet.api()];
        let answer = Flotilla::run(&get).ok()?;
        let asks = answer.contains(r#""approval": "required""#);
        asks.then_some(()).ok_or(answer)
    });
    let greeting = config_map(GREETING.0, GREETING.1, "hi");
    fleet.push("Say hi", &[("feeds/web/greeting.yaml", &greeting)]);
    let branch = until_proposed(&fleet, "Change shop/web on 3 clusters");
    until_reason(&fleet, "Approved", "MergeAwaited");
    for cluster in ALL {
        assert_eq!(
            fleet.text(cluster, GREETING).as_deref(),
            Some("hello"),
            "nothing is approved"
        );
    }
    let git = |arguments: &[&str]| fleet.repository.git(arguments);
    git(&["fetch", "--quiet"]);
    git(&[
        "push",
        "--quiet",
        "origin",
        &format!("origin/{branch}:flotilla/rendered"),
    ]);
    fleet.until_text(ALL, GREETING, "hi");

    // A removal, as one commit of its own.
    fleet.repository.remove("feeds/web/farewell.yaml");
    fleet.push("Say no farewell", &[]);
    let branch = until_proposed(&fleet, "- ConfigMap shop/farewell");
    git(&["fetch", "--quiet", "--prune"]);
    git(&["checkout", "--quiet", "-B", "rendered", "origin/flotilla/rendered"]);
    git(&["merge", "--quiet", "--squash", &format!("origin/{branch}")]);
    git(&["commit", "--quiet", "-m", "No farewells"]);
    assert!(fleet.text("amsterdam", FAREWELL).is_some(), "nothing is approved yet");
    git(&["push", "--quiet", "origin", "HEAD:flotilla/rendered"]);
    git(&["checkout", "--quiet", "main"]);
    fleet.until_gone(ALL, FAREWELL.0, "configmap/farewell");
    fleet.until_text(ALL, RULES, "none");
    until_reason(&fleet, "Approved", "Merged");
}
