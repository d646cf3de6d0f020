//! The API server as one process meets it: counts its writes for the switch, and sees every deletion.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use tower::Service;

use super::agent::JOURNAL;
use super::story::{Say, THINGS, Thing};
use super::switch::{Fate, Switch};
use crate::tests::applier::stored;
use crate::{ApiServer, Body};

/// What was said to whom, and what may therefore be deleted.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) says: Vec<Say>,
    /// The deliveries that the hub has begun to send, counted from one.
    pub(super) sent: BTreeSet<usize>,
    /// The newest that the agent said it took.
    pub(super) taken: usize,
    /// UIDs of objects that are somebody else's.
    pub(super) foreign: BTreeSet<String>,
    /// Deletions that should not have been asked for.
    pub(super) wrong: Vec<String>,
}

impl Ledger {
    /// Whether every delivery that the agent may hold now says that the object stays, and as it is where it cannot
    /// change.
    fn must_stay(&self, thing: &Thing, value: Option<usize>) -> bool {
        let may_hold = self.sent.iter().filter(|number| **number >= self.taken);
        let mut says = may_hold.map(|number| &self.says[number - 1]);
        says.all(|say| match say.get(thing) {
            Some((_, wanted)) => !thing.is_replaced() || value == Some(*wanted),
            None => false,
        })
    }
}

/// One process's way to the server.
#[derive(Clone)]
pub(super) struct Witness {
    server: ApiServer,
    switch: Arc<Switch>,
    ledger: Arc<Mutex<Ledger>>,
}

impl Witness {
    pub(super) fn client(server: &ApiServer, switch: &Arc<Switch>, ledger: &Arc<Mutex<Ledger>>) -> kube::Client {
        let witness = Self {
            server: server.clone(),
            switch: Arc::clone(switch),
            ledger: Arc::clone(ledger),
        };
        kube::Client::new(witness, "default")
    }

    fn see_deletion(&self, path: &str) {
        if path.contains(&format!("/secrets/{JOURNAL}-")) {
            return;
        }
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thing) = THINGS.iter().find(|thing| path.ends_with(&thing.path())) else {
            ledger.wrong.push(format!("{path} was never delivered"));
            return;
        };
        let live = stored(&self.server, thing.shelf, thing.namespace, thing.name);
        let value = live.as_ref().and_then(|live| thing.value(live));
        let uid = live.and_then(|live| live["metadata"]["uid"].as_str().map(str::to_owned));
        if uid.is_some_and(|uid| ledger.foreign.contains(&uid)) {
            ledger.wrong.push(format!("{path} is somebody else's"));
        }
        if ledger.must_stay(thing, value) {
            let words = format!(
                "{path} is in every delivery of {:?} from {} on",
                ledger.sent, ledger.taken
            );
            ledger.wrong.push(words);
        }
    }
}

impl Thing {
    /// How the path of a request for it ends.
    fn path(&self) -> String {
        let (plural, _) = self.shelf.split_once('.').unwrap_or_default();
        if self.namespace.is_empty() {
            format!("/{plural}/{}", self.name)
        } else {
            format!("/namespaces/{}/{plural}/{}", self.namespace, self.name)
        }
    }
}

impl<B> Service<Request<B>> for Witness
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let witness = self.clone();
        Box::pin(async move {
            let method = request.method().clone();
            let fate = if method == Method::GET {
                if witness.switch.is_dead() {
                    Fate::Lost
                } else {
                    Fate::Happens
                }
            } else {
                witness.switch.decide()
            };
            if fate == Fate::Lost {
                return std::future::pending().await;
            }
            if method == Method::DELETE {
                witness.see_deletion(request.uri().path());
            }
            let answer = witness.server.answer(request).await;
            if fate == Fate::Last {
                return std::future::pending().await;
            }
            answer
        })
    }
}
