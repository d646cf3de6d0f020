//! What a Subscription, a cluster and a Fleet say of scheduling.

use super::*;
use crate::capacity::Resources;
use crate::model::{
    Bounds, Choice, Dividing, Failover, PlacementApproval, Preference, Scheduling, SchedulingPolicy, SpreadConstraint,
    Strategy, SubGroup, Subscription, Unsatisfiable,
};
use crate::selector::LabelSelector;

#[track_caller]
fn spec(api_version: &str, fields: &str, expected: &[&str]) -> Subscription {
    let text = format!(
        "apiVersion: {api_version}
kind: Subscription
metadata: {{name: app, namespace: team}}
spec:
  feeds: [{{apiVersion: v1, kind: ConfigMap, name: x}}]
  {fields}
"
    );
    let (fleet, findings) = loaded(&[("s.yaml", &text), ("x.yaml", &config_map("x"))]);
    assert_eq!(shown(&findings), expected, "{fields}: {findings:#?}");
    unit(&fleet).subscription.as_ref().clone()
}

const OURS: &str = "fleet.flotilla.dev/v1alpha1";
const THEIRS: &str = "apps.clusternet.io/v1alpha1";
const TO: &str = "subscribers: [{clusterAffinity: {}}]";

fn labels(key: &str, value: &str) -> LabelSelector {
    LabelSelector {
        match_labels: [(key.to_owned(), value.to_owned())].into(),
        ..LabelSelector::default()
    }
}

#[test]
fn clusternets_dynamic_fields_say_what_ours_say() {
    let theirs = "schedulingStrategy: Dividing
  dividingScheduling:
    type: Dynamic
    dynamicDividing:
      strategy: Binpack
      minClusters: 2
      maxClusters: 3
      preferredClusters: [{weight: 10, preference: {matchLabels: {tier: gold}}}]
      topologySpreadConstraints: [{topologyKey: region, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}]";
    let ours = "schedulingStrategy: Dividing
  dividingScheduling: {type: Dynamic, dynamicDividing: {strategy: Binpack}}
  clusters:
    min: 2
    max: 3
    preferred: [{weight: 10, preference: {matchLabels: {tier: gold}}}]
    spread: [{topologyKey: region, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, minGroups: 2}]";
    let theirs = spec(THEIRS, &format!("{TO}\n  {theirs}"), &[]);
    let ours = spec(OURS, &format!("{TO}\n  {ours}"), &[]);
    assert_eq!(
        theirs.scheduling,
        Scheduling::Dividing(Dividing::Dynamic(Strategy::Binpack))
    );
    assert_eq!((theirs.scheduling, &theirs.placing), (ours.scheduling, &ours.placing));
    let expected = Choice {
        min: Some(2),
        max: Some(3),
        preferred: vec![Preference {
            weight: 10,
            preference: labels("tier", "gold"),
        }],
        spread: vec![SpreadConstraint {
            topology_key: "region".to_owned(),
            min_groups: Some(2),
            max_groups: None,
            max_skew: Some(1),
            when_unsatisfiable: Unsatisfiable::ScheduleAnyway,
        }],
    };
    assert_eq!(ours.placing.clusters, expected);
}

#[test]
fn a_choice_that_is_said_twice_is_refused() {
    let twice = "schedulingStrategy: Dividing
  dividingScheduling: {type: Dynamic, dynamicDividing: {strategy: Spread, minClusters: 1}}
  clusters: {max: 2}";
    let expected = ["s.yaml:8 Error FieldInvalid spec.dividingScheduling.dynamicDividing"];
    spec(OURS, &format!("{TO}\n  {twice}"), &expected);
}

#[test]
fn bounds_and_subgroups_belong_to_a_subscriber() {
    let fields = "schedulingBySubGroup: true
  schedulingStrategy: Dividing
  priority: 7
  preemptionPolicy: PreemptLowerPriority
  subscribers: [{clusterAffinity: {}, replicas: {min: 1, max: 4}, subGroupStrategy: {minClusters: 1, maxClusters: 2}}]";
    let found = spec(OURS, fields, &["s.yaml:9 Warning NoEffect spec.preemptionPolicy"]);
    let subscriber = &found.subscribers[0];
    let bounds = Bounds {
        min: Some(1),
        max: Some(4),
    };
    let group = SubGroup {
        min_clusters: 1,
        max_clusters: Some(2),
    };
    assert_eq!((subscriber.replicas, subscriber.sub_group), (bounds, Some(group)));
    let placing = &found.placing;
    assert!(placing.by_sub_group && placing.preempts);
    assert_eq!((placing.policy, placing.priority), (SchedulingPolicy::Flotilla, 7));
}

#[test]
fn what_clusternets_arithmetic_cannot_keep_is_said() {
    let fields = "schedulingStrategy: Dividing
  schedulingPolicy: clusternet
  dividingScheduling: {type: Dynamic}
  clusters: {spread: [{topologyKey: zone, maxSkew: 1}]}
  subscribers: [{clusterAffinity: {}, replicas: {max: 4}}]";
    let expected = [
        "s.yaml:9 Warning NoEffect spec.clusters.spread",
        "s.yaml:10 Error NotSupported spec.subscribers[0].replicas",
    ];
    let found = spec(OURS, fields, &expected);
    assert_eq!(found.placing.policy, SchedulingPolicy::Clusternet);
    let whole = "schedulingPolicy: clusternet\n  subscribers: [{clusterAffinity: {}, replicas: {max: 4}}]";
    spec(OURS, whole, &["s.yaml:7 Warning NoEffect spec.subscribers[0].replicas"]);
}

#[test]
fn only_what_is_divided_by_room_takes_the_room_of_others() {
    let policy = "preemptionPolicy: PreemptLowerPriority";
    let none = ["s.yaml:7 Warning NoEffect spec.preemptionPolicy"];
    assert!(spec(OURS, &format!("{TO}\n  {policy}"), &none).placing.preempts);
    let dynamic = "schedulingStrategy: Dividing\n  dividingScheduling: {type: Dynamic}";
    assert!(
        spec(OURS, &format!("{TO}\n  {policy}\n  {dynamic}"), &[])
            .placing
            .preempts
    );
}

#[test]
fn what_clusternet_fills_in_for_everybody_is_nobodys_wish() {
    let found = spec(THEIRS, &format!("{TO}\n  preemptionPolicy: PreemptLowerPriority"), &[]);
    assert!(!found.placing.preempts);
}

#[test]
fn contradictions_and_slips_name_their_field() {
    for (fields, expected) in [
        ("clusters: {min: 3, max: 2}", "7 Error FieldInvalid spec.clusters.min"),
        ("clusters: {max: 0}", "7 Error FieldInvalid spec.clusters.max"),
        ("clusters: {min: -1}", "7 Error FieldInvalid spec.clusters.min"),
        ("clusters: {min: '2'}", "7 Error FieldType spec.clusters.min"),
        (
            "clusters: {spread: [{maxSkew: 1}]}",
            "7 Error FieldMissing spec.clusters.spread[0].topologyKey",
        ),
        (
            "clusters: {preferred: [{weight: 200, preference: {}}]}",
            "7 Error FieldInvalid spec.clusters.preferred[0].weight",
        ),
        (
            "replicaPaths: [{apiVersion: a/v1, kind: A, replicas: spec.size}]",
            "7 Error FieldInvalid spec.replicaPaths[0].replicas",
        ),
        (
            "schedulingPolicy: karmada",
            "7 Error FieldInvalid spec.schedulingPolicy",
        ),
        (
            "schedulingBySubGroup: true",
            "6 Error FieldMissing spec.subscribers[0].subGroupStrategy",
        ),
    ] {
        spec(OURS, &format!("{TO}\n  {fields}"), &[&format!("s.yaml:{expected}")]);
    }
    let bounds = "subscribers: [{clusterAffinity: {}, replicas: {min: 5, max: 4}}]\n  schedulingStrategy: Dividing";
    spec(
        OURS,
        bounds,
        &["s.yaml:6 Error FieldInvalid spec.subscribers[0].replicas.min"],
    );
    let none = "schedulingBySubGroup: true\n  subscribers: [{clusterAffinity: {}, subGroupStrategy: {minClusters: 0}}]";
    spec(
        OURS,
        none,
        &["s.yaml:7 Error FieldInvalid spec.subscribers[0].subGroupStrategy.minClusters"],
    );
}

#[test]
fn an_elastic_cluster_says_how_far_it_grows() {
    let cluster = |fields: &str| {
        let text = format!("apiVersion: {OURS}\nkind: ManagedCluster\nmetadata: {{name: a}}\nspec: {{{fields}}}\n");
        let (fleet, findings) = loaded(&[("a.yaml", &text)]);
        (
            fleet
                .clusters
                .values()
                .next()
                .and_then(|cluster| cluster.elastic.clone()),
            shown(&findings),
        )
    };
    let (elastic, findings) = cluster("capacity: elastic, maxCapacity: {cpu: 400, memory: 1Ki}");
    assert_eq!(findings, [""; 0]);
    assert_eq!(elastic, Some(Resources::from([("cpu", 400_000), ("memory", 1_024)])));
    assert_eq!(
        cluster("capacity: elastic").1,
        ["a.yaml:4 Error FieldMissing spec.maxCapacity"]
    );
    let wrong = cluster("capacity: elastic, maxCapacity: {cpu: lots}").1;
    assert_eq!(wrong, ["a.yaml:4 Error FieldInvalid spec.maxCapacity.cpu"]);
}

#[test]
fn a_fleet_says_what_may_move_placements() {
    let fleet = |fields: &str| {
        let text =
            format!("apiVersion: {OURS}\nkind: Fleet\nmetadata: {{name: fleet}}\nspec:\n  scheduling: {{{fields}}}\n");
        let (fleet, findings) = loaded(&[("fleet.yaml", &text)]);
        (fleet.spec.scheduling, shown(&findings))
    };
    let (found, findings) = fleet(
        "placementApproval: withinBounds, preemption: lowerPriority, failover: {after: 5m, budget: {clusters: 1, per: 1h}}",
    );
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(found.placement_approval, PlacementApproval::WithinBounds);
    assert!(found.preemption);
    let failover = Failover {
        after_seconds: 300,
        clusters_max: 1,
        per_seconds: 3_600,
        return_seconds: 600,
    };
    assert_eq!(found.failover, Some(failover));
    let (found, findings) = fleet("moveTimeout: 30m");
    assert_eq!((found.move_timeout_seconds, findings), (Some(1_800), Vec::new()));
    let (found, findings) = fleet("moveTimeout: soon");
    assert_eq!(
        found.move_timeout_seconds, None,
        "they wait for ever, which breaks nothing"
    );
    assert_eq!(
        findings,
        ["fleet.yaml:5 Error FieldInvalid spec.scheduling.moveTimeout"]
    );
    let (_, findings) = fleet("failover: {after: 15, budget: {clusters: 1, per: 1h}}");
    assert_eq!(
        findings,
        ["fleet.yaml:5 Error FieldType spec.scheduling.failover.after"]
    );
    let (found, findings) = fleet("failover: {after: 5m}");
    assert_eq!(found.failover, None, "without a budget nothing is moved");
    assert_eq!(
        findings,
        ["fleet.yaml:5 Error FieldMissing spec.scheduling.failover.budget"]
    );
}

#[track_caller]
fn predictor_of(fields: &str, expected: &[&str]) -> Option<(String, u64)> {
    let text = format!("apiVersion: {THEIRS_CLUSTER}\nkind: ManagedCluster\nmetadata: {{name: a}}\n{fields}\n");
    let (fleet, findings) = loaded(&[("a.yaml", &text)]);
    assert_eq!(shown(&findings), expected, "{fields}: {findings:#?}");
    let cluster = fleet.clusters.values().next()?;
    let predictor = cluster.predictor.clone()?;
    Some((predictor.url, predictor.timeout_seconds))
}

const THEIRS_CLUSTER: &str = "clusters.clusternet.io/v1beta1";

#[test]
fn a_cluster_says_who_predicts_its_room() {
    let named = predictor_of("spec: {predictor: {url: 'https://p.example.com/a/', timeout: 5s}}", &[]);
    assert_eq!(named, Some(("https://p.example.com/a".to_owned(), 5)));
    let default = predictor_of("spec: {predictor: {url: 'http://10.0.0.1:8080'}}", &[]);
    assert_eq!(default, Some(("http://10.0.0.1:8080".to_owned(), 20)));
    predictor_of(
        "spec: {predictor: {}}",
        &["a.yaml:4 Error FieldMissing spec.predictor.url"],
    );
    let cloud = "spec: {predictor: {url: 'http://169.254.169.254/latest'}}";
    predictor_of(cloud, &["a.yaml:4 Error FieldInvalid spec.predictor.url"]);
    let long = "spec: {predictor: {url: 'https://p.example.com', timeout: 2m}}";
    predictor_of(long, &["a.yaml:4 Error FieldInvalid spec.predictor.timeout"]);
}

#[test]
fn what_clusternet_says_of_a_predictor_is_taken_where_the_hub_can_reach_it() {
    const STATUS: &str = "a.yaml:1 Info ServerFields";
    let direct = "status: {predictorEnabled: true, predictorDirectAccess: true, predictorAddress: '10.0.0.1:8080'}";
    let told = "a.yaml:4 Info Predictor status.predictorAddress";
    assert_eq!(
        predictor_of(direct, &[STATUS, told]),
        Some(("http://10.0.0.1:8080".to_owned(), 20))
    );
    let tunnelled = "status: {predictorEnabled: true, predictorAddress: '10.0.0.1:8080'}";
    let told = "a.yaml:4 Warning NoEffect status.predictorEnabled";
    assert_eq!(predictor_of(tunnelled, &[STATUS, told]), None);
    let off = "status: {predictorEnabled: false, predictorDirectAccess: true, predictorAddress: '10.0.0.1:8080'}";
    assert_eq!(predictor_of(off, &[STATUS]), None);
    let cloud = "status: {predictorEnabled: true, predictorDirectAccess: true, predictorAddress: '169.254.169.254'}";
    let told = "a.yaml:4 Warning NoEffect status.predictorAddress";
    assert_eq!(predictor_of(cloud, &[STATUS, told]), None);
}
