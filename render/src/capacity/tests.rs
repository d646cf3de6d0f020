use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod slowly;

fn node(count: u64, cpu: i64, memory: i64, pods: i64) -> NodeGroup {
    let all = Resources::from([("cpu", cpu), ("memory", memory), ("pods", pods)]);
    NodeGroup {
        count,
        allocatable: all.clone(),
        free: all,
        ..NodeGroup::default()
    }
}

fn field(nodes: Vec<NodeGroup>) -> Field {
    Field::of(&Nodes(nodes))
}

fn labelled(mut group: NodeGroup, labels: &[(&str, &str)]) -> NodeGroup {
    group.labels = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    group
}

fn asks(spec: Value) -> PodRequirements {
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": spec });
    PodRequirements::read(&template).expect("it is a valid template")
}

fn cpu(amount: &str) -> Value {
    json!([{ "name": "a", "resources": { "requests": { "cpu": amount } } }])
}

#[track_caller]
fn check(nodes: &[NodeGroup], requirements: &PodRequirements, expected: u64) {
    for workload in [Some(0), None] {
        // One that the report does not name has no pods there.
        if workload.is_some() || nodes.iter().all(|group| group.pods.is_empty()) {
            let answer = fit(&field(nodes.to_vec()), requirements, workload, u64::from(u32::MAX));
            assert_eq!(answer.replicas, expected, "{answer:?}");
        }
    }
}

#[test]
fn the_scarcest_resource_of_each_node_decides() {
    let one = asks(json!({ "containers": cpu("700m") }));
    check(&[node(1, 2500, 1 << 30, 110)], &one, 3);
    // Together there is room for three, and on no node for one.
    check(&[node(3, 600, 1 << 30, 110)], &one, 0);
    check(&[node(2, 8000, 1 << 30, 2)], &one, 4);
}

#[test]
fn what_nobody_asks_for_does_not_bind_but_pods_do() {
    check(&[node(2, 0, 0, 7)], &asks(json!({ "containers": [{}] })), 14);
}

#[test]
fn a_node_with_more_on_it_than_it_has_is_full_and_no_error() {
    let mut full = node(1, 1000, 1 << 30, 110);
    full.free.set("cpu", -200);
    check(
        &[full, node(1, 1000, 1 << 30, 110)],
        &asks(json!({ "containers": cpu("100m") })),
        10,
    );
}

#[test]
fn requests_are_what_kubernetes_sets_aside() {
    let requests = |spec: Value| asks(spec).requests;
    let container = |cpu: &str| json!({ "resources": { "requests": { "cpu": cpu } } });
    let spec = json!({
        "initContainers": [container("2"), { "restartPolicy": "Always", "resources": { "limits": { "cpu": "300m" } } }, container("1")],
        "containers": [container("500m"), container("250m")],
        "overhead": { "cpu": "50m" },
    });
    assert_eq!(requests(spec), Resources::from([("cpu", 2050), ("pods", 1)]));
    let late = json!({
        "initContainers": [{ "restartPolicy": "Always", "resources": { "limits": { "cpu": "300m" } } }, container("1")],
        "containers": [container("500m")],
    });
    assert_eq!(
        requests(late).of("cpu"),
        1300,
        "an init container stands beside the sidecars before it"
    );
    let whole = json!({ "resources": { "requests": { "cpu": "3" } }, "containers": [container("1")] });
    assert_eq!(requests(whole).of("cpu"), 3000, "the pod's own word counts");
    let gpu = json!({ "containers": [{ "resources": { "limits": { "nvidia.com/gpu": 2, "memory": "1.5Mi" } } }] });
    assert_eq!(
        requests(gpu),
        Resources::from([("memory", 1_572_864), ("nvidia.com/gpu", 2), ("pods", 1)])
    );
}

#[test]
fn a_template_that_cannot_be_read_names_its_field() {
    let template = json!({ "spec": { "containers": [{}, { "resources": { "requests": { "cpu": "many" } } }] } });
    let field = PodRequirements::read(&template).expect_err("the quantity is none");
    assert_eq!(field, "/spec/containers/1/resources/requests/cpu");
}

#[test]
fn only_nodes_that_are_asked_for_count() {
    let nodes = [
        labelled(node(2, 4000, 1 << 30, 110), &[("disk", "ssd"), ("cores", "8")]),
        labelled(node(3, 4000, 1 << 30, 110), &[("disk", "hdd"), ("cores", "16")]),
    ];
    let with = |name: &str, value: Value| {
        let mut spec = json!({ "containers": cpu("1") });
        spec[name] = value;
        asks(spec)
    };
    check(&nodes, &with("nodeSelector", json!({ "disk": "ssd" })), 8);
    let term = |operator: &str, key: &str, values: Value| {
        let expression = json!({ "key": key, "operator": operator, "values": values });
        let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": [expression] }] });
        with(
            "affinity",
            json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } }),
        )
    };
    check(&nodes, &term("In", "disk", json!(["hdd", "nvme"])), 12);
    check(&nodes, &term("Gt", "cores", json!(["8"])), 12);
    check(&nodes, &term("Lt", "cores", json!(["9"])), 8);
    check(&nodes, &term("DoesNotExist", "disk", json!([])), 0);
    let mut tainted = nodes.clone();
    let taint = json!([{ "key": "dedicated", "value": "ml", "effect": "NoExecute" }]);
    tainted[0].taints = serde_json::from_value(taint).expect("they are taints");
    check(&tainted, &asks(json!({ "containers": cpu("1") })), 12);
    check(&tainted, &with("tolerations", json!([{ "operator": "Exists" }])), 20);
}

fn anti(key: &str) -> Value {
    let term = json!({ "topologyKey": key, "labelSelector": { "matchLabels": { "app": "web" } } });
    json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } })
}

fn zones() -> Vec<NodeGroup> {
    let zone = |count, name| labelled(node(count, 4000, 1 << 30, 110), &[("zone", name)]);
    vec![zone(3, "a"), zone(2, "b"), zone(1, "c")]
}

#[test]
fn pods_that_keep_apart_take_one_place_each() {
    check(
        &zones(),
        &asks(json!({ "containers": cpu("1"), "affinity": anti(HOSTNAME) })),
        6,
    );
    check(
        &zones(),
        &asks(json!({ "containers": cpu("1"), "affinity": anti("zone") })),
        3,
    );
    let mut taken = zones();
    taken[0].pods = BTreeMap::from([(0, 1)]);
    check(
        &taken,
        &asks(json!({ "containers": cpu("1"), "affinity": anti(HOSTNAME) })),
        3,
    );
    check(
        &taken,
        &asks(json!({ "containers": cpu("1"), "affinity": anti("zone") })),
        2,
    );
    let ports = json!([{ "ports": [{ "containerPort": 80, "hostPort": 80 }] }]);
    check(&zones(), &asks(json!({ "containers": ports })), 6);
}

#[test]
fn pods_are_spread_no_more_unevenly_than_allowed() {
    let spread = |key: &str, skew: u64, domains: Value| {
        let constraint = json!({
            "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "minDomains": domains,
            "labelSelector": { "matchLabels": { "app": "web" } },
        });
        asks(json!({ "containers": cpu("1"), "topologySpreadConstraints": [constraint] }))
    };
    // The smallest zone takes four, and no other may have more than one above it.
    check(&zones(), &spread("zone", 1, json!(null)), 14);
    check(&zones(), &spread("zone", 2, json!(null)), 16);
    check(&zones(), &spread("zone", 1, json!(4)), 3);
    check(&zones(), &spread(HOSTNAME, 1, json!(null)), 24);
    check(&zones(), &spread("rack", 1, json!(null)), 0);
    // A zone that a taint keeps away never gets any, and the others wait for it.
    let mut tainted = zones();
    let taint = json!([{ "key": "dedicated", "effect": "NoSchedule" }]);
    tainted[2].taints = serde_json::from_value(taint).expect("they are taints");
    check(&tainted, &spread("zone", 1, json!(null)), 2);
    check(&tainted, &spread(HOSTNAME, 1, json!(null)), 5);
}

#[test]
fn what_only_the_cluster_can_say_is_marked() {
    let claims = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    assert!(asks(json!({ "containers": [], "volumes": claims })).asks_more);
    let beside =
        json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "zone" }] } });
    assert!(asks(json!({ "containers": [], "affinity": beside })).asks_more);
    assert!(!asks(json!({ "containers": [], "affinity": anti("zone") })).asks_more);
}

#[test]
fn a_workload_taken_away_leaves_its_room() {
    let mut nodes = Nodes(vec![node(2, 4000, 1 << 30, 110)]);
    let one = asks(json!({ "containers": cpu("1500m") }));
    assert_eq!(nodes.put(&one, 3, Some(0)), 3);
    assert_eq!(fit(&Field::of(&nodes), &one, Some(0), 10).replicas, 1);
    assert_eq!(
        nodes.without(0, &one.requests),
        Nodes(vec![node(2, 4000, 1 << 30, 110)])
    );
}

#[test]
fn a_report_that_cannot_be_is_refused() {
    let good = Capacity {
        version: Capacity::VERSION,
        nodes: Nodes(vec![node(1, 1000, 1, 10)]),
        ..Capacity::default()
    };
    assert_eq!(good.check(), Ok(()));
    let changed = |change: &dyn Fn(&mut Capacity)| {
        let mut report = good.clone();
        change(&mut report);
        report.check().expect_err("it cannot be")
    };
    assert_eq!(changed(&|report| report.version = 9), InvalidCapacity::Version(9));
    let free = changed(&|report| report.nodes.0[0].free.set("cpu", 2000));
    assert!(matches!(free, InvalidCapacity::MoreThanAll { .. }), "{free}");
    let pods = changed(&|report| report.nodes.0[0].pods = BTreeMap::from([(3, 1)]));
    assert_eq!(pods, InvalidCapacity::Workload(3, 0));
    let nodes = changed(&|report| report.nodes.0[0].count = u64::MAX);
    assert_eq!(nodes, InvalidCapacity::TooManyNodes(u64::MAX));
    let many = 1_000_000_000_000_000_000;
    let room = changed(&|report| report.nodes.0[0].allocatable.set("pods", many));
    assert_eq!(room, InvalidCapacity::TooManyPods(1_000_000_000_000_000_000));
    let own = changed(&|report| report.nodes.0[0].pods = BTreeMap::from([(0, u64::MAX)]));
    assert_eq!(own, InvalidCapacity::TooManyPods(u64::MAX));
}

fn any_nodes() -> impl Strategy<Value = Vec<NodeGroup>> {
    let group = (1..4_u64, 0..5000_i64, 1..20_i64, 0..3_u8).prop_map(|(count, cpu, pods, zone)| {
        let zone = ["a", "b", "c"][usize::from(zone)];
        labelled(node(count, cpu, 1 << 30, pods), &[("zone", zone)])
    });
    prop::collection::vec(group, 0..8)
}

/// Nodes of several kinds and sizes, some of them with a taint, a device or pods on them.
fn any_nodes_of_kinds() -> impl Strategy<Value = Vec<NodeGroup>> {
    let size = (0..4000_i64, 0..6_i64, 0..12_i64);
    let kind = (0..3_usize, any::<bool>(), any::<bool>());
    let group = (1..5_u64, size, kind, -300..2000_i64, 0..3_u64);
    let group = group.prop_map(|(count, (cpu, memory, pods), (zone, tainted, device), used, own)| {
        let mut group = labelled(node(count, cpu, memory << 28, pods), &[("zone", ["a", "b", "c"][zone])]);
        if device {
            group.allocatable.set("example.com/device", 2);
            group.free.set("example.com/device", 2);
        }
        if tainted {
            let taint = json!([{ "key": "dedicated", "effect": "NoSchedule" }]);
            group.taints = serde_json::from_value(taint).expect("they are taints");
        }
        group.free.add(&Resources::from([("cpu", used.max(0))]), -1);
        if own > 0 {
            group.pods = BTreeMap::from([(0, own)]);
        }
        group
    });
    prop::collection::vec(group, 0..8)
}

/// Pods of one kind, how many are put, and their workload.
fn any_pods() -> impl Strategy<Value = (PodRequirements, u64, Option<usize>)> {
    let asks = (any_requirements(), 0..3_i64, 0..4_i64, any::<bool>());
    let requirements = asks.prop_map(|(mut requirements, memory, device, tolerates)| {
        requirements.requests.set("memory", memory << 27);
        if device == 0 {
            requirements.requests.set("example.com/device", 1);
        }
        if tolerates {
            let tolerations = json!([{ "operator": "Exists" }]);
            requirements.tolerations = serde_json::from_value(tolerations).expect("they are tolerations");
        }
        // Most pods are nothing to one another.
        if device > 1 {
            requirements.apart.clear();
            requirements.spread.clear();
        }
        requirements
    });
    (requirements, 0..8_u64, prop::option::of(0..2_usize))
}

fn any_requirements() -> impl Strategy<Value = PodRequirements> {
    (1..2000_i64, any::<bool>(), 0..3_u64).prop_map(|(cpu, apart, skew)| {
        let mut requirements = PodRequirements {
            requests: Resources::from([("cpu", cpu), ("pods", 1)]),
            ..PodRequirements::default()
        };
        if apart {
            requirements.apart.push(Apart {
                topology_key: HOSTNAME.to_owned(),
            });
        }
        if skew > 0 {
            requirements.spread.push(Spread {
                topology_key: "zone".to_owned(),
                max_skew: skew,
                min_domains: 1,
            });
        }
        requirements
    })
}

proptest! {
    #[test]
    fn the_order_of_nodes_does_not_matter(mut nodes in any_nodes(), requirements in any_requirements()) {
        let grouped = Nodes::grouped(nodes.clone());
        nodes.reverse();
        let reversed = Nodes::grouped(nodes);
        prop_assert_eq!(&grouped, &reversed);
        let most = 1_000;
        prop_assert_eq!(fit(&Field::of(&grouped), &requirements, None, most), fit(&Field::of(&reversed), &requirements, None, most));
    }

    #[test]
    fn what_fits_can_be_put_and_then_nothing_fits(nodes in any_nodes(), requirements in any_requirements()) {
        let nodes = Field::of(&Nodes::grouped(nodes));
        let answer = fit(&nodes, &requirements, Some(0), 10_000).replicas;
        for workload in [Some(0), None] {
            let mut nodes = nodes.clone();
            prop_assert_eq!(nodes.put(&requirements, 10_000, workload), answer);
            // Where it is not marked, nobody knows afterwards which pods keep apart.
            if workload.is_some() || (requirements.apart.is_empty() && requirements.spread.is_empty()) {
                prop_assert_eq!(fit(&nodes, &requirements, workload, 10_000).replicas, 0);
            }
        }
    }

    #[test]
    fn one_node_more_never_makes_less_fit(nodes in any_nodes(), cpu in 1..2000_i64, more in 0..5000_i64) {
        let requirements = PodRequirements {
            requests: Resources::from([("cpu", cpu), ("pods", 1)]),
            ..PodRequirements::default()
        };
        let before = fit(&Field::of(&Nodes::grouped(nodes.clone())), &requirements, None, 10_000).replicas;
        let after = Nodes::grouped(nodes.into_iter().chain([node(1, more, 1 << 30, 10)]));
        prop_assert!(fit(&Field::of(&after), &requirements, None, 10_000).replicas >= before);
    }
    #[test]
    fn haste_changes_no_answer(nodes in any_nodes_of_kinds(), pods in prop::collection::vec(any_pods(), 1..12)) {
        let mut slow = Nodes::grouped(nodes);
        let mut quick = Field::of(&slow);
        for (requirements, count, workload) in pods {
            let without = workload.map(|workload| (slow.without(workload, &requirements.requests), workload));
            if let Some((nodes, workload)) = without {
                let field = quick.without(workload, &requirements.requests);
                prop_assert_eq!(
                    fit(&field, &requirements, Some(workload), 50),
                    slowly::fit(&nodes, &requirements, Some(workload), 50)
                );
            }
            prop_assert_eq!(
                fit(&quick, &requirements, workload, 50),
                slowly::fit(&slow, &requirements, workload, 50)
            );
            prop_assert_eq!(
                quick.put(&requirements, count, workload),
                slowly::put(&mut slow, &requirements, count, workload)
            );
            prop_assert_eq!(&quick.nodes(), &slow);
        }
    }
}
