//! How a hub runs, as its command line says, and why it could not.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tunnel::SecretKey;

use super::deny::DenyError;
use super::door::{DoorError, DoorOptions};
use super::objects::HubCluster;
use super::peers::PeerOptions;
use super::publish::{StateError, StateRefs};
use super::remote::{CopyError, RemoteOptions};
use super::serve::{Listen, ServeError};
use super::source::SourceError;
use crate::audit::AuditError;

/// What happens to a source whose history was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum OnRewrite {
    /// It is held until a commit accepts it.
    #[default]
    Hold,
    /// It is followed.
    Follow,
}

/// How a hub runs.
pub struct HubOptions {
    /// The repository that people push to: a folder, or the copy of `remote`.
    pub source: PathBuf,
    /// Where that repository really is; `None` if it is on this disk.
    pub remote: Option<RemoteOptions>,
    /// Its branch.
    pub branch: String,
    /// The repository of `rendered` and `released`; the source's own by default.
    pub state: Option<PathBuf>,
    /// Names of the refs that the hub writes.
    pub refs: StateRefs,
    /// What happens to a rewritten history.
    pub on_rewrite: OnRewrite,
    /// Begin a new lineage where `released` is missing, without asking what clusters hold.
    pub new_lineage: bool,
    /// How long clusters may take to say what they hold, when `released` is missing.
    pub recovery_grace: Duration,
    /// How often refs are looked at without an event.
    pub poll: Duration,
    /// Where agents dial.
    pub listen: SocketAddr,
    /// Memory, meters and bandwidth of its tunnels.
    pub allowance: tunnel::Allowance,
    /// Where agents come in the clear, behind a server that ends TLS.
    pub listen_plain: Option<SocketAddr>,
    /// Where the read-only API answers.
    pub api: Listen,
    /// Other hubs over the same state, and where they come in.
    pub peers: PeerOptions,
    /// The hub's key, which it shows and signs with.
    pub key: Arc<SecretKey>,
    /// Keys that agents are told of beside it, while one takes the other's place.
    pub other_keys: Vec<Arc<SecretKey>>,
    /// Their files, that one's first, which are followed; none are where the keys stay what they are.
    pub key_files: Vec<PathBuf>,
    /// Hashes of bootstrap tokens; looked at every second, once it is there.
    pub tokens: PathBuf,
    /// Names and keys that are not let in, whatever the repository says; looked at every second.
    pub deny_file: Option<PathBuf>,
    /// The kubeconfig with the contexts of clusters without an agent.
    pub kubeconfig: Option<PathBuf>,
    /// The helm program, for clusters without an agent.
    pub helm: PathBuf,
    /// Field managers that count as earlier tools where the hub applies.
    pub earlier_managers: Vec<String>,
    /// Where the fleet's objects are written, in mode `objects`.
    pub objects: Option<HubCluster>,
    /// The door for people; without it, nobody but this machine asks.
    pub door: Option<DoorOptions>,
}

/// Why a hub could not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The copy of the remote could not be used.
    #[error("failed to open the copy of the remote repository")]
    Copy(#[source] CopyError),
    /// The source could not be opened.
    #[error("failed to open the source")]
    Source(#[source] SourceError),
    /// The state repository could not be opened.
    #[error("failed to open the state repository")]
    State(#[source] StateError),
    /// The address for agents, or for other hubs, could not be used.
    #[error(
        "failed to listen on {address}; hint: end what listens there, or name an address of this machine with {flag}"
    )]
    Listen {
        /// Which.
        address: SocketAddr,
        /// The flag that names it.
        flag: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// TLS could not be set up from the hub's key.
    #[error("failed to set up TLS")]
    Tls(#[source] tunnel::TlsError),
    /// The door for people could not be opened.
    #[error("failed to open the door for people")]
    Door(#[source] DoorError),
    /// The deny list could not be read at the start. Nobody is let in by mistake.
    #[error("failed to take over the deny list")]
    Deny(#[source] DenyError),
    /// What people and other hubs ask could not be written down.
    #[error("the audit log is of no use")]
    Audit(#[source] AuditError),
    /// The API could not be served.
    #[error("failed to serve the API")]
    Serve(#[source] ServeError),
    /// A part of the hub ended by itself.
    #[error("{part} ended unexpectedly")]
    Ended {
        /// Which.
        part: &'static str,
    },
}
