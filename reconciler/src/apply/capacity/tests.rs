use serde_json::json;

use super::super::wanted::Wanted;
use super::*;

fn told_node(name: &str, cpu: &str) -> (String, Node) {
    let object = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name, "zone": "north" } },
        "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "10" } },
    });
    (name.to_owned(), node(&object).expect("it can be read"))
}

fn told_pod(name: &str, node: Option<&str>, cpu: &str, app: &str) -> (String, Pod) {
    let object = json!({
        "metadata": { "name": name, "namespace": "shop", "labels": { "app": app } },
        "spec": { "nodeName": node, "containers": [{ "resources": { "requests": { "cpu": cpu } } }] },
        "status": { "phase": "Running" },
    });
    (name.to_owned(), pod(&object).expect("it takes room"))
}

fn web(replicas: u64) -> AllWanted {
    let template = json!({ "spec": { "containers": [{ "resources": { "requests": { "cpu": "1" } } }] } });
    AllWanted {
        sequence: Some(7),
        workloads: vec![Wanted {
            unit: "shop/web".parse().expect("it is a valid unit"),
            object: "apps/Deployment/shop/web".parse().expect("it is a valid key"),
            selector: serde_json::from_value(json!({ "matchLabels": { "app": "web" } })).expect("it is a selector"),
            replicas,
            requirements: PodRequirements::read(&template).expect("it can be read").into(),
        }],
    }
}

fn survey(nodes: &[(String, Node)], pods: &[(String, Pod)]) -> Survey {
    let mut survey = Survey::default();
    survey.take(Told::Nodes(nodes.iter().cloned().collect()));
    survey.take(Told::Pods(pods.iter().cloned().collect()));
    survey
}

#[test]
fn nothing_is_said_before_both_lists_are_there() {
    let mut survey = Survey::default();
    assert_eq!(survey.capacity(&web(1)), None);
    survey.take(Told::Nodes(BTreeMap::new()));
    assert_eq!(
        survey.capacity(&web(1)),
        None,
        "pods that were not listed are not absent"
    );
}

#[test]
fn nodes_that_are_alike_are_told_together() {
    let nodes = [told_node("a", "4"), told_node("b", "4"), told_node("c", "8")];
    let capacity = survey(&nodes, &[])
        .capacity(&AllWanted::default())
        .expect("both lists are there");
    let counts: Vec<u64> = capacity.nodes.0.iter().map(|group| group.count).collect();
    assert_eq!(counts, [2, 1]);
    assert_eq!(capacity.check(), Ok(()));
}

#[test]
fn what_is_promised_and_not_there_yet_is_told_apart() {
    let nodes = [told_node("a", "4")];
    let pods = [
        told_pod("one", Some("a"), "1", "web"),
        told_pod("other", Some("a"), "500m", "db"),
    ];
    let capacity = survey(&nodes, &pods).capacity(&web(3)).expect("both lists are there");
    assert_eq!(capacity.nodes.free().of("cpu"), 500, "net");
    assert_eq!(capacity.promised.of("cpu"), 2_000);
    assert_eq!((capacity.sequence, capacity.workloads[0].scheduled), (Some(7), 1));
    assert_eq!(capacity.nodes.0[0].pods, BTreeMap::from([(0, 3)]));
    // Its pods come, and nothing else changes.
    let more = [
        pods.as_slice(),
        &[
            told_pod("two", Some("a"), "1", "web"),
            told_pod("three", Some("a"), "1", "web"),
        ],
    ];
    let later = survey(&nodes, &more.concat())
        .capacity(&web(3))
        .expect("both lists are there");
    assert_eq!(later.nodes, capacity.nodes);
    assert_eq!(later.promised.of("cpu"), 0);
}

#[test]
fn a_surge_feeds_back_no_longer_than_it_lasts() {
    let nodes = [told_node("a", "4")];
    let surge: Vec<_> = ["1", "2", "3", "4"]
        .iter()
        .map(|name| told_pod(name, Some("a"), "1", "web"))
        .collect();
    let during = survey(&nodes, &surge).capacity(&web(3)).expect("both lists are there");
    assert_eq!(during.nodes.free().of("cpu"), 0);
    assert_eq!(
        during
            .nodes
            .without(0, &web(3).workloads[0].requirements.requests)
            .free()
            .of("cpu"),
        4_000
    );
}

#[test]
fn pods_that_wait_for_a_node_are_counted_and_take_what_there_is() {
    let nodes = [told_node("a", "2")];
    let mut waiting = told_pod("one", None, "1", "db");
    waiting.1.unschedulable = true;
    let own = {
        let mut own = told_pod("two", None, "1", "web");
        own.1.unschedulable = true;
        own
    };
    let capacity = survey(&nodes, &[waiting, own])
        .capacity(&web(1))
        .expect("both lists are there");
    assert_eq!(capacity.nodes.free().of("cpu"), 0);
    assert_eq!(
        (capacity.workloads[0].scheduled, capacity.workloads[0].unschedulable),
        (0, 1)
    );
}

#[test]
fn ended_pods_take_no_room_and_unreadable_ones_take_their_node() {
    let ended = json!({ "metadata": { "name": "x" }, "spec": { "nodeName": "a" }, "status": { "phase": "Succeeded" } });
    assert_eq!(pod(&ended), None);
    let object = json!({
        "metadata": { "name": "x", "namespace": "shop" },
        "spec": { "nodeName": "a", "containers": [{ "resources": { "requests": { "cpu": "many" } } }] },
    });
    let unreadable = ("x".to_owned(), pod(&object).expect("it takes room"));
    let nodes = [told_node("a", "4"), told_node("b", "4")];
    let capacity = survey(&nodes, &[unreadable])
        .capacity(&AllWanted::default())
        .expect("both lists are there");
    assert_eq!(capacity.nodes.free().of("cpu"), 4_000);
}

#[test]
fn a_cordoned_node_is_tainted() {
    let object = json!({
        "metadata": { "name": "a" }, "spec": { "unschedulable": true },
        "status": { "allocatable": { "cpu": "4", "pods": "10" } },
    });
    let group = node(&object).and_then(|node| node.group).expect("it can be read");
    assert_eq!(group.taints[0].key, "node.kubernetes.io/unschedulable");
}

#[test]
fn nodes_are_counted_by_how_they_fare_and_what_they_have_in_all() {
    let told = |name: &str, conditions: serde_json::Value, allocatable: &str| {
        let object = json!({
            "metadata": { "name": name },
            "status": {
                "conditions": conditions,
                "capacity": { "cpu": "4", "memory": "8Gi" },
                "allocatable": { "cpu": allocatable },
            },
        });
        (name.to_owned(), node(&object).expect("each is counted"))
    };
    let ready =
        |status: &str| json!([{ "type": "MemoryPressure", "status": "False" }, { "type": "Ready", "status": status }]);
    assert_eq!(Survey::default().node_facts(), None, "what was not listed is not none");
    let nodes = [
        told("a", ready("True"), "3"),
        told("b", ready("True"), "3"),
        told("c", ready("False"), "3"),
        told("d", ready("Unknown"), "3"),
        told("e", json!([]), "what nobody can read"),
    ];
    let survey = survey(&nodes, &[]);
    let facts = survey.node_facts().expect("nodes are listed");
    let statistics = serde_json::to_value(facts.statistics).expect("it is written");
    let expected = json!({ "readyNodes": 2, "notReadyNodes": 1, "unknownNodes": 1, "lostNodes": 1 });
    assert_eq!(statistics, expected);
    let capacity = facts.capacity.quantities();
    assert_eq!(
        (capacity["cpu"].as_str(), facts.capacity.of("memory")),
        ("20", 5 * (8 << 30))
    );
    let room = survey.capacity(&AllWanted::default()).expect("both lists are there");
    assert_eq!(
        room.nodes.count(),
        4,
        "on one that cannot be read nothing is known to fit"
    );
}
