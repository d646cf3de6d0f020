//! Fields that cannot change: the object stays and says so, or is made anew where that is allowed.

use flotilla_tests::{ControlPlane, Options, eventually, wait};
use reconciler::wire::{ObjectState, UnitState};
use render::model::{ApplyPolicy, Replace};
use serde_json::{Value, json};

use super::delivery::*;

const ANNOTATION: &str = "fleet.flotilla.dev/replace";

fn claim_spec(size: &str) -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}})
}

fn database(size: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"},
        "spec": {"serviceName": "db", "replicas": 1, "minReadySeconds": 1, "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "db", "image": "registry.example/db:1"}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec(size)}]}})
}

#[track_caller]
fn uid(cluster: &ControlPlane, resource: &str) -> String {
    metadata(cluster, "default", resource, "uid")
}

#[test]
fn a_stateful_set_is_made_anew_only_by_its_own_word_and_keeps_pods_and_claims() {
    let cluster = ControlPlane::start("anew", Options::with_nodes(1));
    let mut applier = Applier::start(&cluster, "anew");
    applier.deliver(&[("shop/db", vec![database("1Gi")])]);
    applier.until_unit("shop/db", UnitState::Applied);
    let pod = eventually(wait::LONG, "its pod is there", || cluster.get("default", "pod/db-0"));
    let set = uid(&cluster, "statefulset/db");
    let claim = uid(&cluster, "persistentvolumeclaim/data-db-0");
    applier.deliver(&[("shop/db", vec![database("2Gi"), config_map("default", "other", "1")])]);
    let report = applier.until_unit("shop/db", UnitState::Failed);
    let words = &result(&report, "db").message;
    assert!(
        words.contains("spec.volumeClaimTemplates[0].spec.resources.requests.storage")
            && words.contains("updates to statefulset spec")
            && words.contains(ANNOTATION),
        "{words}"
    );
    assert_eq!(uid(&cluster, "statefulset/db"), set, "it stays");
    assert!(cluster.has("default", "configmap/other"), "other objects go on");
    let mut allowed = database("2Gi");
    allowed["metadata"]["annotations"] = json!({ANNOTATION: "WhenImmutable"});
    applier.deliver(&[("shop/db", vec![allowed, config_map("default", "other", "1")])]);
    applier.until_unit("shop/db", UnitState::Applied);
    assert_ne!(uid(&cluster, "statefulset/db"), set);
    let storage = "/spec/volumeClaimTemplates/0/spec/resources/requests/storage";
    assert_eq!(field(&cluster, "statefulset/db", storage), "2Gi");
    assert_eq!(uid(&cluster, "persistentvolumeclaim/data-db-0"), claim);
    assert_eq!(
        uid(&cluster, "pod/db-0"),
        pod["metadata"]["uid"].as_str().unwrap(),
        "pods go on"
    );
    let owner = "/metadata/ownerReferences/0/uid";
    until_field(&cluster, "pod/db-0", owner, &json!(uid(&cluster, "statefulset/db")));
    applier.stop();
}

fn job(image: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": image}]}}}})
}

fn fixed(value: &str) -> Vec<Value> {
    let role = |name: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "binding", "namespace": "default"}, "subjects": [],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}})
    };
    let mut web = deployment("default", "web", 0);
    web["spec"]["selector"]["matchLabels"]["app"] = value.into();
    web["spec"]["template"]["metadata"]["labels"]["app"] = value.into();
    let mut sealed = config_map("default", "sealed", value);
    sealed["immutable"] = true.into();
    let address = if value == "a" { "10.0.0.77" } else { "None" };
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "service", "namespace": "default"},
        "spec": {"clusterIP": address, "ports": [{"port": 80}]}});
    vec![job(value), web, sealed, service, role(value)]
}

const FIXED: [&str; 5] = [
    "job/job",
    "deployment/web",
    "configmap/sealed",
    "service/service",
    "rolebinding/binding",
];

#[test]
fn what_cannot_change_stays_unless_the_unit_allows_to_make_it_anew() {
    let cluster = cluster("fixed");
    let mut applier = Applier::start(&cluster, "fixed");
    applier.deliver(&[("shop/web", fixed("a"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    let before = FIXED.map(|resource| uid(&cluster, resource));
    applier.deliver(&[("shop/web", fixed("b"))]);
    let report = applier.until("each was tried", |report| {
        let unit = report.units.get(&unit_key("shop/web"));
        unit.is_some_and(|unit| unit.counts.failed == FIXED.len())
    });
    let report = &report.units[&unit_key("shop/web")];
    assert_eq!(
        FIXED.map(|resource| uid(&cluster, resource)),
        before,
        "nothing is deleted by default"
    );
    for (name, words) in [
        ("job", "spec.template: field is immutable"),
        ("web", "spec.selector: field is immutable"),
        ("sealed", "field is immutable when `immutable` is set"),
        ("service", "may not change once set"),
        ("binding", "roleRef: cannot change roleRef"),
    ] {
        let said = &result(report, name).message;
        assert!(said.contains(words) && said.contains(ANNOTATION), "{name}: {said}");
    }
    let policy = ApplyPolicy {
        replace: Replace::WhenImmutable,
        ..ApplyPolicy::default()
    };
    applier.govern("shop/web", policy);
    applier.deliver(&[("shop/web", fixed("b"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    for (resource, before) in FIXED.iter().zip(&before) {
        assert_ne!(&uid(&cluster, resource), before, "{resource} is another one now");
    }
    assert_eq!(field(&cluster, "configmap/sealed", "/data/value"), "b");
    assert_eq!(field(&cluster, "service/service", "/spec/clusterIP"), "None");
    applier.stop();
}

#[test]
fn what_holds_data_is_not_made_anew_by_a_word_about_the_whole_unit() {
    let cluster = cluster("precious");
    let mut applier = Applier::start(&cluster, "precious");
    let policy = ApplyPolicy {
        replace: Replace::WhenImmutable,
        ..ApplyPolicy::default()
    };
    applier.govern("shop/db", policy);
    let claim = |mode: &str| {
        let mut spec = claim_spec("1Gi");
        spec["accessModes"] = json!([mode]);
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}, "spec": spec})
    };
    applier.deliver(&[("shop/db", vec![claim("ReadWriteOnce")])]);
    applier.until_unit("shop/db", UnitState::Applied);
    let before = uid(&cluster, "persistentvolumeclaim/data");
    applier.deliver(&[("shop/db", vec![claim("ReadWriteMany")])]);
    let report = applier.until_unit("shop/db", UnitState::Failed);
    let words = &result(&report, "data").message;
    assert!(words.contains("immutable") && words.contains(ANNOTATION), "{words}");
    assert_eq!(uid(&cluster, "persistentvolumeclaim/data"), before);
    applier.stop();
}

#[test]
fn nothing_is_deleted_for_a_new_object_that_would_be_refused() {
    let cluster = cluster("refused");
    let mut applier = Applier::start(&cluster, "refused");
    let policy = ApplyPolicy {
        replace: Replace::WhenImmutable,
        ..ApplyPolicy::default()
    };
    applier.govern("shop/web", policy);
    applier.deliver(&[("shop/web", vec![job("a")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    let before = uid(&cluster, "job/job");
    let mut wrong = job("b");
    wrong["spec"]["template"]["spec"]["restartPolicy"] = "Sometimes".into();
    applier.deliver(&[("shop/web", vec![wrong])]);
    let report = applier.until_unit("shop/web", UnitState::Failed);
    assert_eq!(result(&report, "job").state, ObjectState::Failed);
    assert!(result(&report, "job").message.contains("restartPolicy"), "{report:#?}");
    assert_eq!(uid(&cluster, "job/job"), before);
    applier.stop();
}
