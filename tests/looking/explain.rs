//! `flotilla explain`, from a hub and from a clone.

use flotilla_tests::flotilla::flotilla;
use flotilla_tests::{Output, Repository};
use serde_json::Value;

use crate::kubectl::Hub;

const SUBSCRIPTION: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {name: web, namespace: shop}
spec:
  subscribers: [{clusterAffinity: {matchLabels: {env: prod}}}]
  feeds: [{path: 'feeds/**'}]
";

const FEED: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {word: one}
";

const OVERRIDE: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Localization
metadata: {name: tint, namespace: a}
spec:
  feed: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: web}
  overrides:
    - {name: tint, type: MergePatch, value: 'data: {word: two, secret: hunter2}'}
";

fn cluster(name: &str, env: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {{name: {name}, labels: {{env: {env}}}}}\n\
         spec: {{kubeconfigContext: nowhere}}\n"
    )
}

/// Cluster a matches, b does not, and c matches with a taint.
fn repository() -> Repository {
    let tainted = cluster("c", "prod").replace(
        "{kubeconfigContext: nowhere}",
        "{kubeconfigContext: nowhere, taints: [{key: full, effect: NoSchedule}]}",
    );
    Repository::with_files(&[
        ("subscriptions/web.yaml", SUBSCRIPTION),
        ("clusters/a.yaml", &cluster("a", "prod")),
        ("clusters/b.yaml", &cluster("b", "test")),
        ("clusters/c.yaml", &tainted),
        ("feeds/web.yaml", FEED),
        ("localizations/a.yaml", OVERRIDE),
    ])
}

const DECISIONS: [&str; 9] = [
    "shop/web  declared in subscriptions/web.yaml:1, Replication, 1 object",
    "Clusters: 1 of 3 have it",
    "a: chosen, variant ",
    "matches subscriber 1 (env=prod)",
    "b: not chosen\n",
    "subscriber 1 asks for env=prod: it has env=test",
    "taint full:NoSchedule is not tolerated",
    "1. Localization a/tint, priority 500",
    "step 1 (tint) MergePatch on /ConfigMap/shop/web, localizations/a.yaml:7",
];

#[track_caller]
fn check(output: &Output, code: i32, words: &[&str]) {
    let all = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(output.code(), Some(code), "{all}");
    for word in words {
        assert!(all.contains(word), "{word:?} is not in:\n{all}");
    }
    assert!(!all.contains("hunter"), "a value is told:\n{all}");
}

#[test]
fn a_hub_explains_every_cluster_and_what_holds_it_back() {
    let hub = Hub::follow(repository());
    let text = hub.flotilla(&["explain", "shop/web"]);
    check(&text, 0, &DECISIONS);
    let progress = [
        "reached SourceVerified > Scheduled > Rendered > Approved > Released",
        "waits for Applied",
        "the cluster is silent (",
    ];
    check(&text, 0, &progress);
    let one = hub.flotilla(&["explain", "web", "-n", "shop", "--cluster", "b"]);
    check(&one, 0, &["Clusters: 0 of 1 have it", "b: not chosen"]);
    let json = hub.flotilla(&["explain", "shop/web", "-o", "json"]).expect_ok();
    let value: Value = serde_json::from_str(&json).expect("it is JSON");
    let path = "/apis/fleet.flotilla.dev/v1alpha1/namespaces/shop/subscriptions/web/explanation";
    let raw = hub.kubectl(&["get", "--raw", path]).expect_ok();
    assert_eq!(serde_json::from_str::<Value>(&raw).expect("it is JSON"), value);
    assert_eq!(value["clusters"][0]["decision"], "Chosen", "{json}");
    assert_eq!(value["variants"][0]["steps"][0]["fields"][1], "/data/word", "{json}");

    check(
        &hub.flotilla(&["explain", "shop/wbe"]),
        1,
        &["not found", "did you mean shop/web?"],
    );
    check(
        &hub.flotilla(&["explain", "web"]),
        1,
        &["not found", "did you mean shop/web?"],
    );
    check(
        &hub.flotilla(&["explain", "shop/web", "--cluster", "z"]),
        1,
        &["managedclusters", "not found"],
    );

    hub.repository.push_files("break", &[("feeds/web.yaml", "kind: [\n")]);
    flotilla_tests::eventually(std::time::Duration::from_secs(30), "the finding is told", || {
        let text = hub.flotilla(&["explain", "shop/web"]).ok()?;
        let told = ["feeds/web.yaml", "a: held as it was", "hint: "];
        match told.iter().find(|word| !text.contains(**word)) {
            None => Ok(()),
            Some(word) => Err(format!("{word} is missing in {text}")),
        }
    });
}

const BUDGET: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: PruneBudget
metadata: {name: none}
spec: {maxObjects: 0}
";

#[test]
fn what_a_budget_holds_is_counted_as_held_and_by_what() {
    let repository = repository();
    repository.write("policies/none.yaml", BUDGET);
    let tolerating = SUBSCRIPTION.replace(
        "spec:\n",
        "spec:\n  clusterTolerations: [{key: full, operator: Exists}]\n",
    );
    repository.write("subscriptions/web.yaml", &tolerating);
    repository.commit("Let nothing go");
    repository.push();
    let hub = Hub::follow(repository);
    let first = hub.flotilla(&["explain", "shop/web"]);
    check(&first, 0, &["Clusters: 2 of 3 have it\n", "drift mode Correct"]);
    let text = first.expect_ok();
    let told = text.matches("drift mode").count();
    assert_eq!(told, 2, "once for each cluster that has it: {text}");

    let until = |words: &[&str], absent: &str| {
        flotilla_tests::eventually(std::time::Duration::from_secs(30), "it is explained", || {
            let text = hub.flotilla(&["explain", "shop/web"]).ok()?;
            match words.iter().find(|word| !text.contains(**word)) {
                None if !text.contains(absent) => Ok(()),
                None => Err(format!("{absent} is in {text}")),
                Some(word) => Err(format!("{word} is missing in {text}")),
            }
        });
    };
    let moved = tolerating.replace("env: prod", "env: none");
    let away = moved.replace("none}}}]", "none}}}, {clusterAffinity: {matchLabels: {env: test}}}]");
    hub.repository.push_files("move", &[("subscriptions/web.yaml", &away)]);
    let held = [
        "Clusters: 3 of 3 have it, 2 held as they were",
        "would lose it, and keeps what it had: PruneBudgetExceeded at subscriptions/web.yaml:1",
        "Variant ",
        ", held as it was\n  made from ",
        "with Localization a/tint",
    ];
    until(&held, "leaves with this revision");
    // One Finding names both.
    let json = hub.flotilla(&["get", "findings", "-o", "json"]).expect_ok();
    let value: Value = serde_json::from_str(&json).expect("it is JSON");
    let found = &value["items"][0]["spec"];
    assert_eq!(
        (&found["cluster"], &found["alsoOn"]),
        (&"a".into(), &serde_json::json!(["c"])),
        "{json}"
    );
    let work = hub.repository.work().display().to_string();
    hub.repository.git(&["fetch", "--quiet"]);
    let ahead = Output::of(flotilla().args(["explain", "--revision", "HEAD", "--repository", &work, "shop/web"]));
    check(&ahead, 0, &held[..2]);

    hub.repository.git(&["rm", "--quiet", "subscriptions/web.yaml"]);
    hub.repository.push_files("remove", &[("note", "x")]);
    until(
        &["have it, 3 held as they were", "it is kept: PruneBudgetExceeded"],
        "leaving",
    );
}

#[test]
fn a_clone_explains_a_revision_before_it_is_pushed() {
    let repository = repository();
    let work = repository.work().display().to_string();
    let explain = |more: &[&str]| {
        let own = ["explain", "--revision", "HEAD", "--repository", &work];
        Output::of(flotilla().args([&own[..], more].concat()))
    };
    check(&explain(&["shop/web"]), 0, &DECISIONS);
    repository.write("clusters/b.yaml", cluster("b", "prod"));
    repository.commit("b is ours");
    check(
        &explain(&["shop/web"]),
        0,
        &["Clusters: 2 of 3 have it", "b: chosen, variant default"],
    );
    check(&explain(&["shop/wbe"]), 1, &["not found", "did you mean shop/web?"]);
    check(
        &explain(&["shop/web", "--cluster", "z"]),
        1,
        &["managedclusters \"z\" not found"],
    );
    let json = explain(&["shop/web", "-o", "json"]).expect_ok();
    let value: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(value["clusters"].as_array().map(Vec::len), Some(3), "{json}");
}
