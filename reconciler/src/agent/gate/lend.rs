//! Serves one stream that the hub opened to what this cluster lends: asks the policy, carries, and writes the audit log.

use std::error::Error;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use render::ClusterName;
use render::model::SyncMode;
use tokio::io::copy_bidirectional;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tunnel::{IncomingOpen, Open, OpenCode, Responder, StreamError, TargetClass, TunnelStream};

use super::counted::Counted;
use super::dial::{dial, resolved};
use super::talk::{DONE, Log, Talk};
use super::{Entry, Forwarding, Lent, Policy, Room, identity, serve};
use crate::agent::counts::Counts;
use crate::agent::look;
use crate::apply::Passage;
use crate::audit::{AuditLog, StreamLine};
use crate::fault;
use crate::limits::{GATE_END_TIMEOUT, PINGS_MAX};
use crate::wire::PING_TARGET;

/// How a stream ended that was not served.
struct Refused(&'static str);

/// How a stream ended that was served, unless it was not.
type Closed = Result<&'static str, Refused>;

/// What this cluster lends, and to whom it was lent.
pub(in crate::agent) struct Gate {
    cluster: ClusterName,
    policy: Policy,
    mode: watch::Receiver<SyncMode>,
    client: Client,
    passage: Passage,
    people: Room,
    push: Room,
    /// One question at a time: the applier needs the API server more.
    looking: Arc<Semaphore>,
    /// A ping is one request of the API server, and waits behind no question.
    pinging: Arc<Semaphore>,
    log: Arc<Log>,
    /// Streams that have not left their line yet.
    open: TaskTracker,
    counts: Arc<Counts>,
}

impl Gate {
    pub(in crate::agent) fn new(
        cluster: ClusterName,
        policy: Policy,
        mode: watch::Receiver<SyncMode>,
        (client, passage): (Client, Passage),
        audit: AuditLog,
        counts: Arc<Counts>,
    ) -> Self {
        Self {
            cluster,
            policy,
            mode,
            client,
            passage,
            people: Room::of_people(),
            push: Room::of_push(),
            looking: Arc::new(Semaphore::new(1)),
            pinging: Arc::new(Semaphore::new(PINGS_MAX)),
            log: Arc::new(Log::new(audit)),
            open: TaskTracker::new(),
            counts,
        }
    }

    /// Serves a stream until it ends, its session does, or its class is lent no more.
    pub(in crate::agent) async fn open(&self, opened: IncomingOpen, ended: &CancellationToken) {
        let IncomingOpen { open, responder } = opened;
        let _leaves_a_line = self.open.token();
        let line = StreamLine {
            time: Timestamp::now().to_string(),
            cluster: self.cluster.to_string(),
            class: open.class.as_str().to_owned(),
            target: open.target.clone(),
            request_id: open.request_id.clone(),
            ..StreamLine::default()
        };
        // Told also where what follows is dropped.
        let talk = Talk::begin(line, Arc::clone(&self.log));
        let carried = Box::pin(self.carry(&open, responder, &talk, ended));
        match talk.lasting(carried).await {
            Ok(closed) => talk.end(closed).await,
            Err(Refused(closed)) => talk.refuse(closed),
        }
    }

    /// Writes what the audit log left out of watches that are alike, and tells of lines that were lost, for ever.
    pub(in crate::agent) async fn write_folded(&self) {
        self.log.write_folded(|| self.tell_lost()).await;
    }

    /// At the end of all tunnels, waits a little until every stream has left its line, and writes what was left out.
    pub(in crate::agent) async fn end(&self) {
        self.open.close();
        let deadline = Instant::now() + GATE_END_TIMEOUT;
        let _all_did = timeout_at(deadline, self.open.wait()).await;
        self.log.write_rest(deadline).await;
        self.tell_lost();
    }

    fn tell_lost(&self) {
        self.log.audit.tell_lost();
        self.counts.audit_lines_lost(self.log.audit.lost().count());
    }

    /// What a stream is lent now. A ping asks for no more than a version, and is what a person tries first.
    fn lent(&self, mode: SyncMode, open: &Open) -> Result<Lent, String> {
        if is_ping(open) {
            return Ok(Lent::Answers);
        }
        self.policy.admits(mode, &open.class)
    }

    /// The place that it takes, if there is one.
    fn place(&self, lent: Lent, open: &Open) -> Result<OwnedSemaphorePermit, &'static str> {
        let many = "this agent has as many requests of the hub as it takes";
        match lent {
            Lent::ApiServer(Entry::Push) => self.push.place().ok_or(many),
            Lent::ApiServer(Entry::Read | Entry::Interactive) | Lent::Address => self.people.place().ok_or(many),
            Lent::Answers => {
                let turns = if is_ping(open) { &self.pinging } else { &self.looking };
                let turn = Arc::clone(turns).try_acquire_owned();
                turn.map_err(|_| "another question is being answered")
            }
        }
    }

    async fn carry(&self, open: &Open, responder: Responder, talk: &Arc<Talk>, ended: &CancellationToken) -> Closed {
        let mode = *self.mode.borrow();
        let lent = match self.lent(mode, open) {
            Ok(lent) => lent,
            Err(why) => return self.refuse(open, responder, OpenCode::NotAllowed, &why),
        };
        let place = match self.place(lent, open) {
            Ok(place) => place,
            Err(why) => return self.refuse(open, responder, OpenCode::Limit, why),
        };
        // What the hub's applier brings goes on: it is written down in Git.
        let is_somebodys = matches!(lent, Lent::ApiServer(Entry::Read | Entry::Interactive) | Lent::Address);
        if is_somebodys && !talk.reserve().await {
            let why = "the agent's audit log cannot be written, so that nobody is answered";
            return self.refuse(open, responder, OpenCode::Refused, why);
        }
        let carried = async {
            if lent == Lent::Address {
                return self.dial(open, responder, (place, talk)).await;
            }
            let Ok(stream) = responder.accept() else {
                return Err(Refused(OpenCode::Cancelled.as_str()));
            };
            Ok(match lent {
                Lent::ApiServer(entry) => self.ask(open, entry, stream, (place, talk)).await,
                Lent::Address | Lent::Answers => self.look(is_ping(open), stream, (place, talk)).await,
            })
        };
        tokio::select! {
            biased;
            () = ended.cancelled() => Ok(OpenCode::Gone.as_str()),
            () = self.withdrawn(open) => Ok(OpenCode::NotAllowed.as_str()),
            closed = carried => closed,
        }
    }

    /// Waits until a stream is lent nothing more, since the cluster has another mode.
    async fn withdrawn(&self, open: &Open) {
        let mut mode = self.mode.clone();
        let gone = mode.wait_for(|mode| self.lent(*mode, open).is_err());
        let is_told = gone.await.is_ok();
        if !is_told {
            // Whoever tells modes is ending, and the session with them.
            std::future::pending::<()>().await;
        }
    }

    async fn ask(
        &self,
        open: &Open,
        entry: Entry,
        mut stream: TunnelStream,
        (place, talk): (OwnedSemaphorePermit, &Arc<Talk>),
    ) -> &'static str {
        let (room, identity) = match entry {
            Entry::Push => (&self.push, None),
            Entry::Read | Entry::Interactive => match identity(&mut stream).await {
                Ok(identity) => (&self.people, Some(identity)),
                Err(error) => {
                    let why = fault::line(&error);
                    self.note_refusal(&open.class, &why);
                    stream.reset(OpenCode::NotAllowed, &why);
                    return OpenCode::NotAllowed.as_str();
                }
            },
        };
        if let Some(identity) = &identity {
            talk.is_of(&identity.caller);
        }
        let forwarding = Forwarding {
            passage: &self.passage,
            room,
            entry,
            own: self.policy.own(),
            identity: identity.as_ref(),
            talk,
        };
        match serve(forwarding, stream, place).await {
            Ok(()) => DONE,
            Err(error) => close(&*error),
        }
    }

    async fn look(
        &self,
        is_ping: bool,
        stream: TunnelStream,
        (_place, talk): (OwnedSemaphorePermit, &Arc<Talk>),
    ) -> &'static str {
        let (client, stream) = (self.client.clone(), Counted::new(stream, Arc::clone(talk)));
        let answered = match is_ping {
            true => look::pong(client, stream).await,
            false => look::answer(client, stream).await,
        };
        match answered {
            Ok(()) => DONE,
            Err(error) => {
                tracing::debug!(error = &error as &dyn Error, "Lost look stream.");
                close(&error)
            }
        }
    }

    async fn dial(
        &self,
        open: &Open,
        responder: Responder,
        (_place, talk): (OwnedSemaphorePermit, &Arc<Talk>),
    ) -> Closed {
        match dial(&self.policy, &open.target, open.deadline(), resolved).await {
            Err(denial) => self.refuse(open, responder, denial.code, &denial.text),
            Ok((mut socket, address)) => {
                talk.leads_to(address.to_string());
                let Ok(stream) = responder.accept() else {
                    return Err(Refused(OpenCode::Cancelled.as_str()));
                };
                let mut stream = Counted::new(stream, Arc::clone(talk));
                Ok(match copy_bidirectional(&mut stream, &mut socket).await {
                    Ok(_) => DONE,
                    Err(error) => close(&error),
                })
            }
        }
    }

    fn refuse(&self, open: &Open, responder: Responder, code: OpenCode, why: &str) -> Closed {
        if code == OpenCode::NotAllowed {
            self.note_refusal(&open.class, &format!("{}: {why}", open.class.as_str()));
        }
        responder.refuse(code, why);
        Err(Refused(code.as_str()))
    }

    /// A hub that asks for what it is not lent does so again and again: each is in the audit log, and here ever fewer.
    fn note_refusal(&self, class: &TargetClass, why: &str) {
        let refused = self.counts.refused(class);
        if refused.is_power_of_two() {
            tracing::warn!(error = why, attempt = refused, "Refused a stream of the hub's.");
        } else {
            tracing::debug!(error = why, attempt = refused, "Refused a stream of the hub's.");
        }
    }
}

fn is_ping(open: &Open) -> bool {
    open.class == TargetClass::Look && open.target == PING_TARGET
}

/// How a stream was cut off, as its reset is called; by the API server, where it was not reset.
fn close(error: &(dyn Error + 'static)) -> &'static str {
    if let Some(reset) = StreamError::in_chain(error) {
        return reset.code.as_str();
    }
    let is_incomplete = |error: &(dyn Error + 'static)| {
        let error = error.downcast_ref::<hyper::Error>();
        error.is_some_and(hyper::Error::is_incomplete_message)
    };
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    match causes.any(is_incomplete) {
        true => OpenCode::Cancelled.as_str(),
        false => OpenCode::Internal.as_str(),
    }
}

#[cfg(test)]
mod tests;
