//! Before something is removed, the plan says what goes or stays behind with it, as the clusters themselves have it.

use flotilla_tests::{Flotilla, Output, eventually};
use serde_json::{Value, json};

use super::support::*;

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'registry.example/web:1'}]}
";

const CLAIM: &str = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: shop, name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ''
  volumeName: shop-data
  resources: {requests: {storage: 1Gi}}
";

/// What nobody of the fleet delivers.
const VOLUME: &str = "\
apiVersion: v1
kind: PersistentVolume
metadata: {name: shop-data}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /nowhere}
";

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.shop.example}
spec:
  group: shop.example
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const WIDGETS: &str = "\
apiVersion: shop.example/v1
kind: Widget
metadata: {namespace: default, name: one}
---
apiVersion: shop.example/v1
kind: Widget
metadata: {namespace: default, name: two}
";

const STRANGER: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shop, name: theirs}\ndata: {text: hush}\n";

/// One cluster with an agent of mode Dual, one whose agent lends answers alone, and one that the hub reaches by kubeconfig.
#[track_caller]
fn start() -> Fleet {
    let mut fleet = Fleet::prepare();
    let direct = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {name: colombo}\n\
                  spec: {kubeconfigContext: colombo, syncMode: Push}\n";
    fleet.push("Reach colombo by kubeconfig", &[("clusters/colombo.yaml", direct)]);
    let kubeconfig = fleet.cluster("colombo").kubeconfig().display().to_string();
    fleet.start_hub(&["--kubeconfig", &kubeconfig]);
    fleet.start_agent("amsterdam");
    fleet.start_agent_with("bogota", &["--allow", "look"]);
    for cluster in ["amsterdam", "bogota", "colombo"] {
        fleet.cluster(cluster).apply(VOLUME);
    }
    fleet.push(
        "Open the shop",
        &[
            ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
            ("feeds/web/namespace.yaml", &namespace("shop")),
            ("feeds/web/deployment.yaml", DEPLOYMENT),
            ("feeds/web/claim.yaml", CLAIM),
            ("feeds/web/definition.yaml", DEFINITION),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
        ],
    );
    for cluster in ["amsterdam", "bogota", "colombo"] {
        fleet.until_field(cluster, ("shop", "deployment/web"), "/status/readyReplicas", 2);
        fleet.until_field(
            cluster,
            ("shop", "persistentvolumeclaim/data"),
            "/status/phase",
            "Bound",
        );
        fleet.until_field(cluster, ("shop", "configmap/greeting"), "/data/text", "hello");
    }
    let cluster = fleet.cluster("amsterdam");
    cluster.apply(STRANGER);
    eventually(LIMIT, "the new kind is served", || {
        cluster.kubectl(&["get", "widgets", "-A"]).ok()
    });
    cluster.apply(WIDGETS);
    let patch = r#"{"metadata": {"finalizers": ["shop.example/hold"]}}"#;
    let hold = ["patch", "configmap/greeting", "-n", "shop", "--type=merge", "-p", patch];
    cluster.kubectl(&hold).expect_ok();
    fleet
}

fn plan(fleet: &Fleet, form: &str) -> Output {
    let work = fleet.repository.work().display().to_string();
    Flotilla::run(&["plan", "--repository", &work, "--server", &fleet.api(), "-o", form])
}

#[track_caller]
fn answers(output: &Output) -> Vec<Value> {
    let plan: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let clusters = plan["dependants"].as_array();
    clusters.unwrap_or_else(|| panic!("nothing is said: {plan:#}")).clone()
}

/// The object's part of a cluster's answer.
#[track_caller]
fn about(answer: &Value, object: &str) -> Value {
    let objects = answer["objects"].as_array().into_iter().flatten();
    let found = objects.into_iter().find(|found| found["object"] == object);
    found.unwrap_or_else(|| panic!("{object} is not in {answer:#}")).clone()
}

#[track_caller]
fn counts(list: &Value) -> Vec<(String, u64)> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list:#}"));
    let count = |item: &Value| {
        (
            item["kind"].as_str().unwrap_or_default().to_owned(),
            item["count"].as_u64().unwrap_or_default(),
        )
    };
    items.iter().map(count).collect()
}

#[test]
fn before_a_removal_the_plan_lists_what_goes_or_stays_behind_with_it() {
    let mut fleet = start();
    fleet.repository.git(&["fetch", "--quiet"]);
    fleet.repository.remove("subscriptions/shop/web.yaml");
    fleet.repository.commit("Close the shop");
    let versions = |fleet: &Fleet| {
        versions(
            fleet.cluster("amsterdam"),
            "deployments,persistentvolumeclaims,configmaps,namespaces",
        )
    };
    let before = versions(&fleet);

    let told = answers(&plan(&fleet, "json"));
    let names: Vec<_> = told
        .iter()
        .map(|answer| answer["cluster"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(names, ["amsterdam", "bogota", "colombo"]);
    for answer in &told {
        let web = about(answer, "apps/Deployment/shop/web");
        let expected = [("Pod".to_owned(), 2), ("ReplicaSet".to_owned(), 1)];
        assert_eq!(counts(&web["goes"]), expected, "{answer:#}");
        let data = about(answer, "/PersistentVolumeClaim/shop/data");
        let volume = json!([{"claim": "shop/data", "volume": "shop-data", "reclaimPolicy": "Retain"}]);
        assert_eq!(data["volumes"], volume, "{answer:#}");
        assert_eq!(
            data["finalizers"],
            json!(["kubernetes.io/pvc-protection"]),
            "{answer:#}"
        );
        assert!(answer.get("notLookedAt").is_none(), "{answer:#}");
    }
    let answer = &told[0];
    let strangers = json!([{"kind": "ConfigMap", "count": 1, "names": ["theirs"]}]);
    assert_eq!(about(answer, "/Namespace//shop")["strangers"], strangers, "{answer:#}");
    let widgets = json!({"kind": "Widget.shop.example", "count": 2, "names": ["default/one", "default/two"]});
    let definition = about(
        answer,
        "apiextensions.k8s.io/CustomResourceDefinition//widgets.shop.example",
    );
    assert_eq!(definition["customResources"], widgets, "{answer:#}");
    let greeting = about(answer, "/ConfigMap/shop/greeting");
    assert_eq!(greeting["finalizers"], json!(["shop.example/hold"]), "{answer:#}");

    let text = plan(&fleet, "text").stdout;
    for words in [
        "Dependants\n",
        "Deployment shop/web: 2 Pod (web-",
        " and 1 ReplicaSet (web-",
        "claim shop/data is bound to volume shop-data (reclaim policy Retain), which stays with its data",
        "Namespace shop: 1 ConfigMap (theirs) goes with it, which no unit has",
        "CustomResourceDefinition widgets.shop.example: 2 Widget.shop.example (default/one, default/two) go with it, which are of its kind",
        "ConfigMap shop/greeting: is gone once its finalizers are done: shop.example/hold",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    assert!(plan(&fleet, "markdown").stdout.contains("#### Dependants"));
    assert!(plan(&fleet, "yaml").stdout.contains("reclaimPolicy: Retain"));
    assert!(
        !fleet.logs().contains("hush") && !text.contains("hush"),
        "names are told, and never what an object says"
    );
    assert_eq!(versions(&fleet), before, "nothing is changed by a question");

    fleet.kill_agent("bogota");
    eventually(LIMIT, "bogota is away", || {
        let told = answers(&plan(&fleet, "json"));
        let why = told[1]["notLookedAt"].as_str().unwrap_or_default().to_owned();
        let others = told[0].get("notLookedAt").or(told[2].get("notLookedAt"));
        assert_eq!(others, None, "the others answer all the same");
        (why == "cluster bogota is not connected").then_some(()).ok_or(why)
    });
    fleet.kill_hub();
    let alone = plan(&fleet, "text");
    assert_eq!(alone.code(), Some(1), "a plan needs no hub: {alone:?}");
    let line = "on amsterdam, bogota, colombo: not looked at: no hub answers at ";
    assert!(alone.stdout.contains(line), "{alone:?}");

    let release = r#"{"metadata": {"finalizers": null}}"#;
    let cluster = fleet.cluster("amsterdam");
    cluster
        .kubectl(&[
            "patch",
            "configmap/greeting",
            "-n",
            "shop",
            "--type=merge",
            "-p",
            release,
        ])
        .expect_ok();
    for cluster in ["amsterdam", "bogota", "colombo"] {
        let cluster = fleet.cluster(cluster);
        cluster
            .kubectl(&["delete", "namespace/shop", "--wait=false"])
            .expect_ok();
        cluster
            .kubectl(&["delete", "persistentvolume/shop-data", "--wait=false"])
            .expect_ok();
    }
}
