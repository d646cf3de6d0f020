//! One request to an API server: bounded in time, its failure sorted by what it means for us.

use std::future::Future;
use std::time::Duration;

use kube::core::Status;

use crate::fault::line;
use crate::limits::{API_REQUEST_TIMEOUT, APPLY_RETRY_MAX};

/// A request that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The API server answered, and refused.
    #[error("the API server refused: {}", .0.message)]
    Refused(Box<Status>),
    /// No answer in time.
    #[error("the API server gave no answer within {} s", API_REQUEST_TIMEOUT.as_secs())]
    Timeout,
    /// No connection.
    #[error("the API server could not be reached")]
    Unreachable(#[source] Box<kube::Error>),
    /// This object cannot be asked for, or what was answered about it is nothing that was asked for.
    #[error("the request or its answer makes no sense")]
    Senseless(#[source] Box<kube::Error>),
}

/// Runs a request with a limit in time.
pub(crate) async fn bounded<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, RequestError> {
    match tokio::time::timeout(API_REQUEST_TIMEOUT, request).await {
        Err(_) => Err(RequestError::Timeout),
        Ok(Ok(value)) => Ok(value),
        Ok(Err(kube::Error::Api(status))) => Err(RequestError::Refused(status)),
        Ok(Err(error @ (kube::Error::BuildRequest(_) | kube::Error::SerdeError(_) | kube::Error::HttpError(_)))) => {
            Err(RequestError::Senseless(Box::new(error)))
        }
        Ok(Err(error)) => Err(RequestError::Unreachable(Box::new(error))),
    }
}

impl RequestError {
    /// The HTTP code of a refusal.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(status) => Some(status.code),
            Self::Timeout | Self::Unreachable(_) | Self::Senseless(_) => None,
        }
    }

    /// Whether the object, its namespace or its kind does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the API server as a whole is of no use right now, so that asking for the next object is
    /// pointless: it cannot be reached, does not know us, or is too busy. Being unavailable (503) is not
    /// among them: an aggregated API that is away says so for its own objects alone.
    pub(crate) fn is_general(&self) -> bool {
        match self {
            Self::Refused(status) => matches!(status.code, 401 | 429),
            Self::Timeout | Self::Senseless(_) => false,
            Self::Unreachable(_) => true,
        }
    }

    /// How long the API server asks to be left alone.
    pub(crate) fn retry_after(&self) -> Duration {
        let seconds = match self {
            Self::Refused(status) => status.details.as_ref().map_or(0, |details| details.retry_after_seconds),
            Self::Timeout | Self::Unreachable(_) | Self::Senseless(_) => 0,
        };
        Duration::from_secs(seconds.into()).min(APPLY_RETRY_MAX)
    }

    /// The whole error in one line, with its causes.
    pub(crate) fn line(&self) -> String {
        line(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_ends() {
        let error = bounded(std::future::pending::<kube::Result<()>>()).await;
        assert!(matches!(error, Err(RequestError::Timeout)));
    }

    #[test]
    fn only_a_server_that_is_of_no_use_ends_a_pass() {
        let refused = |code| {
            let mut status = Status::failure("no", "Reason");
            status.code = code;
            RequestError::Refused(Box::new(status))
        };
        for code in [401, 429] {
            assert!(refused(code).is_general(), "{code}");
        }
        for code in [400, 403, 404, 409, 422, 500, 503] {
            assert!(!refused(code).is_general(), "{code}");
        }
        // One object's webhook may hang while the others are fine.
        assert!(!RequestError::Timeout.is_general());
    }

    #[tokio::test]
    async fn an_object_that_cannot_be_asked_for_ends_no_pass() {
        let client = kube::Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().expect("a valid URI")));
        let api: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
            kube::Api::namespaced(client.expect("a client"), "shop");
        let error = bounded(api.get("\u{1b}[31m"))
            .await
            .expect_err("no URI has such a name");
        assert!(!error.is_general(), "{error:?}");
    }
}
