//! What charts are predicted to bring, by the real helm (cases helm-006 and helm-007).

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_tests::parts;
use reconciler::apply::HelmOptions;
use reconciler::hub::Predictor;
use render::chart::{Capabilities, ChartFiles, ChartOrder, Preview, PreviewMode, PreviewRequest};
use serde_json::{Value, json};

const KINDS: [&str; 6] = [
    "apps/v1/Deployment",
    "batch/v1/Job",
    "v1/ConfigMap",
    "v1/Pod",
    "v1/Secret",
    "v1/Service",
];

fn cluster(version: &str, more: &[&str]) -> Capabilities {
    let mut kinds: Vec<String> = KINDS.iter().chain(more).map(|kind| (*kind).to_owned()).collect();
    kinds.sort();
    Capabilities::new(version.to_owned(), kinds)
}

fn order(spec: &Value) -> Arc<ChartOrder> {
    let mut chart = json!({"metadata": {"name": "web"}, "spec": {"targetNamespace": "shop"}});
    for (name, value) in spec.as_object().unwrap() {
        chart["spec"][name] = value.clone();
    }
    Arc::new(ChartOrder::of(&chart).unwrap())
}

fn request(files: &[(&str, &str)], spec: &Value, capabilities: Capabilities) -> PreviewRequest {
    let files = files
        .iter()
        .chain(&[("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")]);
    let files = files.map(|(path, text)| (Arc::from(*path), Arc::from(text.as_bytes())));
    PreviewRequest {
        order: order(spec),
        files: Some(Arc::new(ChartFiles::new(files.collect()).unwrap())),
        capabilities: Arc::new(capabilities),
    }
}

fn predict(request: &PreviewRequest) -> Preview {
    let helm = HelmOptions {
        program: parts::folder().join("helm"),
        folder: None,
    };
    let predictor = Predictor::new(helm);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(predictor.make(request.key(), request));
    let previews = predictor.previews(BTreeMap::new());
    assert_eq!(previews.mode, PreviewMode::On);
    Preview::clone(&previews.known[&request.key()])
}

#[track_caller]
fn objects(request: &PreviewRequest) -> Vec<String> {
    match predict(request) {
        Preview::Predicted { objects, unsteady } => {
            assert_eq!(unsteady, [] as [&str; 0]);
            objects.iter().map(|object| object.key.to_string()).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn folder(values: Value) -> Value {
    json!({"path": "feeds/web", "values": values})
}

const BUDGET: &str = r#"
{{- if .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}
apiVersion: policy/v1
{{- else if .Capabilities.APIVersions.Has "policy/v1beta1" }}
apiVersion: policy/v1beta1
{{- else }}
{{ fail "no policy" }}
{{- end }}
kind: PodDisruptionBudget
metadata: {name: web}
---
{{- if semverCompare ">=1.29-0" .Capabilities.KubeVersion.Version }}
apiVersion: v1
kind: ConfigMap
metadata: {name: new}
data: {version: {{ .Capabilities.KubeVersion.Version | quote }}}
{{- else }}
apiVersion: v1
kind: ConfigMap
metadata: {name: old}
{{- end }}
"#;

#[test]
fn a_chart_is_predicted_for_the_version_and_the_kinds_that_its_cluster_says() {
    let files = [("templates/all.yaml", BUDGET)];
    let on = |version: &str, kind: &str| request(&files, &folder(json!({})), cluster(version, &[kind]));
    let old = on("v1.20.0", "policy/v1beta1/PodDisruptionBudget");
    let Preview::Predicted { objects: printed, .. } = predict(&old) else {
        panic!("it is predicted");
    };
    // Helm's own list has both, whatever a cluster serves.
    assert_eq!(printed[1].value["apiVersion"], "policy/v1beta1");
    assert_eq!(
        objects(&old),
        ["/ConfigMap/shop/old", "policy/PodDisruptionBudget/shop/web"]
    );
    let new = on("v1.29.4-gke.100", "policy/v1/PodDisruptionBudget");
    assert_eq!(
        objects(&new),
        ["/ConfigMap/shop/new", "policy/PodDisruptionBudget/shop/web"]
    );
    let Preview::Failed { words } = predict(&on("v1.33.0", "x.io/v1/Other")) else {
        panic!("no version of it is served");
    };
    assert!(words.contains("no policy"), "{words}");
}

#[test]
fn a_template_that_makes_something_else_each_time_is_found() {
    let random =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: made}\nstringData: {password: {{ randAlphaNum 24 | quote }}}\n";
    let files = [
        ("templates/made.yaml", random),
        (
            "templates/steady.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: steady}\n",
        ),
    ];
    let Preview::Predicted { objects, unsteady } =
        predict(&request(&files, &folder(json!({})), cluster("v1.33.0", &[])))
    else {
        panic!("it is predicted");
    };
    assert_eq!(unsteady, ["web/templates/made.yaml"]);
    assert_eq!(
        objects[1].value["stringData"],
        json!({"password": "***"}),
        "no value of a Secret is kept"
    );
}

#[test]
fn what_helm_refuses_is_told_in_its_words_alike_each_time() {
    let files = [(
        "templates/all.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ required \"a name is needed\" .Values.name }}}\n",
    )];
    let refused = request(&files, &folder(json!({"name": null})), cluster("v1.33.0", &[]));
    let (first, second) = (predict(&refused), predict(&refused));
    let Preview::Failed { words } = &first else {
        panic!("{first:?}");
    };
    assert!(
        words.contains("web/templates/all.yaml") && words.contains("a name is needed"),
        "{words}"
    );
    assert_eq!(first, second);
    let fits = request(&files, &folder(json!({"name": "web"})), cluster("v1.33.0", &[]));
    assert_eq!(objects(&fits), ["/ConfigMap/shop/web"]);
}

#[test]
fn kinds_that_come_from_elsewhere_are_no_fault_of_a_chart() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.x.io}\n\
                      spec: {group: x.io, names: {kind: Gadget, plural: gadgets}, scope: Namespaced}\n";
    let files = [
        ("crds/gadget.yaml", definition),
        (
            "templates/all.yaml",
            "apiVersion: x.io/v1\nkind: Gadget\nmetadata: {name: g}\n---\napiVersion: monitoring.coreos.com/v1\n\
             kind: ServiceMonitor\nmetadata: {name: m}\n",
        ),
    ];
    let expected = [
        "apiextensions.k8s.io/CustomResourceDefinition//gadgets.x.io",
        "monitoring.coreos.com/ServiceMonitor/shop/m",
        "x.io/Gadget/shop/g",
    ];
    assert_eq!(
        objects(&request(&files, &folder(json!({})), cluster("v1.33.0", &[]))),
        expected
    );
    let skipping = json!({"path": "feeds/web", "crds": "Skip"});
    assert_eq!(
        objects(&request(&files, &skipping, cluster("v1.33.0", &[]))),
        expected[1..]
    );
}

#[test]
fn a_private_chart_is_not_predicted_and_says_so() {
    let spec = json!({"repo": "https://charts.example.org", "chart": "web", "version": "1.0.0",
        "chartPullSecret": {"name": "login"}});
    let request = PreviewRequest {
        files: None,
        ..request(&[], &spec, cluster("v1.33.0", &[]))
    };
    let Preview::Unknown { why } = predict(&request) else {
        panic!("nobody here can pull it");
    };
    assert!(why.contains("login"), "{why}");
}

#[test]
fn without_helm_there_are_no_predictions_and_nothing_waits() {
    let predictor = Predictor::new(HelmOptions {
        program: "/nowhere/helm".into(),
        folder: None,
    });
    let request = request(&[], &folder(json!({})), cluster("v1.33.0", &[]));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(predictor.make(request.key(), &request));
    assert_eq!(predictor.previews(BTreeMap::new()).mode, PreviewMode::NoHelm);
}
