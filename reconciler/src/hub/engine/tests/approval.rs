//! Decisions that wait for a person.

use super::*;

/// A fleet that asks for approval, with revision 2 proposed.
fn proposed() -> World {
    let mut world = settled();
    world.gate = Approval::Required;
    world.push('2', &["a", "b"], "two");
    assert!(world.state.proposed.is_some(), "a gated decision is proposed");
    world.withdrawn.clear();
    world
}

/// What a person puts on `rendered`, seen by the hub.
fn merge(world: &mut World, units: BTreeMap<UnitKey, UnitPlacement>) {
    let next = Published {
        record: Some(record(&revision('2'))),
        units,
    };
    let parent = world.rendered.clone();
    world.rendered = Some(world.commit(next, parent));
    world.look();
}

fn malformed(world: &World, forward: bool) -> Event {
    let refs = world.refs();
    Event::StateSeen(StateRefs {
        rendered: StateHead::Malformed {
            commit: revision('9'),
            message: "failed to read release.yaml".to_owned(),
            last: world.rendered.clone().map(Box::new),
            forward,
        },
        ..refs
    })
}

#[test]
fn a_merged_proposal_is_released_once_and_withdrawn_at_once() {
    let mut world = proposed();
    merge(&mut world, units('2', "two", &["a", "b"]));
    assert_eq!(world.sequence(), Some(2), "one release");
    assert_eq!(
        world.withdrawn,
        [false],
        "its branch is removed without another proposal"
    );
    assert_eq!(world.state.proposed, None);
    world.look();
    assert_eq!(
        (world.sequence(), world.withdrawn.len()),
        (Some(2), 1),
        "and that is all"
    );
}

#[test]
fn a_commit_of_a_person_is_released_as_it_stands_and_proposed_away() {
    let mut world = proposed();
    world.proposal = None;
    merge(&mut world, units('1', "by hand", &["a", "b"]));
    assert_eq!(world.sequence(), Some(2));
    let released = world.released.as_ref().map(|commit| commit.published.units.clone());
    assert_eq!(
        released,
        Some(units('1', "by hand", &["a", "b"])),
        "what is merged is approved"
    );
    assert_eq!(world.withdrawn, [false], "the stale proposal goes");
    let proposal = world.proposal.as_ref().map(|proposal| &proposal.units);
    assert_eq!(
        proposal,
        Some(&units('2', "two", &["a", "b"])),
        "source still says otherwise"
    );
}

#[test]
fn a_proposal_that_source_takes_back_is_withdrawn() {
    let mut world = proposed();
    world.push('3', &["a", "b"], "one");
    assert_eq!(world.state.proposed, None);
    assert_eq!(world.withdrawn, [true], "nothing is to be decided");
}

#[test]
fn a_proposal_whose_branch_was_removed_is_proposed_again() {
    let mut world = proposed();
    world.proposal = None;
    let gone = StateRefs {
        proposal_gone: true,
        keys_gone: false,
        proposed_instead: None,
        followed: Ok(None),
        ..world.refs()
    };
    world.hear(Event::StateSeen(gone));
    assert!(world.proposal.is_some() && world.state.proposed.is_some());
}

#[test]
fn a_fleet_that_asks_for_approval_no_more_withdraws_what_waits() {
    let mut world = proposed();
    world.gate = Approval::None;
    world.push('3', &["a", "b"], "three");
    assert_eq!(world.sequence(), Some(2));
    assert_eq!((world.state.proposed.clone(), world.withdrawn.len()), (None, 1));
}

#[test]
fn a_malformed_commit_on_rendered_holds_everything_until_it_is_corrected() {
    for gate in [Approval::None, Approval::Required] {
        let mut world = settled();
        let commits = world.commits;
        world.hear(malformed(&world, true));
        assert_eq!(world.reason("StateKept"), "RenderedMalformed");
        world.gate = gate;
        world.push('2', &["a", "b"], "two");
        assert_eq!(
            (world.commits, world.state.proposed.clone()),
            (commits, None),
            "nothing is written"
        );
        assert_eq!(
            world.state.accepted,
            Some(revision('2')),
            "clusters and keys count all the same"
        );
        // A person takes the commit back, by a reset or a revert.
        world.look();
        assert_eq!(world.reason("StateKept"), "Kept");
        let is_decided = world.state.proposed.is_some() || world.sequence() == Some(2);
        assert!(is_decided, "what waited is decided now");
    }
}

#[test]
fn a_malformed_commit_holds_a_hub_that_starts_too() {
    let mut world = settled().restarted();
    world.hear(malformed(&world, true));
    world.see('1', Relation::Follows);
    assert_eq!(world.reason("StateKept"), "RenderedMalformed");
    assert!(world.state.rendered.is_some(), "what was approved before is known");
    assert!(world.state.envelope(&cluster("a")).is_some(), "clusters are served");
    world.look();
    assert_eq!(world.reason("StateKept"), "Kept");
}

#[test]
fn a_malformed_commit_that_rewinds_or_stands_on_released_is_put_back() {
    let mut world = settled();
    let commits = world.commits;
    let known = world.rendered.as_ref().map(|commit| commit.commit.clone());
    let seen = malformed(&world, false);
    let effects = step(&mut world.state, seen, 0);
    let [Effect::Write(Write::AdoptRendered { found, commit })] = effects.as_slice() else {
        panic!("it is put back: {effects:?}");
    };
    assert_eq!((found, Some(commit)), (&Some(revision('9')), known.as_ref()));
    assert_eq!(world.commits, commits);

    let mut world = settled();
    let refs = StateRefs {
        released: StateHead::Malformed {
            commit: revision('9'),
            message: "release.yaml is missing".to_owned(),
            last: None,
            forward: true,
        },
        ..world.refs()
    };
    let effects = step(&mut world.state, Event::StateSeen(refs), 0);
    assert!(
        matches!(effects.as_slice(), [Effect::Write(Write::AdoptReleased { found: Some(found), .. })] if *found == revision('9')),
        "{effects:?}"
    );
}

#[test]
fn a_gated_decision_is_proposed_and_released_only_when_a_person_merged_it() {
    let mut world = settled();
    world.gate = Approval::Required;
    let (rendered, released) = (world.rendered.clone(), world.released.clone());
    world.push('2', &["a", "b"], "two");
    let commit = |commit: &Option<StateCommit>| commit.as_ref().map(|commit| commit.commit.clone());
    assert_eq!(
        commit(&world.rendered),
        commit(&rendered),
        "the hub does not move rendered"
    );
    assert_eq!(commit(&world.released), commit(&released), "and releases nothing");
    assert!(world.state.proposed.is_some());
    let proposal = world.proposal.take().expect("it was proposed");
    world.rendered = Some(world.commit(proposal, rendered));
    world.look();
    assert_eq!(world.sequence(), Some(2));
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        Some(&units('2', "two", &["a", "b"]))
    );
    assert_eq!(world.state.proposed, None);
}

#[test]
fn a_first_run_under_approval_delivers_nothing_before_a_merge() {
    let mut world = World::new();
    world.gate = Approval::Required;
    world.look();
    world.push('1', &["a"], "one");
    world.report("a", None);
    assert!(
        world
            .rendered
            .as_ref()
            .is_some_and(|commit| commit.published.units.is_empty())
    );
    assert!(
        world
            .released
            .as_ref()
            .is_none_or(|commit| commit.published.units.is_empty())
    );
    assert_eq!(
        world.proposal.as_ref().map(|proposal| &proposal.units),
        Some(&units('1', "one", &["a"]))
    );
}
