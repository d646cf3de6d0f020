//! What pushes take away from clusters, and what keeps them from taking too much.

use std::collections::BTreeMap;

use flotilla_tests::{Flotilla, eventually, pool};

use super::still::until_connected;
use super::support::*;

const ALL: &[&str] = &pool::NAMES;

/// The UID of a ConfigMap in each cluster.
#[track_caller]
pub(super) fn uids(fleet: &Fleet, object: (&str, &str)) -> BTreeMap<String, String> {
    uids_in(fleet, ALL, object)
}

#[track_caller]
fn uids_in(fleet: &Fleet, clusters: &[&str], (namespace, name): (&str, &str)) -> BTreeMap<String, String> {
    let uid = |cluster: &&str| {
        let object = fleet.cluster(cluster).get(namespace, &format!("configmap/{name}"));
        let object = object.unwrap_or_else(|error| panic!("{name} is in {cluster}: {error}"));
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        ((*cluster).to_owned(), uid)
    };
    clusters.iter().map(uid).collect()
}

/// Waits until the hub says a finding of this reason, or none of it.
#[track_caller]
fn until_finding(fleet: &Fleet, reason: &str, is_there: bool) {
    eventually(LIMIT, &format!("{reason} is said: {is_there}"), || {
        let shown = Flotilla::run(&["get", "findings", "-o", "json", "--server", &fleet.api()]);
        (shown.stdout.contains(&format!("\"{reason}\"")) == is_there)
            .then_some(())
            .ok_or(shown.stdout)
    });
}

/// Runs a command in the work clone, as Ada, which knows what the hub rendered.
pub(super) fn in_clone(fleet: &Fleet, arguments: &[&str]) -> flotilla_tests::Output {
    let work = fleet.repository.work().display().to_string();
    fleet.repository.git(&["config", "user.name", "Ada"]);
    fleet.repository.git(&["config", "user.email", "ada@example.com"]);
    fleet.repository.git(&["fetch", "--quiet"]);
    fleet.repository.git(&["branch", "--set-upstream-to=origin/main"]);
    Flotilla::run(&[arguments, &["-C", &work]].concat())
}

#[test]
fn what_goes_beyond_a_budget_stays_until_a_commit_allows_exactly_that() {
    let fleet = Fleet::start_in_use();
    let budget =
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: PruneBudget\nmetadata: {name: few}\nspec: {maxObjects: 2}\n";
    let pushed = fleet.push("Take little", &[("policies/prune.yaml", budget)]);
    fleet.repository.remove("feeds/web/farewell.yaml");
    let removed = fleet.push(
        "Leave without a word, and rule",
        &[("feeds/office/rules.yaml", &config_map(RULES.0, RULES.1, "some"))],
    );
    assert_ne!(pushed, removed);
    fleet.until_text(ALL, RULES, "some");
    until_finding(&fleet, "PruneBudgetExceeded", true);
    for cluster in ALL {
        assert_eq!(
            fleet.text(cluster, FAREWELL).as_deref(),
            Some("goodbye"),
            "{cluster} keeps it"
        );
    }
    assert_verified(&fleet.repository);
    // A commit that loosens the budget cannot use it at once.
    let before = uids(&fleet, GREETING);
    let shown = in_clone(&fleet, &["allow-prune", "--dry-run", "--all"]);
    assert!(
        shown
            .stderr
            .contains("Beyond PruneBudget few (policies/prune.yaml:1): 3 objects"),
        "{shown:?}"
    );
    in_clone(&fleet, &["allow-prune", "--yes", "--push"]).expect_ok();
    fleet.until_gone(ALL, "shop", "configmap/farewell");
    until_finding(&fleet, "PruneBudgetExceeded", false);
    assert_eq!(uids(&fleet, GREETING), before, "nothing else was touched");
    let message = fleet.repository.message("main");
    assert!(message.contains("Allow-Prune: 3 "), "{message}");
    assert_verified(&fleet.repository);
    let again = in_clone(&fleet, &["allow-prune", "--yes"]);
    assert!(again.stderr.contains("there is nothing to allow"), "{again:?}");
}

/// A Subscription of some of the files below `feeds/web/`.
fn of_files(name: &str, files: &[&str]) -> String {
    let feeds: Vec<_> = files
        .iter()
        .map(|file| format!("{{path: 'feeds/web/{file}'}}"))
        .collect();
    subscription("shop", name).replace(&format!("{{path: 'feeds/{name}/**'}}"), &feeds.join(", "))
}

#[test]
fn an_object_of_two_subscriptions_stays_where_it_is_and_one_that_moves_keeps_its_uid() {
    let fleet = Fleet::start_in_use();
    let before = uids(&fleet, GREETING);
    let other = of_files("other", &["greeting.yaml"]);
    let claimed = [
        ("subscriptions/shop/other.yaml", other.as_str()),
        ("feeds/office/rules.yaml", &config_map(RULES.0, RULES.1, "some")),
    ];
    fleet.push("Greet twice", &claimed);
    fleet.until_text(ALL, RULES, "some");
    until_finding(&fleet, "ObjectClaimedTwice", true);
    assert_eq!(uids(&fleet, GREETING), before);
    // Taken back, nothing happened.
    fleet.repository.remove("subscriptions/shop/other.yaml");
    fleet.push("Greet once", &[]);
    until_finding(&fleet, "ObjectClaimedTwice", false);
    // In one commit it moves.
    let web = of_files("web", &["namespace.yaml", "farewell.yaml"]);
    let moved = [
        ("subscriptions/shop/other.yaml", other.as_str()),
        ("subscriptions/shop/web.yaml", web.as_str()),
        ("feeds/web/greeting.yaml", &config_map(GREETING.0, GREETING.1, "moved")),
    ];
    fleet.push("Let another greet", &moved);
    fleet.until_text(ALL, GREETING, "moved");
    assert_eq!(uids(&fleet, GREETING), before, "it is the same object");
    // And so it does where the Subscription itself gets another name.
    fleet.repository.remove("subscriptions/shop/other.yaml");
    let renamed = of_files("renamed", &["greeting.yaml"]);
    let files = [
        ("subscriptions/shop/renamed.yaml", renamed.as_str()),
        (
            "feeds/web/greeting.yaml",
            &config_map(GREETING.0, GREETING.1, "renamed"),
        ),
    ];
    fleet.push("Rename it", &files);
    fleet.until_text(ALL, GREETING, "renamed");
    assert_eq!(uids(&fleet, GREETING), before, "it is the same object");
    // Over two commits it goes and is made anew, and no old owner stands in its way.
    fleet.repository.remove("subscriptions/shop/renamed.yaml");
    fleet.push("Greet nobody", &[]);
    fleet.until_gone(ALL, "shop", "configmap/greeting");
    fleet.push(
        "Greet again",
        &[("subscriptions/shop/again.yaml", &of_files("again", &["greeting.yaml"]))],
    );
    fleet.until_text(ALL, GREETING, "renamed");
    assert_verified(&fleet.repository);
}

#[test]
fn an_agent_that_was_away_acts_on_what_is_wanted_now_and_not_on_what_was_wanted_meanwhile() {
    let mut fleet = Fleet::start_in_use();
    let before = uids(&fleet, GREETING);
    fleet.kill_agent("bogota");
    let web = subscription("shop", "web");
    fleet.repository.remove("subscriptions/shop/web.yaml");
    fleet.push("Close the shop", &[]);
    fleet.until_gone(&["amsterdam", "colombo"], "shop", "configmap/greeting");
    fleet.push("Open it again", &[("subscriptions/shop/web.yaml", &web)]);
    fleet.until_text(&["amsterdam", "colombo"], GREETING, "hello");
    fleet.start_agent("bogota");
    until_connected(&fleet);
    fleet.push(
        "Greet otherwise",
        &[("feeds/web/greeting.yaml", &config_map(GREETING.0, GREETING.1, "back"))],
    );
    fleet.until_text(ALL, GREETING, "back");
    assert_eq!(
        uids(&fleet, GREETING)["bogota"],
        before["bogota"],
        "nothing was deleted there"
    );
}

#[test]
fn a_subscription_and_its_folder_go_in_one_commit_and_an_orphan_stays() {
    let fleet = Fleet::start_in_use();
    let orphan = format!("{}  deletionPolicy: Orphan\n", subscription("staff", "office"));
    fleet.push(
        "Keep what the office has",
        &[
            ("subscriptions/staff/office.yaml", &orphan),
            ("feeds/office/rules.yaml", &config_map(RULES.0, RULES.1, "kept")),
        ],
    );
    fleet.until_text(ALL, RULES, "kept");
    let before = uids(&fleet, RULES);
    for path in [
        "subscriptions/staff/office.yaml",
        "subscriptions/shop/web.yaml",
        "feeds/office/namespace.yaml",
        "feeds/office/rules.yaml",
        "feeds/web/namespace.yaml",
        "feeds/web/greeting.yaml",
        "feeds/web/farewell.yaml",
    ] {
        fleet.repository.remove(path);
    }
    fleet.push("Close both", &[]);
    fleet.until_gone(ALL, "shop", "configmap/greeting");
    fleet.until_gone(ALL, "", "namespace/shop");
    for cluster in ALL {
        eventually(LIMIT, "the mark is gone", || {
            let object = fleet.cluster(cluster).get(RULES.0, &format!("configmap/{}", RULES.1))?;
            let mark = &object["metadata"]["annotations"]["fleet.flotilla.dev/unit"];
            mark.is_null().then_some(()).ok_or_else(|| mark.to_string())
        });
        assert_eq!(fleet.text(cluster, RULES).as_deref(), Some("kept"), "{cluster}");
    }
    assert_eq!(uids(&fleet, RULES), before);
}

#[test]
fn a_cluster_that_was_away_when_its_file_went_is_cleaned_up_by_its_word_when_it_comes_back() {
    let mut fleet = Fleet::start_in_use();
    let before = uids(&fleet, GREETING);
    let word = format!("{}  deletionPolicy: Delete\n", fleet.join("bogota"));
    fleet.push("Say what becomes of bogota", &[("clusters/bogota.yaml", &word)]);
    // Neither can be reached when its file goes, and nothing waits for that.
    fleet.kill_agent("bogota");
    fleet.kill_agent("colombo");
    fleet.repository.remove("clusters/bogota.yaml");
    fleet.repository.remove("clusters/colombo.yaml");
    let removed = fleet.push("Let two clusters go", &[]);
    fleet.until_released(&removed);
    let clusters = || Flotilla::run(&["get", "clusters", "-o", "wide", "--server", &fleet.api()]).stdout;
    eventually(LIMIT, "both are said to leave", || {
        let shown = clusters();
        (shown.matches("Leaving").count() == 2).then_some(()).ok_or(shown)
    });
    until_finding(&fleet, "ClusterLeft", true);
    for cluster in ["bogota", "colombo"] {
        assert_eq!(
            fleet.text(cluster, GREETING).as_deref(),
            Some("hello"),
            "{cluster} is away and keeps it"
        );
    }
    fleet.start_agent("bogota");
    fleet.start_agent("colombo");
    fleet.until_gone(&["bogota"], "shop", "configmap/greeting");
    fleet.until_gone(&["bogota"], "", "namespace/office");
    eventually(LIMIT, "colombo's objects are nobody's", || {
        let object = fleet
            .cluster("colombo")
            .get(GREETING.0, &format!("configmap/{}", GREETING.1))?;
        let mark = &object["metadata"]["annotations"]["fleet.flotilla.dev/unit"];
        mark.is_null().then_some(()).ok_or_else(|| mark.to_string())
    });
    assert_eq!(fleet.text("colombo", GREETING).as_deref(), Some("hello"));
    eventually(LIMIT, "nothing is left on either", || {
        let shown = Flotilla::run(&["get", "clusters", "-o", "wide", "--server", &fleet.api()]).stdout;
        let done = shown.matches("nothing of it is left there").count();
        (done == 2).then_some(()).ok_or(shown)
    });
    // The file comes back: it is the same cluster, with what stayed adopted.
    fleet.push(
        "Take colombo back",
        &[("clusters/colombo.yaml", &fleet.join("colombo"))],
    );
    eventually(LIMIT, "colombo has its mark again", || {
        let object = fleet
            .cluster("colombo")
            .get(GREETING.0, &format!("configmap/{}", GREETING.1))?;
        let mark = &object["metadata"]["annotations"]["fleet.flotilla.dev/unit"];
        mark.is_string().then_some(()).ok_or_else(|| mark.to_string())
    });
    let after = uids_in(&fleet, &["amsterdam", "colombo"], GREETING);
    assert!(
        after.iter().all(|(cluster, uid)| before[cluster] == *uid),
        "nothing was made anew"
    );
    assert_verified(&fleet.repository);
}
