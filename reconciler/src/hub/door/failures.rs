//! Failed logins by where they come from: whoever guesses tokens is slowed down, and with it nobody elsewhere.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use tokio::time::{Duration, Instant};

use crate::limits::{LOGIN_FAILURE_FORGIVEN, LOGIN_FAILURE_PLACES_MAX, LOGIN_FAILURES_AT_ONCE};

/// Place → when its failures are all forgiven. Each failure puts that off by [`LOGIN_FAILURE_FORGIVEN`].
#[derive(Debug, Default)]
pub(super) struct Failures {
    forgiven: BTreeMap<IpAddr, Instant>,
}

impl Failures {
    /// How long a place has to wait before its next login is looked at; `None`: it may try.
    pub(super) fn wait(&self, place: IpAddr, now: Instant) -> Option<Duration> {
        let forgiven = self.forgiven.get(&network(place))?;
        let owed = forgiven.checked_duration_since(now)?;
        owed.checked_sub(LOGIN_FAILURE_FORGIVEN * (LOGIN_FAILURES_AT_ONCE - 1))
            .filter(|wait| !wait.is_zero())
    }

    /// Notes a failure. Where the table is full, the place that is forgiven first is forgotten.
    pub(super) fn failed(&mut self, place: IpAddr, now: Instant) {
        self.forgiven.retain(|_, forgiven| *forgiven > now);
        let place = network(place);
        if self.forgiven.len() >= LOGIN_FAILURE_PLACES_MAX && !self.forgiven.contains_key(&place) {
            let first = self.forgiven.iter().min_by_key(|(_, forgiven)| **forgiven);
            if let Some(first) = first.map(|(place, _)| *place) {
                self.forgiven.remove(&first);
            }
        }
        let forgiven = self.forgiven.entry(place).or_insert(now);
        *forgiven += LOGIN_FAILURE_FORGIVEN;
    }
}

/// Of IPv6 one customer has a whole /64.
pub(in crate::hub) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn who_guesses_tokens_is_slowed_down_and_forgiven_in_time() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        for attempt in 0..LOGIN_FAILURES_AT_ONCE {
            assert_eq!(failures.wait(HERE, now), None, "attempt {attempt}");
            failures.failed(HERE, now);
        }
        assert_eq!(failures.wait(HERE, now), Some(LOGIN_FAILURE_FORGIVEN));
        let elsewhere = "192.0.2.2".parse().expect("an address");
        assert_eq!(failures.wait(elsewhere, now), None, "nobody else is slowed down");
        let later = now + LOGIN_FAILURE_FORGIVEN;
        assert_eq!(failures.wait(HERE, later), None, "one more may be tried");
        failures.failed(HERE, later);
        assert_eq!(failures.wait(HERE, later), Some(LOGIN_FAILURE_FORGIVEN), "and no two");
        let much_later = later + LOGIN_FAILURE_FORGIVEN * (LOGIN_FAILURES_AT_ONCE + 1);
        failures.failed(HERE, much_later);
        assert_eq!(failures.wait(HERE, much_later), None, "all was forgiven before");
    }

    #[test]
    fn the_table_of_failures_has_an_end_and_a_network_of_ipv6_is_one_place() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let numbers = u32::try_from(LOGIN_FAILURE_PLACES_MAX).expect("it is small") + 10;
        for number in 0..numbers {
            failures.failed(IpAddr::V4(std::net::Ipv4Addr::from(number)), now);
        }
        assert_eq!(failures.forgiven.len(), LOGIN_FAILURE_PLACES_MAX);
        let place = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(place("2001:db8:1:2:3::4"), place("2001:db8:1:2:9::9"));
        assert_eq!(place("::ffff:192.0.2.1"), HERE);
    }
}
