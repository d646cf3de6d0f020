//! Which clusters get a unit, and how many replicas. In: fleets, reports and placements made here. Out: nothing. What a
//! share of one object is has its tests beside it.

mod cases;
mod compatible;
mod limits;
mod predictors;
mod room;
mod sequences;
mod silence;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::by_object::ByObject;
use crate::digest::Digest;
use crate::finding::{Finding, Severity};
use crate::fixture::{base, cluster, cluster_name, encrypted, fleet, revision, subscriber, subscription};
use crate::fleet::{Base, Fleet};
use crate::model::{Cluster, Dividing, Scheduling, Subscriber, Taint, TaintEffect, Toleration};
use crate::name::{ClusterName, ObjectKey, VariantName};
use crate::plan::Reports;
use crate::published::{Placement, UnitPlacement};

const STATIC: Scheduling = Scheduling::Dividing(Dividing::Static);

fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

fn tainted(name: &str, pairs: &[(&str, &str)], effect: TaintEffect) -> Cluster {
    let taint = Taint {
        key: "drain".to_owned(),
        value: String::new(),
        effect,
    };
    Cluster {
        taints: vec![taint],
        ..cluster(name, pairs)
    }
}

/// A published placement on these clusters with these replicas of the Deployment.
fn placed(clusters: &[(&str, u64)]) -> UnitPlacement {
    let key = ObjectKey::new("apps/v1", "Deployment", "", "web");
    let entry = |(name, replicas): &(&str, u64)| {
        let placement = Placement {
            variant: VariantName::default_variant(),
            replicas: ByObject::from([(key.clone(), *replicas)]),
            drift: Default::default(),
            revision: revision(),
            reasons: Default::default(),
            inputs: Digest::of_bytes(b""),
            capacity: None,
            leaves_at: None,
        };
        (cluster_name(name), placement)
    };
    UnitPlacement {
        variants: BTreeMap::new(),
        clusters: clusters.iter().map(entry).collect(),
        ..UnitPlacement::default()
    }
}

type Outcome = (BTreeMap<ClusterName, Assignment>, Vec<Finding>);

fn run(fleet: &Fleet, previous: Option<UnitPlacement>) -> Outcome {
    let key = fleet.units.keys().next().expect("the fleet has a unit").clone();
    let previous = previous.into_iter().map(|unit| (key.clone(), unit)).collect();
    let (mut placements, findings) = schedule(fleet, &Reports::default(), &previous, 0);
    (placements.remove(&key).unwrap_or_default().assignments, findings)
}

fn names(outcome: &Outcome) -> Vec<&str> {
    outcome.0.keys().map(ClusterName::as_str).collect()
}

fn replicas(outcome: &Outcome) -> Vec<u64> {
    let sum = |assignment: &Assignment| assignment.replicas.values().sum();
    outcome.0.values().map(sum).collect()
}

fn weighted() -> Vec<Subscriber> {
    vec![
        subscriber(&[("area", "1")], Some(1)),
        subscriber(&[("area", "2")], Some(2)),
    ]
}

fn two_areas() -> [Cluster; 2] {
    [cluster("a", &[("area", "1")]), cluster("b", &[("area", "2")])]
}

#[track_caller]
fn check_division(spec: Value, subscribers: Vec<Subscriber>, expected: &[u64]) {
    let fleet = fleet(two_areas(), subscription(STATIC, subscribers), base([deployment(spec)]));
    let outcome = run(&fleet, None);
    assert_eq!(replicas(&outcome), expected, "findings: {:?}", outcome.1);
}

#[test]
fn a_changed_number_of_replicas_is_divided_anew() {
    check_division(json!({"replicas": 6}), weighted(), &[2, 4]);
    check_division(json!({"replicas": 9}), weighted(), &[3, 6]);
    check_division(json!({"replicas": 0}), weighted(), &[0, 0]);
    check_division(json!({}), weighted(), &[0, 1]);
}

#[test]
fn a_cluster_weighs_what_all_its_subscribers_weigh() {
    let all = vec![subscriber(&[], Some(1)), subscriber(&[("area", "2")], Some(2))];
    check_division(json!({"replicas": 8}), all, &[2, 6]);
}

#[test]
fn a_cluster_of_weight_0_stays_bound_with_no_replicas() {
    let zero = vec![
        subscriber(&[("area", "1")], Some(0)),
        subscriber(&[("area", "2")], Some(3)),
    ];
    check_division(json!({"replicas": 5}), zero, &[0, 5]);
}

#[test]
fn no_weights_at_all_mean_equal_weights() {
    check_division(json!({"replicas": 100}), vec![subscriber(&[], None)], &[50, 50]);
}

#[test]
fn weights_that_are_all_0_hold_the_unit_and_keep_its_placement() {
    let zero = subscription(STATIC, vec![subscriber(&[], Some(0))]);
    let fleet = fleet(two_areas(), zero, base([deployment(json!({"replicas": 4}))]));
    let outcome = run(&fleet, Some(placed(&[("a", 3)])));
    assert_eq!((names(&outcome), replicas(&outcome)), (vec!["a"], vec![3]));
    assert_eq!(outcome.1[0].reason, "NoWeight");
    assert_eq!(outcome.1[0].severity, Severity::Error);
    assert!(outcome.1[0].unit.is_some(), "an Error of scheduling names its unit");
}

#[test]
fn replicas_that_cannot_be_read_hold_the_unit() {
    for bad in [json!("three"), json!(-1), json!(1.5), json!(3_000_000_000_u64)] {
        let unit = subscription(STATIC, weighted());
        let fleet = fleet(two_areas(), unit, base([deployment(json!({"replicas": bad}))]));
        let outcome = run(&fleet, None);
        assert_eq!(outcome.1[0].reason, "InvalidReplicas", "{bad}");
        assert!(outcome.0.is_empty());
    }
}

#[test]
fn an_encrypted_workload_is_not_divided() {
    let object = encrypted(deployment(json!({})), "sops text");
    let unit = subscription(STATIC, weighted());
    let fleet = fleet(two_areas(), unit, Base::new(vec![Arc::new(object)]));
    assert_eq!(run(&fleet, None).1[0].reason, "EncryptedReplicas");
}

#[test]
fn replication_gives_every_match_the_whole_and_says_why() {
    let either = vec![
        subscriber(&[("area", "1")], None),
        subscriber(&[("area", "2")], None),
        Subscriber {
            cluster_affinity: None,
            weight: None,
            replicas: Default::default(),
            sub_group: None,
        },
    ];
    let clusters = [two_areas().as_slice(), &[cluster("c", &[])]].concat();
    let fleet = fleet(clusters, subscription(Scheduling::Replication, either), Base::empty());
    let outcome = run(&fleet, None);
    assert_eq!(
        names(&outcome),
        ["a", "b"],
        "a subscriber without affinity matches nothing"
    );
    let reasons = &outcome.0[&cluster_name("b")].reasons;
    assert_eq!(**reasons, ["matches subscriber 2 (area=2)"]);
    assert!(outcome.0.values().all(|assignment| assignment.replicas.is_empty()));
}

#[test]
fn dividing_says_why_this_many() {
    let unit = subscription(STATIC, weighted());
    let fleet = fleet(two_areas(), unit, base([deployment(json!({"replicas": 6}))]));
    let outcome = run(&fleet, None);
    let reasons = &outcome.0[&cluster_name("b")].reasons;
    assert_eq!(
        **reasons,
        [
            "matches subscriber 2 (area=2)",
            "replicas of Deployment web: 4 of 6, weight 2 of 3"
        ]
    );
}

#[test]
fn a_narrowed_selector_leaves_the_others_their_share() {
    let unit = subscription(STATIC, vec![subscriber(&[("area", "1")], None)]);
    let fleet = fleet(two_areas(), unit, base([deployment(json!({"replicas": 4}))]));
    let outcome = run(&fleet, Some(placed(&[("a", 3), ("b", 3)])));
    assert_eq!((names(&outcome), replicas(&outcome)), (vec!["a"], vec![4]));
}

#[track_caller]
fn check_taint(effect: TaintEffect, previous: &[(&str, u64)], expected: &[&str]) {
    let clusters = [cluster("a", &[]), tainted("b", &[], effect)];
    let unit = subscription(Scheduling::Replication, vec![subscriber(&[], None)]);
    let fleet = fleet(clusters, unit, Base::empty());
    let outcome = run(&fleet, Some(placed(previous)));
    assert_eq!(names(&outcome), expected, "{effect:?} with {previous:?} before");
}

#[test]
fn taints_keep_out_or_evict() {
    check_taint(TaintEffect::NoSchedule, &[("a", 0)], &["a"]);
    check_taint(TaintEffect::NoSchedule, &[("b", 0)], &["a", "b"]);
    check_taint(TaintEffect::NoExecute, &[("b", 0)], &["a"]);
    check_taint(TaintEffect::PreferNoSchedule, &[], &["a", "b"]);
}

#[test]
fn a_placement_that_stays_in_spite_of_a_taint_says_so() {
    let mut unit = subscription(Scheduling::Replication, vec![subscriber(&[], None)]);
    let clusters = [tainted("a", &[], TaintEffect::NoSchedule)];
    let outcome = run(
        &fleet(clusters.clone(), unit.clone(), Base::empty()),
        Some(placed(&[("a", 0)])),
    );
    let reasons = &outcome.0[&cluster_name("a")].reasons;
    assert_eq!(
        reasons[1],
        "stays in spite of taint drain:NoSchedule, which only keeps new placements out"
    );

    unit.tolerations = vec![Toleration {
        key: "drain".to_owned(),
        operator: Some("Exists".to_owned()),
        value: String::new(),
        effect: None,
        toleration_seconds: None,
    }];
    let outcome = run(&fleet(clusters, unit, Base::empty()), None);
    assert_eq!(names(&outcome), ["a"], "a tolerated taint keeps nothing out");
}

#[test]
fn a_fleet_without_a_cluster_yet_has_nothing_wrong_with_its_subscriptions() {
    let unit = |subscribers| subscription(Scheduling::Replication, subscribers);
    let any = || vec![subscriber(&[], None)];
    let begun = run(&fleet([], unit(any()), Base::empty()), None);
    assert_eq!(begun, (BTreeMap::new(), Vec::new()));
    let lost = run(&fleet([], unit(any()), Base::empty()), Some(placed(&[("gone", 2)])));
    assert_eq!(lost.1.len(), 1, "where clusters were, their absence is said: {lost:?}");
    let passed = run(&fleet(two_areas(), unit(Vec::new()), Base::empty()), None);
    assert_eq!(passed.1.len(), 1, "clusters are there and none is chosen: {passed:?}");
}

#[test]
fn no_feasible_cluster_keeps_the_last_placement_and_says_so() {
    let unit = subscription(STATIC, vec![subscriber(&[], None)]);
    let objects = [
        deployment(json!({"replicas": 9})),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"replicas": 2}}),
    ];
    let clusters = ["a", "b"].map(|name| tainted(name, &[], TaintEffect::NoExecute));
    let outcome = run(
        &fleet(clusters, unit, base(objects)),
        Some(placed(&[("a", 3), ("b", 1), ("gone", 2)])),
    );
    assert_eq!(names(&outcome), ["a", "b"], "a cluster whose file is gone drops out");
    assert_eq!(
        replicas(&outcome),
        [4, 2],
        "what was divided stays, what is new is shared out"
    );
    let finding = &outcome.1[0];
    assert_eq!(
        (finding.reason.as_str(), finding.severity),
        ("NoFeasibleCluster", Severity::Warning)
    );
    assert_eq!(
        finding.message,
        "cluster a has taint drain:NoExecute, and 1 more that match are tainted too: the last placement stays"
    );
}

#[test]
fn no_feasible_cluster_on_a_first_run_places_nothing() {
    let unit = subscription(Scheduling::Replication, vec![subscriber(&[("area", "9")], None)]);
    let outcome = run(&fleet(two_areas(), unit, Base::empty()), None);
    assert!(outcome.0.is_empty());
    assert_eq!(
        outcome.1[0].message,
        "no subscriber matches a cluster: nothing is placed"
    );
}

#[track_caller]
fn check_unmatched(asked: &[(&str, &str)], previous: Option<UnitPlacement>, severity: Severity, said: &str) {
    let unit = subscription(Scheduling::Replication, vec![subscriber(asked, None)]);
    let (_, findings) = run(&fleet(two_areas(), unit, Base::empty()), previous);
    let [finding] = findings.as_slice() else {
        panic!("one finding is expected: {findings:?}");
    };
    let shown = format!("{} | {}", finding.message, finding.hint);
    assert_eq!((finding.severity, shown.as_str()), (severity, said));
}

#[test]
fn subscribers_that_match_nothing_are_told_what_clusters_have() {
    check_unmatched(
        &[("area", "9")],
        Some(placed(&[("a", 1)])),
        Severity::Error,
        "no subscriber matches a cluster: the last placement stays | no cluster has area=9; clusters have area=1, 2; \
         to take the unit away from its clusters, delete the Subscription",
    );
    check_unmatched(
        &[("aera", "1")],
        None,
        Severity::Warning,
        "no subscriber matches a cluster: nothing is placed | no cluster has the label aera; did you mean area?; check \
         spec.subscribers against the clusters' labels",
    );
    // The one cluster that had it is gone, so that no placement is left.
    check_unmatched(
        &[("area", "9")],
        Some(placed(&[("gone", 1)])),
        Severity::Warning,
        "no subscriber matches a cluster: nothing is placed | no cluster has area=9; clusters have area=1, 2; check \
         spec.subscribers against the clusters' labels",
    );
}

#[test]
fn a_blocked_unit_is_not_scheduled() {
    let unit = subscription(Scheduling::Replication, vec![subscriber(&[], None)]);
    let mut fleet = fleet(two_areas(), unit, Base::empty());
    for unit in fleet.units.values_mut() {
        unit.blocked
            .push(Finding::error("FeedMatchesNothing", "feed matches nothing"));
    }
    assert!(run(&fleet, None).0.is_empty());
}

#[test]
fn inputs_change_with_what_was_looked_at_and_with_nothing_else() {
    let unit = || subscription(STATIC, weighted());
    let inputs = |clusters: Vec<Cluster>, replicas: u64| {
        let fleet = fleet(clusters, unit(), base([deployment(json!({"replicas": replicas}))]));
        run(&fleet, None)
            .0
            .into_values()
            .map(|assignment| assignment.inputs)
            .collect::<Vec<_>>()
    };
    let plain = inputs(two_areas().to_vec(), 6);
    assert_eq!(
        plain,
        inputs(two_areas().into_iter().rev().collect(), 6),
        "order is not an input"
    );
    assert_ne!(plain, inputs(two_areas().to_vec(), 9));
    let labelled = vec![
        cluster("a", &[("area", "1")]),
        cluster("b", &[("area", "2"), ("x", "y")]),
    ];
    let labelled = inputs(labelled, 6);
    assert_eq!(plain[0], labelled[0], "another cluster's label is not an input");
    assert_ne!(plain[1], labelled[1]);
}
