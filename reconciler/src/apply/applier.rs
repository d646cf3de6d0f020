//! The loop: wait for the lease, then keep the cluster as the newest desired state says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use render::ClusterName;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, info, info_span, warn};

use super::backoff::Backoff;
use super::drift::Tally;
use super::helm::HelmOptions;
use super::lease::{self, LeaseState};
use super::pass::PassEnd;
use super::session::{Heard, Interrupt, Session, SessionError};
use super::status::ApplyReport;
use super::tenure::{Prepare, Tenure};
use super::{Desired, NAMESPACE, capacity, facts};
use crate::limits::{
    APPLY_RETRY_FIRST, APPLY_RETRY_MAX, LEASE_RELEASE_TIMEOUT, REPORT_PAUSE, RESYNC, RESYNC_UNWATCHED, WATCH_EVENTS_MAX,
};
use crate::telemetry::elapsed_ms;

/// What an applier is told once.
#[derive(Clone, Debug)]
pub struct ApplierOptions {
    /// Which cluster it is, for logs.
    pub cluster: ClusterName,
    /// Its identity in the lease. Two processes with one identity are taken for one: it must differ
    /// between processes, or whoever starts them must see to it that only one runs.
    pub holder: String,
    /// The namespace of lease and inventory; default `flotilla-system`. Another one makes another
    /// applier, which knows nothing of the first.
    pub namespace: String,
    /// Its API server's address, to be told.
    pub api_server: Option<String>,
    /// How long unchanged objects rest before they are compared again. Shorter finds changes by hand
    /// sooner and costs a list request per kind and namespace each time.
    pub resync: Duration,
    /// A file of age identities, beside those of the cluster's Secret; read whenever a document is to be decrypted, so
    /// that a key may come and go.
    pub age_key_file: Option<PathBuf>,
    /// How releases of Helm are made.
    pub helm: HelmOptions,
    /// Field managers whose fields are taken over when an object of theirs is adopted, beside those of kubectl,
    /// Flux, Argo CD, Helm and Clusternet.
    pub earlier_managers: Vec<String>,
    /// Since when no hub is heard of, in seconds since 1970; `None` where it is the hub itself that applies.
    pub away: Option<watch::Receiver<Option<i64>>>,
    /// Told of the lease, for whoever else writes only while it is held.
    pub tenure: Tenure,
    /// What is read anew whenever the lease was taken, before anything is applied.
    pub prepare: Option<Arc<dyn Prepare>>,
}

/// The applier as a whole ended without being told to.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Nobody renews the lease any more.
    #[error("the task that holds the applier lease ended")]
    Lease(#[source] tokio::task::JoinError),
}

impl ApplierOptions {
    /// The usual choices.
    pub fn new(cluster: ClusterName, holder: String) -> Self {
        Self {
            cluster,
            holder,
            namespace: NAMESPACE.to_owned(),
            api_server: None,
            resync: RESYNC,
            age_key_file: None,
            helm: HelmOptions::default(),
            earlier_managers: Vec::new(),
            away: None,
            tenure: Tenure::default(),
            prepare: None,
        }
    }
}

/// Keeps a cluster as `desired` says until `shutdown`, and says in `report` how that fares. Only the newest
/// desired state counts; while there is none, nothing is touched. An API server that fails is waited for.
pub async fn run(
    client: Client,
    options: ApplierOptions,
    desired: watch::Receiver<Option<Arc<Desired>>>,
    report: watch::Sender<ApplyReport>,
    shutdown: CancellationToken,
) -> Result<(), ApplyError> {
    let lease_sender = options.tenure.0.clone();
    let lease = lease_sender.subscribe();
    let stop = CancellationToken::new();
    let _stopped_when_dropped = stop.clone().drop_guard();
    let keeping = lease::keep(client.clone(), options.clone(), lease_sender, stop.clone());
    let span = info_span!("applier", cluster = %options.cluster);
    let mut keeper = tokio::spawn(keeping.instrument(info_span!(parent: &span, "lease")));
    let counting = capacity::follow(client.clone(), desired.clone(), report.clone(), stop.clone());
    let counter = tokio::spawn(counting.instrument(info_span!(parent: &span, "capacity")));
    let _counts_no_longer_than_it_applies = AbortOnDropHandle::new(counter);
    let asking = facts::follow(client.clone(), options.api_server.clone(), report.clone(), stop.clone());
    let asker = tokio::spawn(asking.instrument(info_span!(parent: &span, "facts")));
    let _asks_no_longer_than_it_applies = AbortOnDropHandle::new(asker);
    let interrupt = Interrupt {
        desired,
        lease,
        shutdown,
    };
    let mut applier = Applier::new(client, options, interrupt, report);
    let ended = tokio::select! {
        biased;
        () = applier.enforce().instrument(span) => None,
        ended = &mut keeper => Some(ended),
    };
    if let Some(ended) = ended {
        return ended.map_err(ApplyError::Lease);
    }
    stop.cancel();
    // Longer than giving the lease back may take: past it, the task is left to end by itself.
    drop(tokio::time::timeout(LEASE_RELEASE_TIMEOUT * 2, keeper).await);
    Ok(())
}

struct Applier {
    client: Client,
    options: ApplierOptions,
    interrupt: Interrupt,
    report: watch::Sender<ApplyReport>,
    /// What is known of the cluster; only while the lease is held.
    session: Option<Session>,
    backoff: Backoff,
    /// When the next pass is due, unless a new desired state comes first.
    pass_due: Option<Instant>,
    /// When unchanged objects are compared again.
    resync_due: Instant,
    /// Until then, a failing API server is left alone.
    retry_at: Option<Instant>,
    /// When what watches saw is to be said.
    publish_due: Option<Instant>,
    /// When it was said last.
    published: Instant,
    /// How often others' changes were put right.
    corrections: Tally,
}

impl Applier {
    fn new(client: Client, options: ApplierOptions, interrupt: Interrupt, report: watch::Sender<ApplyReport>) -> Self {
        Self {
            resync_due: Instant::now() + options.resync,
            client,
            options,
            interrupt,
            report,
            session: None,
            backoff: Backoff::new(APPLY_RETRY_FIRST, APPLY_RETRY_MAX),
            pass_due: None,
            retry_at: None,
            publish_due: None,
            published: Instant::now(),
            corrections: Tally::default(),
        }
    }

    async fn enforce(&mut self) {
        while !self.interrupt.shutdown.is_cancelled() {
            let lease = self.interrupt.lease.borrow_and_update().clone();
            if lease.is_held() {
                self.turn().await;
            } else {
                // What was known may be changed by another applier meanwhile.
                self.session = None;
                self.tell_trouble(words(&lease));
                self.tell_waiting(matches!(lease, LeaseState::Waiting { .. }));
                self.rest(None).await;
            }
        }
    }

    /// Does the most urgent thing, or waits for one.
    async fn turn(&mut self) {
        let now = Instant::now();
        if let Some(at) = self.retry_at
            && now < at
        {
            return self.rest(Some(at)).await;
        }
        let outcome = match &mut self.session {
            None => self.begin().await,
            Some(session) => {
                let is_new = self.interrupt.desired.has_changed().unwrap_or(false);
                if now >= self.resync_due {
                    session.distrust();
                    self.resync_due = now + session.watches.resync(self.options.resync, RESYNC_UNWATCHED);
                    self.pass_due = Some(now);
                }
                if is_new || self.pass_due.is_some_and(|due| now >= due) {
                    self.pass(is_new).await
                } else if session.drift.due(now) {
                    self.mend().await
                } else if [session.patience.next(), self.publish_due]
                    .into_iter()
                    .flatten()
                    .any(|due| now >= due)
                {
                    self.looked(false);
                    Ok(())
                } else if session.looks.due(now) {
                    let gone = session.look().await;
                    gone.map(|gone| self.looked(gone))
                } else {
                    let next = [
                        self.pass_due,
                        session.drift.next(),
                        session.patience.next(),
                        self.publish_due,
                        session.looks.next(),
                        Some(self.resync_due),
                    ];
                    return self.rest(next.into_iter().flatten().min()).await;
                }
            }
        };
        match outcome {
            Ok(()) => self.retry_at = None,
            Err(error) => self.failed(&error),
        }
    }

    /// Learns what is known of the cluster.
    async fn begin(&mut self) -> Result<(), SessionError> {
        if let Some(prepare) = &self.options.prepare {
            prepare.prepare().await.map_err(SessionError::Prepare)?;
        }
        self.session = Some(Session::begin(self.client.clone(), &self.options, &self.corrections).await?);
        self.pass_due = Some(Instant::now());
        self.resync_due = Instant::now() + self.options.resync;
        Ok(())
    }

    async fn pass(&mut self, is_new: bool) -> Result<(), SessionError> {
        let desired = self.interrupt.desired.borrow_and_update().clone();
        let (Some(desired), Some(session)) = (desired, &mut self.session) else {
            self.pass_due = None;
            return Ok(());
        };
        if is_new {
            self.backoff.reset();
        }
        let start = Instant::now();
        let end = session.pass(&desired, &self.interrupt, &self.report).await?;
        self.pass_due = match end {
            PassEnd::Settled => {
                self.backoff.reset();
                let resumed = session.next_resumption();
                resumed.map(|seconds| Instant::now() + Duration::from_secs(seconds).min(self.options.resync))
            }
            PassEnd::Unsettled => Some(Instant::now() + self.backoff.wait()),
            PassEnd::Interrupted => Some(Instant::now()),
        };
        let elapsed_ms = elapsed_ms(start);
        let revision = &desired.held.released;
        if is_new && end != PassEnd::Interrupted {
            info!(%revision, elapsed_ms, "Applied delivery.");
        }
        Ok(())
    }

    /// Puts right what somebody changed, and nothing else.
    async fn mend(&mut self) -> Result<(), SessionError> {
        let desired = self.interrupt.desired.borrow().clone();
        let (Some(desired), Some(session)) = (desired, &mut self.session) else {
            return Ok(());
        };
        let end = session.mend(&desired, &self.interrupt, &self.report).await?;
        if session.settle_gates() {
            self.pass_due = Some(Instant::now());
        } else if end != PassEnd::Settled && self.pass_due.is_none() {
            self.pass_due = Some(Instant::now() + self.backoff.wait());
        }
        Ok(())
    }

    /// Takes in what watches and releases say, all of it that is there.
    fn observe(&mut self, first: Heard) {
        let Some(session) = &mut self.session else { return };
        let mut observed = match first {
            Heard::Watched(watched) => session.observe(watched),
            Heard::Released(news) => session.released(news),
        };
        // As many as fit into the queue: whoever never stops talking must not keep us from acting.
        for _ in 0..WATCH_EVENTS_MAX {
            let Some(watched) = session.watches.ready() else { break };
            observed = observed.and(session.observe(watched));
        }
        let now = Instant::now();
        if observed.asks_for_a_pass {
            self.pass_due = Some(now);
        }
        let resync = session.watches.resync(self.options.resync, RESYNC_UNWATCHED);
        self.resync_due = self.resync_due.min(now + resync);
        if observed.is_news && self.publish_due.is_none() {
            self.publish_due = Some(now.max(self.published + REPORT_PAUSE));
        }
    }

    fn looked(&mut self, gone: bool) {
        let Some(session) = &mut self.session else { return };
        session.wait(Instant::now());
        if session.settle_gates() || gone {
            self.pass_due = Some(Instant::now());
        }
        self.publish_due = None;
        self.published = Instant::now();
        session.publish(&self.report);
    }

    fn failed(&mut self, cause: &SessionError) {
        let error = crate::fault::line(cause);
        warn!(error, "Failed to apply.");
        let asked = match cause {
            SessionError::Server(error) => error.retry_after(),
            SessionError::Inventory(_) | SessionError::Prepare(_) => Duration::ZERO,
        };
        self.retry_at = Some(Instant::now() + self.backoff.wait().max(asked));
        self.pass_due = Some(Instant::now());
        if matches!(cause, SessionError::Inventory(_)) {
            // Another may have written it: it is read again.
            self.session = None;
        }
        let trouble = super::message::shorten(&error);
        match &self.session {
            Some(session) => session.publish_with(&self.report, trouble),
            None => self.tell_trouble(trouble),
        }
    }

    fn tell_waiting(&self, waits: bool) {
        self.report.send_if_modified(|report| {
            let changed = report.waits_for_lease != waits;
            report.waits_for_lease = waits;
            changed
        });
    }

    fn tell_trouble(&self, trouble: String) {
        self.report.send_if_modified(|report| {
            let changed = report.trouble != trouble;
            report.trouble = trouble;
            changed
        });
    }

    /// Waits until something may have changed.
    async fn rest(&mut self, until: Option<Instant>) {
        // While the API server is left alone, a newer desired state is no reason to ask it.
        let listens = self.retry_at.is_none() && self.session.is_some();
        let Interrupt {
            desired,
            lease,
            shutdown,
        } = &mut self.interrupt;
        let session = &mut self.session;
        // A copy, since whoever sees a change marks it as seen, and that is the pass's to do.
        let mut probe = desired.clone();
        let listens = listens && probe.has_changed().is_ok();
        let heard = tokio::select! {
            biased;
            () = shutdown.cancelled() => None,
            // Its sender lives as long as this task.
            _ = lease.changed() => None,
            _ = probe.changed(), if listens => None,
            () = sleep_until(until) => None,
            heard = heard(session) => heard,
        };
        if let Some(heard) = heard {
            self.observe(heard);
        }
    }
}

/// What is heard next; nothing is without a session.
async fn heard(session: &mut Option<Session>) -> Option<Heard> {
    match session {
        Some(session) => session.hear().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn words(lease: &LeaseState) -> String {
    match lease {
        LeaseState::Asking => "the applier lease was not taken yet".to_owned(),
        LeaseState::Waiting { holder } => {
            format!(
                "another applier holds this cluster's Lease {}: {holder}",
                super::lease::NAME
            )
        }
        LeaseState::Trouble(trouble) => super::message::shorten(&format!("no applier lease: {trouble}")),
        LeaseState::Held { .. } => "the applier lease could not be renewed in time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_applier_can_be_spawned() {
        fn spawnable<F: Future + Send + 'static>(_: impl FnOnce(Client, ApplierOptions) -> F) {}
        spawnable(|client, options| {
            let (_, desired) = watch::channel(None);
            let (report, _) = watch::channel(ApplyReport::default());
            run(client, options, desired, report, CancellationToken::new())
        });
    }
}
