//! An OIDC provider: what it says of itself and its keys, fetched with limits and again when they are old. Whether a token is
//! somebody's is decided by `render::access::token`.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::ConfigExt as _;
use render::access::token::{self, Keys, Refused, Verified, verify};
use serde::Deserialize;
use tokio::time::{Duration, Instant, timeout};

use crate::fault::line;
use crate::hub::clock::seconds;
use crate::limits::{
    API_CONNECT_TIMEOUT, OIDC_ANSWER_BYTES_MAX, OIDC_ANSWER_TIMEOUT, OIDC_KEYS_REST, OIDC_KEYS_REST_MIN,
};

/// Where a provider describes itself.
const DISCOVERY: &str = ".well-known/openid-configuration";

/// Why a provider's keys are not known.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// No client could be made.
    #[error("failed to set up TLS for the OIDC provider: {0}")]
    Tls(String),
    /// It is asked over TLS, or on this machine.
    #[error("{0:?} is no https:// address")]
    Address(String),
    /// No answer.
    #[error("failed to ask {0}: {1}")]
    Unreachable(String, String),
    /// An answer that is none.
    #[error("{0} answers with {1}")]
    Status(String, StatusCode),
    /// It is not what such an answer is.
    #[error("the answer of {0} cannot be used: {1}")]
    Answer(String, String),
}

type Answering = BoxFuture<'static, Result<Response<Incoming>, hyper_util::client::legacy::Error>>;

/// The client, whose connector has a type that is longer than what it does.
type Sending = Box<dyn Fn(Request<Full<Bytes>>) -> Answering + Send + Sync>;

/// A provider whose tokens log people in.
pub(super) struct Provider {
    held_to: token::Provider,
    send: Sending,
    known: Mutex<Known>,
    /// Whoever fetches keys; others go on with those that there are.
    fetching: tokio::sync::Mutex<()>,
}

/// What is known of its keys.
#[derive(Clone, Default)]
struct Known {
    keys: Option<Arc<Keys>>,
    /// When they were fetched, or tried to be.
    at: Option<Instant>,
}

impl Known {
    /// Whether they were asked for within a time. Where there are none yet, who knocks again and again does not make the
    /// provider be asked each time either.
    fn are_young(&self, rest: Duration) -> bool {
        let rest = match self.keys {
            Some(_) => rest,
            None => OIDC_KEYS_REST_MIN,
        };
        self.at.is_some_and(|at| at.elapsed() < rest)
    }
}

#[derive(Deserialize)]
struct Description {
    issuer: String,
    jwks_uri: String,
}

impl Provider {
    /// A provider, whose TLS is verified with `authorities` (DER), or else with the roots of this machine.
    pub(super) fn new(held_to: token::Provider, authorities: Option<Vec<Vec<u8>>>) -> Result<Self, OidcError> {
        address(&held_to.issuer)?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(API_CONNECT_TIMEOUT));
        // kube's TLS; the address of the configuration is not used.
        let mut config = Config::new(Uri::from_static("https://localhost"));
        config.root_cert = authorities;
        let tls = config.rustls_https_connector_with_connector(connector);
        let tls = tls.map_err(|error| OidcError::Tls(line(&error)))?;
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build::<_, Full<Bytes>>(tls);
        Ok(Self {
            held_to,
            send: Box::new(move |request| Box::pin(client.request(request))),
            known: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        })
    }

    /// Who a token says its bearer is.
    pub(super) async fn person(&self, token: &str) -> Option<Verified> {
        let keys = self.keys(OIDC_KEYS_REST).await?;
        let verified = match verify(token, &keys, &self.held_to, seconds()) {
            // The provider may have a new key.
            Err(Refused::KeyUnknown) => {
                let keys = self.keys(OIDC_KEYS_REST_MIN).await?;
                verify(token, &keys, &self.held_to, seconds())
            }
            verified => verified,
        };
        match verified {
            Ok(verified) => Some(verified),
            Err(error) => {
                tracing::debug!(%error, "Refused a token.");
                None
            }
        }
    }

    /// Its keys, no older than `rest` where it answers. While it does not, those that it had stand.
    async fn keys(&self, rest: Duration) -> Option<Arc<Keys>> {
        let known = self.known();
        if known.are_young(rest) {
            return known.keys;
        }
        let _turn = match (self.fetching.try_lock(), known.keys) {
            (Ok(turn), _) => turn,
            // A provider that hangs holds up nobody whose key is known.
            (Err(_), Some(keys)) => return Some(keys),
            (Err(_), None) => self.fetching.lock().await,
        };
        let known = self.known();
        if known.are_young(rest) {
            return known.keys;
        }
        let fetched = self.fetch().await;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match fetched {
            Ok(keys) => known.keys = Some(Arc::new(keys)),
            Err(error) => tracing::warn!(%error, "Could not fetch the keys of the OIDC provider."),
        }
        known.at = Some(Instant::now());
        known.keys.clone()
    }

    fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(&self) -> Result<Keys, OidcError> {
        let issuer = &self.held_to.issuer;
        let own = format!("{}/{DISCOVERY}", issuer.trim_end_matches('/'));
        let wrong = |why: String| OidcError::Answer(own.clone(), why);
        let described: Description =
            serde_json::from_slice(&self.get(&own).await?).map_err(|error| wrong(error.to_string()))?;
        if described.issuer != *issuer {
            return Err(wrong(format!(
                "it is issuer {:?}, and not {issuer:?}",
                described.issuer
            )));
        }
        if !may_name(issuer, &described.jwks_uri) {
            return Err(OidcError::Address(described.jwks_uri));
        }
        let keys = self.get(&described.jwks_uri).await?;
        Keys::read(&keys).map_err(|error| OidcError::Answer(described.jwks_uri, error.to_string()))
    }

    async fn get(&self, url: &str) -> Result<Bytes, OidcError> {
        let unreachable = |why: String| OidcError::Unreachable(url.to_owned(), why);
        let request = Request::get(address(url)?)
            .header(header::ACCEPT, "application/json")
            .body(Full::default())
            .map_err(|error| unreachable(error.to_string()))?;
        let asking = async {
            let response = (self.send)(request).await.map_err(|error| unreachable(line(&error)))?;
            // A redirect leads where nobody said that keys may come from.
            if response.status() != StatusCode::OK {
                return Err(OidcError::Status(url.to_owned(), response.status()));
            }
            let body = Limited::new(response.into_body(), OIDC_ANSWER_BYTES_MAX)
                .collect()
                .await;
            Ok(body.map_err(|error| unreachable(error.to_string()))?.to_bytes())
        };
        let late = || Err(unreachable("no answer in time".to_owned()));
        timeout(OIDC_ANSWER_TIMEOUT, asking).await.unwrap_or_else(|_| late())
    }
}

/// Whether an issuer may say that its keys are there: one that is trusted over TLS names nobody on this machine to be
/// trusted without.
fn may_name(issuer: &str, keys: &str) -> bool {
    issuer.starts_with("http:") || keys.starts_with("https:")
}

/// An address that keys may come from: over TLS, or from this machine itself.
fn address(url: &str) -> Result<Uri, OidcError> {
    let wrong = || OidcError::Address(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host.parse::<std::net::IpAddr>().is_ok_and(|host| host.is_loopback());
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if is_here => Ok(uri),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
