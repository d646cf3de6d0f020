//! What differs if it were so, in small fleets.

use std::sync::Arc;

use super::*;
use crate::by_object::ByObject;
use crate::fixture::{
    base, capacity, cluster, cluster_name, deployment, fleet, globalization, reports, selector, step, subscriber,
    subscription,
};
use crate::model::{Dividing, OverrideStepType, Scheduling, Strategy};
use crate::name::ObjectKey;
use crate::plan::{Moves, Snapshot};
use crate::published::Unplaced;

fn web() -> ObjectKey {
    ObjectKey::new("apps/v1", "Deployment", "", "web")
}

/// Twelve replicas on a and b, which have room for eight each; c is of another kind.
fn world(scheduling: Scheduling) -> Snapshot {
    let clusters = [
        cluster("a", &[("env", "prod")]),
        cluster("b", &[("env", "prod")]),
        cluster("c", &[("env", "test")]),
    ];
    let divided = subscription(scheduling, vec![subscriber(&[("env", "prod")], None)]);
    let fleet = fleet(clusters, divided, deployment(12, "1"));
    Snapshot {
        revision: fleet.revision.clone(),
        fleet: Arc::new(fleet),
        reports: reports(&[("a", capacity(2, 4)), ("b", capacity(2, 4)), ("c", capacity(1, 4))]),
        moves: Moves::default(),
        chart_previews: Default::default(),
        previous: Arc::default(),
        now: 1_010,
    }
}

fn by_room() -> Snapshot {
    world(Scheduling::Dividing(Dividing::Dynamic(Strategy::Spread)))
}

fn unit() -> String {
    by_room().fleet.units.keys().map(ToString::to_string).collect()
}

/// `cluster from -> to`, and what finds no place then.
#[track_caller]
fn check(snapshot: &Snapshot, suppositions: &[Supposition], expected: &[&str], unplaced: Option<(u64, u64)>) {
    let found = simulate(snapshot, suppositions).expect("all of it is there");
    let number = |replicas: &Option<ByObject>| match replicas {
        None => "none".to_owned(),
        Some(replicas) => replicas.get(&web()).map_or_else(String::new, u64::to_string),
    };
    let shifts = found.units.iter().flat_map(|unit| &unit.clusters);
    let lines: Vec<_> = shifts
        .map(|shift| format!("{} {} -> {}", shift.cluster, number(&shift.from), number(&shift.to)))
        .collect();
    assert_eq!(lines, expected, "{found:#?}");
    let then = found.units.iter().find_map(|unit| unit.unplaced.get(&web())?.to);
    let expected = unplaced.map(|(replicas, of)| Unplaced { replicas, of });
    assert_eq!(then, expected, "{found:#?}");
}

fn read(made: Result<Supposition, Unreadable>) -> Supposition {
    made.expect("it can be read")
}

#[test]
fn what_is_so_already_makes_no_difference() {
    let label = read(Supposition::label("a", "env=prod"));
    check(&by_room(), &[label], &[], None);
    check(&by_room(), &[], &[], None);
}

#[test]
fn the_share_of_a_lost_cluster_goes_where_there_is_room_and_the_rest_is_counted() {
    let lost = read(Supposition::lost("b"));
    check(&by_room(), &[lost], &["a 6 -> 8", "b 6 -> none"], Some((4, 12)));
    let gone = simulate(&by_room(), &[read(Supposition::lost("b"))]).expect("it is there");
    assert_eq!(gone.units[0].clusters[1].reasons, ["the cluster is lost"]);
    let reasons: Vec<_> = gone.findings.iter().map(|finding| finding.reason.as_str()).collect();
    assert_eq!(reasons, ["Unplaced"], "what is wrong then is told: {:?}", gone.findings);
}

#[test]
fn more_replicas_keep_what_is_placed_and_fewer_take_in_proportion() {
    let unit = unit();
    let scale = |words: &str| read(Supposition::scale(&format!("{unit}{words}")));
    check(&by_room(), &[scale("=+2")], &["a 6 -> 7", "b 6 -> 7"], None);
    check(
        &by_room(),
        &[scale("/deployment/web=20")],
        &["a 6 -> 8", "b 6 -> 8"],
        Some((4, 20)),
    );
    check(&by_room(), &[scale("=-6")], &["a 6 -> 3", "b 6 -> 3"], None);
    check(&by_room(), &[scale("=-60")], &["a 6 -> 0", "b 6 -> 0"], None);
}

#[test]
fn a_label_or_a_taint_lets_clusters_in_and_out() {
    let more = read(Supposition::scale(&format!("{}=+6", unit())));
    let label = read(Supposition::label("c", "env=prod"));
    check(
        &by_room(),
        &[label, more.clone()],
        &["a 6 -> 8", "b 6 -> 7", "c none -> 3"],
        None,
    );
    let unlabelled = read(Supposition::label("b", "env-"));
    check(&by_room(), &[unlabelled], &["a 6 -> 8", "b 6 -> none"], Some((4, 12)));
    let evict = read(Supposition::taint("b", "broken=yes:NoExecute"));
    check(
        &by_room(),
        std::slice::from_ref(&evict),
        &["a 6 -> 8", "b 6 -> 4"],
        None,
    );
    let gone = simulate(&by_room(), std::slice::from_ref(&evict)).expect("it is there");
    let why = gone.units[0].clusters[1].reasons.join("; ");
    assert!(
        why.contains("4 of 6 stay although it has taint broken=yes:NoExecute"),
        "{why}"
    );
    let untainted = read(Supposition::taint("b", "broken:NoExecute-"));
    check(&by_room(), &[evict, untainted], &[], None);
}

#[test]
fn what_is_placed_now_is_what_differs_from() {
    let mut snapshot = by_room();
    let unit = snapshot.fleet.units.keys().next().cloned().expect("there is one");
    // Nine on a and three on b, as it came to be.
    let mut placed = crate::plan::plan(&snapshot, &mut Default::default());
    let placement = placed.units.get_mut(&unit).expect("it is placed");
    for (name, replicas) in [("a", 8), ("b", 4)] {
        let cluster = placement
            .clusters
            .get_mut(&cluster_name(name))
            .expect("it is placed there");
        cluster.replicas = [(web(), replicas)].into();
    }
    snapshot.previous = Arc::new(crate::published::Published {
        record: None,
        units: placed.units,
    });
    let scale = read(Supposition::scale(&format!("{unit}=+3")));
    check(&snapshot, &[scale], &["b 4 -> 7"], None);
}

#[test]
fn every_cluster_of_a_replicated_unit_has_the_whole() {
    let unit = unit();
    let scale = read(Supposition::scale(&format!("{unit}=+20")));
    check(
        &world(Scheduling::Replication),
        &[scale],
        &["a 12 -> 32", "b 12 -> 32"],
        None,
    );
    let label = read(Supposition::label("c", "env=prod"));
    check(&world(Scheduling::Replication), &[label], &["c none -> 12"], None);
}

#[test]
fn other_overrides_are_told_where_numbers_are_the_same() {
    let mut snapshot = world(Scheduling::Replication);
    let patch = step(
        OverrideStepType::MergePatch,
        r#"{"metadata": {"labels": {"gold": "yes"}}}"#,
    );
    let gold = globalization("gold", &web(), Some(selector(&[("tier", "gold")])), vec![patch]);
    let fleet = Arc::make_mut(&mut snapshot.fleet);
    fleet.overrides = vec![Arc::new(gold)];
    let found = simulate(&snapshot, &[read(Supposition::label("a", "tier=gold"))]).expect("it is there");
    let shifts: Vec<_> = found.units.iter().flat_map(|unit| &unit.clusters).collect();
    let [one] = &shifts[..] else {
        panic!("a alone differs: {found:#?}")
    };
    assert_eq!(
        (one.cluster.as_str(), one.other_overrides, one.from == one.to),
        ("a", true, true)
    );
}

#[test]
fn what_is_not_there_is_named_with_what_may_be_meant() {
    let unit = unit();
    let two = [
        serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}),
        serde_json::json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "x"}, "spec": {}}),
    ];
    let mut snapshot = by_room();
    let declared = Arc::make_mut(&mut snapshot.fleet);
    let paris = cluster("paris", &[("env", "prod")]);
    declared.clusters.insert(cluster_name("paris"), paris);
    let known = declared.units.values_mut().next().expect("there is one");
    known.base = Arc::new(base(two));
    let cases = [
        (
            Supposition::lost("pairs"),
            "cluster pairs is not registered; hint: did you mean paris?".to_owned(),
        ),
        (
            Supposition::label("paris", "evn-"),
            "cluster paris has no label evn; hint: did you mean env?".to_owned(),
        ),
        (
            Supposition::taint("paris", "full-"),
            "cluster paris has no taint full".to_owned(),
        ),
        (
            Supposition::scale(&format!("{unit}s=1")),
            format!("subscription {unit}s is not declared; hint: did you mean {unit}?"),
        ),
        (
            Supposition::scale(&format!("{unit}/Job/web=1")),
            format!(
                "subscription {unit} has no object Job web with replicas; hint: it has Deployment/web, StatefulSet/x/db"
            ),
        ),
        (
            Supposition::scale(&format!("{unit}=1")),
            format!(
                "subscription {unit} has several objects with replicas; hint: it has Deployment/web, StatefulSet/x/db"
            ),
        ),
    ];
    for (supposition, expected) in cases {
        let found = simulate(&snapshot, &[read(supposition)]).expect_err(&expected);
        assert_eq!(found.to_string(), expected);
    }
    let whole = read(Supposition::scale(&format!("{unit}/statefulset/x/db=4")));
    assert!(simulate(&snapshot, &[whole]).is_ok(), "and by its namespace");
}

#[test]
fn words_that_say_nothing_are_refused_with_what_was_expected() {
    let cases = [
        (Supposition::lost("Paris!"), "is no name of a cluster"),
        (Supposition::label("a", "env"), "is neither KEY=VALUE nor KEY-"),
        (Supposition::label("a", "=x"), "has a key that is none"),
        (Supposition::label("a", "env=a b"), "has a value that is none"),
        (Supposition::taint("a", "full=yes"), "has no effect"),
        (Supposition::taint("a", "full:NoExecutes"), "did you mean NoExecute?"),
        (Supposition::taint("a", ":NoExecute"), "has a key that is none"),
        (Supposition::scale("shop/web"), "is not NAMESPACE/NAME"),
        (Supposition::scale("web=3"), "is not NAMESPACE/NAME"),
        (Supposition::scale("shop/web=many"), "no whole number"),
        (Supposition::scale("shop/web=+-3"), "no whole number"),
        (Supposition::scale("shop/web=99999999999"), "no whole number"),
        (Supposition::scale("Shop/web=3"), "names no subscription"),
    ];
    for (made, expected) in cases {
        let error = made.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
