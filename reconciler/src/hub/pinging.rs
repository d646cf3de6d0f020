//! A ping for a person: streams to one cluster's agent, one after another, each with how long it took.

use serde::Serialize;
use tokio::time::{Instant, timeout};
use tunnel::{Open, TargetClass};

use super::asking::Door;
use crate::fault::line;
use crate::limits::{PING_ANSWER_TIMEOUT, SESSION_STEP_TIMEOUT};
use crate::wire::{PING_TARGET, Pong, read_message};

/// One try.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Try {
    /// From the wish for a stream until the agent granted it: the round trip of the tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rtt_ms: Option<f64>,
    /// Until the agent's answer was there, with its API server's in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Pong>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// Tries once.
pub(super) async fn ping(door: &Door) -> Try {
    let begun = Instant::now();
    let mut tried = Try {
        rtt_ms: None,
        answer_ms: None,
        answer: None,
        error: None,
    };
    let opened = match door.tunnel(Open::new(TargetClass::Look, PING_TARGET, SESSION_STEP_TIMEOUT)) {
        Ok((opener, open)) => opener.request(open).await,
        Err(error) => Err(error),
    };
    let stream = match opened {
        Ok(stream) => stream,
        Err(error) => {
            tried.error = Some(line(&error));
            return tried;
        }
    };
    tried.rtt_ms = Some(milliseconds(begun));
    let mut stream = Box::pin(stream);
    match timeout(PING_ANSWER_TIMEOUT, read_message::<_, Pong>(&mut stream)).await {
        Ok(Ok(Some(pong))) => {
            tried.answer_ms = Some(milliseconds(begun));
            tried.error = pong
                .error
                .clone()
                .map(|error| format!("its API server does not answer: {error}"));
            tried.answer = Some(pong);
        }
        Ok(Ok(None)) => tried.error = Some("its agent knows no ping, and is older".to_owned()),
        Ok(Err(error)) => tried.error = Some(line(&error)),
        Err(_) => tried.error = Some(format!("no answer within {} s", PING_ANSWER_TIMEOUT.as_secs())),
    }
    tried
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
