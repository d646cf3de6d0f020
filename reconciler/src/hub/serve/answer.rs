//! Answers: JSON, and Kubernetes' Status for whatever is not to be had.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::Duration;

/// What every writer is told.
pub(super) const READ_ONLY: &str = "this API is read-only: change the fleet with a commit and `git push`";

/// What is not to be had, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::hub) struct Refused {
    code: StatusCode,
    reason: &'static str,
    message: String,
    /// What it is about; without them kubectl prints its own words instead of the message.
    details: Option<Value>,
    /// Seconds after which it is worth another try.
    retry_after: Option<u32>,
}

impl Refused {
    /// There is no such object, kind or path.
    pub(in crate::hub) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// There is no object of this name.
    pub(super) fn no_such_in(group: &str, plural: &str, name: &str) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let details = json!({ "name": name, "group": group, "kind": plural });
        let refused = Self::not_found(format!("{plural}{dot}{group} {name:?} not found"));
        Self {
            details: Some(details),
            ..refused
        }
    }

    /// The verb would write to the hub.
    pub(in crate::hub) fn read_only() -> Self {
        Self::method_not_allowed(READ_ONLY)
    }

    /// The verb would write.
    pub(in crate::hub) fn method_not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// A parameter that cannot be read.
    pub(in crate::hub) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// A form that we do not write.
    pub(super) fn not_acceptable() -> Self {
        let message = "this API writes application/json only, as objects, Table or PartialObjectMetadata";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// What a caller may not have, or may not ask in this way.
    pub(in crate::hub) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// What changed since that version is not known any more.
    pub(super) fn expired() -> Self {
        Self::new(StatusCode::GONE, "Expired", "too old resource version: list again")
    }

    /// Too many at once.
    pub(in crate::hub) fn too_many(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).retry_after(1)
    }

    /// A body that is larger than anybody needs.
    pub(in crate::hub) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// The hub is not ready to say.
    pub(in crate::hub) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// Anything else.
    pub(in crate::hub) fn of(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, reason, message)
    }

    /// The same, which is worth another try after so many seconds.
    pub(in crate::hub) fn retry_after(self, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// The same, which is worth another try once a wait is over: said in whole seconds that are more than it, and never none.
    pub(in crate::hub) fn retry_in(self, wait: Duration) -> Self {
        self.retry_after(u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1))
    }

    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            retry_after: None,
        }
    }

    /// Kubernetes' Status.
    pub(in crate::hub) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if let Some(seconds) = self.retry_after {
            status["details"]["retryAfterSeconds"] = json!(seconds);
        }
        status
    }
}

impl From<Refused> for Response<Body> {
    fn from(refused: Refused) -> Self {
        let mut response = json_answer(&refused.status());
        *response.status_mut() = refused.code;
        if refused.code == StatusCode::METHOD_NOT_ALLOWED {
            response
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        if let Some(seconds) = refused.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// What became of a request, as it is answered.
pub(super) fn answered(outcome: Result<Response<Body>, Refused>) -> Response<Body> {
    outcome.unwrap_or_else(Response::from)
}

/// A value as JSON.
pub(in crate::hub) fn json_answer(value: &Value) -> Response<Body> {
    typed("application/json", value.to_string())
}

/// A text of this content type.
pub(super) fn typed(content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_wait_is_told_whole_seconds_and_never_none() {
        for (wait, expected) in [
            (Duration::ZERO, 1),
            (Duration::from_millis(1_500), 2),
            (Duration::MAX, u32::MAX),
        ] {
            let refused = Refused::too_many("too many").retry_in(wait);
            assert_eq!(refused.status()["details"]["retryAfterSeconds"], expected, "{wait:?}");
            let response = Response::from(refused);
            assert_eq!(response.headers()[header::RETRY_AFTER], expected.to_string().as_str());
        }
    }
}
