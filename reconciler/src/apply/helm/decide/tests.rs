//! Each state that a crash, a failure or a person can leave, and what follows.

use proptest::prelude::*;

use super::*;

const WANTED: &str = "wanted";
const OTHER: &str = "other";
const OURS: &str = "ours";
const NOW: u64 = 1_000_000;

fn goal() -> Goal<'static> {
    Goal {
        content: WANTED,
        owner: OURS,
        atomic: false,
        upgrade_atomic: false,
        replace: false,
        attempts: 3,
        timeout: 300,
    }
}

/// Revisions of ours from 1 on, written long ago.
fn live(revisions: &[(Status, &str)]) -> Live {
    let each = revisions.iter().zip(1..);
    Live {
        revisions: each
            .map(|((status, content), number)| LiveRevision {
                number,
                status: *status,
                content: Some((*content).to_owned()),
                owner: Some(OURS.to_owned()),
                written: NOW - 10_000,
                uid: format!("u{number}"),
            })
            .collect(),
    }
}

#[track_caller]
fn check(goal: &Goal<'_>, revisions: &[(Status, &str)], expected: &Step) {
    assert_eq!(
        decide(goal, &live(revisions), &Tries::default(), NOW),
        *expected,
        "{revisions:?}"
    );
}

#[test]
fn an_unchanged_chart_makes_no_revision() {
    check(&goal(), &[(Status::Deployed, WANTED)], &Step::Nothing);
    check(
        &goal(),
        &[(Status::Superseded, OTHER), (Status::Deployed, WANTED)],
        &Step::Nothing,
    );
}

#[test]
fn what_differs_is_upgraded_and_what_is_missing_installed() {
    check(&goal(), &[], &Step::Install);
    check(&goal(), &[(Status::Deployed, OTHER)], &Step::Upgrade);
    check(&goal(), &[(Status::Failed, OTHER)], &Step::Upgrade);
    check(
        &goal(),
        &[(Status::Superseded, WANTED), (Status::Deployed, OTHER)],
        &Step::Upgrade,
    );
}

#[test]
fn what_a_crash_left_is_mended_without_an_uninstall() {
    check(&goal(), &[(Status::PendingInstall, WANTED)], &Step::Forget);
    check(&goal(), &[(Status::PendingInstall, OTHER)], &Step::Rollback(1));
    check(
        &goal(),
        &[(Status::Deployed, OTHER), (Status::PendingUpgrade, WANTED)],
        &Step::Rollback(1),
    );
    let after_a_failure = [
        (Status::Superseded, OTHER),
        (Status::Failed, WANTED),
        (Status::PendingRollback, OTHER),
    ];
    check(&goal(), &after_a_failure, &Step::Rollback(1));
    check(
        &goal(),
        &[(Status::Failed, OTHER), (Status::PendingUpgrade, WANTED)],
        &Step::Rollback(2),
    );
    check(&goal(), &[(Status::Uninstalling, WANTED)], &Step::Uninstall);
}

#[test]
fn another_helm_at_work_is_waited_for_as_long_as_it_may_take() {
    let mut live = live(&[(Status::PendingUpgrade, WANTED)]);
    live.revisions[0].owner = None;
    live.revisions[0].written = NOW - 10;
    let step = decide(&goal(), &live, &Tries::default(), NOW);
    assert!(matches!(step, Step::Wait(at, _) if at == NOW + 290), "{step:?}");
    live.revisions[0].written = NOW - 301;
    assert_eq!(decide(&goal(), &live, &Tries::default(), NOW), Step::Rollback(1));
}

#[test]
fn a_release_of_another_chart_is_left_alone() {
    let mut live = live(&[(Status::Deployed, WANTED)]);
    live.revisions[0].owner = Some("theirs".to_owned());
    assert!(matches!(
        decide(&goal(), &live, &Tries::default(), NOW),
        Step::GiveUp(_)
    ));
    assert!(matches!(decide_removal(OURS, &live), Step::GiveUp(_)));
    live.revisions[0].owner = None;
    assert_eq!(
        decide(&goal(), &live, &Tries::default(), NOW),
        Step::Upgrade,
        "a release that is nobody's is taken over"
    );
    assert!(matches!(decide_removal(OURS, &live), Step::GiveUp(_)));
}

#[test]
fn atomic_is_about_the_first_install_and_upgrade_atomic_about_upgrades() {
    let atomic = Goal { atomic: true, ..goal() };
    let upgrade_atomic = Goal {
        upgrade_atomic: true,
        ..goal()
    };
    let upgrade = [(Status::Deployed, OTHER), (Status::Failed, WANTED)];
    check(&atomic, &[(Status::Failed, WANTED)], &Step::Uninstall);
    check(&atomic, &upgrade, &Step::Upgrade);
    check(&upgrade_atomic, &upgrade, &Step::Rollback(1));
    check(&upgrade_atomic, &[(Status::Failed, WANTED)], &Step::Upgrade);
}

#[test]
fn objects_that_stay_unhealthy_undo_the_step_where_that_was_asked_for() {
    let unhealthy = Tries {
        unhealthy: true,
        failed: 1,
        last: NOW,
    };
    let step = |goal: &Goal<'_>, revisions: &[(Status, &str)]| decide(goal, &live(revisions), &unhealthy, NOW);
    let (first, second) = (
        [(Status::Deployed, WANTED)],
        [(Status::Superseded, OTHER), (Status::Deployed, WANTED)],
    );
    let atomic = Goal { atomic: true, ..goal() };
    let upgrade_atomic = Goal {
        upgrade_atomic: true,
        ..goal()
    };
    assert_eq!(step(&atomic, &first), Step::Uninstall);
    assert_eq!(step(&upgrade_atomic, &second), Step::Rollback(1));
    assert_eq!(step(&atomic, &second), Step::Nothing);
    assert_eq!(step(&upgrade_atomic, &first), Step::Nothing);
    assert_eq!(
        step(&goal(), &second),
        Step::Nothing,
        "without either it stays, and says so"
    );
}

#[test]
fn tries_are_bounded_and_counted_over_restarts() {
    let mut live = live(&[(Status::Deployed, OTHER)]);
    let mut failed = |count: u64| {
        live.revisions.truncate(1);
        for number in 0..count {
            live.revisions.push(LiveRevision {
                number: 2 + number,
                status: Status::Failed,
                content: Some(WANTED.to_owned()),
                written: NOW,
                ..live.revisions[0].clone()
            });
        }
        live.clone()
    };
    let step = |live: &Live, now| decide(&goal(), live, &Tries::default(), now);
    assert!(matches!(step(&failed(1), NOW), Step::Wait(at, _) if at == NOW + 10));
    assert_eq!(step(&failed(1), NOW + 10), Step::Upgrade);
    assert!(matches!(step(&failed(2), NOW + 39), Step::Wait(..)));
    assert_eq!(step(&failed(2), NOW + 40), Step::Upgrade);
    assert!(matches!(step(&failed(3), NOW + 3_599), Step::Wait(at, _) if at == NOW + 3_600));
    assert_eq!(step(&failed(3), NOW + 3_600), Step::Upgrade);
}

#[test]
fn a_kept_history_is_written_on_only_when_asked_for() {
    assert!(matches!(
        decide(&goal(), &live(&[(Status::Uninstalled, WANTED)]), &Tries::default(), NOW),
        Step::GiveUp(_)
    ));
    let replace = Goal {
        replace: true,
        ..goal()
    };
    check(&replace, &[(Status::Uninstalled, WANTED)], &Step::Install);
}

#[test]
fn only_what_carries_our_mark_is_uninstalled() {
    assert_eq!(decide_removal(OURS, &live(&[])), Step::Nothing);
    for status in [
        Status::Deployed,
        Status::Failed,
        Status::PendingUpgrade,
        Status::Uninstalling,
    ] {
        assert_eq!(decide_removal(OURS, &live(&[(status, OTHER)])), Step::Uninstall);
    }
    assert_eq!(
        decide_removal(OURS, &live(&[(Status::Uninstalled, OTHER)])),
        Step::Nothing
    );
}

fn status() -> impl Strategy<Value = Status> {
    prop::sample::select(vec![
        Status::Deployed,
        Status::Superseded,
        Status::Failed,
        Status::PendingInstall,
        Status::PendingUpgrade,
        Status::PendingRollback,
        Status::Uninstalling,
        Status::Uninstalled,
        Status::Unknown,
    ])
}

fn any_live() -> impl Strategy<Value = Live> {
    let one = (
        status(),
        prop::option::of(prop::sample::select(vec![WANTED, OTHER])),
        prop::option::of(prop::sample::select(vec![OURS, "theirs"])),
        0..2 * NOW,
    );
    prop::collection::vec(one, 0..7).prop_map(|revisions| Live {
        revisions: revisions
            .into_iter()
            .zip(1..)
            .map(|((status, content, owner, written), number)| LiveRevision {
                number,
                status,
                content: content.map(str::to_owned),
                owner: owner.map(str::to_owned),
                written,
                uid: String::new(),
            })
            .collect(),
    })
}

proptest! {
    /// Whatever is there: what is deployed as wanted stays, what is another's is not touched, data is only
    /// taken away where `atomic` says so, and helm never meets its own lock.
    #[test]
    fn every_state_is_answered_within_the_rules(
        live in any_live(),
        (atomic, upgrade_atomic, replace) in any::<(bool, bool, bool)>(),
        (failed, last) in (0..5_u32, 0..2 * NOW),
    ) {
        let goal = Goal { atomic, upgrade_atomic, replace, ..goal() };
        let tries = Tries { failed, last, unhealthy: false };
        let step = decide(&goal, &live, &tries, NOW);
        let Some(latest) = live.latest() else {
            prop_assert!(matches!(step, Step::Install | Step::Wait(..)));
            return Ok(());
        };
        if latest.owner.as_deref() == Some("theirs") {
            prop_assert!(matches!(step, Step::GiveUp(_)));
            prop_assert!(matches!(decide_removal(OURS, &live), Step::GiveUp(_) | Step::Nothing));
            return Ok(());
        }
        let is_ours = latest.owner.as_deref() == Some(OURS);
        if latest.status == Status::Deployed && is_ours && latest.content.as_deref() == Some(WANTED) {
            prop_assert_eq!(&step, &Step::Nothing);
        }
        if step == Step::Uninstall {
            prop_assert!(latest.status == Status::Uninstalling || atomic && live.ran_before().is_none());
        }
        if matches!(step, Step::Upgrade | Step::Install) {
            prop_assert!(!latest.status.is_pending(), "helm would refuse to work on a pending release");
        }
        if let Step::Rollback(number) = step {
            prop_assert!(live.revisions.iter().any(|revision| revision.number == number));
        }
        if let Step::Wait(at, _) = step {
            prop_assert!(at > NOW);
        }
    }
}
