//! What leaves clusters that are away, what waits for what on every cluster, and clusters that are given up.

use flotilla_tests::{Flotilla, eventually, pool};

use super::still::{pass, until_connected};
use super::support::*;
use super::taking::{in_clone, uids};

const ALL: &[&str] = &pool::NAMES;

const OFFICE: &str = "subscriptions/staff/office.yaml";

/// The ConfigMap of unit infra/base.
const LEDGER: (&str, &str) = ("infra", "ledger");

/// The unit whose mark a ConfigMap has; `None` where it is nobody's.
fn unit_of(fleet: &Fleet, cluster: &str, config_map: (&str, &str)) -> Result<Option<String>, String> {
    let (namespace, name) = config_map;
    let object = fleet.cluster(cluster).get(namespace, &format!("configmap/{name}"))?;
    let mark = &object["metadata"]["annotations"]["fleet.flotilla.dev/unit"];
    Ok(mark.as_str().map(str::to_owned))
}

#[track_caller]
fn until_unit(fleet: &Fleet, clusters: &[&str], config_map: (&str, &str), expected: Option<&str>) {
    for cluster in clusters {
        eventually(LIMIT, &format!("{config_map:?} of {cluster} is {expected:?}'s"), || {
            let found = unit_of(fleet, cluster, config_map)?;
            (found.as_deref() == expected).then_some(()).ok_or(format!("{found:?}"))
        });
    }
}

#[track_caller]
fn until_status(fleet: &Fleet, words: &str) {
    eventually(LIMIT, &format!("the status says {words:?}"), || {
        let shown = Flotilla::run(&["status", "--server", &fleet.api()]);
        shown.stdout.contains(words).then_some(()).ok_or(shown.stdout)
    });
}

/// A Subscription that waits until infra/base is healthy on every cluster.
fn after_base(team: &str, name: &str) -> String {
    let unit = subscription(team, name);
    format!("{unit}  dependsOn: [{{namespace: infra, name: base, clusters: All}}]\n")
}

/// Files of unit infra/base.
fn base(text: &str) -> [(&'static str, String); 3] {
    [
        ("subscriptions/infra/base.yaml", subscription("infra", "base")),
        ("feeds/base/namespace.yaml", namespace("infra")),
        ("feeds/base/ledger.yaml", config_map(LEDGER.0, LEDGER.1, text)),
    ]
}

#[track_caller]
fn push(fleet: &Fleet, message: &str, files: &[(&str, String)]) -> String {
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    fleet.push(message, &files)
}

#[test]
fn a_cluster_that_was_away_for_the_word_and_the_removal_goes_by_the_newest_word() {
    let mut fleet = Fleet::start_in_use();
    let before = uids(&fleet, RULES);
    fleet.kill_agent("bogota");
    let orphan = format!("{}  deletionPolicy: Orphan\n", subscription("staff", "office"));
    let said = fleet.push("Keep what the office has", &[(OFFICE, &orphan)]);
    fleet.until_released(&said);
    for path in [OFFICE, "feeds/office/namespace.yaml", "feeds/office/rules.yaml"] {
        fleet.repository.remove(path);
    }
    let removed = fleet.push("Close the office", &[]);
    fleet.until_released(&removed);
    until_unit(&fleet, &["amsterdam", "colombo"], RULES, None);
    let record = fleet.repository.read("flotilla/released", "release.yaml");
    assert!(
        record.as_deref().is_some_and(|record| record.contains("bogota:")),
        "the word for bogota is recorded: {record:?}"
    );
    assert_eq!(
        unit_of(&fleet, "bogota", RULES).ok().flatten().as_deref(),
        Some("staff/office"),
        "bogota is away"
    );
    fleet.start_agent("bogota");
    until_unit(&fleet, ALL, RULES, None);
    assert_eq!(uids(&fleet, RULES), before, "nothing was deleted anywhere");
    assert!(fleet.cluster("bogota").has("", "namespace/office"));
    assert_verified(&fleet.repository);
    // What every cluster has heard is said no more by a later decision.
    let mut number = 0;
    eventually(LIMIT, "the word is dropped", || {
        number += 1;
        let text = format!("greeting {number}");
        let pushed = fleet.push(
            "Greet otherwise",
            &[("feeds/web/greeting.yaml", &config_map(GREETING.0, GREETING.1, &text))],
        );
        fleet.until_released(&pushed);
        let record = fleet
            .repository
            .read("flotilla/released", "release.yaml")
            .unwrap_or_default();
        if record.contains("orphaned") {
            Err(record)
        } else {
            Ok(())
        }
    });
    assert_eq!(uids(&fleet, RULES), before);
}

#[test]
fn what_needs_a_unit_on_every_cluster_comes_after_it_and_leaves_before_it() {
    let mut fleet = Fleet::start_in_use();
    fleet.kill_agent("colombo");
    let mut files = base("first").to_vec();
    files.push(("subscriptions/shop/web.yaml", after_base("shop", "web")));
    files.push(("feeds/web/greeting.yaml", config_map(GREETING.0, GREETING.1, "later")));
    push(&fleet, "Keep a ledger first", &files);
    fleet.until_text(&["amsterdam", "bogota"], LEDGER, "first");
    until_status(&fleet, "waits for infra/base, which is not healthy on colombo yet");
    for cluster in ALL {
        assert_eq!(
            fleet.text(cluster, GREETING).as_deref(),
            Some("hello"),
            "{cluster} waits for all of them"
        );
    }
    fleet.start_agent("colombo");
    fleet.until_text(ALL, GREETING, "later");
    assert_verified(&fleet.repository);
    // Both leave in one commit, while a cluster is away.
    fleet.kill_agent("bogota");
    for path in [
        "subscriptions/shop/web.yaml",
        "subscriptions/infra/base.yaml",
        "feeds/web/namespace.yaml",
        "feeds/web/greeting.yaml",
        "feeds/web/farewell.yaml",
        "feeds/base/namespace.yaml",
        "feeds/base/ledger.yaml",
    ] {
        fleet.repository.remove(path);
    }
    fleet.push("Close the shop", &[]);
    fleet.until_gone(&["amsterdam", "colombo"], "shop", "configmap/greeting");
    until_status(&fleet, "stays until shop/web, which needs it, has left bogota");
    pass(std::time::Duration::from_secs(1));
    for cluster in ALL {
        assert_eq!(
            fleet.text(cluster, LEDGER).as_deref(),
            Some("first"),
            "{cluster} keeps what bogota may still need"
        );
    }
    fleet.start_agent("bogota");
    fleet.until_gone(ALL, "shop", "configmap/greeting");
    fleet.until_gone(ALL, "infra", "configmap/ledger");
}

#[test]
fn an_object_that_moves_to_a_unit_which_waits_for_every_cluster_keeps_its_uid() {
    let mut fleet = Fleet::start_in_use();
    let before = uids(&fleet, FAREWELL);
    fleet.kill_agent("colombo");
    let mut files = base("first").to_vec();
    files.push(("subscriptions/shop/till.yaml", after_base("shop", "till")));
    files.push((
        "feeds/till/farewell.yaml",
        config_map(FAREWELL.0, FAREWELL.1, "goodbye"),
    ));
    files.push(("feeds/web/greeting.yaml", config_map(GREETING.0, GREETING.1, "later")));
    fleet.repository.remove("feeds/web/farewell.yaml");
    push(&fleet, "Say goodbye at the till", &files);
    fleet.until_text(&["amsterdam", "bogota"], LEDGER, "first");
    until_status(
        &fleet,
        "stays until shop/till, which gets an object of it, is released to",
    );
    until_unit(&fleet, ALL, FAREWELL, Some("shop/web"));
    assert_eq!(uids(&fleet, FAREWELL), before);
    fleet.start_agent("colombo");
    until_unit(&fleet, ALL, FAREWELL, Some("shop/till"));
    fleet.until_text(ALL, GREETING, "later");
    assert_eq!(uids(&fleet, FAREWELL), before, "it was never without a unit");
    assert_verified(&fleet.repository);
}

#[test]
fn a_cluster_that_is_forgotten_is_a_stranger_and_keeps_what_it_has() {
    let mut fleet = Fleet::start_in_use();
    let refused = in_clone(&fleet, &["forget", "bogota", "--server", &fleet.api()]);
    assert!(refused.stderr.contains("cluster bogota is registered"), "{refused:?}");
    let word = format!("{}  deletionPolicy: Delete\n", fleet.join("bogota"));
    fleet.push("Say what becomes of bogota", &[("clusters/bogota.yaml", &word)]);
    fleet.kill_agent("bogota");
    fleet.repository.remove("clusters/bogota.yaml");
    let removed = fleet.push("Let bogota go", &[]);
    fleet.until_released(&removed);
    let clusters = || Flotilla::run(&["get", "clusters", "--server", &fleet.api()]).stdout;
    eventually(LIMIT, "bogota is said to leave", || {
        let shown = clusters();
        shown.contains("Leaving").then_some(()).ok_or(shown)
    });
    let forgotten = in_clone(&fleet, &["forget", "bogota", "--push", "--server", &fleet.api()]);
    assert!(forgotten.stderr.contains("registered no more since"), "{forgotten:?}");
    let commit = forgotten.expect_ok().trim().to_owned();
    assert!(fleet.repository.message("main").contains("Forget-Cluster: bogota"));
    fleet.until_released(&commit);
    eventually(LIMIT, "nobody knows bogota", || {
        let shown = clusters();
        if shown.contains("bogota") { Err(shown) } else { Ok(()) }
    });
    fleet.start_agent("bogota");
    fleet.push(
        "Greet otherwise",
        &[(
            "feeds/web/greeting.yaml",
            &config_map(GREETING.0, GREETING.1, "without"),
        )],
    );
    fleet.until_text(&["amsterdam", "colombo"], GREETING, "without");
    pass(std::time::Duration::from_secs(3));
    assert_eq!(
        fleet.text("bogota", GREETING).as_deref(),
        Some("hello"),
        "it keeps what it has"
    );
    // Its file comes back: it is a cluster as any other.
    let again = fleet.join("bogota");
    fleet.push("Bogota again", &[("clusters/bogota.yaml", &again)]);
    eventually(LIMIT, "the hub knows bogota again", || {
        let shown = Flotilla::run(&["get", "clusters", "--server", &fleet.api()]).stdout;
        shown.contains("bogota").then_some(()).ok_or(shown)
    });
    // A refused agent dials again after a minute; nobody has to wait with it.
    fleet.agent("bogota").signal("HUP");
    until_connected(&fleet);
    fleet.until_text(&["bogota"], GREETING, "without");
}
