use super::fixture::{World, cluster, result, revision, unit, units};
use super::*;
use crate::hub::engine::{Head, Proposed, Relation};
use crate::wire::{Counts, Health, ObjectResult, ObjectState, Refusal, Report, UnitState};

/// Clusters a and b, both connected; shop/web on both, and both as it should be.
fn settled() -> World {
    let mut world = World::new();
    world.push('1', &["a", "b"], &["a", "b"]);
    for name in ["a", "b"] {
        world.connect(name);
        world.report(name, UnitState::Applied, Health::Current);
    }
    world
}

/// Each rung of shop/web on a cluster, as `Rung=Status/Reason`, from the first that is not reached.
fn open_rungs(world: &World, name: &str) -> Vec<String> {
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster(name));
    let rungs = view.ladder.0.iter().skip_while(|rung| rung.is_true());
    rungs
        .map(|rung| format!("{}={}/{}", rung.kind, rung.status.as_str(), rung.reason))
        .collect()
}

fn shown(conditions: &[Condition]) -> Vec<String> {
    let summary = conditions
        .iter()
        .take_while(|condition| ["Ready", "Reconciling", "Stalled"].contains(&condition.kind));
    summary
        .map(|condition| format!("{}={}/{}", condition.kind, condition.status.as_str(), condition.reason))
        .collect()
}

#[track_caller]
fn check_placement(world: &World, name: &str, ladder: &[&str], summary: &[&str]) {
    assert_eq!(open_rungs(world, name), ladder, "ladder of {name}");
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster(name));
    assert_eq!(shown(&view.summary), summary, "summary of {name}");
}

#[track_caller]
fn check_unit(world: &World, summary: &[&str], clusters: ClusterCounts) {
    let view = Observation::new(&world.state).unit(&unit("shop/web"));
    assert_eq!(shown(&view.conditions), summary, "{:?}", view.conditions);
    assert_eq!(view.clusters, clusters);
}

fn counts(ready: usize, pending: usize, failed: usize, offline: usize) -> ClusterCounts {
    ClusterCounts {
        total: ready + pending + failed + offline,
        ready,
        pending,
        failed,
        offline,
    }
}

#[test]
fn a_healthy_unit_is_at_the_top_of_its_ladder() {
    let world = settled();
    check_placement(&world, "a", &[], &["Ready=True/ReconciliationSucceeded"]);
    check_unit(&world, &["Ready=True/ReconciliationSucceeded"], counts(2, 0, 0, 0));
    let fleet = Observation::new(&world.state).fleet();
    assert_eq!(
        shown(&fleet.conditions),
        ["Ready=True/ReconciliationSucceeded"],
        "{:?}",
        fleet.conditions
    );
    assert_eq!((fleet.sequence, fleet.units.ready), (Some(1), 1));
}

#[test]
fn a_push_climbs_the_ladder_rung_by_rung() {
    let mut world = settled();
    world.push('2', &["a", "b"], &["a", "b"]);
    let waiting = ["Applied=Unknown/NotReportedYet", "Healthy=Unknown/NotReportedYet"];
    check_placement(
        &world,
        "a",
        &waiting,
        &["Ready=Unknown/NotReportedYet", "Reconciling=True/Progressing"],
    );
    world.report("a", UnitState::Applying, Health::Current);
    check_placement(
        &world,
        "a",
        &["Applied=Unknown/Applying", "Healthy=True/HealthCheckSucceeded"],
        &["Ready=Unknown/Applying", "Reconciling=True/Progressing"],
    );
    world.report("a", UnitState::Applied, Health::InProgress);
    check_placement(
        &world,
        "a",
        &["Healthy=Unknown/Progressing"],
        &["Ready=Unknown/Progressing", "Reconciling=True/Progressing"],
    );
    world.report("a", UnitState::Applied, Health::Current);
    check_placement(&world, "a", &[], &["Ready=True/ReconciliationSucceeded"]);
    check_unit(
        &world,
        &["Ready=Unknown/NotReportedYet", "Reconciling=True/Progressing"],
        counts(1, 1, 0, 0),
    );
}

#[test]
fn a_result_of_an_older_content_says_nothing_of_the_newer() {
    let mut world = settled();
    world.push('2', &["a", "b"], &["a", "b"]);
    assert_eq!(
        open_rungs(&world, "a").first().map(String::as_str),
        Some("Applied=Unknown/NotReportedYet")
    );
}

#[test]
fn a_cluster_that_is_away_is_offline_and_not_broken() {
    let mut world = settled();
    world.disconnect("b");
    check_placement(&world, "b", &["Healthy=Unknown/Offline"], &["Ready=Unknown/Offline"]);
    check_unit(&world, &["Ready=Unknown/Offline"], counts(1, 0, 0, 1));
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster("b"));
    assert_eq!(view.counts.current, 0, "nobody knows how its objects fare");
    world.push('2', &["a", "b"], &["a", "b"]);
    check_placement(
        &world,
        "b",
        &["Applied=Unknown/Offline", "Healthy=Unknown/Offline"],
        &["Ready=Unknown/Offline"],
    );
    let view = Observation::new(&world.state).cluster(&cluster("b"));
    assert_eq!(
        (view.session, shown(&view.conditions)),
        (Session::Disconnected, vec!["Ready=Unknown/Offline".to_owned()])
    );
    let connected = view.conditions.iter().find(|condition| condition.kind == "Connected");
    assert_eq!(
        connected.map(|condition| condition.message.as_str()),
        Some(
            "the cluster is not connected and keeps what it has; it goes on enforcing sequence 1 since 1970-01-01T02:00:00Z"
        )
    );
}

#[test]
fn a_cluster_that_was_never_reached_says_why() {
    let mut world = World::new();
    world.push('1', &["a"], &["a"]);
    world.report_with("a", |report| {
        report.held = None;
        report.trouble = "the kubeconfig has no such context".to_owned();
    });
    let view = Observation::new(&world.state).cluster(&cluster("a"));
    assert_eq!(shown(&view.conditions), ["Ready=Unknown/Offline"]);
    assert!(
        view.conditions[0].message.contains("no such context"),
        "{:?}",
        view.conditions[0]
    );
}

#[test]
fn what_the_api_server_refuses_is_tried_again_and_a_conflict_waits_for_a_person() {
    let mut world = settled();
    world.report("a", UnitState::Failed, Health::Current);
    let failed = ["Ready=False/ApplyFailed", "Reconciling=True/ProgressingWithRetry"];
    check_placement(
        &world,
        "a",
        &["Applied=False/ApplyFailed", "Healthy=True/HealthCheckSucceeded"],
        &failed,
    );
    check_unit(&world, &failed, counts(1, 0, 1, 0));
    world.report_with("a", |report| {
        report.units = fixture::result(report, UnitState::Failed, Health::Current);
        for result in report.units.values_mut().flat_map(|unit| &mut unit.worst) {
            result.state = ObjectState::Conflict;
        }
    });
    check_unit(
        &world,
        &["Ready=False/FieldConflict", "Stalled=True/FieldConflict"],
        counts(1, 0, 1, 0),
    );
}

#[test]
fn a_failed_object_is_named_with_its_cluster() {
    let mut world = settled();
    world.report("b", UnitState::Applied, Health::Failed);
    let view = Observation::new(&world.state).unit(&unit("shop/web"));
    assert_eq!(
        shown(&view.conditions),
        ["Ready=False/HealthCheckFailed", "Stalled=True/HealthCheckFailed"]
    );
    let message = &view.conditions[0].message;
    assert!(
        message.contains("1 of 2 clusters, such as b") && message.contains("Deployment shop/web"),
        "{message}"
    );
    assert_eq!(
        view.worst.first().map(|worst| worst.cluster.clone()),
        Some(cluster("b"))
    );
    assert_eq!(
        view.worst_clusters.first().map(|worst| worst.reason.as_str()),
        Some("HealthCheckFailed")
    );
}

#[test]
fn an_error_holds_its_unit_and_says_where() {
    let mut world = settled();
    let error = render::Finding::error("PatchDoesNotFit", "no such field").at("localizations/a.yaml", 7);
    let error = error.unit(&unit("shop/web")).cluster(&cluster("a"));
    world.push_with('2', &["a", "b"], units('1', &["a", "b"]), vec![error]);
    check_placement(
        &world,
        "a",
        &[
            "Rendered=False/PatchDoesNotFit",
            "Approved=True/NotRequired",
            "Released=True/Released",
            "Applied=True/Applied",
            "Healthy=True/HealthCheckSucceeded",
        ],
        &["Ready=False/PatchDoesNotFit", "Stalled=True/PatchDoesNotFit"],
    );
    check_placement(&world, "b", &[], &["Ready=True/ReconciliationSucceeded"]);
    let view = Observation::new(&world.state).unit(&unit("shop/web"));
    assert!(
        view.conditions[0].message.contains("localizations/a.yaml:7"),
        "{:?}",
        view.conditions[0]
    );
    assert_eq!(view.revision, Some(revision('1')), "it shows what it keeps");
    let fleet = Observation::new(&world.state).fleet();
    assert_eq!(fleet.findings.errors, 1);
    assert_eq!(
        shown(&fleet.conditions),
        ["Ready=False/ErrorsFound", "Stalled=True/ErrorsFound"]
    );
}

#[test]
fn a_unit_that_no_cluster_matches_is_stalled() {
    let mut world = World::new();
    world.push('1', &["a"], &[]);
    check_unit(
        &world,
        &["Ready=False/NoClusterMatches", "Stalled=True/NoClusterMatches"],
        counts(0, 0, 0, 0),
    );
}

#[test]
fn a_source_that_cannot_be_followed_leaves_units_ready_and_the_fleet_not() {
    let mut world = settled();
    world.hear(world.seen(Head::At {
        revision: revision('9'),
        relation: Relation::Rewritten,
    }));
    check_unit(&world, &["Ready=True/ReconciliationSucceeded"], counts(2, 0, 0, 0));
    assert_eq!(
        open_rungs(&world, "a").first().map(String::as_str),
        Some("SourceVerified=False/HistoryRewritten")
    );
    let fleet = Observation::new(&world.state).fleet();
    assert_eq!(
        shown(&fleet.conditions),
        ["Ready=False/HistoryRewritten", "Stalled=True/HistoryRewritten"]
    );
}

#[test]
fn a_refused_envelope_is_shown_with_its_reason() {
    let mut world = settled();
    let held = world.state.envelope(&cluster("a")).map(|envelope| envelope.held());
    world.push('2', &["a", "b"], &["a", "b"]);
    world.report_with("a", |report| {
        report.held = held;
        report.refused = Some((2, Refusal::OldNews { offered: 2, held: 3 }));
    });
    let view = Observation::new(&world.state).cluster(&cluster("a"));
    assert_eq!(
        shown(&view.conditions),
        ["Ready=False/EnvelopeRefused", "Stalled=True/EnvelopeRefused"]
    );
    assert_eq!(view.refused.map(|(sequence, _)| sequence), Some(2));
    let rung = open_rungs(&world, "a")
        .into_iter()
        .find(|rung| rung.starts_with("Applied"));
    assert_eq!(rung.as_deref(), Some("Applied=False/EnvelopeRefused"));
}

#[test]
fn a_unit_is_not_ready_where_the_cluster_refuses_what_it_is_told_of_the_same_content() {
    let mut world = settled();
    let told = |report: &mut Report| {
        report.units = result(report, UnitState::Applied, Health::Current);
    };
    world.report_with("a", |report| {
        told(report);
        report.refused = Some((2, Refusal::OldNews { offered: 2, held: 3 }));
    });
    check_placement(
        &world,
        "a",
        &["Applied=False/EnvelopeRefused", "Healthy=True/HealthCheckSucceeded"],
        &["Ready=False/EnvelopeRefused", "Stalled=True/EnvelopeRefused"],
    );
    let fleet = Observation::new(&world.state).fleet();
    assert_eq!(
        shown(&fleet.conditions),
        ["Ready=False/UnitsNotReady", "Stalled=True/UnitsNotReady"]
    );
    world.report_with("a", |report| {
        told(report);
        report.held.as_mut().expect("it holds something").lineage = revision('e');
    });
    let waiting = ["Applied=Unknown/NotReportedYet", "Healthy=Unknown/NotReportedYet"];
    check_placement(
        &world,
        "a",
        &waiting,
        &["Ready=Unknown/NotReportedYet", "Reconciling=True/Progressing"],
    );
}

#[test]
fn an_applier_in_trouble_is_not_a_broken_unit_elsewhere() {
    let mut world = settled();
    world.report_with("a", |report| report.trouble = "another holder has the lease".to_owned());
    check_unit(
        &world,
        &["Ready=False/ApplierInTrouble", "Reconciling=True/ProgressingWithRetry"],
        counts(1, 0, 1, 0),
    );
    let view = Observation::new(&world.state).cluster(&cluster("a"));
    assert_eq!(shown(&view.conditions)[0], "Ready=False/ApplierInTrouble");
}

#[test]
fn a_unit_that_left_a_cluster_is_shown_until_its_objects_are_gone() {
    let mut world = settled();
    world.push('2', &["a", "b"], &["a"]);
    world.report("a", UnitState::Applied, Health::Current);
    world.report("b", UnitState::Removing, Health::Terminating);
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster("b"));
    assert!(view.leaving);
    assert_eq!(
        shown(&view.summary),
        ["Ready=Unknown/Removing", "Reconciling=True/Progressing"]
    );
    world.report_with("b", |_| {});
    check_unit(&world, &["Ready=True/ReconciliationSucceeded"], counts(1, 0, 0, 0));
}

#[test]
fn what_stays_for_good_is_said_and_nothing_waits_for_it() {
    let mut world = settled();
    world.push('2', &["a", "b"], &["a"]);
    world.report("a", UnitState::Applied, Health::Current);
    let kept = |report: &mut Report, removing: usize| {
        report.units = result(report, UnitState::Removing, Health::Unknown);
        let unit = report.units.get_mut(&unit("shop/web")).expect("it was reported");
        unit.counts = Counts {
            objects: 2,
            removing,
            ..Counts::default()
        };
        unit.worst = vec![ObjectResult {
            object: render::ObjectKey::new("v1", "ConfigMap", "shop", "web"),
            state: ObjectState::Kept,
            health: Health::Unknown,
            message: "the annotation fleet.flotilla.dev/prune keeps it".to_owned(),
        }];
    };
    world.report_with("b", |report| kept(report, 1));
    check_unit(
        &world,
        &["Ready=Unknown/Kept", "Reconciling=True/Progressing"],
        counts(1, 1, 0, 0),
    );
    world.report_with("b", |report| kept(report, 0));
    check_unit(&world, &["Ready=True/ReconciliationSucceeded"], counts(2, 0, 0, 0));
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster("b"));
    assert!(view.summary[0].message.contains("2 objects stay"), "{:?}", view.summary);
}

#[test]
fn a_proposal_waits_for_a_person_and_its_units_show_what_they_have() {
    let mut world = settled();
    world.state.accepted = Some(revision('2'));
    world.state.rendered_ref = "flotilla/rendered".to_owned();
    world.state.proposed = Some(Proposed {
        branch: "refs/heads/flotilla/proposed/2".to_owned(),
        source: Some(revision('2')),
        units: [unit("shop/web")].into(),
    });
    let observation = Observation::new(&world.state);
    assert_eq!(observation.unit(&unit("shop/web")).revision, Some(revision('1')));
    let conditions = observation.fleet().conditions;
    let approved = conditions.iter().find(|condition| condition.kind == "Approved");
    let approved = approved.expect("the fleet has the condition");
    assert_eq!(approved.reason, "MergeAwaited");
    assert!(
        approved
            .message
            .ends_with("git fetch && git push origin origin/flotilla/proposed/2:flotilla/rendered"),
        "{approved:?}"
    );
    let unit = observation.unit(&unit("shop/web"));
    assert!(
        unit.conditions.contains(approved),
        "the unit that it changes says so too: {unit:#?}"
    );
}

#[test]
fn a_unit_that_a_proposal_does_not_change_is_as_new_as_what_was_accepted() {
    let mut world = settled();
    world.state.accepted = Some(revision('2'));
    world.state.proposed = Some(Proposed {
        branch: "refs/heads/flotilla/proposed/2".to_owned(),
        source: Some(revision('2')),
        units: [unit("shop/other")].into(),
    });
    world.state.kept_proposals = vec!["refs/heads/flotilla/proposed/1".to_owned()];
    let observation = Observation::new(&world.state);
    let view = observation.unit(&unit("shop/web"));
    assert_eq!(view.revision, Some(revision('2')));
    assert_eq!(view.conditions.first().map(|ready| ready.is_true()), Some(true));
    let fleet = observation.fleet().conditions;
    let approved = fleet.iter().find(|condition| condition.kind == "Approved");
    assert!(
        approved.is_some_and(|approved| approved.message.contains("people put commits on flotilla/proposed/1")),
        "{approved:?}"
    );
}

#[test]
fn revisions_print_with_branch_and_hash() {
    let long = render::Revision::parse("b".repeat(64)).expect("sixty-four hex digits");
    assert_eq!(
        short_revision("main", &revision('a')),
        format!("main@sha1:{}", "a".repeat(12))
    );
    assert_eq!(shown_revision("main", &long), format!("main@sha256:{}", "b".repeat(64)));
    assert_eq!(short_revision("", &revision('a')), format!("sha1:{}", "a".repeat(12)));
}

/// The settled fleet with a Suspension of shop/web on cluster a.
fn suspended() -> World {
    let mut world = settled();
    world.suspend("shop/web", "a");
    world
}

#[test]
fn what_is_suspended_is_ready_until_something_waits_for_it() {
    let world = suspended();
    let view = Observation::new(&world.state).unit(&unit("shop/web"));
    assert_eq!(shown(&view.conditions), ["Ready=True/ReconciliationSucceeded"]);
    let held = view.conditions.last().expect("there are conditions");
    assert_eq!((held.kind, held.status), ("Suspended", Status::True));
    assert_eq!(
        held.message,
        "on 1 of 2 clusters, such as a: by policies/held.yaml:1 (frozen)"
    );
}

#[test]
fn a_newer_content_waits_at_its_rung_for_the_suspension_to_end() {
    let mut world = suspended();
    let rendered = world.state.rendered.as_mut().expect("it was rendered");
    rendered.published = std::sync::Arc::new(render::Published {
        units: units('2', &["a", "b"]),
        ..render::Published::clone(&rendered.published)
    });
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster("a"));
    assert_eq!(
        shown(&view.summary),
        ["Ready=Unknown/Suspended"],
        "nothing is under way"
    );
    let message = &view.ladder.rung(Rung::Released).message;
    assert!(
        message.starts_with("suspended by policies/held.yaml:1 (frozen)"),
        "{message}"
    );
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster("b"));
    assert_eq!(view.ladder.rung(Rung::Released).reason, "HeldBack", "b is on its way");
    let rendered = world.state.rendered.as_mut().expect("it was rendered");
    rendered.published = std::sync::Arc::default();
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster("a"));
    assert!(view.leaving);
    assert_eq!(
        view.ladder.rung(Rung::Released).reason,
        "Suspended",
        "a removal waits as well"
    );
}

#[test]
fn an_error_that_names_two_clusters_holds_both_of_them() {
    let mut world = settled();
    let held = render::Finding::error("PruneBudgetExceeded", "4 objects would go")
        .unit(&unit("shop/web"))
        .clusters(&[cluster("a"), cluster("b")]);
    world.push_with('2', &["a", "b"], units('1', &["a", "b"]), vec![held]);
    for name in ["a", "b"] {
        let rungs = open_rungs(&world, name);
        assert_eq!(
            rungs.first().map(String::as_str),
            Some("Rendered=False/PruneBudgetExceeded"),
            "{name}"
        );
    }
}

#[test]
fn what_nobody_has_yet_is_on_its_way_and_not_leaving() {
    let mut world = World::new();
    world.push('1', &["a", "b"], &["a"]);
    world.connect("b");
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster("b"));
    assert!(!view.leaving, "{view:#?}");
    assert_eq!(view.ladder.rung(Rung::Rendered).reason, "NotRenderedYet");
}

#[test]
fn what_a_cluster_never_had_is_gone_at_once_when_it_leaves() {
    let mut world = suspended();
    let rendered = world.state.rendered.as_mut().expect("it was rendered");
    rendered.published = std::sync::Arc::default();
    world.report_with("a", |report| {
        report.units.clear();
        if let Some(held) = &mut report.held {
            held.units.clear();
        }
    });
    let view = Observation::new(&world.state).placement(&unit("shop/web"), &cluster("a"));
    assert!(view.leaving, "it is told still");
    let applied = view.ladder.rung(Rung::Applied);
    assert_eq!(
        (applied.status, applied.message.as_str()),
        (Status::True, "nothing of it is there")
    );
}

/// The settled fleet with shop/web frozen on both clusters; on a, so many objects are not as Git says.
fn frozen(behind: usize) -> World {
    let mut world = settled();
    let mut next = units('2', &["a", "b"]);
    let placements = next.values_mut().flat_map(|unit| unit.clusters.values_mut());
    placements.for_each(|placement| placement.drift = render::model::DriftMode::Freeze);
    world.push_with('2', &["a", "b"], next, Vec::new());
    for name in ["a", "b"] {
        world.report_with(name, |report| {
            report.units = result(report, UnitState::Applied, Health::Current);
            for unit in report.units.values_mut() {
                unit.counts = Counts {
                    suspended: 2,
                    behind: if name == "a" { behind } else { 0 },
                    ..unit.counts
                };
            }
        });
    }
    world
}

#[test]
fn a_frozen_unit_is_ready_while_it_is_as_git_says_and_waits_otherwise() {
    let world = frozen(0);
    check_placement(&world, "a", &[], &["Ready=True/ReconciliationSucceeded"]);
    let world = frozen(1);
    let rungs = ["Applied=Unknown/Frozen", "Healthy=True/HealthCheckSucceeded"];
    check_placement(&world, "a", &rungs, &["Ready=Unknown/Frozen"]);
    let view = Observation::new(&world.state).unit(&unit("shop/web"));
    assert_eq!(
        shown(&view.conditions),
        ["Ready=Unknown/Frozen"],
        "nothing is under way"
    );
    assert!(
        view.conditions[0]
            .message
            .contains("1 of 2 objects are not as Git says; drift mode is Freeze"),
        "{:?}",
        view.conditions[0]
    );
    let held = view.conditions.iter().find(|condition| condition.kind == "Suspended");
    assert_eq!(held.map(|held| held.reason.as_str()), Some("Frozen"), "{held:?}");
}

#[test]
fn the_worst_objects_of_all_clusters_come_first_whatever_their_health() {
    let mut world = settled();
    world.report("a", UnitState::Applied, Health::Failed);
    world.report("b", UnitState::Failed, Health::Current);
    let view = Observation::new(&world.state).unit(&unit("shop/web"));
    let worst: Vec<_> = view.worst.iter().map(|worst| worst.cluster.as_str()).collect();
    assert_eq!(worst, ["b", "a"], "what was refused counts most: {:#?}", view.worst);
}
