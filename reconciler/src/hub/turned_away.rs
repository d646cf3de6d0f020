//! What the log says of agents that are turned away: the first time for each reason and each of them, and then once a minute
//! with how often it was. Who dials again and again, or from everywhere, would write nothing else.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem::{Discriminant, discriminant, take};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use render::ClusterName;
use tokio::time::Instant;
use tunnel::{AcceptError, HandshakeError};

use super::doorstep::network;
use crate::limits::{TURNED_AWAY_NAMES_OF_NETWORK_MAX, TURNED_AWAY_SAID_EVERY, TURNED_AWAY_SAID_MAX};

/// Why an agent is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Why {
    /// Too many are waiting.
    NoRoom,
    /// It waited for too long.
    Late,
    /// Its name cannot be one.
    BadName,
    /// Another one with its key is there.
    Duplicate,
    /// They did not come to terms.
    Refused(Discriminant<AcceptError>, Option<Discriminant<HandshakeError>>),
}

impl Why {
    /// What kind of error it is, whoever it names.
    pub(super) fn of(error: &AcceptError) -> Self {
        let said = match error {
            AcceptError::Handshake(error) => Some(discriminant(error)),
            _ => None,
        };
        Self::Refused(discriminant(error), said)
    }
}

/// Who is turned away, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// Whoever gives this name, registered or not.
    Cluster(ClusterName),
    /// Whoever dials from there.
    Network(IpAddr),
    /// Whoever else, once there are too many.
    Others,
}

impl Who {
    /// Whoever dials from there, and gives no name.
    pub(super) fn at(address: IpAddr) -> Self {
        Self::Network(network(address))
    }
}

#[derive(Clone, Copy, Debug)]
struct Said {
    at: Instant,
    left_out: u64,
    /// The network in whose name it was said, of a name that nobody proved.
    by: Option<IpAddr>,
}

/// What was said lately.
#[derive(Debug, Default)]
pub(super) struct TurnedAway(Mutex<HashMap<(Why, Who), Said>>);

impl TurnedAway {
    /// Whether this is to be said now, and how many like it were left out since it was said last.
    pub(super) fn says(&self, why: Why, who: Who) -> Option<u64> {
        self.says_by(why, who, None)
    }

    /// The same of a name that somebody gave and did not prove: of one network so many names are told apart.
    pub(super) fn says_of_name(&self, why: Why, name: ClusterName, from: IpAddr) -> Option<u64> {
        self.says_by(why, Who::Cluster(name), Some(network(from)))
    }

    fn says_by(&self, why: Why, who: Who, by: Option<IpAddr>) -> Option<u64> {
        let now = Instant::now();
        let is_recent = |said: &Said| now.duration_since(said.at) < TURNED_AWAY_SAID_EVERY;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= TURNED_AWAY_SAID_MAX {
            forget(&mut all, is_recent);
        }
        let mut key = (why, who);
        if let Some(by) = by
            && !all.get(&key).is_some_and(is_recent)
            && all
                .values()
                .filter(|said| said.by == Some(by) && is_recent(said))
                .count()
                >= TURNED_AWAY_NAMES_OF_NETWORK_MAX
        {
            key.1 = Who::Network(by);
        }
        if all.len() >= TURNED_AWAY_SAID_MAX && !all.contains_key(&key) {
            key.1 = Who::Others;
        }
        match all.entry(key) {
            Entry::Occupied(mut said) if is_recent(said.get()) => {
                said.get_mut().left_out += 1;
                None
            }
            Entry::Occupied(mut said) => {
                (said.get_mut().at, said.get_mut().by) = (now, by);
                Some(take(&mut said.get_mut().left_out))
            }
            Entry::Vacant(place) => {
                place.insert(Said {
                    at: now,
                    left_out: 0,
                    by,
                });
                Some(0)
            }
        }
    }
}

/// Forgets what was said before lately; what was left out since is said with what is too many.
fn forget(all: &mut HashMap<(Why, Who), Said>, is_recent: impl Fn(&Said) -> bool) {
    let before: Vec<_> = all.extract_if(|_, said| !is_recent(said)).collect();
    for ((why, _), said) in before.into_iter().filter(|(_, said)| said.left_out > 0) {
        let others = all.entry((why, Who::Others)).or_insert(Said {
            left_out: 0,
            by: None,
            ..said
        });
        others.left_out += said.left_out;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use tokio::time::advance;

    use super::*;

    fn from(number: u32) -> Who {
        Who::at(Ipv4Addr::from(number).into())
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_is_turned_away_again_and_again_is_one_line_a_minute_for_each_reason() {
        let away = TurnedAway::default();
        let oslo = || Who::Cluster(ClusterName::parse("oslo").expect("a valid cluster"));
        let timeout = Why::of(&AcceptError::Timeout);
        assert_eq!(away.says(timeout, from(1)), Some(0));
        for _ in 0..9 {
            advance(TURNED_AWAY_SAID_EVERY / 10).await;
            assert_eq!(away.says(timeout, from(1)), None);
        }
        assert_eq!(away.says(Why::NoRoom, from(1)), Some(0), "another reason");
        assert_eq!(away.says(timeout, from(2)), Some(0), "another address");
        assert_eq!(away.says(Why::Duplicate, oslo()), Some(0));
        assert_eq!(away.says(Why::Duplicate, oslo()), None);
        let [unproven, closed] = [HandshakeError::HubNotProven, HandshakeError::NotBound]
            .map(|error| Why::of(&AcceptError::Handshake(error)));
        assert_eq!([away.says(unproven, from(1)), away.says(closed, from(1))], [Some(0); 2]);
        advance(TURNED_AWAY_SAID_EVERY / 10).await;
        assert_eq!(away.says(timeout, from(1)), Some(9), "as many were left out");
        assert_eq!(away.says(timeout, from(1)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn agents_from_everywhere_are_so_many_lines_and_no_more_is_remembered() {
        let away = TurnedAway::default();
        let all = u32::try_from(TURNED_AWAY_SAID_MAX).expect("it is small") * 3;
        let said = |from_first: u32| {
            (0..all)
                .filter(|at| away.says(Why::NoRoom, from(from_first + at)).is_some())
                .count()
        };
        assert_eq!(said(0), TURNED_AWAY_SAID_MAX + 1, "one for all that are too many");
        assert_eq!(away.0.lock().expect("nobody panicked").len(), TURNED_AWAY_SAID_MAX + 1);
        advance(TURNED_AWAY_SAID_EVERY).await;
        assert_eq!(
            said(all),
            TURNED_AWAY_SAID_MAX,
            "a minute later others have their turn, and what was left out is remembered"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_left_out_is_said_even_of_who_does_not_come_again() {
        let away = TurnedAway::default();
        let all = u32::try_from(TURNED_AWAY_SAID_MAX).expect("it is small");
        let come =
            |from_first: u32| -> Vec<_> { (0..all).map(|at| away.says(Why::Late, from(from_first + at))).collect() };
        for _ in 0..3 {
            come(0);
        }
        assert_eq!(
            away.says(Why::NoRoom, from(1)),
            Some(0),
            "another reason is another line"
        );
        advance(TURNED_AWAY_SAID_EVERY).await;
        let said = come(all);
        let last = u64::from(all) * 2;
        assert_eq!(said.iter().flatten().sum::<u64>(), last, "all that were left out");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_makes_up_names_is_a_few_lines_a_minute_and_each_of_them_is_counted() {
        let away = TurnedAway::default();
        let (names, rounds) = (3_000, 5);
        let address = |host: u32| IpAddr::from(Ipv4Addr::from(host));
        let name = |number: u32| ClusterName::parse(format!("made-up-{number}")).expect("a valid cluster");
        let why = Why::of(&AcceptError::Timeout);
        let mut told = 0;
        for round in 0..rounds {
            let come = (0..names).filter_map(|number| away.says_of_name(why, name(number), address(1)));
            let said: Vec<_> = come.collect();
            // And one of the address itself.
            assert!(
                said.len() <= TURNED_AWAY_NAMES_OF_NETWORK_MAX + 1,
                "{} lines",
                said.len()
            );
            told += said.iter().map(|more| more + 1).sum::<u64>();
            let other = away.says_of_name(why, name(names + round), address(2));
            assert_eq!(other, Some(0), "another network has names of its own");
            let known = away.says(why, Who::Cluster(name(names + rounds + round)));
            assert_eq!(known, Some(0), "and whoever is known is one of its own");
            advance(TURNED_AWAY_SAID_EVERY).await;
        }
        let all = away.0.lock().expect("nobody panicked");
        let left: u64 = all.values().map(|said| said.left_out).sum();
        assert_eq!(told + left, u64::from(names * rounds), "no count is lost");
        assert!(all.len() < 200, "and made-up names are not remembered: {}", all.len());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_a_network_of_addresses_is_one() {
        let away = TurnedAway::default();
        let host = |host| Who::at(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, host).into());
        assert_eq!(away.says(Why::NoRoom, host(1)), Some(0));
        assert_eq!(away.says(Why::NoRoom, host(2)), None);
        let other = Who::at(Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1).into());
        assert_eq!(away.says(Why::NoRoom, other), Some(0), "another network");
    }
}
