//! What later pushes change, and what they leave alone.

use flotilla_tests::pool;

use super::support::*;

const KINDS: &str = "configmaps,namespaces";

/// The versions of everything in each cluster, without these objects.
fn others(fleet: &Fleet, changed: &[&str]) -> Vec<std::collections::BTreeMap<String, String>> {
    let all = fleet.clusters.iter().map(|cluster| versions(cluster, KINDS));
    all.map(|mut versions| {
        versions.retain(|key, _| !changed.contains(&key.as_str()));
        versions
    })
    .collect()
}

#[test]
fn a_change_reaches_every_cluster_and_touches_nothing_else() {
    let fleet = Fleet::start_in_use();
    let changed = ["ConfigMap/shop/greeting"];
    let before = others(&fleet, &changed);
    assert!(
        before
            .iter()
            .all(|versions| versions.contains_key("ConfigMap/office/rules"))
    );
    let commits = fleet.repository.commits("flotilla/released");
    let commit = fleet.push(
        "Be brief",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi"))],
    );
    fleet.until_text(&pool::NAMES, GREETING, "hi");
    assert_eq!(others(&fleet, &changed), before, "nothing else was written");
    fleet.until_released(&commit);
    assert_eq!(fleet.repository.commits("flotilla/released"), commits + 1);
}

#[test]
fn a_removed_object_is_removed_and_others_stay() {
    let fleet = Fleet::start_in_use();
    let removed = ["ConfigMap/shop/farewell"];
    let before = others(&fleet, &removed);
    fleet.repository.remove("feeds/web/farewell.yaml");
    fleet.push("Leave without a word", &[]);
    fleet.until_gone(&pool::NAMES, "shop", "configmap/farewell");
    assert_eq!(others(&fleet, &[]), before, "what is still subscribed was not written");
}

#[test]
fn a_removed_subscription_takes_its_objects_and_its_namespace_along() {
    let fleet = Fleet::start_in_use();
    let before = others(&fleet, &["ConfigMap/office/rules", "Namespace//office"]);
    // A person's object in a namespace that stays is nobody's to remove.
    fleet.cluster("bogota").apply(&config_map("default", "note", "mine"));
    fleet.repository.remove("subscriptions/staff/office.yaml");
    fleet.push("Close the office", &[]);
    fleet.until_gone(&pool::NAMES, "office", "configmap/rules");
    fleet.until_gone(&pool::NAMES, "", "namespace/office");
    assert_eq!(
        others(&fleet, &["ConfigMap/default/note"]),
        before,
        "the shop was not touched"
    );
    assert_eq!(fleet.text("bogota", ("default", "note")).as_deref(), Some("mine"));
}

#[test]
fn a_revert_brings_the_old_content_back() {
    let fleet = Fleet::start_in_use();
    fleet.repository.remove("feeds/web/farewell.yaml");
    fleet.push(
        "Be brief",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi"))],
    );
    fleet.until_text(&pool::NAMES, GREETING, "hi");
    fleet.until_gone(&pool::NAMES, "shop", "configmap/farewell");
    let brief = fleet.repository.head("flotilla/released");
    fleet.repository.git(&["revert", "--no-edit", "HEAD"]);
    fleet.repository.push();
    fleet.until_text(&pool::NAMES, GREETING, "hello");
    fleet.until_text(&pool::NAMES, FAREWELL, "goodbye");
    assert_ne!(
        fleet.repository.head("flotilla/released"),
        brief,
        "a revert is one more decision"
    );
    assert_verified(&fleet.repository);
}
