//! Two agents with one identity, one at each of two hubs: neither hub alone sees both.

use super::heard::There;
use crate::hub::connections::Agent;
use crate::limits::TWIN_PATIENCE_SECONDS;

/// Whether an agent here and one there are two. One that was started anew has two processes' tunnels for as long as the
/// old ones are not seen dead, and one that says no process may be any.
pub(super) fn are_two(here: &Agent, there: &There, now: i64) -> bool {
    let are_named = !here.instance.is_empty() && !there.instance.is_empty();
    let newest = here.since.max(there.since);
    are_named && here.instance != there.instance && now.saturating_sub(newest) > TWIN_PATIENCE_SECONDS
}

#[cfg(test)]
mod tests {
    use tunnel::SecretKey;

    use super::*;

    #[test]
    fn two_processes_that_stay_at_two_hubs_are_two_agents_and_one_that_restarts_is_not() {
        let key = SecretKey::generate().expect("there is randomness").public();
        let check = |here: (&str, i64), there: (&str, i64), now: i64| {
            let agent = Agent {
                key,
                instance: here.0.to_owned(),
                since: here.1,
            };
            let there = There {
                since: there.1,
                key: Some(key),
                instance: there.0.to_owned(),
            };
            are_two(&agent, &there, now)
        };
        assert!(!check(("one", 0), ("one", 0), 1_000), "one agent at both hubs");
        assert!(!check(("new", 1_000), ("old", 0), 1_030), "it was just started anew");
        assert!(check(("new", 1_000), ("old", 0), 1_061));
        assert!(check(("old", 0), ("new", 1_000), 1_061));
        assert!(!check(("", 0), ("old", 0), 1_000), "one that does not say");
    }
}
