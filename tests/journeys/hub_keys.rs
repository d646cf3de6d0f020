//! A hub's key is replaced by another one, and no agent is lost.

use flotilla_tests::{Flotilla, eventually, pool};

use super::support::{Fleet, GREETING, LIMIT, config_map};

/// Starts the hub anew with the keys in these files, the one that it shows first.
fn restart(fleet: &mut Fleet, keys: &[&str]) {
    fleet.kill_hub();
    let file = |name: &&str| fleet.folder().join(name).display().to_string();
    let (keys, repository) = (keys.iter().map(file).collect::<Vec<_>>(), fleet.repository.bare());
    let repository = repository.display().to_string();
    fleet.start_hub_with_key(&keys.join(","), &repository, &[]);
}

/// Waits until each agent said that all of the hub's keys outlive it.
fn until_kept(fleet: &Fleet) {
    for name in pool::NAMES {
        eventually(LIMIT, &format!("{name} keeps the hub's keys"), || {
            let said = Flotilla::run(&["describe", "cluster", name, "--server", &fleet.api()]);
            match said.stdout.contains("the agent keeps all of this hub's") {
                true => Ok(()),
                false => Err(format!("{said:?}")),
            }
        });
    }
}

fn greet(fleet: &Fleet, text: &str) {
    let file = config_map("shop", "greeting", text);
    fleet.push(text, &[("feeds/web/greeting.yaml", &file)]);
    fleet.until_text(&pool::NAMES, GREETING, text);
}

#[test]
fn a_hub_s_key_is_replaced_in_three_steps_and_no_agent_is_lost() {
    let mut fleet = Fleet::start_in_use();
    restart(&mut fleet, &["hub.key", "new.key"]);
    until_kept(&fleet);

    // An agent that is started anew still has the old key from its command line, and the new one from its journal.
    fleet.kill_agent("bogota");
    restart(&mut fleet, &["new.key", "hub.key"]);
    fleet.start_agent("bogota");
    greet(&fleet, "with the new key shown");
    until_kept(&fleet);

    fleet.kill_agent("colombo");
    restart(&mut fleet, &["new.key"]);
    fleet.start_agent("colombo");
    greet(&fleet, "with the new key alone");
}
