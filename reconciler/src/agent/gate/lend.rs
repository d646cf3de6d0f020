//! Serves one stream that the hub opened to what this cluster lends: asks the policy, carries, and writes the audit line.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use render::model::SyncMode;
use tokio::io::copy_bidirectional;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tunnel::{IncomingOpen, Open, OpenCode, Responder, StreamError, TargetClass, TunnelStream};

use super::dial::{dial, resolved};
use super::line::{Begun, Counted};
use super::{Answered, Entry, Policy, identity, serve};
use crate::audit::AuditLog;
use crate::fault;
use crate::limits::GATE_REQUESTS_MAX;

/// How a stream ended that nobody cut off.
const DONE: &str = "done";

/// What this cluster lends, and to whom it was lent.
pub(in crate::agent) struct Gate {
    policy: Policy,
    mode: watch::Receiver<SyncMode>,
    client: Client,
    /// So many streams at a time.
    room: Arc<Semaphore>,
    audit: AuditLog,
    refused: AtomicU64,
}

impl Gate {
    pub(in crate::agent) fn new(
        policy: Policy,
        mode: watch::Receiver<SyncMode>,
        client: Client,
        audit: AuditLog,
    ) -> Self {
        Self {
            policy,
            mode,
            client,
            room: Arc::new(Semaphore::new(GATE_REQUESTS_MAX)),
            audit,
            refused: AtomicU64::new(0),
        }
    }

    /// Serves a stream until it ends, its session does, or its class is lent no more.
    pub(in crate::agent) async fn open(&self, opened: IncomingOpen, ended: &CancellationToken) {
        let IncomingOpen { open, responder } = opened;
        let mut begun = Begun::new(open.class.as_str(), &open.request_id);
        let closed = self.carry(&open, responder, &mut begun, ended).await;
        self.audit.write(&begun.ended(closed)).await;
    }

    async fn carry(
        &self,
        open: &Open,
        responder: Responder,
        begun: &mut Begun,
        ended: &CancellationToken,
    ) -> &'static str {
        let mode = *self.mode.borrow();
        if let Err(why) = self.policy.admits(mode, &open.class) {
            return self.refuse(open, responder, OpenCode::NotAllowed, &why);
        }
        let Ok(_permit) = Arc::clone(&self.room).try_acquire_owned() else {
            let why = "this agent has as many requests of the hub as it takes";
            return self.refuse(open, responder, OpenCode::Limit, why);
        };
        // Told also where what follows is dropped.
        let answered = Mutex::default();
        let carried = async {
            let entry = match open.class {
                TargetClass::ApiServer => Entry::Read,
                TargetClass::Interactive => Entry::Interactive,
                TargetClass::Push => Entry::Push,
                // No other is admitted.
                _ => return self.dial(open, responder, begun).await,
            };
            match responder.accept() {
                Ok(stream) => self.ask(entry, stream, begun, &answered).await,
                Err(_) => OpenCode::Cancelled.as_str(),
            }
        };
        let closed = tokio::select! {
            biased;
            () = ended.cancelled() => OpenCode::Gone.as_str(),
            () = self.withdrawn(&open.class) => OpenCode::NotAllowed.as_str(),
            closed = carried => closed,
        };
        begun.answered(&answered.into_inner().unwrap_or_else(PoisonError::into_inner));
        closed
    }

    /// Waits until a class is lent no more, since the cluster has another mode.
    async fn withdrawn(&self, class: &TargetClass) {
        let mut mode = self.mode.clone();
        let gone = mode.wait_for(|mode| self.policy.admits(*mode, class).is_err());
        let is_told = gone.await.is_ok();
        if !is_told {
            // Whoever tells modes is ending, and the session with them.
            std::future::pending::<()>().await;
        }
    }

    async fn ask(
        &self,
        entry: Entry,
        mut stream: TunnelStream,
        begun: &mut Begun,
        answered: &Mutex<Answered>,
    ) -> &'static str {
        let identity = match entry {
            Entry::Push => None,
            Entry::Read | Entry::Interactive => match identity(&mut stream).await {
                Ok(identity) => Some(identity),
                Err(error) => {
                    let why = fault::line(&error);
                    self.note_refusal(&why);
                    stream.reset(OpenCode::NotAllowed, &why);
                    return OpenCode::NotAllowed.as_str();
                }
            },
        };
        if let Some(identity) = &identity {
            begun.asked_by(&identity.caller);
        }
        let stream = Counted::new(stream, begun.bytes.clone());
        match serve(&self.client, entry, identity.as_ref(), stream, answered).await {
            Ok(()) => DONE,
            Err(error) => close(&*error),
        }
    }

    async fn dial(&self, open: &Open, responder: Responder, begun: &mut Begun) -> &'static str {
        begun.dialled(&open.target, None);
        match dial(&self.policy, &open.target, open.deadline(), resolved).await {
            Err(denial) => self.refuse(open, responder, denial.code, &denial.text),
            Ok((mut socket, address)) => {
                begun.dialled(&open.target, Some(address));
                let Ok(stream) = responder.accept() else {
                    return OpenCode::Cancelled.as_str();
                };
                let mut stream = Counted::new(stream, begun.bytes.clone());
                match copy_bidirectional(&mut stream, &mut socket).await {
                    Ok(_) => DONE,
                    Err(error) => close(&error),
                }
            }
        }
    }

    fn refuse(&self, open: &Open, responder: Responder, code: OpenCode, why: &str) -> &'static str {
        if code == OpenCode::NotAllowed {
            self.note_refusal(&format!("{}: {why}", open.class.as_str()));
        }
        responder.refuse(code, why);
        code.as_str()
    }

    /// A hub that asks for what it is not lent does so again and again: each is in the audit log, and here ever fewer.
    fn note_refusal(&self, why: &str) {
        let refused = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        if refused.is_power_of_two() {
            tracing::warn!(error = why, attempt = refused, "Refused a stream of the hub's.");
        } else {
            tracing::debug!(error = why, attempt = refused, "Refused a stream of the hub's.");
        }
    }
}

/// How a stream was cut off, as its reset is called; by the API server, where it was not reset.
fn close(error: &(dyn Error + 'static)) -> &'static str {
    let mut next = Some(error);
    while let Some(error) = next {
        let reset = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(reset) = reset.and_then(|inner| inner.downcast_ref::<StreamError>()) {
            return reset.code.as_str();
        }
        if error
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_incomplete_message)
        {
            return OpenCode::Cancelled.as_str();
        }
        next = error.source();
    }
    OpenCode::Internal.as_str()
}

#[cfg(test)]
mod tests;
