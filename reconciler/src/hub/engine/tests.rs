mod agent_keys;
mod approval;
mod followed;
mod in_turn;
mod joins;
mod leaving;
mod moves;
mod peers;
mod previews;
mod refs;
mod rooms;
mod silence;
mod suspension;
mod two_hubs;
mod two_hubs_asking;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::model::{Approval, SyncMode};
use render::published::{Cause, UnitPlacement};
use render::{ClusterName, Digest, Fleet, Published, Revision, UnitKey};

use super::planning::record;
use super::*;
use crate::wire::{Held, Report};
use world::*;

#[test]
fn a_push_is_planned_rendered_released_and_sent() {
    let mut world = settled();
    world.sent.clear();
    world.push('2', &["a", "b"], "two");
    assert_eq!(world.sent, [(cluster("a"), 2), (cluster("b"), 2)]);
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        Some(&units('2', "two", &["a", "b"]))
    );
}

#[test]
fn a_push_that_changes_nothing_writes_nothing() {
    let mut world = settled();
    let commits = world.commits;
    world
        .source
        .insert(revision('2'), (fleet('2', &["a", "b"]), units('1', "one", &["a", "b"])));
    world.see('2', Relation::Follows);
    assert_eq!(world.commits, commits);
    assert_eq!(
        world.state.accepted,
        Some(revision('2')),
        "and is accepted all the same"
    );
}

#[test]
fn what_moves_during_a_plan_is_one_next_decision() {
    let mut world = settled();
    for digit in ['2', '3', '4'] {
        world.source.insert(
            revision(digit),
            (fleet(digit, &["a", "b"]), units('2', "two", &["a", "b"])),
        );
    }
    let judged_by = world.state.judged_by();
    let head = |digit| Event::SourceSeen {
        head: Head::At {
            revision: revision(digit),
            relation: Relation::Follows,
        },
        judged_by: judged_by.clone(),
        covered: true,
    };
    let effects = step(&mut world.state, head('2'), 0);
    assert!(matches!(effects.as_slice(), [Effect::Plan { .. }]), "{effects:?}");
    assert!(step(&mut world.state, head('3'), 0).is_empty(), "a plan is running");
    assert!(step(&mut world.state, head('4'), 0).is_empty(), "it still is");
    let plans = world.plans;
    let planned = world.perform(effects.into_iter().next().expect("one effect"));
    world.hear(planned.expect("a plan comes back"));
    assert_eq!(world.plans, plans + 2, "revision 2, then 4, and never 3");
    assert_eq!(world.state.accepted, Some(revision('4')));
}

#[test]
fn unreadable_is_not_empty() {
    let mut world = settled();
    let (commits, plans) = (world.commits, world.plans);
    world.see_head(Head::Unreadable {
        message: "disk".to_owned(),
    });
    assert_eq!(world.reason("SourceVerified"), "Unreadable");
    world.see_head(Head::BranchMissing {
        branch: "main".to_owned(),
    });
    assert_eq!(world.reason("SourceVerified"), "BranchMissing");
    let unreadable = StateRefs {
        writes: world.state.writes,
        rendered: StateHead::Unreadable("disk".to_owned()),
        released: StateHead::Missing,
        proposal_gone: false,
        keys_gone: false,
        proposed_instead: None,
        followed: Ok(None),
    };
    world.hear(Event::StateSeen(unreadable));
    assert_eq!(world.reason("StateKept"), "Unreadable");
    assert_eq!((world.commits, world.plans), (commits, plans));
}

#[test]
fn a_write_that_fails_is_said_until_one_succeeds() {
    let mut world = settled();
    world.hear(Event::WriteFailed {
        message: "the disk is full".to_owned(),
    });
    assert_eq!(world.reason("StateKept"), "WriteFailed");
    let again = world.released.clone().expect("something is released");
    world.hear(Event::ReleasedWritten(again));
    assert_eq!(world.reason("StateKept"), "Kept");
}

#[test]
fn a_mode_that_a_commit_changes_is_told_although_nothing_is_released() {
    let mut world = settled();
    world.sent.clear();
    let commits = world.commits;
    let mut changed = Fleet::clone(&fleet('2', &["a", "b"]));
    if let Some(declared) = changed.clusters.get_mut(&cluster("a")) {
        declared.sync_mode = SyncMode::Push;
    }
    let decided = (Arc::new(changed), units('1', "one", &["a", "b"]));
    world.source.insert(revision('2'), decided);
    world.see('2', Relation::Follows);
    assert_eq!(world.commits, commits, "nothing is written for it");
    assert_eq!(world.sent, [(cluster("a"), 1)], "and nobody else hears of it");
    let told = world.state.envelope(&cluster("a")).expect("it is registered");
    assert_eq!(told.mode, SyncMode::Push);
}

#[test]
fn a_cluster_that_goes_by_another_mode_is_told_anew_with_the_commit_that_is_known_by_then() {
    let mut world = settled();
    let connected = |epoch| Event::Connected {
        cluster: cluster("a"),
        epoch,
    };
    world.hear(connected(1));
    world.sent.clear();
    let dual = world.state.envelope(&cluster("a")).expect("it is registered").held();
    assert_eq!(dual.mode_source, Some(revision('1')));
    let pull = Held {
        mode: SyncMode::Pull,
        mode_source: Some(revision('7')),
        ..dual.clone()
    };
    world.report_held("a", Some(dual));
    assert_eq!(world.sent, [], "it goes by what it is told");
    world.report_held("a", Some(pull.clone()));
    assert_eq!(world.sent, [(cluster("a"), 1)]);
    // A commit that changes nothing may be the first one here that comes after what the cluster goes by.
    world.sent.clear();
    world
        .source
        .insert(revision('2'), (fleet('2', &["a", "b"]), units('1', "one", &["a", "b"])));
    world.see('2', Relation::Follows);
    assert_eq!(world.sent, [(cluster("a"), 1)], "and nobody else hears of it");
    let told = world.state.envelope(&cluster("a")).expect("it is registered");
    assert_eq!((told.mode, told.mode_source), (SyncMode::Dual, Some(revision('2'))));
    // Of an agent that says no commit, nothing is known.
    world.sent.clear();
    let unordered = Held {
        mode_source: None,
        ..pull
    };
    world.report_held("a", Some(unordered));
    assert_eq!(world.sent, []);
}

#[test]
fn observed_state_is_never_a_commit() {
    let mut world = settled();
    let (commits, released) = (world.commits, world.released.clone());
    world.hear(Event::Connected {
        cluster: cluster("a"),
        epoch: 1,
    });
    for held in [None, released.as_ref()] {
        world.report("a", held);
        world.report("b", held);
    }
    world.hear(Event::Disconnected {
        cluster: cluster("a"),
        epoch: 1,
    });
    world.hear(Event::GraceOver);
    assert_eq!(world.commits, commits, "whatever clusters say or do is no decision");
}

#[test]
fn a_silent_cluster_keeps_what_it_has() {
    let mut world = settled();
    world.report("a", world.released.clone().as_ref());
    world.hear(Event::Connected {
        cluster: cluster("b"),
        epoch: 1,
    });
    world.hear(Event::Disconnected {
        cluster: cluster("b"),
        epoch: 1,
    });
    world.hear(Event::GraceOver);
    world.push('2', &["a", "b"], "two");
    let released = world.released.clone().expect("it was released");
    assert_eq!(
        released.published.units,
        units('2', "two", &["a", "b"]),
        "silence takes nothing away from b, and gives nothing of it to a"
    );
    assert!(world.disconnected.is_empty());
    world.sent.clear();
    world.hear(Event::Connected {
        cluster: cluster("b"),
        epoch: 2,
    });
    assert_eq!(world.sent, [(cluster("b"), 2)], "back again it gets the newest alone");
}

#[test]
fn a_rewritten_history_is_held_until_it_is_accepted() {
    let mut world = settled();
    let commits = world.commits;
    world.source.insert(revision('9'), (fleet('9', &[]), BTreeMap::new()));
    world.see('9', Relation::Rewritten);
    assert_eq!(
        (world.commits, world.reason("SourceVerified")),
        (commits, "HistoryRewritten")
    );
    world.see('9', Relation::RewriteAccepted);
    assert_eq!(world.reason("SourceVerified"), "Read");
    assert!(world.commits > commits);
    let left: Vec<_> = world.state.left.iter().cloned().collect();
    assert_eq!(left, [revision('1')], "what was told of it may be told anew");
}

#[test]
fn a_rewrite_that_is_seen_while_an_older_commit_is_planned_is_noted_with_its_own_plan() {
    let mut world = settled();
    let judged_by = world.state.judged_by();
    for (digit, relation) in [('2', Relation::Follows), ('9', Relation::RewriteAccepted)] {
        let seen = Event::SourceSeen {
            head: Head::At {
                revision: revision(digit),
                relation,
            },
            covered: true,
            judged_by: judged_by.clone(),
        };
        step(&mut world.state, seen, world.now);
    }
    let planned = Planned {
        fleet: fleet('2', &["a", "b"]),
        plan: render::Plan {
            units: units('2', "two", &["a", "b"]),
            ..render::Plan::default()
        },
        findings: Vec::new(),
        base: world.state.rendered.as_ref().map(|rendered| rendered.commit.clone()),
        gate: Approval::None,
        commits: Vec::new(),
        departed: Default::default(),
        orphaned: Default::default(),
    };
    step(&mut world.state, Event::Planned(Box::new(planned)), world.now);
    assert_eq!(world.state.accepted, Some(revision('2')));
    assert!(world.state.left.is_empty(), "'2' builds on '1'");
}

#[test]
fn a_decision_that_could_not_be_written_is_written_when_it_can_be() {
    for gate in [Approval::None, Approval::Required] {
        let mut world = settled();
        world.gate = gate;
        world.full = true;
        world.push('2', &["a", "b"], "newer");
        world.look();
        assert_eq!(
            (world.commits, world.proposal.is_some()),
            (2, false),
            "nothing came of it"
        );
        world.full = false;
        world.look();
        assert!(
            world.commits == 4 || world.proposal.is_some(),
            "it came without another push"
        );
    }
}

#[test]
fn a_hub_that_starts_before_a_held_source_knows_its_clusters() {
    for held in [
        Head::At {
            revision: revision('9'),
            relation: Relation::Rewritten,
        },
        Head::BranchMissing {
            branch: "main".to_owned(),
        },
    ] {
        let mut world = settled().restarted();
        let commits = world.commits;
        world.look();
        world.see_head(held);
        world.hear(Event::Connected {
            cluster: cluster("a"),
            epoch: 9,
        });
        assert_eq!(
            (world.commits, world.sent.len()),
            (commits, 1),
            "nothing is written, and a is told"
        );
        assert_ne!(world.reason("SourceVerified"), "Read");
        world.push('3', &["a"], "newer");
        assert!(world.commits > commits, "a source that may be followed again is");
    }
}

#[test]
fn a_removed_cluster_is_disconnected_and_never_told_of_it() {
    let mut world = settled();
    world.hear(Event::Connected {
        cluster: cluster("b"),
        epoch: 1,
    });
    world.sent.clear();
    world.push('2', &["a"], "one");
    assert_eq!(world.disconnected, [cluster("b")]);
    assert!(
        world.sent.iter().all(|(name, _)| *name == cluster("a")),
        "{:?}",
        world.sent
    );
    world.hear(Event::Connected {
        cluster: cluster("b"),
        epoch: 2,
    });
    assert_eq!(
        world.disconnected,
        [cluster("b"), cluster("b")],
        "it may not come back by itself"
    );
}

#[test]
fn a_look_that_was_overtaken_says_nothing() {
    let mut world = settled();
    let (writes, rendered) = (world.state.writes, world.rendered.clone().expect("it was rendered"));
    let judged_by = world.state.judged_by();
    world.push('2', &["a", "b"], "two");
    let commits = world.commits;
    let stale = StateRefs {
        writes,
        rendered: StateHead::At {
            commit: Box::new(rendered),
            forward: true,
        },
        released: StateHead::Missing,
        proposal_gone: false,
        keys_gone: false,
        proposed_instead: None,
        followed: Ok(None),
    };
    let effects = step(&mut world.state, Event::StateSeen(stale), 0);
    assert!(matches!(effects.as_slice(), [Effect::LookAtState]), "{effects:?}");
    let head = Head::At {
        revision: revision('1'),
        relation: Relation::Follows,
    };
    let effects = step(
        &mut world.state,
        Event::SourceSeen {
            head,
            judged_by,
            covered: true,
        },
        0,
    );
    assert!(matches!(effects.as_slice(), [Effect::LookAtSource]), "{effects:?}");
    assert_eq!((world.commits, world.sequence()), (commits, Some(2)));
}

#[test]
fn a_look_beside_a_write_puts_nothing_back_and_is_repeated() {
    let mut world = settled();
    world
        .source
        .insert(revision('2'), (fleet('2', &["a"]), units('2', "two", &["a"])));
    let head = Head::At {
        revision: revision('2'),
        relation: Relation::Follows,
    };
    let judged_by = world.state.judged_by();
    let mut effects = step(
        &mut world.state,
        Event::SourceSeen {
            head,
            judged_by,
            covered: true,
        },
        0,
    );
    // Both refs are written in turn, and each write is done before its outcome is heard.
    for _ in 0..3 {
        let work = |effect: &Effect| matches!(effect, Effect::Plan { .. } | Effect::Write(_));
        let at = effects
            .iter()
            .position(work)
            .expect("a push leads to a plan and two writes");
        let done = world.perform(effects.remove(at)).expect("work has an outcome");
        if world.state.writing {
            let refs = world.refs();
            let overlapped = step(&mut world.state, Event::StateSeen(refs), 0);
            assert!(overlapped.is_empty(), "{overlapped:?}");
        }
        effects = step(&mut world.state, done, 0);
    }
    assert!(
        matches!(effects.last(), Some(Effect::LookAtState)),
        "it is looked at again: {effects:?}"
    );
    assert_eq!((world.sequence(), &world.state.restored), (Some(2), &None));
}

#[test]
fn the_newest_session_of_a_cluster_counts() {
    let mut world = settled();
    world.hear(Event::Connected {
        cluster: cluster("a"),
        epoch: 5,
    });
    world.hear(Event::Connected {
        cluster: cluster("a"),
        epoch: 7,
    });
    world.hear(Event::Disconnected {
        cluster: cluster("a"),
        epoch: 5,
    });
    assert_eq!(world.state.clusters[&cluster("a")].epoch, Some(7));
}
