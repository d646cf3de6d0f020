//! Conditions in kstatus' form, and how many of them become one.

use serde::Serialize;

/// One thing that is so, is not so, or is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether it holds.
    pub status: Status,
    /// A CamelCase word for tools.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    /// It does.
    True,
    /// It does not.
    False,
    /// It is not known, or under way.
    Unknown,
}

impl Condition {
    /// A condition that holds.
    pub fn yes(kind: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(kind, Status::True, reason, message)
    }

    /// A condition that does not hold.
    pub fn no(kind: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(kind, Status::False, reason, message)
    }

    /// A condition that is under way or not known.
    pub fn unknown(kind: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(kind, Status::Unknown, reason, message)
    }

    fn new(kind: &'static str, status: Status, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            status,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// Whether it holds.
    pub fn is_true(&self) -> bool {
        self.status == Status::True
    }

    /// Whether it is known not to hold.
    pub fn is_false(&self) -> bool {
        self.status == Status::False
    }
}

impl Status {
    /// The word that Kubernetes has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// The conditions of kstatus: `Ready` always; `Reconciling` and `Stalled` only while they are true.
///
/// `rungs` decide in their order: one that does not hold makes it not ready, before one that is not known.
/// `stalled` says whether a rung that does not hold stays so until a person changes something.
pub(super) fn summary<'a>(
    rungs: impl Iterator<Item = &'a Condition> + Clone,
    stalled: impl Fn(&Condition) -> bool,
) -> Vec<Condition> {
    if let Some(broken) = rungs.clone().find(|rung| rung.is_false()) {
        let why = format!("{}: {}", broken.kind, broken.message);
        let ready = Condition::no("Ready", &broken.reason, why.clone());
        let other = if stalled(broken) {
            Condition::yes("Stalled", &broken.reason, why)
        } else {
            Condition::yes("Reconciling", "ProgressingWithRetry", why)
        };
        return vec![ready, other];
    }
    let Some(open) = rungs.clone().find(|rung| !rung.is_true()) else {
        let message = rungs.last().map(|rung| rung.message.clone()).unwrap_or_default();
        return vec![Condition::yes("Ready", "ReconciliationSucceeded", message)];
    };
    let why = format!("{}: {}", open.kind, open.message);
    let ready = Condition::unknown("Ready", &open.reason, why.clone());
    // A cluster that is away is not at work, and what is suspended or frozen waits for a person: nothing is under way.
    let at_rest = [super::ladder::OFFLINE, super::ladder::SUSPENDED, super::ladder::FROZEN];
    if at_rest.contains(&open.reason.as_str()) {
        return vec![ready];
    }
    vec![ready, Condition::yes("Reconciling", "Progressing", why)]
}
