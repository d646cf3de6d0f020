//! Carries one stream's HTTP to the API server and back, as it comes: what is not taken at one end waits at the other.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use kube::client::Body;
use render::access::Attributes;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::caller::Identity;
use super::counted::{Answering, Counted};
use super::gather::Gathered;
use super::judge::{Entry, Refused, judge};
use super::own::Own;
use super::room::Room;
use super::talk::Talk;
use crate::apply::{Answer, Passage, Unreached};
use crate::fault;
use crate::limits::{GATE_ANSWER_TIMEOUT, GATE_HEAD_BYTES_MAX, GATE_HEAD_TIMEOUT};
use crate::wire::headers;

/// What a stream's requests are answered with.
#[derive(Clone, Copy)]
pub(in crate::agent) struct Forwarding<'a> {
    pub(in crate::agent) passage: &'a Passage,
    /// Where its bodies stand.
    pub(in crate::agent) room: &'a Room,
    pub(in crate::agent) entry: Entry,
    /// What is withheld from whoever is impersonated.
    pub(in crate::agent) own: &'a Own,
    /// Whom to impersonate; nobody in mode Push.
    pub(in crate::agent) identity: Option<&'a Identity>,
    /// What is told of it.
    pub(in crate::agent) talk: &'a Arc<Talk>,
}

/// Another request cannot be taken on this stream: the hub asks it on a new one, and is told there why not.
#[derive(Debug, thiserror::Error)]
#[error("the agent takes no other request on this stream")]
struct NoOther;

/// Serves a stream to its end. When it ends, so does what it asked for. `place` is its own until then; the request of a stream
/// that stays gives it back once it is answered, and the next one takes another.
pub(in crate::agent) async fn serve<S>(
    forwarding: Forwarding<'_>,
    stream: S,
    place: OwnedSemaphorePermit,
) -> Result<(), Box<dyn Error + Send + Sync>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (entry, own, room, talk) = (forwarding.entry, forwarding.own, forwarding.room, forwarding.talk);
    let upgraded = Mutex::new(Ends::default());
    let held = Held {
        place: Mutex::new(Some(place)),
        kept: Mutex::default(),
    };
    let answer = service_fn(|mut request: Request<Incoming>| async {
        if talk.is_between() && !(held.renew(room) && talk.reserve().await) {
            return Err(NoOther);
        }
        ends(&upgraded).hub = Some(hyper::upgrade::on(&mut request));
        let asked = judge((entry, own), request.method(), request.uri(), request.headers());
        talk.asks(headers::request_id(request.headers()), asked.as_ref().ok().cloned());
        let asks_on = entry == Entry::Read && headers::is_kept(request.headers());
        let is_kept = asks_on && !asked.as_ref().is_ok_and(lasts) && held.keep(room);
        match held.taken(is_kept) {
            Some(place) => talk.keep(place),
            None => {
                held.end();
                talk.is_last();
            }
        }
        let method = request.method().clone();
        let response = match asked {
            Ok(_) => forwarding.answer(request, &upgraded).await,
            Err(refused) => Err(refused),
        };
        let (mut head, body) = response.unwrap_or_else(refusal).into_parts();
        talk.is_answered(head.status.as_u16());
        if entry == Entry::Read && !is_kept {
            head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let body = Answering::new(Gathered::of(body).begun().await, &method, Arc::clone(talk));
        Ok(Response::from_parts(head, body))
    });
    let connection = http1::Builder::new()
        // Whoever asked for another protocol has their stream for themselves.
        .keep_alive(entry != Entry::Interactive)
        .timer(TokioTimer::new())
        .header_read_timeout((entry != Entry::Push).then_some(GATE_HEAD_TIMEOUT))
        .max_buf_size(GATE_HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Counted::new(stream, Arc::clone(talk))), answer)
        .with_upgrades();
    connection.await?;
    let Ends { hub, server } = std::mem::take(&mut *ends(&upgraded));
    match (hub, server) {
        (Some(hub), Some(server)) => join(hub, server).await?,
        // hyper hands over the connection of whoever asked for another protocol, and leaves its end to us: one that is cut
        // off would take along what it was answered.
        (Some(hub), None) => {
            if let Ok(hub) = hub.await {
                TokioIo::new(hub).shutdown().await?;
            }
        }
        (None, _) => {}
    }
    Ok(())
}

/// Whether what is asked may take long: a stream does not stay for what comes after it.
fn lasts(asked: &Attributes) -> bool {
    asked.verb == "watch" || asked.target.resource_name() == "pods/log"
}

/// What a stream holds of a room.
struct Held {
    /// Of its request; while none is under way there is none.
    place: Mutex<Option<OwnedSemaphorePermit>>,
    /// Of a stream on which requests follow one another.
    kept: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Held {
    /// Takes a place for another request, if there is one.
    fn renew(&self, room: &Room) -> bool {
        let place = room.place();
        let is_there = place.is_some();
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
        is_there
    }

    /// The request's place, where it gives that back before the stream ends.
    fn taken(&self, is_kept: bool) -> Option<OwnedSemaphorePermit> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        is_kept.then(|| place.take()).flatten()
    }

    /// Whether the stream may wait for another request.
    fn keep(&self, room: &Room) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = kept.take().or_else(|| room.kept());
        kept.is_some()
    }

    /// None follows: whoever waits for another request may have its place.
    fn end(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Both ends of a request that asked for another protocol.
#[derive(Default)]
struct Ends {
    hub: Option<OnUpgrade>,
    /// Only if the API server agreed.
    server: Option<OnUpgrade>,
}

fn ends(upgraded: &Mutex<Ends>) -> MutexGuard<'_, Ends> {
    upgraded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries bytes both ways until either end ends.
async fn join(hub: OnUpgrade, server: OnUpgrade) -> std::io::Result<()> {
    let (hub, server) = tokio::try_join!(hub, server).map_err(std::io::Error::other)?;
    copy_bidirectional(&mut TokioIo::new(hub), &mut TokioIo::new(server)).await?;
    Ok(())
}

impl Forwarding<'_> {
    async fn answer(&self, request: Request<Incoming>, upgraded: &Mutex<Ends>) -> Result<Response<Answer>, Refused> {
        let (parts, body) = request.into_parts();
        // Taken until the API server answers, by when it has read it.
        let (body, _bytes) = self.room.body(self.entry, &parts, body).await?;
        let mut forwarded = Request::new(body);
        *forwarded.method_mut() = parts.method;
        // Without whatever host the caller named: the client knows its own.
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        *forwarded.uri_mut() = path.parse().map_err(|_| Refused::unreadable("its path"))?;
        *forwarded.headers_mut() = headers::passed(&parts.headers, self.entry == Entry::Interactive);
        if let Some(identity) = self.identity {
            forwarded.headers_mut().extend(identity.headers.clone());
        }
        let answer = timeout(GATE_ANSWER_TIMEOUT, self.passage.send(forwarded)).await;
        let mut answer = answer
            .map_err(|_| Refused::late())?
            .map_err(|error| not_reached(&error))?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            // Not the caller's credential: that one stayed with the hub.
            let message = "the API server does not take the agent's own credential";
            return Err(Refused::new(StatusCode::BAD_GATEWAY, "ServiceUnavailable", message));
        }
        let switches = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
        headers::answered(answer.headers_mut(), switches);
        if switches {
            ends(upgraded).server = Some(hyper::upgrade::on(&mut answer));
        }
        Ok(answer)
    }
}

/// The caller is told in a word; the rest is for whoever runs the agent.
fn not_reached(error: &kube::Error) -> Refused {
    tracing::debug!(error = fault::line(error), "Got no answer of the API server.");
    let message = Unreached::of(error).to_string();
    Refused::new(StatusCode::BAD_GATEWAY, "ServiceUnavailable", message)
}

/// A refusal as an API server would say it.
fn refusal(refused: Refused) -> Response<Answer> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refused.message,
        "reason": refused.reason,
        "code": refused.code.as_u16(),
    });
    let mut response = Response::new(Either::Right(Body::from(status.to_string().into_bytes())));
    *response.status_mut() = refused.code;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests;
