//! Failed logins by where they come from: whoever guesses tokens is slowed down, and with it nobody elsewhere.
//!
//! A guess takes its place before it is looked at, and gives it back if it was none: however many come at a time, no more of
//! them are looked at than may fail.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Duration, Instant, timeout};

use crate::hub::doorstep::network;
use crate::hub::pace::Pace;
use crate::limits::{LOGIN_FAILURE_FORGIVEN, LOGIN_FAILURE_PLACES_MAX, LOGIN_FAILURES_AT_ONCE, LOGIN_TURN_TIMEOUT};

/// Who failed, and who is looked at.
#[derive(Debug, Default)]
pub(super) struct Failures {
    table: Mutex<Table>,
    /// An attempt is over.
    over: Notify,
}

#[derive(Debug)]
struct Table {
    failed: Pace<IpAddr>,
    /// Attempts of each place that are looked at now.
    looked_at: BTreeMap<IpAddr, u32>,
}

/// One login that is looked at. It is forgotten when it is dropped, unless it failed.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    failures: &'a Failures,
    place: IpAddr,
}

/// What a place may do.
enum May {
    Try,
    /// As many as may fail are looked at.
    WaitForOthers,
    Wait(Duration),
}

impl Default for Table {
    fn default() -> Self {
        Self {
            failed: Pace::new(LOGIN_FAILURE_FORGIVEN, LOGIN_FAILURES_AT_ONCE, LOGIN_FAILURE_PLACES_MAX),
            looked_at: BTreeMap::new(),
        }
    }
}

impl Failures {
    /// A place's next attempt, perhaps after others of its own were looked at; or how long it has to wait.
    pub(super) async fn attempt(&self, from: IpAddr) -> Result<Attempt<'_>, Duration> {
        let place = network(from);
        let turn = async {
            loop {
                let mut over = std::pin::pin!(self.over.notified());
                over.as_mut().enable();
                let may = self.table().begin(place, Instant::now());
                match may {
                    May::Try => return Ok(Attempt { failures: self, place }),
                    May::WaitForOthers => over.await,
                    May::Wait(wait) => return Err(wait),
                }
            }
        };
        timeout(LOGIN_TURN_TIMEOUT, turn)
            .await
            .unwrap_or(Err(LOGIN_FAILURE_FORGIVEN))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn begin(&mut self, place: IpAddr, now: Instant) -> May {
        if let Some(wait) = self.failed.wait(&place, 1, now) {
            return May::Wait(wait);
        }
        let looked_at = self.looked_at.get(&place).copied().unwrap_or_default();
        if self.failed.wait(&place, looked_at + 1, now).is_some() {
            return May::WaitForOthers;
        }
        self.looked_at.insert(place, looked_at + 1);
        May::Try
    }
}

impl Attempt<'_> {
    /// It was nobody's.
    pub(super) fn failed(self) {
        self.failures.table().failed.note(self.place, 1, Instant::now());
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut table = self.failures.table();
        if let Some(looked_at) = table.looked_at.get_mut(&self.place) {
            *looked_at -= 1;
            if *looked_at == 0 {
                table.looked_at.remove(&self.place);
            }
        }
        drop(table);
        self.failures.over.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    async fn fail(failures: &Failures, from: IpAddr) -> Result<(), Duration> {
        failures.attempt(from).await.map(Attempt::failed)
    }

    #[tokio::test(start_paused = true)]
    async fn who_guesses_tokens_is_slowed_down_and_forgiven_in_time() {
        let failures = Failures::default();
        for attempt in 0..LOGIN_FAILURES_AT_ONCE {
            assert_eq!(fail(&failures, HERE).await, Ok(()), "attempt {attempt}");
        }
        assert_eq!(fail(&failures, HERE).await, Err(LOGIN_FAILURE_FORGIVEN));
        let elsewhere = "192.0.2.2".parse().expect("an address");
        assert!(failures.attempt(elsewhere).await.is_ok(), "nobody else is slowed down");
        tokio::time::advance(LOGIN_FAILURE_FORGIVEN).await;
        assert_eq!(fail(&failures, HERE).await, Ok(()), "one more may be tried");
        assert_eq!(fail(&failures, HERE).await, Err(LOGIN_FAILURE_FORGIVEN), "and no two");
        tokio::time::advance(LOGIN_FAILURE_FORGIVEN * (LOGIN_FAILURES_AT_ONCE + 1)).await;
        for _ in 0..LOGIN_FAILURES_AT_ONCE {
            assert_eq!(fail(&failures, HERE).await, Ok(()), "all was forgiven before");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn guesses_that_come_at_a_time_are_no_more_than_may_fail() {
        let failures = Failures::default();
        let mut looked_at = Vec::new();
        for _ in 0..LOGIN_FAILURES_AT_ONCE {
            looked_at.push(failures.attempt(HERE).await.expect("it may"));
        }
        let begun = Instant::now();
        let next = failures.attempt(HERE);
        let mut next = std::pin::pin!(next);
        let is_looked_at = tokio::select! {
            biased;
            _next = next.as_mut() => true,
            () = tokio::task::yield_now() => false,
        };
        assert!(!is_looked_at, "it waits for what becomes of the others");
        drop(looked_at.pop());
        assert!(next.await.is_ok(), "one of them was good");
        assert!(begun.elapsed().is_zero());
        looked_at.into_iter().for_each(Attempt::failed);
        assert_eq!(fail(&failures, HERE).await, Ok(()), "nine failed");
        assert_eq!(fail(&failures, HERE).await, Err(LOGIN_FAILURE_FORGIVEN), "and now ten");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_others_does_not_wait_for_ever() {
        let failures = Failures::default();
        let mut looked_at = Vec::new();
        for _ in 0..LOGIN_FAILURES_AT_ONCE {
            looked_at.push(failures.attempt(HERE).await.expect("it may"));
        }
        let begun = Instant::now();
        assert_eq!(fail(&failures, HERE).await, Err(LOGIN_FAILURE_FORGIVEN));
        assert_eq!(begun.elapsed(), LOGIN_TURN_TIMEOUT);
        drop(looked_at);
        assert!(failures.table().looked_at.is_empty(), "nothing is left of them");
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_of_failures_has_an_end_and_a_network_of_ipv6_is_one_place() {
        let failures = Failures::default();
        let numbers = u32::try_from(LOGIN_FAILURE_PLACES_MAX).expect("it is small") + 10;
        for number in 0..numbers {
            let from = IpAddr::V4(std::net::Ipv4Addr::from(number));
            assert_eq!(fail(&failures, from).await, Ok(()));
        }
        assert_eq!(failures.table().failed.len(), LOGIN_FAILURE_PLACES_MAX);
        let place = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(place("2001:db8:1:2:3::4"), place("2001:db8:1:9:9::9"));
        assert_eq!(place("::ffff:192.0.2.1"), HERE);
    }
}
