//! A hub as a task of this process, whose state can be looked at.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reconciler::hub::engine::State;
use reconciler::hub::publish::StateRefs;
use reconciler::hub::{self, HubError, HubOptions, Listen, OnRewrite, PeerOptions, SharedState};
use reconciler::limits::REFS_POLL;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tunnel::SecretKey;

use super::agent::HubPlace;

/// How long clusters may take to say what they hold, where `released` is missing; as `flotilla hub` has it.
const RECOVERY_GRACE: Duration = Duration::from_secs(35);

/// A hub's state, as it is written by the hub alone.
#[derive(Clone)]
pub struct HubView(SharedState);

/// Where a hub reads and listens.
pub struct HubSetup {
    /// The bare repository that is pushed to.
    pub repository: PathBuf,
    /// Its key.
    pub key: Arc<SecretKey>,
    /// Where agents dial.
    pub agents: SocketAddr,
    /// Where the read-only API answers.
    pub api: SocketAddr,
}

/// A running hub; it ends when it is told to, or when it is dropped.
pub struct Hub {
    task: Option<JoinHandle<Result<(), HubError>>>,
    shutdown: CancellationToken,
    view: HubView,
    place: HubPlace,
}

impl HubView {
    /// The state as it is now.
    pub fn state(&self) -> State {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts what the hub heard, so that nobody looks twice at the same.
    pub fn version(&self) -> u64 {
        self.0.read().unwrap_or_else(PoisonError::into_inner).version
    }
}

impl Hub {
    /// Starts a hub.
    pub fn start(setup: HubSetup, shutdown: &CancellationToken) -> Self {
        let shutdown = shutdown.child_token();
        let place = HubPlace {
            address: setup.agents,
            key: setup.key.public(),
        };
        let options = HubOptions {
            peers: PeerOptions::default(),
            source: setup.repository,
            remote: None,
            branch: "main".to_owned(),
            state: None,
            refs: StateRefs::default(),
            on_rewrite: OnRewrite::Hold,
            new_lineage: false,
            recovery_grace: RECOVERY_GRACE,
            poll: REFS_POLL,
            listen: setup.agents,
            allowance: tunnel::Allowance::default(),
            listen_plain: None,
            api: Listen::Tcp(setup.api),
            key: setup.key,
            other_keys: Vec::new(),
            key_files: Vec::new(),
            earlier_managers: Vec::new(),
            deny_file: None,
            tokens: PathBuf::from("flotilla-hub.tokens"),
            kubeconfig: None,
            helm: "helm".into(),
            objects: None,
            door: None,
        };
        let state = SharedState::default();
        let run = Box::pin(hub::run_with(options, Arc::clone(&state), shutdown.clone()));
        Self {
            task: Some(tokio::spawn(run.instrument(tracing::info_span!("hub")))),
            shutdown,
            view: HubView(state),
            place,
        }
    }

    /// What it knows.
    pub fn view(&self) -> HubView {
        self.view.clone()
    }

    /// Where agents find it.
    pub fn place(&self) -> &HubPlace {
        &self.place
    }

    /// Waits until it ends by itself; `None` where it was told to, or broke. Cancel-safe.
    pub async fn ended(&mut self) -> Option<HubError> {
        match &mut self.task {
            Some(task) => task.await.ok()?.err(),
            None => None,
        }
    }

    /// Ends it in good order.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        if let Some(task) = self.task.take() {
            let _result = task.await;
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
