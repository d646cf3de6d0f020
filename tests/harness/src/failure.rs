//! What is answered when a request is refused: a Status, worded as the real API server words it.

use serde_json::{Value, json};

/// A refusal.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// HTTP code.
    pub code: u16,
    /// Machine-readable reason; empty for errors that the real server did not foresee either.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// What it is about, and why.
    pub details: Value,
    /// A token by which an expired list can go on, inconsistently.
    pub go_on: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            go_on: None,
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Something that this server does not do, by its name.
    pub(crate) fn lacking(feature: &str) -> Self {
        let message = format!("the in-memory API server does not do this: {feature}");
        Self::new(501, "NotImplemented", message).about(json!({"causes": [{"reason": "NotImplemented",
            "message": feature}]}))
    }

    pub(crate) fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(group, plural));
        Self::new(404, "NotFound", message).about(details(group, plural, name))
    }

    /// A path that nothing is served at.
    pub(crate) fn nowhere() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").about(json!({}))
    }

    /// An error without a reason, as the real server answers what it did not foresee.
    pub(crate) fn unforeseen(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(group, plural));
        Self::new(409, "AlreadyExists", message).about(details(group, plural, name))
    }

    pub(crate) fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let what = qualified(group, plural);
        let message = format!("Operation cannot be fulfilled on {what} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(details(group, plural, name))
    }

    /// A write that names an older state than the one there is.
    pub(crate) fn modified(group: &str, plural: &str, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, plural, name, why)
    }

    /// An object that breaks rules: (field, reason, what is wrong).
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, problems: &[(String, &str, String)]) -> Self {
        let texts: Vec<_> = problems
            .iter()
            .map(|(field, _, message)| format!("{field}: {message}"))
            .collect();
        let text = match &texts[..] {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {name:?} is invalid: {text}", qualified(group, kind));
        let causes = problems
            .iter()
            .map(|(field, reason, message)| json!({"reason": reason, "message": message, "field": field}));
        let causes: Vec<_> = causes.collect();
        let mut about = details(group, kind, name);
        about["causes"] = Value::from(causes);
        Self::new(422, "Invalid", message).about(about)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn about(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// The whole Status.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code});
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        if let Some(token) = &self.go_on {
            status["metadata"]["continue"] = token.as_str().into();
        }
        status
    }

    /// Seconds after which to come back, if it says so.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details["retryAfterSeconds"].as_u64()
    }
}

/// What a Status says of its subject.
pub(crate) fn details(group: &str, kind: &str, name: &str) -> Value {
    if group.is_empty() {
        json!({"name": name, "kind": kind})
    } else {
        json!({"name": name, "group": group, "kind": kind})
    }
}

/// `deployments.apps`.
pub(crate) fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}
