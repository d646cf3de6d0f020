//! One bad thing blocks itself: broken files, and patches that do not fit.

use flotilla_tests::pool;

use super::support::*;

const BROKEN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shop\n";

#[test]
fn a_broken_file_beside_good_ones_holds_its_unit_alone() {
    let fleet = Fleet::start_in_use();
    fleet.push(
        "Break the greeting, change the rest",
        &[
            ("feeds/web/greeting.yaml", BROKEN),
            ("feeds/web/farewell.yaml", &config_map("shop", "farewell", "so long")),
            ("feeds/office/rules.yaml", &config_map("office", "rules", "one")),
        ],
    );
    fleet.until_text(&pool::NAMES, RULES, "one");
    for cluster in pool::NAMES {
        assert_eq!(fleet.text(cluster, GREETING).as_deref(), Some("hello"));
        assert_eq!(
            fleet.text(cluster, FAREWELL).as_deref(),
            Some("goodbye"),
            "the unit keeps its whole last good content, not a part of the new"
        );
    }
    let plan = plan_json(&fleet.repository);
    let finding = &plan["findings"][0];
    assert_eq!(finding["file"], "feeds/web/greeting.yaml", "{plan:#}");
    fleet.push(
        "Mend it",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi"))],
    );
    fleet.until_text(&pool::NAMES, GREETING, "hi");
    fleet.until_text(&pool::NAMES, FAREWELL, "so long");
    assert_verified(&fleet.repository);
}

#[test]
fn a_glob_with_one_broken_file_deletes_nothing() {
    let fleet = Fleet::start_in_use();
    let before: Vec<_> = fleet
        .clusters
        .iter()
        .map(|cluster| versions(cluster, "configmaps"))
        .collect();
    // Moved and broken at once: its objects have no file, and the broken one may hold them.
    fleet
        .repository
        .git(&["mv", "feeds/web/farewell.yaml", "feeds/web/parting.yaml"]);
    fleet.push("Move the farewell and break it", &[("feeds/web/parting.yaml", BROKEN)]);
    settle(&fleet, "one");
    let plan = plan_json(&fleet.repository);
    assert!(reasons(&plan).contains(&"RemovalHeld".to_owned()), "{plan:#}");
    // A new broken file, and one more file removed while nobody knows what the broken one says.
    fleet.repository.remove("feeds/web/greeting.yaml");
    fleet.push("Remove the greeting", &[("feeds/web/new.yaml", BROKEN)]);
    settle(&fleet, "two");
    for (cluster, before) in fleet.clusters.iter().zip(before) {
        let mut now = versions(cluster, "configmaps");
        now.insert(
            "ConfigMap/office/rules".to_owned(),
            before["ConfigMap/office/rules"].clone(),
        );
        assert_eq!(
            now,
            before,
            "nothing of the shop is deleted or written in {}",
            cluster.name()
        );
    }
    fleet.repository.remove("feeds/web/new.yaml");
    fleet.push(
        "Mend it",
        &[("feeds/web/parting.yaml", &config_map("shop", "farewell", "so long"))],
    );
    fleet.until_text(&pool::NAMES, FAREWELL, "so long");
    fleet.until_gone(&pool::NAMES, "shop", "configmap/greeting");
}

/// Waits until a change of the other unit, pushed after what may be held, is everywhere.
fn settle(fleet: &Fleet, text: &str) {
    fleet.push(
        "Change the rules",
        &[("feeds/office/rules.yaml", &config_map("office", "rules", text))],
    );
    fleet.until_text(&pool::NAMES, RULES, text);
}

/// For one cluster alone, so that it fits or does not by what is in it.
fn localization(cluster: &str, patch: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Localization
metadata: {{namespace: {cluster}, name: greeting}}
spec:
  feed: {{apiVersion: v1, kind: ConfigMap, namespace: shop, name: greeting}}
  overrides:
    - {{name: words, type: JSONPatch, value: '{patch}'}}
"
    )
}

#[test]
fn a_patch_that_does_not_fit_holds_its_own_cluster_alone() {
    let fleet = Fleet::start_in_use();
    let fits = r#"[{"op": "replace", "path": "/data/text", "value": "hola"}]"#;
    let does_not = r#"[{"op": "replace", "path": "/data/nothing/here", "value": "hola"}]"#;
    fleet.push(
        "Speak Spanish",
        &[
            ("localizations/bogota.yaml", &localization("bogota", fits)),
            ("localizations/colombo.yaml", &localization("colombo", does_not)),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi")),
            ("feeds/web/farewell.yaml", &config_map("shop", "farewell", "so long")),
        ],
    );
    fleet.until_text(&["amsterdam"], GREETING, "hi");
    fleet.until_text(&["bogota"], GREETING, "hola");
    fleet.until_text(&["amsterdam", "bogota"], FAREWELL, "so long");
    settle(&fleet, "one");
    assert_eq!(fleet.text("colombo", GREETING).as_deref(), Some("hello"));
    assert_eq!(fleet.text("colombo", FAREWELL).as_deref(), Some("goodbye"));
    let plan = plan_json(&fleet.repository);
    let findings = plan["findings"].as_array().unwrap();
    let errors: Vec<_> = findings
        .iter()
        .filter(|finding| finding["severity"] == "Error")
        .collect();
    assert_eq!(errors.len(), 1, "{plan:#}");
    assert_eq!(errors[0]["cluster"], "colombo", "{plan:#}");
    assert_eq!(errors[0]["file"], "localizations/colombo.yaml", "{plan:#}");
    assert_verified(&fleet.repository);
    fleet.push(
        "Mend it",
        &[("localizations/colombo.yaml", &localization("colombo", fits))],
    );
    fleet.until_text(&["colombo"], GREETING, "hola");
    fleet.until_text(&["colombo"], FAREWELL, "so long");
    assert_verified(&fleet.repository);
}
