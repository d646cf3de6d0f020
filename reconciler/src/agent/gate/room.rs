//! How much of the hub's is under way at once: so many streams, and so many bytes of bodies.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use kube::client::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::judge::{Entry, Refused, takes_body};
use crate::limits::{
    GATE_ANSWER_TIMEOUT, GATE_BODIES_BYTES_MAX, GATE_BODY_BYTES_MAX, GATE_KEPT_MAX, GATE_PERSON_BODY_BYTES_MAX,
    GATE_PUSH_BODIES_BYTES_MAX, GATE_PUSH_STREAMS_MAX, GATE_REQUESTS_MAX,
};

/// The room of one kind of streams. What one kind takes is not taken from another.
#[derive(Clone, Debug)]
pub(in crate::agent) struct Room {
    streams: Arc<Semaphore>,
    kept: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

impl Room {
    /// For what people ask for.
    pub(in crate::agent) fn of_people() -> Self {
        Self::of(GATE_REQUESTS_MAX, GATE_KEPT_MAX, GATE_BODIES_BYTES_MAX)
    }

    /// For the hub's applier, which no crowd of readers may stop.
    pub(in crate::agent) fn of_push() -> Self {
        Self::of(GATE_PUSH_STREAMS_MAX, 0, GATE_PUSH_BODIES_BYTES_MAX)
    }

    fn of(streams: usize, kept: usize, bytes: usize) -> Self {
        Self {
            streams: Arc::new(Semaphore::new(streams)),
            kept: Arc::new(Semaphore::new(kept)),
            bytes: Arc::new(Semaphore::new(bytes)),
        }
    }

    /// A place for a stream or a request of it, if there is one.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }

    /// A place for a stream that stays when its request is answered, if there is one.
    pub(super) fn kept(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.kept).try_acquire_owned().ok()
    }

    /// A request's body, all of it, since an API server reads it whole before it does anything; and the bytes that it
    /// takes, from before it is read.
    pub(super) async fn body(
        &self,
        entry: Entry,
        parts: &Parts,
        body: Incoming,
    ) -> Result<(Body, Option<OwnedSemaphorePermit>), Refused> {
        if body.is_end_stream() {
            return Ok((Body::empty(), None));
        }
        if !takes_body(&parts.method) {
            return Err(Refused::unreadable("it is to be read by, and has a body"));
        }
        // What people send is a question about their rights, or goes through a proxy of the API server.
        let max = match entry {
            Entry::Push => GATE_BODY_BYTES_MAX,
            Entry::Read | Entry::Interactive => GATE_PERSON_BODY_BYTES_MAX,
        };
        let told = body
            .size_hint()
            .exact()
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if told.is_some_and(|bytes| bytes > max) {
            return Err(too_large(max));
        }
        let bytes = u32::try_from(told.unwrap_or(max)).unwrap_or(u32::MAX);
        let bytes = timeout(GATE_ANSWER_TIMEOUT, Arc::clone(&self.bytes).acquire_many_owned(bytes)).await;
        let bytes = bytes.ok().and_then(Result::ok).ok_or_else(busy)?;
        let whole = timeout(GATE_ANSWER_TIMEOUT, Limited::new(body, max).collect()).await;
        match whole.map_err(|_| Refused::late())? {
            Ok(whole) => Ok((Body::from(whole.to_bytes()), Some(bytes))),
            Err(error) if error.is::<LengthLimitError>() => Err(too_large(max)),
            Err(_) => Err(Refused::unreadable("its body")),
        }
    }
}

fn too_large(max: usize) -> Refused {
    let message = format!("the body of such a request has at most {} KiB", max >> 10);
    Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
}

fn busy() -> Refused {
    let message = "this agent has as many bytes of the hub's requests as it takes";
    Refused::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
}
