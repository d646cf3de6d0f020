//! Explanations of room: who has how much, by whose word, and what is asked of it.

use super::*;
use crate::by_object::ByObject;
use crate::capacity::Capacity;
use crate::fixture::{capacity, deployment, reports, selector};
use crate::model::{Choice, Dividing, Predictor, Preference, Strategy};
use crate::predictor::{Outcome, Predicted, Question};
use crate::schedule::ChoiceRule;

fn web() -> ObjectKey {
    ObjectKey::new("apps/v1", "Deployment", "", "web")
}

/// Clusters a and b are preferred, c is not and one too many; d asks for more of each replica; e is of another kind.
fn divided(most: u64) -> Fleet {
    let clusters = [
        cluster("a", &[("env", "prod"), ("tier", "gold")]),
        cluster("b", &[("env", "prod"), ("tier", "gold")]),
        cluster("c", &[("env", "prod")]),
        cluster("d", &[("env", "prod"), ("tier", "gold")]),
        cluster("e", &[("env", "test")]),
    ];
    let dynamic = Scheduling::Dividing(Dividing::Dynamic(Strategy::Spread));
    let mut divided = subscription(dynamic, vec![subscriber(&[("env", "prod")], None)]);
    divided.placing.clusters = Choice {
        max: Some(most),
        preferred: vec![Preference {
            weight: 30,
            preference: selector(&[("tier", "gold")]),
        }],
        ..Choice::default()
    };
    let mut fleet = fleet(clusters, divided, deployment(20, "1"));
    let more = r#"{"spec": {"template": {"spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "4"}}}]}}}}"#;
    let mut larger = localization("larger", &web(), vec![step(OverrideStepType::MergePatch, more)]);
    larger.namespace = "d".to_owned();
    fleet.overrides = vec![Arc::new(larger)];
    fleet
}

fn said(list: &[(&str, Capacity)]) -> Reports {
    let mut said = reports(list);
    for report in said.clusters.values_mut() {
        Arc::make_mut(&mut report.capacity).sequence = Some(7);
    }
    said
}

fn explained_by(fleet: &Fleet, published: &Published, reports: &Reports) -> Explanation {
    let looking = Context {
        reports,
        now: 1_090,
        ..looking(fleet, published, &[])
    };
    explain(&looking, &key(), None).expect("the unit is declared")
}

#[track_caller]
fn of<'a>(explanation: &'a Explanation, name: &str) -> &'a ClusterExplanation {
    let found = explanation.clusters.iter().find(|found| found.cluster.as_str() == name);
    found.unwrap_or_else(|| panic!("{name} is explained: {explanation:#?}"))
}

fn room<'a>(explanation: &'a Explanation, name: &str) -> &'a RoomExplanation {
    let capacity = of(explanation, name).capacity.as_ref();
    capacity.expect("what has replicas has room or not")
}

#[test]
fn every_cluster_tells_its_rule_its_score_and_its_room() {
    let reports = said(&[
        ("a", capacity(2, 4)),
        ("c", capacity(9, 9)),
        ("d", capacity(2, 6)),
        ("e", capacity(1, 1)),
    ]);
    let explanation = explained_by(&divided(3), &Published::default(), &reports);
    let rules = ["a", "b", "c", "d", "e"].map(|name| of(&explanation, name).rule);
    let left_out = Some(Rule::Choice(ChoiceRule::ClustersMax));
    let filtered = Some(Rule::Filter(Filter::Selector));
    assert_eq!(rules, [None, None, left_out, None, filtered]);
    let scores = ["a", "c", "e"].map(|name| of(&explanation, name).score.map(|score| (score.preferred, score.total)));
    assert_eq!(
        scores,
        [Some((30, 30)), Some((0, 0)), None],
        "e may not have the unit at all"
    );
    let places: std::collections::BTreeSet<_> = explanation
        .clusters
        .iter()
        .filter_map(|one| one.score)
        .collect::<Vec<_>>()
        .iter()
        .map(|score| score.place)
        .collect();
    assert_eq!(places, [1, 2, 3, 4].into());
    assert_eq!(of(&explanation, "c").score.map(|score| score.place), Some(4));

    let a = room(&explanation, "a");
    assert_eq!((a.at, a.age_seconds, a.sequence), (Some(1_000), Some(90), Some(7)));
    assert_eq!(a.objects[&web()].replicas, 8, "two nodes of four cores");
    assert_eq!(
        room(&explanation, "d").objects[&web()].replicas,
        2,
        "an override asks for four cores each"
    );
    assert_eq!(
        room(&explanation, "c").objects[&web()].replicas,
        81,
        "also where others are better"
    );
    let b = room(&explanation, "b");
    assert_eq!(
        (b.frozen.as_str(), b.objects.len()),
        ("it has not said what room it has", 0)
    );
    let mut refused = reports.clone();
    let why = "what it says of its room cannot be";
    refused.unknown = [(of(&explanation, "b").cluster.clone(), why.to_owned())].into();
    let explanation = explained_by(&divided(3), &Published::default(), &refused);
    assert_eq!(room(&explanation, "b").frozen, why);
    let unplaced = explanation.unplaced[&web()];
    assert_eq!((unplaced.replicas, unplaced.of), (10, 20), "{explanation:#?}");
}

#[test]
fn nodes_that_refuse_are_counted_by_their_reason() {
    let mut tainted = capacity(3, 4);
    let mut cordoned = tainted.nodes.0[0].clone();
    cordoned.count = 2;
    cordoned.taints = vec![Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    }];
    tainted.nodes.0.push(cordoned);
    let explanation = explained_by(&divided(3), &Published::default(), &said(&[("a", tainted)]));
    let found = &room(&explanation, "a").objects[&web()];
    assert_eq!((found.replicas, found.nodes), (12, 3));
    let counts: Vec<u64> = found.refused.values().copied().collect();
    assert_eq!(counts, [2], "two of its nodes refuse: {found:?}");
}

#[test]
fn what_feeds_ask_for_is_told_after_the_overrides_of_each_cluster() {
    let explanation = explained_by(&divided(3), &Published::default(), &said(&[]));
    let told: Vec<_> = explanation
        .feed_inventory
        .iter()
        .map(|inventory| {
            let clusters: Vec<_> = inventory.clusters.iter().map(ClusterName::as_str).collect();
            let [one] = &inventory.objects[..] else {
                panic!("one object has replicas")
            };
            (clusters.join(" "), one.replicas, one.requests["cpu"].clone())
        })
        .collect();
    let expected = [
        ("a b c".to_owned(), 20, "1".to_owned()),
        ("d".to_owned(), 20, "4".to_owned()),
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_a_cluster_had_is_told_beside_what_it_has() {
    let mut there = placed(&["a"]);
    let unit = there.units.get_mut(&key()).expect("it is published");
    for placement in unit.clusters.values_mut() {
        placement.replicas = ByObject::from([(web(), 5)]);
    }
    let reports = said(&[("a", capacity(2, 4)), ("b", capacity(2, 4))]);
    let explanation = explained_by(&divided(2), &there, &reports);
    let a = of(&explanation, "a");
    let has = a.replicas.get(&web()).copied().unwrap_or_default();
    assert_eq!(a.had.get(&web()), Some(&5));
    assert!(has >= 5, "what is placed stays: {has}");
    assert!(of(&explanation, "b").had.is_empty());
    assert_eq!(
        a.score.map(|score| (score.place, score.placed > 0)),
        Some((1, true)),
        "{a:#?}"
    );
}

#[test]
fn what_a_predictor_says_is_told_beside_the_report_and_instead_of_none() {
    let mut fleet = divided(3);
    for name in ["a", "b"] {
        let cluster = fleet.clusters.get_mut(&cluster_name(name)).expect("it is there");
        cluster.predictor = Some(Predictor {
            url: "https://predictor.example.com".to_owned(),
            timeout_seconds: 20,
        });
    }
    let mut reports = said(&[("a", capacity(2, 4))]);
    let unit = fleet.units.values().next().expect("the fleet has a unit");
    let requirements = &schedule::workloads_of(unit)[&web()].requirements;
    for (name, outcome) in [("a", Outcome::Trouble("late".to_owned())), ("b", Outcome::Replicas(6))] {
        let question = Question::about(&fleet.clusters[&cluster_name(name)], requirements).expect("it has a predictor");
        let answer = Predicted { at: 1_080, outcome };
        reports
            .predicted
            .insert(cluster_name(name), [(question.key(), answer)].into());
    }
    let explanation = explained_by(&fleet, &Published::default(), &reports);
    let of = |name: &str| room(&explanation, name);
    assert_eq!(of("a").predicted[&web()].trouble, "its predictor failed: late");
    assert_eq!(of("a").objects[&web()].replicas, 8, "and what it reports");
    let word = &of("b").predicted[&web()];
    assert_eq!((word.more, word.at, word.trouble.as_str()), (Some(6), Some(1_080), ""));
    assert_eq!(of("b").frozen, "", "its predictor speaks for it");
    assert!(of("d").predicted.is_empty(), "it has none");
}
