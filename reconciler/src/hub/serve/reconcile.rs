//! `POST /reconcile`: asks the hub to look at its repositories now.
//!
//! It is what a webhook of any Git host, or a person in a hurry, calls. Nothing that it carries is believed,
//! or even read: the hub looks at Git, and Git says what is so. A lost call costs one interval of the poll.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::StreamExt as _;
use http::StatusCode;
use serde_json::json;

use super::answer::{Refused, json_answer};
use super::context::Context;
use crate::limits::RECONCILE_BODY_BYTES_MAX;

/// Where it is asked for.
pub(super) const PATH: &str = "/reconcile";

/// Answers 202 once the look is asked for. Many calls during one look become one more look.
pub(super) async fn reconcile(State(context): State<Context>, request: Request) -> Response {
    if !is_drained(request.into_body()).await {
        return Refused::too_large("no more than 8 MiB are taken here, and none is read").into();
    }
    context.look_now.notify_one();
    let mut answer = json_answer(&json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "message": "source and state are looked at now",
        "code": StatusCode::ACCEPTED.as_u16(),
    }));
    *answer.status_mut() = StatusCode::ACCEPTED;
    answer
}

/// Whether a body ended within the limit. It is kept nowhere.
async fn is_drained(body: Body) -> bool {
    let mut chunks = body.into_data_stream();
    let mut bytes = 0;
    while let Some(Ok(chunk)) = chunks.next().await {
        bytes += chunk.len();
        if bytes > RECONCILE_BODY_BYTES_MAX {
            return false;
        }
    }
    true
}
