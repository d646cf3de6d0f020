use super::*;
use crate::model::{Dividing, FieldFormat, OverrideStepType, PlaintextSecrets, Scheduling, SyncMode, TaintEffect};
use crate::name::ClusterName;

const KEY: &str = "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

#[test]
fn a_fleet_says_how_it_wants_to_be_treated() {
    let text = "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec: {approval: required, render: {mode: commits}, plaintextSecrets: refuse}
";
    let (fleet, findings) = loaded(&[("fleet.yaml", text)]);
    assert!(findings.is_empty(), "{findings:#?}");
    assert_eq!(fleet.spec.plaintext_secrets(), PlaintextSecrets::Refuse);
    assert_eq!(fleet.spec.approval, crate::model::Approval::Required);
    assert_eq!(fleet.spec.render.mode, crate::model::RenderMode::Commits);
    let objects = text
        .replace("commits", "objects")
        .replace(", plaintextSecrets: refuse", "");
    let (fleet, findings) = loaded(&[("fleet.yaml", &objects)]);
    assert!(findings.is_empty(), "{findings:#?}");
    assert_eq!(fleet.spec.render.mode, crate::model::RenderMode::Objects);
    let refuse = PlaintextSecrets::Refuse;
    assert_eq!(
        fleet.spec.plaintext_secrets(),
        refuse,
        "decisions are commits there too"
    );
    let wrong = text.replace("required", "maybe").replace("mode", "modes");
    check(
        &[("fleet.yaml", &wrong)],
        &[
            "fleet.yaml:4 Error FieldInvalid spec.approval",
            "fleet.yaml:4 Error UnknownField spec.render.modes",
        ],
    );
}

#[test]
fn a_cluster_is_read_from_either_group() {
    let ours = format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {{name: paris, labels: {{region: eu}}}}
spec:
  syncMode: Pull
  publicKeys: ['{KEY}']
  taints: [{{key: gpu, value: 'yes', effect: NoExecute}}]
"
    );
    let theirs = "apiVersion: clusters.clusternet.io/v1beta1
kind: ManagedCluster
metadata: {name: us-west, namespace: clusternet-5l82l}
spec: {clusterId: dc91021d, clusterType: EdgeCluster, syncMode: Dual}
status: {livez: true}
";
    let (fleet, findings) = loaded(&[("a.yaml", &ours), ("b.yaml", theirs)]);
    assert_eq!(reasons(&findings), ["ServerFields"]);
    let paris = &fleet.clusters[&ClusterName::parse("paris").unwrap()];
    assert_eq!((paris.namespace.as_str(), paris.sync_mode), ("paris", SyncMode::Pull));
    assert_eq!(paris.taints[0].effect, TaintEffect::NoExecute);
    assert_eq!(paris.public_keys, [KEY]);
    assert_eq!(paris.labels["clusters.clusternet.io/cluster-name"], "paris");
    assert_eq!(paris.labels["clusters.clusternet.io/cluster-id"], "paris");
    let west = &fleet.clusters[&ClusterName::parse("us-west").unwrap()];
    assert_eq!(
        (west.namespace.as_str(), west.cluster_id.as_str()),
        ("clusternet-5l82l", "dc91021d")
    );
    assert_eq!(west.labels["clusters.clusternet.io/cluster-id"], "dc91021d");
}

#[track_caller]
fn cluster(spec: &str, expected: &[&str]) {
    check(&[("c.yaml", &format!("{CLUSTER}spec: {spec}\n"))], expected);
}

#[test]
fn a_clusters_mistakes_name_their_field() {
    cluster(
        "{publicKeys: [ed25519:short]}",
        &["c.yaml:4 Error FieldInvalid spec.publicKeys[0]"],
    );
    cluster("{syncMode: Both}", &["c.yaml:4 Error FieldInvalid spec.syncMode"]);
    cluster("{syncMode: Push}", &["c.yaml:4 Warning NobodyApplies spec.syncMode"]);
    cluster(&format!("{{syncMode: Push, publicKeys: ['{KEY}']}}"), &[]);
    cluster(
        "{syncMode: Pull, kubeconfigContext: x}",
        &["c.yaml:4 Error FieldInvalid spec.syncMode"],
    );
    cluster(
        "{taints: [{key: a}]}",
        &["c.yaml:4 Error FieldMissing spec.taints[0].effect"],
    );
    cluster(
        "{taints: [{key: a, effect: null}]}",
        &["c.yaml:4 Error FieldMissing spec.taints[0].effect"],
    );
    cluster("{taints: {}}", &["c.yaml:4 Error FieldType spec.taints"]);
    cluster("{color: red}", &["c.yaml:4 Error UnknownField spec.color"]);
    cluster(
        "{clusterInitBaseName: x}",
        &["c.yaml:4 Warning NoEffect spec.clusterInitBaseName"],
    );
    cluster("{kubeconfigContext: x}", &[]);
    let upper = CLUSTER.replace("name: a", "name: A_b");
    check(&[("c.yaml", &upper)], &["c.yaml:3 Error FieldInvalid metadata.name"]);
}

#[test]
fn a_taint_that_is_nearly_another_one_is_told_from_it() {
    let hint = |taint: &str| {
        let (_, findings) = loaded(&[("c.yaml", &format!("{CLUSTER}spec: {{taints: [{taint}]}}\n"))]);
        let told = findings
            .iter()
            .map(|found| format!("{} {} {}", found.reason, found.field, found.hint));
        told.collect::<Vec<_>>()
    };
    for (effect, meant) in [
        ("noschedule", "NoSchedule"),
        ("NoShedule", "NoSchedule"),
        ("NoExcute", "NoExecute"),
    ] {
        let expected = format!("FieldInvalid spec.taints[0].effect did you mean {meant}?");
        assert_eq!(hint(&format!("{{key: gpu, effect: {effect}}}")), [expected]);
    }
    assert_eq!(
        hint("{key: fleet.flotilla.dev/cordonned, effect: NoSchedule}"),
        ["TaintUnknown spec.taints[0].key did you mean fleet.flotilla.dev/cordoned?"]
    );
    assert_eq!(
        hint("{key: fleet.flotila.dev/drained, effect: NoExecute}"),
        ["TaintUnknown spec.taints[0].key did you mean fleet.flotilla.dev/drained?"]
    );
    for own in ["fleet.flotilla.dev/cordoned", "example.dev/drained", "gpu"] {
        assert_eq!(
            hint(&format!("{{key: {own}, effect: NoSchedule}}")),
            Vec::<String>::new()
        );
    }
}

#[test]
fn a_taint_that_only_the_hub_may_set_is_told_and_removes_nothing() {
    let taints = "[{key: fleet.flotilla.dev/unreachable, effect: NoExecute}, {key: gpu, effect: NoSchedule}]";
    let (fleet, findings) = loaded(&[("c.yaml", &format!("{CLUSTER}spec: {{taints: {taints}}}\n"))]);
    let [found] = findings.as_slice() else {
        panic!("one finding and not {findings:?}")
    };
    let place = (found.file.as_str(), found.line, found.field.as_str());
    assert_eq!(place, ("c.yaml", 4, "spec.taints[0].key"));
    assert_eq!((found.reason.as_str(), found.is_error()), ("TaintReserved", false));
    assert_eq!(found.hint, "flotilla drain takes a cluster out of use");
    let cluster = fleet.clusters.values().next().expect("it is declared");
    let keys: Vec<&str> = cluster.taints.iter().map(|taint| taint.key.as_str()).collect();
    assert_eq!(keys, ["gpu"], "units stay where they are");
}

#[test]
fn a_key_or_id_stands_for_one_cluster_alone() {
    let one = format!("{CLUSTER}spec: {{clusterId: same, publicKeys: ['{KEY}']}}\n");
    let two = one.replace("name: a", "name: b");
    let (fleet, findings) = loaded(&[("a.yaml", &one), ("b.yaml", &two)]);
    assert_eq!(reasons(&findings), ["SharedClusterId", "SharedPublicKey"]);
    assert!(
        fleet.clusters.values().all(|cluster| cluster.public_keys.is_empty()),
        "neither can connect with it"
    );
}

#[track_caller]
fn spec(api_version: &str, fields: &str, expected: &[&str]) -> Scheduling {
    let text = format!(
        "apiVersion: {api_version}
kind: Subscription
metadata: {{name: app, namespace: team}}
spec:
  {fields}
  feeds: [{{apiVersion: v1, kind: ConfigMap, name: x}}]
"
    );
    let (fleet, findings) = loaded(&[("s.yaml", &text), ("x.yaml", &config_map("x"))]);
    assert_eq!(shown(&findings), expected, "{fields}: {findings:#?}");
    unit(&fleet).subscription.scheduling
}

const OURS: &str = "fleet.flotilla.dev/v1alpha1";
const THEIRS: &str = "apps.clusternet.io/v1alpha1";

#[test]
fn a_scheduler_of_another_name_is_refused() {
    let to = "subscribers: [{clusterAffinity: {}}]\n  schedulerName: mine";
    for group in [THEIRS, OURS] {
        spec(group, to, &["s.yaml:6 Error NotSupported spec.schedulerName"]);
    }
}

#[test]
fn scheduling_has_clusternets_defaults() {
    let to = "subscribers: [{clusterAffinity: {}, weight: 2}]";
    assert_eq!(spec(THEIRS, to, &[]), Scheduling::Replication);
    let dividing = Scheduling::Dividing(Dividing::Static);
    assert_eq!(
        spec(THEIRS, &format!("{to}\n  schedulingStrategy: Dividing"), &[]),
        dividing
    );
    let explicit = format!(
        "{to}\n  schedulerName: default\n  schedulingStrategy: Dividing\n  dividingScheduling: {{type: Static}}"
    );
    assert_eq!(spec(OURS, &explicit, &[]), dividing);
}

#[test]
fn a_subscriptions_mistakes_name_their_field() {
    spec(
        OURS,
        "subscribers: [{weight: 1}]",
        &["s.yaml:5 Error FieldMissing spec.subscribers[0].clusterAffinity"],
    );
    spec(
        OURS,
        "subscribers: [{clusterAffinity: null}]",
        &["s.yaml:5 Warning SelectsNothing spec.subscribers[0].clusterAffinity"],
    );
    spec(
        OURS,
        "subscribers: [{clusterAffinity: {}, weight: -1}]",
        &["s.yaml:5 Error FieldInvalid spec.subscribers[0].weight"],
    );
    let expression = |text: &str| format!("subscribers: [{{clusterAffinity: {{matchExpressions: [{text}]}}}}]");
    let path = "spec.subscribers[0].clusterAffinity.matchExpressions[0]";
    for (text, problem) in [
        ("{key: a, operator: Gt}", "FieldInvalid {}.operator"),
        ("{key: a, operator: In}", "FieldMissing {}.values"),
        ("{key: a, operator: Exists, values: [x]}", "FieldInvalid {}.values"),
        ("{operator: Exists}", "FieldMissing {}.key"),
        ("{key: a}", "FieldMissing {}.operator"),
        ("{key: a, operator: null}", "FieldMissing {}.operator"),
    ] {
        let expected = format!("s.yaml:5 Error {}", problem.replace("{}", path));
        spec(OURS, &expression(text), &[&expected]);
    }
    let labels = "subscribers: [{clusterAffinity: {matchLabels: {a: 1}}}]";
    spec(
        OURS,
        labels,
        &["s.yaml:5 Error FieldType spec.subscribers[0].clusterAffinity.matchLabels.a"],
    );
    spec(
        OURS,
        "replicas: 1",
        &[
            "s.yaml:4 Error FieldMissing spec.subscribers",
            "s.yaml:5 Error UnknownField spec.replicas",
        ],
    );
    let to = "subscribers: [{clusterAffinity: {}}]";
    spec(
        THEIRS,
        &format!("{to}\n  replicas: 1"),
        &["s.yaml:6 Warning UnknownField spec.replicas"],
    );
    spec(
        OURS,
        &format!("{to}\n  clusterTolerations: [{{operator: Equal}}]"),
        &["s.yaml:6 Error FieldMissing spec.clusterTolerations[0].key"],
    );
}

#[test]
fn a_unit_whose_feeds_or_subscribers_are_null_is_held() {
    for field in ["feeds", "subscribers"] {
        let text = subscription("[{path: feeds}]");
        let lines = text.lines().map(|line| match line.trim_start().split_once(':') {
            Some((name, _)) if name == field => format!("  {field}:\n"),
            _ => format!("{line}\n"),
        });
        let (fleet, _) = loaded(&[
            ("s.yaml", &lines.collect::<String>()),
            ("feeds/x.yaml", &config_map("x")),
        ]);
        let blocked = &unit(&fleet).blocked;
        assert_eq!(reasons(blocked), ["FieldMissing"], "{field}: it would deliver nothing");
    }
}

#[test]
fn feeds_by_path_are_ours_alone() {
    let text = subscription("[{path: feeds}]").replace(OURS, THEIRS);
    let (fleet, _) = loaded(&[("s.yaml", &text)]);
    assert_eq!(
        shown(&unit(&fleet).blocked),
        [
            "s.yaml:6 Error FieldMissing spec.feeds[0].apiVersion",
            "s.yaml:6 Error FieldMissing spec.feeds[0].kind",
            "s.yaml:6 Error FieldMissing spec.feeds[0].name",
        ]
    );
}

#[test]
fn a_subscription_without_namespace_stands_in_default() {
    let text = subscription("[{path: f}]").replace(", namespace: team", "");
    let (fleet, _) = loaded(&[("s.yaml", &text)]);
    assert!(fleet.units.contains_key(&UnitKey::new("default", "app").unwrap()));
}

fn localization(name: &str, spec: &str) -> String {
    format!("apiVersion: {OURS}\nkind: Localization\nmetadata: {{name: {name}, namespace: a}}\nspec:\n  {spec}\n")
}

const FEED: &str = "feed: {apiVersion: v1, kind: ConfigMap, name: x, namespace: shop}";

#[track_caller]
fn overrides(spec: &str, expected: &[&str]) {
    let files = [
        ("c.yaml", CLUSTER),
        ("x.yaml", &config_map("x")),
        ("l.yaml", &localization("l", spec)),
    ];
    check(&files, expected);
}

#[test]
fn overrides_are_read_in_the_order_in_which_they_apply() {
    let step = "overrides: [{type: MergePatch, value: '{}'}]";
    let globalization = |name: &str, priority: u32| {
        localization(name, &format!("{FEED}\n  {step}\n  priority: {priority}"))
            .replace("Localization", "Globalization")
            .replace(", namespace: a", "")
    };
    let (late, early) = (globalization("a-late", 900), globalization("z-early", 100));
    let local = localization("l", &format!("{FEED}\n  {step}\n  overridePolicy: ApplyNow"));
    let files = [
        ("1.yaml", local.as_str()),
        ("2.yaml", &late),
        ("3.yaml", &early),
        ("c.yaml", CLUSTER),
        ("x.yaml", &config_map("x")),
    ];
    let (fleet, findings) = loaded(&files);
    assert!(findings.is_empty(), "{findings:#?}");
    let labels: Vec<_> = fleet.overrides.iter().map(|declared| declared.label()).collect();
    assert_eq!(
        labels,
        ["Globalization z-early", "Globalization a-late", "Localization a/l"]
    );
    assert_eq!(fleet.overrides[2].priority, 500);
}

#[test]
fn steps_are_read_with_their_lines() {
    let steps = "overrides:
  - {name: one, type: JSONPatch, value: '[]'}
  - name: two
    type: FieldMergePatch
    fieldPath: /data/server.conf
    fieldFormat: JSON
    value: '{}'";
    let (fleet, _) = loaded(&[("l.yaml", &localization("l", &format!("{FEED}\n  {steps}")))]);
    let steps = &fleet.overrides[0].steps;
    assert_eq!((steps[0].line, steps[1].line), (7, 8));
    let expected = OverrideStepType::FieldMergePatch {
        field_path: "/data/server.conf".to_owned(),
        format: FieldFormat::Json,
    };
    assert_eq!(steps[1].step_type, expected);
}

#[test]
fn an_overrides_mistakes_name_their_field() {
    let step = |text: &str| format!("{FEED}\n  overrides: [{text}]");
    for (text, problem) in [
        ("{type: Patch, value: x}", "Error FieldInvalid spec.overrides[0].type"),
        ("{type: MergePatch}", "Error FieldMissing spec.overrides[0].value"),
        (
            "{type: MergePatch, value: {a: 1}}",
            "Error FieldType spec.overrides[0].value",
        ),
        (
            "{type: MergePatch, value: ' '}",
            "Warning NoEffect spec.overrides[0].value",
        ),
        ("{value: x}", "Error FieldMissing spec.overrides[0].type"),
        (
            "{type: FieldJSONPatch, value: x, fieldPath: /a}",
            "Error FieldMissing spec.overrides[0].fieldFormat",
        ),
        (
            "{type: FieldJSONPatch, value: x, fieldFormat: YAML}",
            "Error FieldMissing spec.overrides[0].fieldPath",
        ),
        (
            "{type: FieldJSONPatch, value: x, fieldFormat: TOML, fieldPath: /a}",
            "Error FieldInvalid spec.overrides[0].fieldFormat",
        ),
        (
            "{type: FieldJSONPatch, value: x, fieldFormat: YAML, fieldPath: a}",
            "Error FieldInvalid spec.overrides[0].fieldPath",
        ),
        (
            "{type: MergePatch, value: x, fieldPath: /a}",
            "Warning NoEffect spec.overrides[0].fieldPath",
        ),
        (
            "{type: MergePatch, value: x, overrideChart: true}",
            "Warning NoEffect spec.overrides[0].overrideChart",
        ),
    ] {
        overrides(&step(text), &[&format!("l.yaml:6 {problem}")]);
    }
    let good = "overrides: [{type: MergePatch, value: '{}'}]";
    overrides(
        &format!("{FEED}\n  priority: 1001\n  {good}"),
        &["l.yaml:6 Error FieldInvalid spec.priority"],
    );
    overrides(FEED, &["l.yaml:4 Warning NoEffect spec.overrides"]);
    overrides(good, &["l.yaml:4 Error FieldMissing spec.feed"]);
}

#[test]
fn an_override_of_nothing_is_an_error() {
    let step = "overrides: [{type: MergePatch, value: '{}'}]";
    let spec = format!("{}\n  {step}", FEED.replace("name: x", "name: my-server"));
    overrides(&spec, &["l.yaml:5 Error OverrideTargetMissing spec.feed"]);
    let (fleet, _) = loaded(&[("c.yaml", CLUSTER), ("l.yaml", &localization("l", &spec))]);
    assert_eq!(fleet.of_nothing, fleet.overrides, "a plan holds what it changed");
    let nowhere = localization("l", &format!("{FEED}\n  {step}")).replace("namespace: a}", "namespace: nowhere}");
    let files = [("c.yaml", CLUSTER), ("x.yaml", &config_map("x")), ("l.yaml", &nowhere)];
    check(&files, &["l.yaml:3 Warning NamespaceWithoutCluster metadata.namespace"]);
    // Before the first cluster is registered, every Localization is for one that is not there yet.
    check(&files[1..], &[]);
}
