//! One request, from its headers to its answer: screened, logged in, judged, and then carried, answered here or refused.

use std::any::Any;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use render::access::{self, Attributes, Class, Decision, Person, Target, Where, attributes, may, may_interact};
use render::model::SyncMode;
use render::{ClusterName, Fleet};
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::answered::{Holding, Judge, Record, Told};
use super::audit::{self, Audit, Line};
use super::carry::{Carrier, Errand, Goal};
use super::login::Logins;
use super::refusal;
use super::route::{self, Address, Form, Route, ToCluster};
use super::screen;
use super::tally::Tally;
use super::writes::{self, Written};
use crate::hub::SharedState;
use crate::hub::serve::Refused;
use crate::limits::{DOOR_BODY_BYTES_MAX, DOOR_BODY_TIMEOUT};

/// Asked by what watches over processes, which has no login.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Names by which a cluster's own API server is reached inside it.
const OWN_API_SERVER: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Where a caller stands.
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// Who its certificate names.
    pub(super) certified: Option<Arc<Person>>,
}

/// Answers requests.
pub(super) struct Porter {
    pub(super) state: SharedState,
    /// The hub's own API.
    pub(super) own: Router,
    pub(super) logins: Logins,
    pub(super) carrier: Carrier,
    pub(super) audit: Arc<Audit>,
    pub(super) tally: Arc<Tally>,
    /// Whether this hub carries what reaches into containers.
    pub(super) interactive: bool,
    /// Before the number of a request in its id.
    pub(super) name: String,
    pub(super) requests: AtomicU64,
}

/// A request that was read as far as it is judged by.
struct Asked {
    request: Request<Incoming>,
    attributes: Attributes,
    person: Arc<Person>,
    request_id: String,
}

/// What comes of a request.
struct Outcome {
    response: Response<Body>,
    holding: Holding,
    judge: Option<Judge>,
}

impl From<Refused> for Outcome {
    fn from(refused: Refused) -> Self {
        Self::from(Response::from(refused))
    }
}

impl From<Response<Body>> for Outcome {
    fn from(response: Response<Body>) -> Self {
        Self {
            response,
            holding: Holding::default(),
            judge: None,
        }
    }
}

impl Porter {
    /// Answers one request; `busy` is held until the answer ended.
    pub(super) async fn answer(
        self: Arc<Self>,
        peer: Arc<Peer>,
        request: Request<Incoming>,
        busy: Box<dyn Any + Send>,
    ) -> Response<Body> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let request_id = format!("{}-{number}", self.name);
        let line = Line {
            time: audit::now(),
            request_id: request_id.clone(),
            class: "none",
            verb: "unknown",
            ..Line::default()
        };
        let mut record = Record::begin(line, Arc::clone(&self.audit), Arc::clone(&self.tally));
        let id = HeaderValue::from_str(&request_id);
        let mut outcome = match self.judged(&peer, request, request_id, &mut record).await {
            Ok(outcome) => outcome,
            Err(refused) => refused.into(),
        };
        record.line.code = outcome.response.status().as_u16();
        // Kubernetes' own name for it.
        if let Ok(id) = id {
            outcome.response.headers_mut().insert("audit-id", id);
        }
        let Outcome {
            response,
            holding,
            judge,
        } = outcome;
        response.map(|body| Told::wrap(body, record, holding, judge, busy))
    }

    async fn judged(
        &self,
        peer: &Peer,
        request: Request<Incoming>,
        request_id: String,
        record: &mut Record,
    ) -> Result<Outcome, Refused> {
        let path = request.uri().path().to_owned();
        screen::check_headers(request.method(), request.headers()).map_err(refusal::fault)?;
        let unclear = |unclear: access::Unclear| Refused::bad_request(unclear.to_string());
        let whole = attributes(request.method().as_str(), &path, request.uri().query()).map_err(unclear)?;
        record.line.asked(&whole);
        if HEALTH.contains(&path.as_str()) && whole.class() == Class::Read {
            return Ok(self.here(request).await);
        }
        let login = self
            .logins
            .person(peer.certified.as_ref(), request.headers(), peer.address);
        let person = login.await.map_err(refusal::not_in)?;
        record.line.person(&person);
        let asked = |request, attributes| Asked {
            request,
            attributes,
            person,
            request_id,
        };
        match route::route(&path).map_err(|route::Incomplete| refusal::incomplete())? {
            Route::Hub => {
                screen::check_class(request.version(), request.method(), request.headers(), whole.class())
                    .map_err(refusal::fault)?;
                self.of_hub(asked(request, whole)).await
            }
            Route::Cluster(to) => {
                record.line.cluster.clone_from(&to.id);
                let own_path = match &to.form {
                    Form::Own | Form::Direct => to.path.clone(),
                    Form::Address(address) if is_own_api_server(address) => to.path.clone(),
                    Form::Address(address) => format!("/dial/{}", address.target()),
                };
                let method = request.method().as_str();
                let inner = attributes(method, &own_path, request.uri().query()).map_err(unclear)?;
                record.line.asked(&inner);
                screen::check_class(request.version(), request.method(), request.headers(), inner.class())
                    .map_err(refusal::fault)?;
                self.of_cluster(to, asked(request, inner), record).await
            }
        }
    }

    /// The hub's own API answers.
    async fn here(&self, request: Request<Incoming>) -> Outcome {
        match self.own.clone().oneshot(request.map(Body::new)).await {
            Ok(response) => response.into(),
            Err(never) => match never {},
        }
    }

    async fn of_hub(&self, asked: Asked) -> Result<Outcome, Refused> {
        let Asked {
            request,
            attributes,
            person,
            ..
        } = asked;
        // A writer is told where writing happens by the API itself, which changes nothing.
        if attributes.class() == Class::Read || request.method() == Method::POST {
            judge_hub(self.fleet().as_deref(), &person, &attributes).map_err(Refused::forbidden)?;
        }
        let state = Arc::clone(&self.state);
        let judge: Judge = Box::new(move || judge_hub(fleet(&state).as_deref(), &person, &attributes).is_ok());
        Ok(Outcome {
            judge: Some(judge),
            ..self.here(request).await
        })
    }

    async fn of_cluster(&self, to: ToCluster, asked: Asked, record: &mut Record) -> Result<Outcome, Refused> {
        let Asked {
            request,
            attributes,
            person,
            request_id,
        } = asked;
        let fleet = self.fleet();
        let unknown = || refusal::unknown(&to.form, access::unknown(&person, &to.id));
        let cluster = route::cluster(fleet.as_ref(), &to).ok_or_else(unknown)?;
        record.line.cluster = cluster.to_string();
        let class = attributes.class();
        let (place, mode) = {
            let fleet = fleet.as_deref().ok_or_else(unknown)?;
            let declared = fleet.clusters.get(&cluster).ok_or_else(unknown)?;
            (judge(fleet, &cluster, &person, &attributes), declared.sync_mode)
        };
        if let Err((sentence, is_known)) = place {
            if !is_known {
                return Err(refusal::unknown(&to.form, sentence));
            }
            if class == Class::Write {
                return Err(self.write(&cluster, request, &attributes).await);
            }
            // No right would help where the hub carries none of it.
            let is_off = class == Class::Interactive && !self.interactive;
            let sentence = if is_off {
                refusal::NOT_INTERACTIVE.to_owned()
            } else {
                sentence
            };
            return Err(Refused::forbidden(sentence));
        }
        if class == Class::Interactive && !self.interactive {
            return Err(Refused::forbidden(refusal::NOT_INTERACTIVE));
        }
        if mode == SyncMode::Pull {
            return Err(Refused::forbidden(refusal::pull(&cluster)));
        }
        let state = Arc::clone(&self.state);
        let again: Judge = {
            let (cluster, person, attributes) = (cluster.clone(), Arc::clone(&person), attributes.clone());
            Box::new(move || {
                let fleet = self::fleet(&state);
                fleet.is_some_and(|fleet| judge(&fleet, &cluster, &person, &attributes).is_ok())
            })
        };
        let form = to.form.clone();
        let errand = errand(to, cluster.clone(), request, class, (person, request_id)).await?;
        record.sent(errand.body.len() as u64);
        let mut holding = Holding::default();
        let answered = self.carrier.carry(errand, &mut holding).await;
        let response = answered.map_err(|not| refusal::not_carried(&form, &cluster, not))?;
        Ok(Outcome {
            response,
            holding,
            judge: Some(again),
        })
    }

    /// What a writer is told. Of an object that is new the body has the name.
    async fn write(&self, cluster: &ClusterName, request: Request<Incoming>, attributes: &Attributes) -> Refused {
        let is_new = matches!(&attributes.target, Target::Resource { name, .. } if name.is_empty());
        let body = match is_new && request.method() == Method::POST {
            true => read(request).await.unwrap_or_default(),
            false => Bytes::new(),
        };
        let written = Written::of(attributes, &body);
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        Refused::method_not_allowed(writes::refusal(&state, cluster, written.as_ref()))
    }

    fn fleet(&self) -> Option<Arc<Fleet>> {
        fleet(&self.state)
    }
}

fn fleet(state: &SharedState) -> Option<Arc<Fleet>> {
    state.read().unwrap_or_else(PoisonError::into_inner).fleet.clone()
}

/// Why a person may not ask the hub for something.
fn judge_hub(fleet: Option<&Fleet>, person: &Person, attributes: &Attributes) -> Result<(), String> {
    let fleet = fleet.ok_or("the hub has accepted no revision yet, and so knows no rights")?;
    match may(&fleet.access, person, Where::Hub, attributes) {
        Decision::Allowed { .. } => Ok(()),
        Decision::Denied { sentence, .. } => Err(sentence),
    }
}

/// Why a person may not ask a cluster for something, and whether they may know of it.
fn judge(fleet: &Fleet, cluster: &ClusterName, person: &Person, attributes: &Attributes) -> Result<(), (String, bool)> {
    let unknown = || (access::unknown(person, cluster.as_str()), false);
    let declared = fleet.clusters.get(cluster).ok_or_else(unknown)?;
    let place = Where::Cluster {
        name: cluster.as_str(),
        labels: &declared.labels,
    };
    let decision = match attributes.class() {
        Class::Interactive => may_interact(&fleet.access, person, place, attributes),
        Class::Read | Class::Write => may(&fleet.access, person, place, attributes),
    };
    match decision {
        Decision::Allowed { .. } => Ok(()),
        Decision::Denied { sentence, is_known } => Err((sentence, is_known)),
    }
}

fn is_own_api_server(address: &Address) -> bool {
    address.tls && address.port == 443 && OWN_API_SERVER.contains(&address.host.as_str())
}

/// What is carried of a request.
async fn errand(
    to: ToCluster,
    cluster: ClusterName,
    mut request: Request<Incoming>,
    class: Class,
    (person, request_id): (Arc<Person>, String),
) -> Result<Errand, Refused> {
    let path = match request.uri().query() {
        Some(query) => format!("{}?{query}", to.path),
        None => to.path,
    };
    let (method, headers) = (request.method().clone(), screen::to_cluster(request.headers(), class));
    let goal = match (to.form, class) {
        (_, Class::Interactive) => Goal::Interactive(hyper::upgrade::on(&mut request)),
        (Form::Address(address), _) if !is_own_api_server(&address) => Goal::Dial(address),
        _ => Goal::Read,
    };
    let body = match goal {
        Goal::Read => read(request).await?,
        Goal::Interactive(_) | Goal::Dial(_) => Bytes::new(),
    };
    Ok(Errand {
        cluster,
        method,
        path,
        headers,
        body,
        person,
        request_id,
        goal,
    })
}

/// The body of a request, which only questions about oneself have.
async fn read(request: Request<Incoming>) -> Result<Bytes, Refused> {
    let body = Limited::new(request.into_body(), DOOR_BODY_BYTES_MAX).collect();
    match timeout(DOOR_BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(Refused::too_large(format!(
            "the body could not be read, or has more than {DOOR_BODY_BYTES_MAX} bytes"
        ))),
        Err(_) => Err(Refused::of(
            StatusCode::REQUEST_TIMEOUT,
            "Timeout",
            "the body did not come in time",
        )),
    }
}
