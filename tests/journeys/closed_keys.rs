//! A person says no to an agent's next key, by deleting the branch that proposes it.

use flotilla_tests::network::Nginx;
use flotilla_tests::{Flotilla, eventually};

use super::sites::World;
use super::support::LIMIT;

const BRANCH: &str = "flotilla/keys";

/// Starts the agent with a next key, which is returned.
#[track_caller]
fn wish(world: &mut World, nginx: &Nginx, file: &str) -> String {
    let path = world.path(file);
    let key = Flotilla::run(&["hub", "key", "--key", &path]).expect_ok();
    world.start_behind(nginx, 0, &["--new-key", &path]);
    key.trim().to_owned()
}

#[track_caller]
fn until_proposed(world: &World, key: &str) {
    eventually(LIMIT, "the key is proposed", || {
        let file = world
            .repository
            .read(BRANCH, "clusters/helsinki.yaml")
            .unwrap_or_default();
        let described = world.ask(&["describe", "cluster", "helsinki"]).ok()?;
        let is_there = file.contains(key) && described.contains("merge branch flotilla/keys");
        is_there.then_some(()).ok_or(format!("{file}\n{described}"))
    });
}

/// Waits until the hub says that its proposal was closed; the branch is not there meanwhile.
#[track_caller]
fn until_closed(world: &World) {
    eventually(LIMIT, "the hub says that it was closed", || {
        assert_eq!(world.repository.head(BRANCH), None, "it does not come back");
        let described = world.ask(&["describe", "cluster", "helsinki"]).ok()?;
        let words = "its proposal was closed, and does not come back for this key";
        described.contains(words).then_some(()).ok_or(described)
    });
}

#[test]
fn a_proposal_of_keys_that_a_person_closed_stays_closed_and_another_key_is_another_question() {
    let mut world = World::start(&["helsinki"]);
    let nginx = world.nginx_at(0);
    let first = wish(&mut world, &nginx, "first.key");
    until_proposed(&world, &first);
    // nginx has one address for all agents behind it, which says nothing of who asks.
    let message = world.repository.message(BRANCH);
    assert!(
        message.contains("asked with ed25519:") && !message.contains(", from "),
        "{message}"
    );

    let close = |world: &World| world.repository.git(&["push", "--quiet", "origin", "--delete", BRANCH]);
    close(&world);
    until_closed(&world);
    // Whoever hears of it anew has it from the repository that it was closed.
    world.hub_mut().terminate(LIMIT);
    world.start_hub();
    until_closed(&world);
    world.greet("its old key counts");

    // The agent is given another one while the hub is away: who asked before does not stand in its way.
    world.hub_mut().terminate(LIMIT);
    let second = wish(&mut world, &nginx, "second.key");
    world.start_hub();
    until_proposed(&world, &second);
    let proposed = world
        .repository
        .read(BRANCH, "clusters/helsinki.yaml")
        .unwrap_or_default();
    assert!(!proposed.contains(&first), "{proposed}");
    close(&world);
    until_closed(&world);
}
