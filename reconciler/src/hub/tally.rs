//! What is counted of people's requests, for `/metrics`: by words of our own enums alone.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::audit::Lost;

/// Why a login failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoginFailure {
    /// There was none.
    Missing,
    /// It is nobody's, or no more.
    Wrong,
    /// Too many before it were wrong.
    TooMany,
}

impl LoginFailure {
    fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "Missing",
            Self::Wrong => "Wrong",
            Self::TooMany => "TooMany",
        }
    }
}

/// What was used up when a request was answered with 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Limit {
    /// The places of a cluster.
    Cluster,
    /// A person's share of them.
    Person,
    /// A person's share of watches at the hub.
    Watches,
    /// What the agent takes.
    Agent,
    /// Answers of the hub's own API.
    Requests,
    /// Explanations that are made.
    Explanations,
    /// Questions to clusters about objects.
    Questions,
    /// Metrics that are written.
    Scrapes,
    /// Pings.
    Pings,
}

impl Limit {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Person => "Person",
            Self::Watches => "Watches",
            Self::Agent => "Agent",
            Self::Requests => "Requests",
            Self::Explanations => "Explanations",
            Self::Questions => "Questions",
            Self::Scrapes => "Scrapes",
            Self::Pings => "Pings",
        }
    }
}

/// Counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Mutex<Counts>,
    lost: Lost,
}

/// How often what happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// (class, code's class such as `2xx`) → answers.
    pub(super) answers: BTreeMap<(&'static str, &'static str), u64>,
    /// Reason → logins.
    pub(super) failed_logins: BTreeMap<&'static str, u64>,
    /// What was used up → requests that were refused by it.
    pub(super) limited: BTreeMap<&'static str, u64>,
    /// Audit lines that were never written, of people and of what comes by way of another hub.
    pub(super) audit_lines_lost: u64,
    /// Connections that found no place.
    pub(super) turned_away: u64,
    /// When the first certificate of the door's chain ends, in seconds since 1970; `None` without a door.
    pub(super) certificate_ends: Option<i64>,
}

impl Tally {
    /// With what an audit log loses.
    pub(super) fn of(lost: Lost) -> Self {
        Self {
            lost,
            ..Self::default()
        }
    }

    fn with(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn answered(&self, class: &'static str, code: u16) {
        let code = match code {
            100..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        self.with(|counts| *counts.answers.entry((class, code)).or_default() += 1);
    }

    pub(super) fn login_failed(&self, failure: LoginFailure) {
        self.with(|counts| *counts.failed_logins.entry(failure.as_str()).or_default() += 1);
    }

    pub(super) fn limited(&self, limit: Limit) {
        self.with(|counts| *counts.limited.entry(limit.as_str()).or_default() += 1);
    }

    pub(super) fn turned_away(&self) {
        self.with(|counts| counts.turned_away += 1);
    }

    /// The door shows another chain.
    pub(super) fn certificate_ends(&self, at: i64) {
        self.with(|counts| counts.certificate_ends = Some(at));
    }

    /// All of it, now.
    pub(super) fn counts(&self) -> Counts {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        Counts {
            audit_lines_lost: self.lost.count(),
            ..counts.clone()
        }
    }
}
