//! One file over HTTP: TLS is always verified, every answer has a limit, and a credential goes to the origin
//! that it was given for alone, whatever an index or a redirect names.

use std::collections::BTreeMap;

use ::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::client::Body;
use kube::{Client, Config};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::address::{self, Origin};
use super::credentials::Credentials;
use crate::limits::{API_CONNECT_TIMEOUT, CHART_FETCH_TIMEOUT, CHART_REDIRECTS_MAX};

/// Why there is no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::apply::helm) enum Refused {
    /// No connection, no trust, or no answer.
    #[error("no answer that can be trusted")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No answer in time.
    #[error("no answer within {} s", CHART_FETCH_TIMEOUT.as_secs())]
    Timeout,
    /// It was refused.
    #[error("the answer is {0}")]
    Status(StatusCode),
    /// It is larger than anything of its kind.
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    /// It leads on and on, or to where nothing is verified.
    #[error("it redirects {0}")]
    Redirect(String),
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Fetches from one repository and from where it leads.
pub(super) struct Fetcher {
    /// The origin that the credential is for.
    origin: Origin,
    basic: Option<HeaderValue>,
    authorities: Vec<Vec<u8>>,
    clients: Mutex<BTreeMap<Origin, Client>>,
}

impl Fetcher {
    /// For the repository at an address.
    pub(super) fn new(repository: &Uri, credentials: Credentials) -> Result<Self, Refused> {
        Ok(Self {
            origin: Origin::of(repository),
            basic: credentials.basic,
            authorities: credentials.authorities,
            clients: Mutex::default(),
        })
    }

    /// The credential of the repository.
    pub(super) fn basic(&self) -> Option<HeaderValue> {
        self.basic.clone()
    }

    /// The file at an address, with the repository's credential where that is its own.
    pub(super) async fn file(&self, address: &Uri, limit: usize) -> Result<Vec<u8>, Refused> {
        let answer = self.answer(address, self.basic(), None, limit).await?;
        if answer.status.is_success() {
            Ok(answer.body)
        } else {
            Err(Refused::Status(answer.status))
        }
    }

    /// Whatever is answered in the end. The credential goes to the repository's origin, and nowhere else.
    pub(super) async fn answer(
        &self,
        address: &Uri,
        authorization: Option<HeaderValue>,
        accept: Option<&'static str>,
        limit: usize,
    ) -> Result<Answer, Refused> {
        let following = self.follow(address.clone(), authorization, accept, limit);
        timeout(CHART_FETCH_TIMEOUT, following)
            .await
            .unwrap_or(Err(Refused::Timeout))
    }

    /// A credential of the repository for who gives out its tokens, as registries ask for it: the one place
    /// that may see it beside the repository, and only over TLS, or where the repository has none itself.
    pub(super) async fn token(&self, realm: &Uri, limit: usize) -> Result<Answer, Refused> {
        let origin = Origin::of(realm);
        if origin.scheme != "https" && self.origin.scheme == "https" {
            return Err(Refused::Redirect(format!(
                "to {}, which is not encrypted",
                address::shown(realm)
            )));
        }
        let asking = self.once(realm, self.basic(), None, limit);
        timeout(CHART_FETCH_TIMEOUT, asking)
            .await
            .unwrap_or(Err(Refused::Timeout))
    }

    async fn follow(
        &self,
        mut address: Uri,
        authorization: Option<HeaderValue>,
        accept: Option<&'static str>,
        limit: usize,
    ) -> Result<Answer, Refused> {
        for _ in 0..=CHART_REDIRECTS_MAX {
            let own = Origin::of(&address) == self.origin;
            let answer = self
                .once(&address, authorization.clone().filter(|_| own), accept, limit)
                .await?;
            let location = answer
                .headers
                .get(header::LOCATION)
                .and_then(|location| location.to_str().ok());
            let Some(location) = location.filter(|_| answer.status.is_redirection()) else {
                return Ok(answer);
            };
            let next = address::join(&address, location).map_err(Refused::Redirect)?;
            if address.scheme_str() == Some("https") && next.scheme_str() != Some("https") {
                return Err(Refused::Redirect(format!(
                    "to {}, which is not encrypted",
                    address::shown(&next)
                )));
            }
            address = next;
        }
        Err(Refused::Redirect(format!("more than {CHART_REDIRECTS_MAX} times")))
    }

    async fn once(
        &self,
        address: &Uri,
        authorization: Option<HeaderValue>,
        accept: Option<&'static str>,
        limit: usize,
    ) -> Result<Answer, Refused> {
        let client = self.client(Origin::of(address)).await?;
        let path = address.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder()
            .method(Method::GET)
            .uri(path)
            .header(header::USER_AGENT, concat!("flotilla/", env!("CARGO_PKG_VERSION")))
            .body(Body::empty())
            .map_err(|error| Refused::Unreachable(error.into()))?;
        let headers = request.headers_mut();
        if let Some(accept) = accept {
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        }
        if let Some(authorization) = authorization {
            headers.insert(header::AUTHORIZATION, authorization);
        }
        let response = client
            .send(request)
            .await
            .map_err(|error| Refused::Unreachable(error.into()))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, limit).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Refused::TooLarge(limit)
            } else {
                Refused::Unreachable(error)
            }
        })?;
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.to_bytes().into(),
        })
    }

    /// kube's client speaks HTTP and TLS as for an API server, without any credential of one.
    async fn client(&self, origin: Origin) -> Result<Client, Refused> {
        let mut clients = self.clients.lock().await;
        if let Some(client) = clients.get(&origin) {
            return Ok(client.clone());
        }
        let root = origin
            .root()
            .parse()
            .map_err(|_| Refused::Redirect("to an address that is none".to_owned()))?;
        let mut config = Config::new(root);
        config.connect_timeout = Some(API_CONNECT_TIMEOUT);
        config.default_retry = false;
        if !self.authorities.is_empty() {
            config.root_cert = Some(self.authorities.clone());
        }
        let client = Client::try_from(config).map_err(|error| Refused::Unreachable(error.into()))?;
        clients.insert(origin, client.clone());
        Ok(client)
    }
}
