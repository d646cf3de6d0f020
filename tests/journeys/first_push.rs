//! What the first push brings.

use super::support::*;

const LOCALIZATION: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Localization
metadata: {namespace: bogota, name: greeting}
spec:
  feed: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: greeting}
  overrides:
    - {name: words, type: MergePatch, value: '{\"data\": {\"text\": \"hola\"}}'}
";

#[test]
fn first_push_reaches_three_clusters() {
    let fleet = Fleet::start();
    let commit = fleet.push(
        "Greet",
        &[
            ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
            ("feeds/web/namespace.yaml", &namespace("shop")),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
            ("localizations/bogota.yaml", LOCALIZATION),
        ],
    );
    fleet.until_text(&["amsterdam", "colombo"], ("shop", "greeting"), "hello");
    fleet.until_text(&["bogota"], ("shop", "greeting"), "hola");
    fleet.until_released(&commit);
    let files = fleet.repository.files("flotilla/released");
    let placement = "placements/shop/web.yaml".to_owned();
    assert!(files.contains(&placement), "{files:?}");
}
