//! The door for people: `kubectl` asks the hub and every cluster over HTTPS, and everybody is somebody.
//!
//! In: requests with a client certificate or a bearer token, under `/clusters/NAME/…`, in Clusternet's forms, or for the hub's
//! own kinds. Out: the answer of the cluster's API server, as it comes through the tunnel; the hub's own; or a refusal that
//! says what would be needed. [`porter`] brings a request from its first byte to its answer: [`screen`] looks at headers,
//! [`login`] at who it is, [`verdict`] at their rights, [`carry`] brings it there, and [`audit`] writes down what became of
//! it. No verb writes. What a cluster's own RBAC and its agent's policy say is deliberately not here.

mod answered;
mod audit;
mod carry;
mod certificate;
mod certified;
mod dial;
mod failures;
mod files;
mod folded;
mod kept;
mod lane;
mod listen;
mod login;
mod oidc;
mod options;
mod porter;
mod refusal;
mod reviews;
mod route;
mod screen;
mod tokens;
mod verdict;
mod writes;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use certificate::CertificateError;
pub use files::FileError;
pub use oidc::OidcError;
pub use options::{DoorError, DoorOptions, Identity, OidcOptions};
pub use route::clusternet_id;

use self::carry::Carrier;
use self::certificate::{Authority, Tls};
use self::files::Kept;
use self::login::Logins;
use self::porter::Porter;
use super::SharedState;
use super::dispatch::Dispatch;
use super::places::Places;
use super::tally::Tally;
use crate::audit::AuditLog;
use crate::limits::{API_REQUESTS_MAX, DOOR_WRITTEN_MAX};
use crate::telemetry::process_name;

/// A door that is bound, and not open yet.
pub(super) struct Bound {
    listener: TcpListener,
    logins: Logins,
    audit: Arc<audit::Audit>,
    tally: Arc<Tally>,
    interactive: bool,
}

/// Binds the socket, and reads what callers are known by. Files are followed until shutdown. `log` is the hub's: two that
/// write the same file would tear each other's lines.
pub(super) async fn bind(
    options: &DoorOptions,
    log: AuditLog,
    tally: Arc<Tally>,
    shutdown: &CancellationToken,
) -> Result<Bound, DoorError> {
    let tls = tls(options, Arc::clone(&tally), shutdown).await?;
    let tokens = match &options.tokens {
        None => None,
        Some(file) => {
            let parse = |contents: &[Vec<u8>]| tokens::Tokens::parse(contents.first().map_or(&[], Vec::as_slice));
            let kept = Kept::follow(vec![file.clone()], parse, shutdown.clone()).await;
            Some(kept.map_err(DoorError::File)?)
        }
    };
    let provider = options.oidc.as_ref().map(provider).transpose()?;
    let audit = audit::Audit::begin(log, shutdown.clone());
    let address = options.address;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| DoorError::Listen { address, source })?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "Serving people.");
    }
    Ok(Bound {
        listener,
        logins: Logins::new(tls, tokens, provider, Arc::clone(&tally)),
        audit,
        tally,
        interactive: options.interactive,
    })
}

/// Serves until shutdown and what is under way has ended. `own` is the hub's own API.
pub(super) async fn run(
    bound: Bound,
    state: SharedState,
    dispatch: Arc<Dispatch>,
    own: Router,
    shutdown: CancellationToken,
) {
    let Bound {
        listener,
        logins,
        audit,
        tally,
        interactive,
    } = bound;
    let porter = Porter {
        state,
        own,
        logins,
        carrier: Carrier::new(dispatch),
        audit,
        tally,
        interactive,
        name: process_name(),
        requests: AtomicU64::new(0),
        watches: Arc::default(),
        own_answers: Places::new(API_REQUESTS_MAX),
        written: Semaphore::new(DOOR_WRITTEN_MAX),
    };
    let (audit, kept) = (Arc::clone(&porter.audit), porter.carrier.kept.clone());
    let keeping = async {
        shutdown.run_until_cancelled(kept.let_go()).await;
        // What ends waits for no stream that nobody asks on.
        kept.close();
    };
    tokio::join!(listen::run(listener, Arc::new(porter), shutdown.clone()), keeping);
    audit.end();
}

/// The provider of ID tokens. It is asked when the first token comes, so that a hub starts without it.
fn provider(options: &OidcOptions) -> Result<oidc::Provider, DoorError> {
    let authorities = match &options.authority {
        None => None,
        Some(file) => {
            let pem = files::read_one(file).map_err(DoorError::File)?;
            let found = certificate::certificates(&pem).map_err(|why| {
                DoorError::File(FileError::Content {
                    path: file.clone(),
                    why,
                })
            })?;
            Some(found)
        }
    };
    oidc::Provider::new(options.held_to.clone(), authorities).map_err(DoorError::Oidc)
}

/// TLS of files, or of a certificate that the hub makes.
async fn tls(options: &DoorOptions, tally: Arc<Tally>, shutdown: &CancellationToken) -> Result<Kept<Tls>, DoorError> {
    let (mut files, made) = match &options.identity {
        Identity::Files { certificate, key } => (vec![certificate.clone(), key.clone()], None),
        Identity::Own { key, names } => {
            let authority = Authority::read_or_make(key).map_err(DoorError::Certificate)?;
            let beside = key.with_extension("crt");
            let written = std::fs::write(&beside, &authority.certificate);
            written.map_err(|source| DoorError::Authority {
                path: beside.clone(),
                source,
            })?;
            tracing::info!(path = %beside.display(), "Wrote the certificate of the hub's authority, for kubeconfigs.");
            let shown = authority.certificate_for(names).map_err(DoorError::Certificate)?;
            (Vec::new(), Some(shown))
        }
    };
    let has_clients = options.client_authority.is_some();
    files.extend(options.client_authority.clone());
    let make = move |contents: &[Vec<u8>]| {
        let (own, clients) = contents.split_at(contents.len() - usize::from(has_clients));
        let clients = clients.first().map(|pem| certificate::authorities(pem)).transpose()?;
        let read = match own {
            [certificate, key] => Some(certificate::shown(certificate, key)?),
            _ => None,
        };
        let shown = read.as_ref().or(made.as_ref()).ok_or("there is no certificate")?;
        let ends = certificate::ends(&shown.chain)?;
        let config = certificate::config(shown, clients).map_err(|error| error.to_string())?;
        tally.certificate_ends(ends);
        Ok(config)
    };
    Kept::follow(files, make, shutdown.clone())
        .await
        .map_err(DoorError::File)
}

#[cfg(test)]
mod tests;
