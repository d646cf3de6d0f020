//! What a commit takes away stays away, also over a restart before a rewritten history.

use render::access::{Role, ScopedName};

use super::*;
use crate::hub::publish::Followed;

/// A fleet whose cluster `a` has these keys.
fn keyed(digit: char, keys: &[&str]) -> Arc<Fleet> {
    let mut keyed = Fleet::clone(&fleet(digit, &["a", "b"]));
    let declared = keyed.clusters.get_mut(&cluster("a")).expect("it is declared");
    declared.public_keys = keys.iter().map(|key| (*key).to_owned()).collect();
    Arc::new(keyed)
}

/// What counts of the keys of `a`.
fn keys(world: &World) -> Vec<String> {
    let fleet = world.state.fleet.as_ref();
    let declared = fleet.and_then(|fleet| fleet.clusters.get(&cluster("a")));
    declared
        .map(|declared| declared.public_keys.clone())
        .unwrap_or_default()
}

/// A hub that rendered a fleet with a lost key.
fn with_lost_key() -> World {
    let mut world = World::new();
    world.look();
    world.source.insert(
        revision('1'),
        (keyed('1', &["new", "lost"]), units('1', "one", &["a", "b"])),
    );
    world.see('1', Relation::Follows);
    world.report("a", None);
    world.report("b", None);
    assert_eq!(keys(&world), ["new", "lost"]);
    assert_eq!(world.note.1, 0, "what is rendered needs no note");
    world
}

/// A commit that takes the lost key away, and has this content.
fn revoke(world: &mut World, digit: char, content: (char, &str)) {
    let units = units(content.0, content.1, &["a", "b"]);
    world.source.insert(revision(digit), (keyed(digit, &["new"]), units));
    world.see(digit, Relation::Follows);
    assert_eq!(keys(world), ["new"]);
}

/// A process that starts and finds the history rewritten.
fn restarted_before_a_rewritten_history(world: World) -> World {
    let mut world = world.restarted();
    world.look();
    world.see('9', Relation::Rewritten);
    assert_eq!(world.reason("SourceVerified"), "HistoryRewritten");
    world
}

#[test]
fn a_key_that_a_commit_without_other_changes_took_away_stays_away_after_a_restart_before_a_rewritten_history() {
    let mut world = with_lost_key();
    let commits = world.commits;
    revoke(&mut world, '2', ('1', "one"));
    assert_eq!(world.commits, commits, "neither rendered nor released says so");
    let world = restarted_before_a_rewritten_history(world);
    assert_eq!(keys(&world), ["new"]);
    assert_eq!(
        world.state.accepted_or_published(),
        Some(revision('2')),
        "its head is to be named to accept another"
    );
}

#[test]
fn a_key_that_a_commit_took_away_stays_away_while_that_commit_waits_for_its_merge() {
    let mut world = with_lost_key();
    world.gate = Approval::Required;
    revoke(&mut world, '2', ('2', "two"));
    assert!(world.state.proposed.is_some());
    assert_eq!(keys(&restarted_before_a_rewritten_history(world)), ["new"]);
}

#[test]
fn a_key_that_was_taken_away_while_no_hub_ran_stays_away_over_the_next_restart() {
    let mut world = with_lost_key().restarted();
    world.look();
    revoke(&mut world, '2', ('1', "one"));
    assert_eq!(keys(&restarted_before_a_rewritten_history(world)), ["new"]);
}

#[test]
fn a_commit_that_changes_nothing_that_counts_is_not_noted() {
    let mut world = with_lost_key();
    revoke(&mut world, '2', ('1', "one"));
    let noted = world.note.1;
    world
        .source
        .insert(revision('3'), (keyed('3', &["new"]), units('1', "one", &["a", "b"])));
    world.see('3', Relation::Follows);
    assert_eq!(
        (world.state.accepted.clone(), world.note.1),
        (Some(revision('3')), noted)
    );
    // What is rendered from it says so itself.
    world
        .source
        .insert(revision('4'), (keyed('4', &[]), units('4', "four", &["a", "b"])));
    world.see('4', Relation::Follows);
    assert_eq!((keys(&world).len(), world.note.1), (0, noted));
    assert_eq!(world.state.named(), Some(revision('4')), "the note is over");
}

#[test]
fn whatever_counts_at_once_is_noted_as_keys_are() {
    type Change = fn(&mut Fleet);
    let changes: [Change; 3] = [
        |fleet| fleet.spec.lineage = Some(revision('7')),
        |fleet| {
            let key = ScopedName {
                namespace: String::new(),
                name: "reader".to_owned(),
            };
            let role = Role {
                key: key.clone(),
                rules: Vec::new(),
                file: "access/reader.yaml".into(),
                line: 1,
            };
            Arc::make_mut(&mut fleet.access).roles.insert(key, Arc::new(role));
        },
        |fleet| drop(fleet.clusters.remove(&cluster("b"))),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut world = with_lost_key();
        let mut changed = Fleet::clone(&keyed('2', &["new", "lost"]));
        change(&mut changed);
        world
            .source
            .insert(revision('2'), (Arc::new(changed), units('1', "one", &["a", "b"])));
        world.see('2', Relation::Follows);
        assert_eq!(world.note.1, 1, "{at}");
    }
}

#[test]
fn a_note_of_another_hub_lets_nothing_be_released_before_source_was_looked_at() {
    let mut world = with_lost_key();
    // Meanwhile a person merged something that is made of the commit that is known here.
    let before = world.rendered.clone().expect("it was rendered");
    let merged = Published {
        units: units('1', "merged", &["a", "b"]),
        ..Published::clone(&before.published)
    };
    world.rendered = Some(world.commit(merged, Some(before)));
    world.note.0 = Some(Followed {
        source: revision('2'),
        rendered: Some(revision('1')),
    });
    world.look();
    assert!(world.state.source.is_none(), "it is looked at");
    let judged_by = world.state.judged_by();
    assert_eq!(
        (judged_by.accepted, judged_by.named),
        (Some(revision('1')), Some(revision('2')))
    );
    // A copy that is older plans and releases nothing, and one that is not takes the key away.
    world.see('1', Relation::Behind);
    assert_eq!((keys(&world).len(), world.sequence()), (2, Some(1)));
    revoke(&mut world, '2', ('1', "merged"));
    assert_eq!((world.note.1, world.sequence()), (0, Some(2)), "it is noted already");
}

#[test]
fn a_note_that_cannot_be_read_is_not_taken_for_none() {
    let mut world = with_lost_key();
    revoke(&mut world, '2', ('1', "one"));
    let mut world = world.restarted();
    let refs = StateRefs {
        followed: Err(NoteUnclear {
            message: "the ref refs/flotilla/followed does not say which".to_owned(),
            sought: Vec::new(),
        }),
        ..world.refs()
    };
    world.hear(Event::StateSeen(refs));
    world.see('9', Relation::Rewritten);
    assert_eq!(world.reason("StateKept"), "Unreadable");
    assert!(world.state.fleet.is_none(), "nobody counts");
    world.look();
    world.see('9', Relation::Rewritten);
    assert_eq!(keys(&world), ["new"]);
}

#[test]
fn a_note_that_is_refused_rests_and_holds_up_nothing_else() {
    let mut world = with_lost_key();
    revoke(&mut world, '2', ('1', "one"));
    assert_eq!(world.note.1, 1);
    world.full = true;
    world
        .source
        .insert(revision('3'), (keyed('3', &[]), units('1', "one", &["a", "b"])));
    world.see('3', Relation::Follows);
    world.full = false;
    let plans = world.plans;
    world.look();
    assert_eq!(
        (world.note.1, world.plans),
        (1, plans),
        "it rests, and nothing is planned again for it"
    );
    world.now = next_time(&world.state).expect("it is tried again");
    world.hear(Event::TimeCame);
    assert_eq!((world.note.1, next_time(&world.state)), (2, None));
    assert_eq!(world.state.named(), Some(revision('3')));
}

#[test]
fn the_note_keeps_no_history_that_was_left() {
    let mut world = with_lost_key();
    revoke(&mut world, '2', ('1', "one"));
    world
        .source
        .insert(revision('9'), (keyed('9', &["new"]), units('9', "nine", &["a", "b"])));
    world.see('9', Relation::RewriteAccepted);
    let noted = world.note.0.clone().expect("it is noted");
    assert_eq!((noted.source, noted.rendered), (revision('9'), Some(revision('9'))));
    assert_eq!(world.state.named(), Some(revision('9')));
}

#[test]
fn an_older_note_that_another_hub_wrote_over_a_newer_one_is_put_right() {
    let mut world = with_lost_key();
    revoke(&mut world, '2', ('1', "one"));
    world
        .source
        .insert(revision('3'), (keyed('3', &[]), units('1', "one", &["a", "b"])));
    world.see('3', Relation::Follows);
    assert_eq!((world.noted(), world.note.1), (Some(&revision('3')), 2));
    // Before it knew of the newest.
    let older = Followed {
        source: revision('2'),
        rendered: Some(revision('1')),
    };
    world.note.0 = Some(older);
    world.look();
    world.see('3', Relation::Follows);
    assert_eq!((world.noted(), world.note.1), (Some(&revision('3')), 3));
    world.look();
    world.see('3', Relation::Follows);
    assert_eq!(world.note.1, 3, "once");
}

#[test]
fn a_note_that_another_hub_wrote_meanwhile_is_not_noted_over() {
    let mut world = with_lost_key();
    let theirs = Followed {
        source: revision('3'),
        rendered: Some(revision('1')),
    };
    world.note.0 = Some(theirs);
    // Nobody looked since.
    revoke(&mut world, '2', ('1', "one"));
    assert_eq!((world.noted(), world.note.1), (Some(&revision('3')), 0));
    world.look();
    world
        .source
        .insert(revision('3'), (keyed('3', &[]), units('1', "one", &["a", "b"])));
    world.see('3', Relation::Follows);
    world.now = next_time(&world.state).expect("it is looked at again");
    world.hear(Event::TimeCame);
    assert_eq!((world.noted(), world.note.1), (Some(&revision('3')), 0));
    assert_eq!(next_time(&world.state), None);
}

/// Another history is accepted and rendered, and the note of the old one stays.
fn with_a_note_of_the_history_that_was_left() -> World {
    let mut world = with_lost_key();
    revoke(&mut world, '2', ('1', "one"));
    world.note_refused = true;
    world
        .source
        .insert(revision('9'), (keyed('9', &["new"]), units('9', "nine", &["a", "b"])));
    world.see('9', Relation::RewriteAccepted);
    assert_eq!(world.state.rendered_from(), Some(&revision('9')));
    assert_eq!(world.noted(), Some(&revision('2')));
    world.note_refused = false;
    world
}

#[test]
fn a_note_of_the_history_that_was_left_is_replaced_though_the_first_try_failed() {
    let mut world = with_a_note_of_the_history_that_was_left();
    world.look();
    world.now = next_time(&world.state).expect("it is tried again");
    world.hear(Event::TimeCame);
    assert_eq!((world.noted(), world.note.1), (Some(&revision('9')), 2));
    assert_eq!(next_time(&world.state), None);
}

#[test]
fn a_note_of_the_history_that_was_left_is_replaced_after_a_restart() {
    let mut world = with_a_note_of_the_history_that_was_left().restarted();
    world.look();
    world.see('9', Relation::Follows);
    assert_eq!((world.noted(), world.note.1), (Some(&revision('9')), 2));
    let mut world = world.restarted();
    world.look();
    world.see('9', Relation::Follows);
    assert_eq!(world.note.1, 2, "once");
}
