//! Replicas by what predictors say.

use super::room::{DYNAMIC, everywhere, key, scheduled, shares, two};
use super::*;
use crate::fixture::{capacity, deployment, reports};
use crate::fleet::Fleet;
use crate::model::Predictor;
use crate::predictor::{Outcome, Predicted, Question};
use crate::schedule::{Ledger, Moves, Presence, Scheduled, schedule_unit, workloads_of};

/// The fleet with a predictor for b.
fn with_predictor(mut fleet: Fleet) -> Fleet {
    let b = fleet.clusters.get_mut(&cluster_name("b")).expect("it is there");
    b.predictor = Some(Predictor {
        url: "https://predictor.example.com".to_owned(),
        timeout_seconds: 20,
    });
    fleet
}

/// What the predictor of b says of the fleet's Deployment.
fn said(fleet: &Fleet, mut reports: Reports, outcome: Outcome) -> Reports {
    let unit = fleet.units.values().next().expect("the fleet has a unit");
    let requirements = workloads_of(unit)[&key()].requirements.clone();
    let question = Question::about(&fleet.clusters[&cluster_name("b")], &requirements).expect("it has a predictor");
    let answers = reports.predicted.entry(cluster_name("b")).or_default();
    answers.insert(question.key(), Predicted { at: 0, outcome });
    reports
}

fn why(scheduled: &Scheduled, cluster: &str) -> String {
    scheduled.assignments[&cluster_name(cluster)].reasons[1].clone()
}

#[test]
fn a_predictor_speaks_for_a_cluster_that_reports_nothing() {
    let fleet = with_predictor(two(12));
    let known = said(&fleet, reports(&[("a", capacity(2, 3))]), Outcome::Replicas(6));
    let found = scheduled(&fleet, &known, None);
    assert_eq!(shares(&found), [6, 6]);
    assert_eq!(
        why(&found, "b"),
        "replicas of Deployment web: 6 of 12, has room for 6 more by its predictor"
    );
    let evidence = found.assignments[&cluster_name("b")]
        .capacity
        .clone()
        .expect("room decided");
    assert_eq!(
        (evidence.at, evidence.sequence, evidence.room.get(&key())),
        (0, None, Some(&6))
    );
}

#[test]
fn the_less_of_report_and_prediction_counts() {
    let fleet = with_predictor(two(30));
    let own = || reports(&[("a", capacity(2, 3)), ("b", capacity(4, 3))]);
    let less = scheduled(&fleet, &said(&fleet, own(), Outcome::Replicas(2)), None);
    assert_eq!(shares(&less), [6, 2], "its predictor says less");
    let more = scheduled(&fleet, &said(&fleet, own(), Outcome::Replicas(90)), None);
    assert_eq!(shares(&more), [6, 12], "its own report says less");
}

#[test]
fn a_predictor_that_fails_or_is_late_freezes_its_cluster_and_no_other() {
    let fleet = with_predictor(two(9));
    let own = || reports(&[("a", capacity(4, 3)), ("b", capacity(4, 3))]);
    let late = scheduled(&fleet, &own(), None);
    assert_eq!(shares(&late), [9, 0]);
    assert!(late.by_room, "another answer may place otherwise");
    assert_eq!(late.questions.len(), 1, "and it is asked for");
    assert!(why(&late, "b").ends_with("no more: its predictor has said nothing within a minute"));
    let failed = said(&fleet, own(), Outcome::Trouble("it answers with 503".to_owned()));
    let failed = scheduled(&fleet, &failed, None);
    assert_eq!(shares(&failed), [9, 0]);
    assert!(
        why(&failed, "b").ends_with("no more: its predictor failed: it answers with 503"),
        "{}",
        why(&failed, "b")
    );
}

#[test]
fn nobody_is_asked_where_nothing_is_added() {
    let fleet = with_predictor(two(9));
    let known = said(&fleet, reports(&[("a", capacity(4, 3))]), Outcome::Replicas(9));
    let first = scheduled(&fleet, &known, None);
    let shares_before = shares(&first);
    let before = placed(&[("a", shares_before[0]), ("b", shares_before[1])]);
    let again = scheduled(&fleet, &Reports::default(), Some(before.clone()));
    assert_eq!((shares(&again), again.questions.len()), (shares(&first), 0));
    let fewer = with_predictor(two(3));
    let fewer = scheduled(&fewer, &reports(&[("a", capacity(4, 3))]), Some(before));
    assert_eq!(fewer.questions.len(), 0);
    assert_eq!(shares(&fewer).iter().sum::<u64>(), 3);
    assert!(shares(&fewer)[1] > 0 && shares(&fewer)[0] > 0, "both give some up");
}

#[test]
fn a_cluster_that_is_not_heard_of_gets_no_more_whatever_is_predicted() {
    let fleet = with_predictor(two(9));
    let mut known = said(&fleet, reports(&[("a", capacity(4, 3))]), Outcome::Replicas(9));
    known.presence.insert(cluster_name("b"), Presence::SilentSince(0));
    let found = scheduled(&fleet, &known, None);
    assert_eq!(shares(&found), [9, 0]);
    assert!(
        why(&found, "b").contains("it is not heard of since 1970-01-01"),
        "{}",
        why(&found, "b")
    );
}

#[test]
fn what_was_predicted_is_not_promised_twice_in_one_plan() {
    let fleet = with_predictor(fleet(vec![cluster("b", &[])], everywhere(DYNAMIC), deployment(4, "1")));
    let known = said(&fleet, Reports::default(), Outcome::Replicas(6));
    let previous = BTreeMap::new();
    let moves = Moves::default();
    let context = Context::new(&fleet, &known, &previous, &moves, 0);
    let unit = fleet.units.values().next().expect("the fleet has a unit");
    let mut ledger = Ledger::default();
    let mut place = || shares(&schedule_unit(&context, &mut ledger, &workloads_of(unit), unit));
    assert_eq!(place(), [4]);
    assert_eq!(place(), [2], "two of six are left");
}
