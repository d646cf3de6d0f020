//! Clusters that the hub applies to: without an agent, by a context of its own kubeconfig, or through the agent's tunnel
//! (`push`). The same applier runs here. What a cluster without an agent took is kept in the cluster itself, and it is
//! there while its API server answers.

mod pulse;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use render::ClusterName;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::asking::Door;
use super::blocking::blocking;
use super::dispatch::Dial;
use super::engine::Event;
use super::keeper::{Keeper, chain};
use super::session::Sessions;
use crate::apply::{self, ApplierOptions, ApplyReport, Desired};
use crate::limits::{API_REQUEST_TIMEOUT, CLUSTER_RETRY, PULSE_TIMEOUT};
use crate::wire::{Accepted, Envelope, Held, Intake, Refusal, Report};

use pulse::{Pulse, Turn, is_answer};

/// Name of the ConfigMap that holds what the cluster took.
const HELD_NAME: &str = "flotilla-held";
const HELD_KEY: &str = "held.json";
/// Field manager of that ConfigMap alone; the objects of the fleet have the applier's.
const HELD_MANAGER: &str = "flotilla-hub";

/// How long a burst of changes may become one report.
const SETTLE: Duration = Duration::from_millis(20);

/// How long the applier may take to make its namespace: tries, and the pause between them.
const NAMESPACE_TRIES: u32 = 100;
const NAMESPACE_RETRY: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
enum DirectError {
    #[error("the API server gave no answer within {} s", API_REQUEST_TIMEOUT.as_secs())]
    Timeout,
    #[error("failed to read what the cluster holds")]
    Read(#[source] kube::Error),
    #[error("what the cluster holds is damaged: ConfigMap {HELD_NAME}")]
    Damaged(#[source] serde_json::Error),
    #[error("the namespace of the applier was not made")]
    NoNamespace,
    #[error("failed to write what the cluster holds")]
    Write(#[source] kube::Error),
}

/// A cluster that the hub applies to itself.
pub(super) struct Direct {
    /// Which.
    pub(super) cluster: ClusterName,
    /// Its API server.
    pub(super) client: Client,
    /// How its applier works.
    pub(super) options: ApplierOptions,
    /// The hub's part.
    pub(super) sessions: Sessions,
    /// Who remembers what the cluster took.
    pub(super) memory: Memory,
}

/// Who remembers what a cluster took.
pub(super) enum Memory {
    /// An object in the cluster itself.
    Cluster,
    /// Its agent, which takes every envelope too; this it said that it holds.
    Agent(Option<Held>),
}

impl Direct {
    /// Applies until shutdown, or until the cluster is registered no more.
    pub(super) async fn run(self, shutdown: CancellationToken) {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch = u64::try_from(epoch.as_millis()).unwrap_or(u64::MAX);
        let dial = Dial { epoch, instance: "" };
        // Only who says which process it is can be a duplicate.
        let Ok((newest, ended)) = self.sessions.dispatch.begin(&self.cluster, dial, &shutdown) else {
            return;
        };
        let door = Door::ApiServer(self.client.clone());
        self.sessions.dispatch.open(&self.cluster, epoch, door);
        tokio::join!(Box::pin(self.serve_on(newest, &ended)), self.listen(epoch, &ended));
        self.sessions.dispatch.end(&self.cluster, epoch);
        self.tell_presence(epoch, Turn::Away).await;
    }

    /// Serves, again and again, until the session ends.
    pub(super) async fn serve_on(&self, newest: watch::Receiver<Option<Arc<Envelope>>>, ended: &CancellationToken) {
        loop {
            // Ends by itself when the session does, after the applier gave its lease back.
            if let Err(error) = Box::pin(self.serve(newest.clone(), ended)).await {
                tracing::warn!(cluster = %self.cluster, error = chain(&error), "Could not serve a cluster.");
                let trouble = ApplyReport {
                    trouble: chain(&error),
                    ..ApplyReport::default()
                };
                self.report(Report::unread(self.cluster.clone(), trouble)).await;
            }
            tokio::select! {
                biased;
                () = ended.cancelled() => return,
                () = sleep(CLUSTER_RETRY) => {}
            }
        }
    }

    /// Tells when its API server begins to answer, and when it answers no more, until the session ends.
    async fn listen(&self, epoch: u64, ended: &CancellationToken) {
        let mut pulse = Pulse::default();
        loop {
            let answered = tokio::select! {
                biased;
                () = ended.cancelled() => return,
                answer = timeout(PULSE_TIMEOUT, self.client.apiserver_version()) => answer.is_ok_and(|answer| is_answer(&answer)),
            };
            if let Some(turn) = pulse.beat(answered) {
                match turn {
                    Turn::Heard => tracing::info!(cluster = %self.cluster, "API server answered."),
                    Turn::Away => tracing::warn!(cluster = %self.cluster, "API server answered no more."),
                }
                self.tell_presence(epoch, turn).await;
            }
            tokio::select! {
                biased;
                () = ended.cancelled() => return,
                () = sleep(CLUSTER_RETRY) => {}
            }
        }
    }

    /// As the session of an agent would: silence and return are judged by it.
    async fn tell_presence(&self, epoch: u64, turn: Turn) {
        let cluster = self.cluster.clone();
        let event = match turn {
            Turn::Heard => Event::Connected { cluster, epoch },
            Turn::Away => Event::Disconnected { cluster, epoch },
        };
        let _sent = self.sessions.events.send(event).await;
    }

    async fn serve(
        &self,
        newest: watch::Receiver<Option<Arc<Envelope>>>,
        shutdown: &CancellationToken,
    ) -> Result<(), DirectError> {
        let held = tokio::select! {
            biased;
            () = shutdown.cancelled() => return Ok(()),
            held = self.read_held() => held?,
        };
        let intake = Intake::new(self.cluster.clone(), held);
        let (desired, wanted) = watch::channel(None);
        let (applied, report) = watch::channel(ApplyReport::default());
        let taken = Taken {
            held: intake.held().cloned(),
            refused: None,
        };
        let (taken, took) = watch::channel(taken);
        let stop = shutdown.child_token();
        let _stopped_when_dropped = stop.clone().drop_guard();
        let applier = apply::run(self.client.clone(), self.options.clone(), wanted, applied, stop);
        tokio::select! {
            taking = Box::pin(self.take(intake, newest, desired, taken)) => taking,
            ended = Box::pin(applier) => {
                if let Err(error) = ended {
                    tracing::warn!(cluster = %self.cluster, error = chain(&error), "Applier ended.");
                }
                Ok(())
            }
            () = Box::pin(self.reports(took, report)) => Ok(()),
        }
    }

    /// Takes each new envelope with its contents, as an agent would.
    async fn take(
        &self,
        mut intake: Intake,
        mut newest: watch::Receiver<Option<Arc<Envelope>>>,
        desired: watch::Sender<Option<Arc<Desired>>>,
        taken: watch::Sender<Taken>,
    ) -> Result<(), DirectError> {
        newest.mark_changed();
        while newest.changed().await.is_ok() {
            let Some(envelope) = newest.borrow_and_update().clone() else {
                continue;
            };
            let verify = |bytes: &[u8], signature: &[u8]| {
                let keys = self.sessions.keys.borrow();
                keys.iter().any(|key| key.public().verifies(bytes, signature))
            };
            match intake.envelope(&envelope, verify) {
                Err(refusal) => {
                    tracing::warn!(cluster = %self.cluster, error = %refusal, "Refused envelope.");
                    taken.send_modify(|taken| taken.refused = Some((envelope.sequence, refusal)));
                    continue;
                }
                Ok(Accepted::Same | Accepted::New) => {}
            }
            self.fetch(&mut intake, &envelope).await;
            desired.send_replace(intake.desired().map(Arc::new));
            let held = envelope.held();
            self.write_held(&held).await?;
            intake.drop_unwanted();
            taken.send_replace(Taken {
                held: Some(held),
                refused: None,
            });
        }
        Ok(())
    }

    async fn fetch(&self, intake: &mut Intake, envelope: &Envelope) {
        let (keeper, released, missing) = (
            Arc::clone(&self.sessions.keeper),
            envelope.released.clone(),
            intake.missing(),
        );
        let read = move || contents(&keeper, &released, missing);
        blocking(read)
            .await
            .into_iter()
            .for_each(|content| intake.trusted(content));
    }

    async fn reports(&self, mut taken: watch::Receiver<Taken>, mut applied: watch::Receiver<ApplyReport>) {
        loop {
            let Taken { held, refused } = taken.borrow_and_update().clone();
            let fared = applied.borrow_and_update().clone();
            self.report(Report::new(self.cluster.clone(), held, refused, fared))
                .await;
            let changed = tokio::select! {
                changed = taken.changed() => changed,
                changed = applied.changed() => changed,
            };
            if changed.is_err() {
                return;
            }
            sleep(SETTLE).await;
        }
    }

    async fn report(&self, report: Report) {
        let _sent = self
            .sessions
            .events
            .send(Event::Reported {
                report: Box::new(report),
            })
            .await;
    }

    fn held_api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.options.namespace)
    }

    /// What the cluster took; `None` only where the API server says that there is no such object.
    async fn read_held(&self) -> Result<Option<Held>, DirectError> {
        if let Memory::Agent(held) = &self.memory {
            return Ok(held.clone());
        }
        let api = self.held_api();
        let found = timeout(API_REQUEST_TIMEOUT, api.get_opt(HELD_NAME))
            .await
            .map_err(|_| DirectError::Timeout)?
            .map_err(DirectError::Read)?;
        let data: Option<BTreeMap<String, String>> = found.and_then(|found| found.data);
        let text = data.and_then(|mut data| data.remove(HELD_KEY));
        text.map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(DirectError::Damaged)
    }

    async fn write_held(&self, held: &Held) -> Result<(), DirectError> {
        match self.memory {
            Memory::Agent(_) => return Ok(()),
            Memory::Cluster => {}
        }
        let text = serde_json::to_string(held).map_err(DirectError::Damaged)?;
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": HELD_NAME, "namespace": self.options.namespace},
            "data": {HELD_KEY: text},
        });
        let parameters = PatchParams::apply(HELD_MANAGER).force();
        // In a new cluster the namespace is the applier's to make, and it is about to.
        let (api, patch) = (self.held_api(), Patch::Apply(&object));
        for _ in 0..NAMESPACE_TRIES {
            let written = timeout(API_REQUEST_TIMEOUT, api.patch(HELD_NAME, &parameters, &patch)).await;
            match written.map_err(|_| DirectError::Timeout)? {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.is_not_found() => sleep(NAMESPACE_RETRY).await,
                Err(error) => return Err(DirectError::Write(error)),
            }
        }
        Err(DirectError::NoNamespace)
    }
}

#[derive(Clone, Debug, Default)]
struct Taken {
    held: Option<Held>,
    refused: Option<(u64, Refusal)>,
}

fn contents(
    keeper: &Keeper,
    released: &render::Revision,
    missing: Vec<render::Digest>,
) -> Vec<Arc<render::describe::Description>> {
    let mut found = Vec::with_capacity(missing.len());
    for digest in missing {
        match keeper.content(released, &digest) {
            Ok(content) => found.push(content),
            Err(error) => tracing::warn!(%digest, error = chain(&error), "Could not read a content."),
        }
    }
    found
}
