//! One cluster: its objects, its faults, and what each request gets.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use http::{Request, Response, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use serde_json::Value;
use tokio::sync::watch;

use crate::controller::{self, Settle};
use crate::failure::Failure;
use crate::fault::{Cut, End, Faults};
use crate::limits::{BODY_BYTES_MAX, WATCH_WINDOW_EVENTS};
use crate::request::{Call, Query, Target, target};
use crate::store::{Saved, State};
use crate::verbs::{self, Answer};
use crate::{bootstrap, documents, watching};

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// How a cluster is.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it says its version is.
    pub version: String,
    /// How many nodes it has; each DaemonSet counts as ready on all of them.
    pub nodes: usize,
    /// How long workloads take until they are ready; at zero they are before the write is answered.
    pub ready_after: Duration,
    /// Events that watches can look back to; what is older is answered with 410.
    pub watch_window: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: "v1.36.3".to_owned(),
            nodes: 1,
            ready_after: Duration::ZERO,
            watch_window: WATCH_WINDOW_EVENTS,
        }
    }
}

/// An API server with all its objects in memory. Clones are the same server.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
    faults: Faults,
    options: Options,
    requests: Mutex<BTreeMap<(String, String), u64>>,
    /// Whether a task waits for `ready_after`.
    waits: AtomicBool,
}

/// A cluster's objects at one moment, as a backup of its etcd has them.
#[derive(Clone, Debug)]
pub struct Backup(Saved);

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("objects", &self.len()).finish()
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl ApiServer {
    /// A cluster as new: with its first namespaces and its nodes.
    pub fn new(options: Options) -> Self {
        let mut state = State::new(options.watch_window);
        bootstrap::fill(&mut state, &options);
        controller::settle(&mut state, Settle::All);
        let inner = Inner {
            changed: watch::Sender::new(state.version()),
            state: Mutex::new(state),
            faults: Faults::default(),
            options,
            requests: Mutex::default(),
            waits: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A client that asks this server without a socket.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// What goes wrong with it.
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }

    /// How many requests it was asked so far, by verb and resource; watches count when they begin.
    pub fn requests(&self) -> BTreeMap<(String, String), u64> {
        self.inner
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Forgets what watches could look back to, as a server does that starts anew or compacts: who goes on from
    /// an older version gets 410.
    pub fn forget_events(&self) {
        self.state().forget_events();
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.state().len()
    }

    /// Whether it holds nothing; it never does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its objects now. They are shared with the backup, not copied.
    pub fn backup(&self) -> Backup {
        Backup(self.state().save())
    }

    /// Goes back to a backup, as a cluster does whose etcd was restored: resource versions are lower than
    /// before, watches end, and what clients remember from since is unknown.
    pub fn restore(&self, backup: &Backup) {
        self.state().restore(&backup.0);
        self.inner.faults.drop_watches();
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changed.subscribe()
    }

    /// Answers a request; an error is a connection that ends.
    pub async fn answer<B>(&self, request: Request<B>) -> io::Result<Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match read(request).await {
            Ok(call) => self.answer_call(call).await,
            Err(failure) => Ok(refused(&failure)),
        }
    }

    async fn answer_call(&self, call: Call) -> io::Result<Response<Body>> {
        let target = target(&call.path);
        let verdict = match &target {
            Target::Place(place) => {
                let verb = call.verb(!place.name.is_empty());
                self.count(verb, &place.plural);
                self.inner.faults.judge(verb, &place.plural, &place.name)
            }
            _ => self.inner.faults.judge("get", "", ""),
        };
        if verdict.wait > Duration::ZERO {
            tokio::time::sleep(verdict.wait).await;
        }
        if let Some(failure) = self.inner.faults.objection(&call.authorization) {
            return Ok(refused(&failure));
        }
        match verdict.end {
            End::Answer => Ok(self.do_call(&call, &target)),
            End::Refuse(failure) => Ok(refused(&failure)),
            End::Hang => std::future::pending().await,
            End::Unreachable => Err(io::ErrorKind::ConnectionRefused.into()),
            End::Lose => {
                drop(self.do_call(&call, &target));
                Err(io::ErrorKind::ConnectionReset.into())
            }
            End::Cut(how) => Ok(cut(self.do_call(&call, &target), how).await),
        }
    }

    fn count(&self, verb: &str, resource: &str) {
        let mut requests = self.inner.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((verb.to_owned(), resource.to_owned())).or_default() += 1;
    }

    fn do_call(&self, call: &Call, target: &Target) -> Response<Body> {
        match self.decide(call, target) {
            Ok(Answer::Json { code, value, warnings }) => json(code, &value, &warnings, content_type(call, target)),
            Ok(Answer::Text { code, text }) => respond(code, "text/plain", Bytes::from_static(text.as_bytes()), &[]),
            Ok(Answer::Watch(plan)) => watching::response(self.clone(), plan),
            Err(failure) => refused(&failure),
        }
    }

    /// Everything that does not wait.
    fn decide(&self, call: &Call, target: &Target) -> Result<Answer, Failure> {
        let away = self.inner.faults.away();
        let mut state = self.state();
        let Target::Place(place) = target else {
            return documents::answer(&state, &self.inner.options, &away, call, target);
        };
        if away.contains(&place.group) {
            return Err(crate::fault::unavailable());
        }
        let before = state.version();
        let answer = verbs::answer(&mut state, call, place);
        if state.version() != before {
            self.settle(&mut state);
        }
        answer
    }

    fn settle(&self, state: &mut State) {
        if self.inner.options.ready_after.is_zero() {
            controller::settle(state, Settle::All);
        } else {
            controller::settle(state, Settle::NotReadiness);
            if controller::waits(state) {
                self.settle_later();
            }
        }
        self.inner.changed.send_replace(state.version());
    }

    /// One task per cluster at most, and only while something waits.
    fn settle_later(&self) {
        if self.inner.waits.swap(true, Ordering::AcqRel) {
            return;
        }
        let server = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(server.inner.options.ready_after).await;
            server.inner.waits.store(false, Ordering::Release);
            let mut state = server.state();
            controller::settle(&mut state, Settle::All);
            server.inner.changed.send_replace(state.version());
        });
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { server.answer(request).await })
    }
}

async fn read<B>(request: Request<B>) -> Result<Call, Failure>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let limited = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = limited.map_err(|_| {
        let message = format!("limit is {BODY_BYTES_MAX} bytes, or the body could not be read");
        Failure::new(413, "RequestEntityTooLarge", message)
    })?;
    let text = |name: header::HeaderName| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    Ok(Call {
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        accept: text(header::ACCEPT),
        content_type: text(header::CONTENT_TYPE),
        user_agent: text(header::USER_AGENT),
        authorization: text(header::AUTHORIZATION),
        body: body.to_bytes(),
    })
}

/// The first half of an answer, and how it ends.
async fn cut(response: Response<Body>, how: Cut) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let bytes = match body.collect().await {
        Ok(whole) => whole.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let half = stream::iter([Ok(Frame::data(bytes.slice(..bytes.len() / 2)))]);
    let end = async move {
        match how {
            Cut::Truncated => None,
            Cut::Reset => Some(Err(io::ErrorKind::ConnectionReset.into())),
            Cut::Stalled => std::future::pending().await,
        }
    };
    let end = stream::once(end).filter_map(std::future::ready);
    Response::from_parts(parts, StreamBody::new(half.chain(end)).boxed_unsync())
}

fn content_type(call: &Call, target: &Target) -> &'static str {
    let discovery = matches!(target, Target::CoreVersions | Target::Groups);
    if discovery && crate::request::wants_aggregated(&call.accept) {
        documents::AGGREGATED
    } else {
        "application/json"
    }
}

fn refused(failure: &Failure) -> Response<Body> {
    let mut response = json(failure.code, &failure.status(), &[], "application/json");
    if let Some(seconds) = failure.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn json(code: u16, value: &Value, warnings: &[String], content_type: &str) -> Response<Body> {
    respond(code, content_type, Bytes::from(value.to_string()), warnings)
}

fn respond(code: u16, content_type: &str, bytes: Bytes, warnings: &[String]) -> Response<Body> {
    let mut builder = Response::builder()
        .status(code)
        .header(header::CONTENT_TYPE, content_type);
    for warning in warnings {
        builder = builder.header(header::WARNING, format!("299 - {warning:?}"));
    }
    let body = Full::new(bytes).map_err(|never| match never {}).boxed_unsync();
    builder.body(body).expect("headers of our own words are valid")
}
