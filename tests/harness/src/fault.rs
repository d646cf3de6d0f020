//! Faults that a test or demonstration sets on a cluster while it runs. In: what shall go wrong. Out: for
//! each request, whether and how it does.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::limits::FAULTS_MAX;

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The answer comes that much later.
    Latency(Duration),
    /// 429 with `Retry-After` in whole seconds.
    TooManyRequests {
        /// When to come back.
        retry_after: Duration,
    },
    /// 500, 503 or another failure of the server.
    ServerError {
        /// The HTTP code, at least 500.
        code: u16,
    },
}

/// Which requests a fault meets: all that every part fits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// As roles name it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: Option<String>,
    /// Plural: `configmaps`.
    pub resource: Option<String>,
    /// Only so many of them, then the fault is over.
    pub next: Option<u64>,
    /// Only this share of them, spread evenly; 0.25 is every fourth.
    pub share: Option<f64>,
}

/// Names a fault that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

/// The faults of a cluster.
#[derive(Debug)]
pub struct Faults {
    rules: Mutex<Rules>,
    dropped: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Rules {
    made: u64,
    set: Vec<Rule>,
    away: BTreeSet<String>,
}

#[derive(Debug)]
struct Rule {
    id: FaultId,
    fault: Fault,
    requests: Requests,
    /// Part of a request that is due, of the share.
    due: f64,
}

/// What becomes of one request.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub wait: Duration,
    pub failure: Option<Failure>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            rules: Mutex::default(),
            dropped: watch::Sender::new(0),
        }
    }
}

impl Faults {
    /// Sets a fault for some requests. The oldest goes when there are too many.
    pub fn set(&self, fault: Fault, requests: Requests) -> FaultId {
        let mut rules = self.rules();
        rules.made += 1;
        let id = FaultId(rules.made);
        if rules.set.len() == FAULTS_MAX {
            rules.set.remove(0);
        }
        rules.set.push(Rule {
            id,
            fault,
            requests,
            due: 0.0,
        });
        id
    }

    /// Ends a fault.
    pub fn clear(&self, id: FaultId) {
        self.rules().set.retain(|rule| rule.id != id);
    }

    /// Ends all faults, groups that are away included.
    pub fn clear_all(&self) {
        let mut rules = self.rules();
        rules.set.clear();
        rules.away.clear();
    }

    /// Ends every watch that runs, without a word.
    pub fn drop_watches(&self) {
        self.dropped.send_modify(|count| *count += 1);
    }

    /// A group does not answer: discovery calls it stale and leaves it empty, and its resources are 503.
    pub fn take_away_group(&self, group: &str) {
        self.rules().away.insert(group.to_owned());
    }

    /// It answers again.
    pub fn bring_back_group(&self, group: &str) {
        self.rules().away.remove(group);
    }

    pub(crate) fn away(&self) -> BTreeSet<String> {
        self.rules().away.clone()
    }

    pub(crate) fn watch_drops(&self) -> watch::Receiver<u64> {
        self.dropped.subscribe()
    }

    /// What becomes of a request for a resource.
    pub(crate) fn judge(&self, verb: &str, resource: &str) -> Verdict {
        let mut rules = self.rules();
        let mut verdict = Verdict::default();
        for rule in &mut rules.set {
            if !rule.meets(verb, resource) {
                continue;
            }
            match rule.fault {
                Fault::Latency(time) => verdict.wait += time,
                Fault::TooManyRequests { retry_after } => verdict.failure = Some(too_many(retry_after)),
                Fault::ServerError { code } => verdict.failure = Some(server_error(code)),
            }
        }
        rules.set.retain(|rule| rule.requests.next != Some(0));
        verdict
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rule {
    fn meets(&mut self, verb: &str, resource: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        if !fits(&self.requests.verb, verb) || !fits(&self.requests.resource, resource) {
            return false;
        }
        if let Some(share) = self.requests.share {
            self.due += share;
            if self.due < 1.0 {
                return false;
            }
            self.due -= 1.0;
        }
        if let Some(next) = &mut self.requests.next {
            *next = next.saturating_sub(1);
        }
        true
    }
}

fn too_many(retry_after: Duration) -> Failure {
    let message = "Too many requests, please try again later.";
    Failure::new(429, "TooManyRequests", message).about(json!({"retryAfterSeconds": retry_after.as_secs()}))
}

fn server_error(code: u16) -> Failure {
    match code {
        503 => Failure::new(
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => Failure::new(504, "Timeout", "the request timed out"),
        code => Failure::new(
            code,
            "InternalError",
            "an error on the server has prevented the request from succeeding",
        ),
    }
}

/// What a group answers that is away.
pub(crate) fn unavailable() -> Failure {
    server_error(503)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_meets_only_the_requests_that_it_is_set_for() {
        let faults = Faults::default();
        let requests = Requests {
            verb: Some("get".to_owned()),
            resource: Some("pods".to_owned()),
            next: Some(2),
            share: None,
        };
        faults.set(Fault::ServerError { code: 500 }, requests);
        let fails = |verb: &str, resource: &str| faults.judge(verb, resource).failure.is_some();
        assert!(!fails("list", "pods") && !fails("get", "secrets"));
        assert!(fails("get", "pods") && fails("get", "pods"));
        assert!(!fails("get", "pods"), "it was for two");
    }

    #[test]
    fn a_share_is_spread_evenly() {
        let faults = Faults::default();
        let requests = Requests {
            share: Some(0.25),
            ..Requests::default()
        };
        let id = faults.set(Fault::ServerError { code: 503 }, requests);
        let failed = (0..100)
            .filter(|_| faults.judge("get", "pods").failure.is_some())
            .count();
        assert_eq!(failed, 25);
        faults.clear(id);
        assert!(faults.judge("get", "pods").failure.is_none());
    }
}
