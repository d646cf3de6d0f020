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
    /// 401: the caller's credential is not known (any more).
    Unauthorized,
    /// 403: the caller may not do that.
    Forbidden,
    /// 409: as if somebody else had written the object in between.
    Conflict,
    /// No connection: nothing is asked.
    Unreachable,
    /// The request arrives, nothing is done, and no answer ever comes.
    Hang,
    /// What was asked is done, and the connection ends before the answer.
    AnswerLost,
    /// What was asked is done, and half of the answer comes.
    AnswerCut(Cut),
}

/// How an answer ends in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// As if it were whole.
    Truncated,
    /// The connection is reset.
    Reset,
    /// Nothing more comes, and nothing says so.
    Stalled,
}

/// Which requests a fault meets: all that every part fits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// As roles name it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: Option<String>,
    /// Plural: `configmaps`.
    pub resource: Option<String>,
    /// The name of the one object that is asked for.
    pub name: Option<String>,
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
    silenced: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Rules {
    made: u64,
    set: Vec<Rule>,
    away: BTreeSet<String>,
    /// The only credential that is known; `None`: everybody is.
    token: Option<String>,
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
    pub end: End,
}

/// How a request ends.
#[derive(Debug, Default)]
pub(crate) enum End {
    /// As it should.
    #[default]
    Answer,
    /// Nothing is done, and this is said.
    Refuse(Failure),
    /// Nothing is done, and nothing is said.
    Hang,
    /// Nothing is done: there is no connection.
    Unreachable,
    /// It is done, and nothing is said.
    Lose,
    /// It is done, and half of it is said.
    Cut(Cut),
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            rules: Mutex::default(),
            dropped: watch::Sender::new(0),
            silenced: watch::Sender::new(0),
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

    /// Ends all faults, groups that are away and credentials that are asked for included.
    pub fn clear_all(&self) {
        let mut rules = self.rules();
        rules.set.clear();
        rules.away.clear();
        rules.token = None;
    }

    /// From now on only this bearer token is known: others get 401, as after a rotation.
    pub fn rotate_token(&self, token: &str) {
        self.rules().token = Some(token.to_owned());
    }

    /// Every watch that runs says nothing more and does not end, as behind a line that is dead at one end only.
    /// Watches that begin later work.
    pub fn silence_watches(&self) {
        self.silenced.send_modify(|count| *count += 1);
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

    pub(crate) fn watch_silences(&self) -> watch::Receiver<u64> {
        self.silenced.subscribe()
    }

    /// What is wrong with a caller's credential.
    pub(crate) fn objection(&self, authorization: &str) -> Option<Failure> {
        let rules = self.rules();
        let token = rules.token.as_deref()?;
        let presented = authorization.strip_prefix("Bearer ").map(str::trim);
        (presented != Some(token)).then(unauthorized)
    }

    pub(crate) fn watch_drops(&self) -> watch::Receiver<u64> {
        self.dropped.subscribe()
    }

    /// What becomes of a request for a resource, or for one object of it.
    pub(crate) fn judge(&self, verb: &str, resource: &str, name: &str) -> Verdict {
        let mut rules = self.rules();
        let mut verdict = Verdict::default();
        for rule in &mut rules.set {
            if !rule.meets(verb, resource, name) {
                continue;
            }
            match rule.fault {
                Fault::Latency(time) => verdict.wait += time,
                Fault::TooManyRequests { retry_after } => verdict.end = End::Refuse(too_many(retry_after)),
                Fault::ServerError { code } => verdict.end = End::Refuse(server_error(code)),
                Fault::Unauthorized => verdict.end = End::Refuse(unauthorized()),
                Fault::Forbidden => verdict.end = End::Refuse(forbidden(verb, resource)),
                Fault::Conflict => verdict.end = End::Refuse(Failure::modified("", resource, name)),
                Fault::Unreachable => verdict.end = End::Unreachable,
                Fault::Hang => verdict.end = End::Hang,
                Fault::AnswerLost => verdict.end = End::Lose,
                Fault::AnswerCut(cut) => verdict.end = End::Cut(cut),
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
    fn meets(&mut self, verb: &str, resource: &str, name: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        let requests = &self.requests;
        let fits_all = fits(&requests.verb, verb) && fits(&requests.resource, resource) && fits(&requests.name, name);
        if !fits_all {
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

fn unauthorized() -> Failure {
    Failure::new(401, "Unauthorized", "Unauthorized")
}

fn forbidden(verb: &str, resource: &str) -> Failure {
    let message = format!("{resource} is forbidden: User \"agent\" cannot {verb} resource \"{resource}\"");
    Failure::new(403, "Forbidden", message)
}

fn server_error(code: u16) -> Failure {
    match code {
        502 => Failure::new(502, "", "the gateway got no sound answer from the server behind it"),
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

    fn is_refused(verdict: &Verdict) -> bool {
        matches!(verdict.end, End::Refuse(_))
    }

    #[test]
    fn only_the_newest_token_is_known() {
        let faults = Faults::default();
        assert!(faults.objection("").is_none(), "everybody is known");
        faults.rotate_token("new");
        assert!(faults.objection("Bearer old").is_some() && faults.objection("").is_some());
        assert!(faults.objection("Bearer new").is_none());
    }

    #[test]
    fn a_fault_meets_only_the_requests_that_it_is_set_for() {
        let faults = Faults::default();
        let requests = Requests {
            verb: Some("get".to_owned()),
            resource: Some("pods".to_owned()),
            next: Some(2),
            ..Requests::default()
        };
        faults.set(Fault::ServerError { code: 500 }, requests);
        let fails = |verb: &str, resource: &str| is_refused(&faults.judge(verb, resource, ""));
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
            .filter(|_| is_refused(&faults.judge("get", "pods", "")))
            .count();
        assert_eq!(failed, 25);
        faults.clear(id);
        assert!(!is_refused(&faults.judge("get", "pods", "")));
    }
}
