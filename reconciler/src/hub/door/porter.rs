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
use render::access::{self, Class, Target};
use render::{ClusterName, Fleet};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::answered::{Answers, Held, Judge, Record, Told};
use super::audit::{self, Audit, Line};
use super::carry::{Carried, Carrier, Errand, Goal};
use super::certified::Certified;
use super::listen::Newcomer;
use super::login::{Login, Logins, Proven};
use super::refusal;
use super::reviews::Review;
use super::route::{self, Route};
use super::screen;
use super::verdict::{Aim, Asked, Verdict, is_for_anybody, verdict};
use super::writes::{self, Written};
use crate::hub::SharedState;
use crate::hub::clock::seconds;
use crate::hub::places::{Full, Places};
use crate::hub::serve::{Asker, Refused, json_answer};
use crate::hub::shares::Shares;
use crate::hub::tally::{Limit, Tally};
use crate::limits::{
    API_REQUESTS_OF_PERSON_MAX, API_WATCHES_OF_PERSON_MAX, DOOR_BODY_BYTES_MAX, DOOR_BODY_TIMEOUT,
    DOOR_WRITTEN_BYTES_MAX,
};
use crate::wire::headers;

/// Where a caller stands.
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// Who its certificate names.
    pub(super) certified: Option<Arc<Certified>>,
    /// Its place among those who have not logged in yet.
    pub(super) newcomer: Newcomer,
    pub(super) proven: Proven,
    /// What is on its way to it.
    pub(super) answers: Answers,
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
    /// Watches at the hub's own API, of each person.
    pub(super) watches: Arc<Shares<String>>,
    /// Other answers of it.
    pub(super) own_answers: Places<String>,
    /// Objects that are refused and read for their names.
    pub(super) written: Semaphore,
}

/// Who asks for what, for as long as the answer lasts.
struct Question {
    asked: Asked,
    login: Login,
}

/// What comes of a request.
struct Outcome {
    carried: Carried,
    held: Held,
    judge: Option<Judge>,
}

impl From<Response<Body>> for Outcome {
    fn from(response: Response<Body>) -> Self {
        Self {
            carried: response.into(),
            held: Held::new(),
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
            from: peer.address.to_string(),
            class: "none",
            verb: "unknown",
            ..Line::default()
        };
        let mut record = Record::begin(line, Arc::clone(&self.audit), Arc::clone(&self.tally));
        let id = HeaderValue::from_str(&request_id);
        let outcome = self.answered(&peer, request, request_id, &mut record).await;
        let mut outcome = outcome.unwrap_or_else(|refused| Response::from(refused).into());
        record.line.code = outcome.carried.response.status().as_u16();
        // Kubernetes' own name for it.
        if let Ok(id) = id {
            outcome.carried.response.headers_mut().insert("audit-id", id);
        }
        outcome.held.push(busy);
        Told::wrap(outcome.carried, record, outcome.held, outcome.judge, &peer.answers)
    }

    async fn answered(
        self: &Arc<Self>,
        peer: &Peer,
        mut request: Request<Incoming>,
        request_id: String,
        record: &mut Record,
    ) -> Result<Outcome, Refused> {
        screen::check_headers(request.method(), request.headers()).map_err(refusal::fault)?;
        let (method, query) = (request.method().as_str(), request.uri().query());
        let attributes = |path: &str| {
            let read = access::attributes(method, path, query);
            read.map_err(|unclear| Refused::bad_request(unclear.to_string()))
        };
        let whole = attributes(request.uri().path())?;
        record.line.asked(&whole);
        if is_for_anybody(&whole) {
            return Ok(self.here(request).await.into());
        }
        let login = self
            .logins
            .login((peer.certified.as_ref(), &peer.proven), request.headers(), peer.address);
        let login = login.await.map_err(refusal::not_in)?;
        peer.newcomer.is_known();
        record.line.person(&login.person);
        if let Err(why) = self.audit.room().await {
            record.line.lacked_room = true;
            return Err(refusal::no_audit(why));
        }
        let route = route::route(request.uri().path());
        let route = route.map_err(|route::Incomplete| refusal::incomplete(request.uri().path()))?;
        let attributes = match &route {
            Route::Hub => whole,
            Route::Cluster(to) => {
                record.line.cluster.clone_from(&to.id);
                attributes(&to.judged_path())?
            }
        };
        record.line.asked(&attributes);
        screen::check_class(&request, attributes.class()).map_err(refusal::fault)?;
        if attributes.class() == Class::Interactive && login.is_shown_by_browsers() {
            screen::check_page(&request).map_err(refusal::fault)?;
        }
        let question = Question {
            asked: Asked { route, attributes },
            login,
        };
        let verdict = self.verdict(&question);
        if let Verdict::Here { by } | Verdict::Carry { by, .. } = &verdict {
            record.line.by.clone_from(by);
        }
        if let Verdict::Carry {
            aim: Aim::Dial(address),
            ..
        } = &verdict
        {
            record.line.target = address.target();
        }
        if let Verdict::Carry { cluster, .. } | Verdict::Write { cluster } = &verdict {
            record.line.cluster = cluster.to_string();
        }
        match verdict {
            Verdict::Refuse(refused) => Err(refused),
            Verdict::Write { cluster } => Err(self.write(&cluster, request, &question).await),
            Verdict::Here { .. } => {
                let held = self.own_place(&question)?;
                let asker = Asker(question.login.person.user.clone());
                request.extensions_mut().insert(asker);
                request.extensions_mut().insert(Arc::clone(&question.login.person));
                let response = match Review::of(&question.asked.attributes) {
                    Some(review) => self.review(review, request, &question, record).await?,
                    None => self.here(request).await,
                };
                Ok(Outcome {
                    carried: response.into(),
                    held,
                    judge: Some(self.judge(question, None)),
                })
            }
            Verdict::Carry { to, cluster, aim, .. } => {
                let not_carried = |not| {
                    if let Some(limit) = refusal::limit(&not) {
                        self.tally.limited(limit);
                    }
                    refusal::not_carried(&cluster, not, self.away_since(&cluster))
                };
                // Before anything of its body is kept.
                let place = self.carrier.place(&cluster, &question.login.person).await;
                let place = place.map_err(not_carried)?;
                let errand = errand((&to.path, cluster.clone(), aim), request, &question, request_id).await?;
                record.line.bytes_up = errand.body.len() as u64;
                let carried = self.carrier.carry(errand).await.map_err(not_carried)?;
                Ok(Outcome {
                    carried,
                    held: vec![Box::new(place)],
                    judge: Some(self.judge(question, Some(cluster))),
                })
            }
        }
    }

    /// When the last session of a cluster ended, where it had one here.
    fn away_since(&self, cluster: &ClusterName) -> Option<i64> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.clusters.get(cluster)?.away_since
    }

    fn verdict(&self, question: &Question) -> Verdict {
        verdict(
            fleet(&self.state).as_deref(),
            &question.login.person,
            &question.asked,
            self.interactive,
        )
    }

    /// Whether the same question would be answered by the same cluster now, or the same hub (`None`), and to the same login.
    fn judge(self: &Arc<Self>, question: Question, begun: Option<ClusterName>) -> Judge {
        let porter = Arc::clone(self);
        Box::new(move || {
            let is_same = match porter.verdict(&question) {
                Verdict::Here { .. } => begun.is_none(),
                Verdict::Carry { cluster, .. } => begun.as_ref() == Some(&cluster),
                Verdict::Write { .. } | Verdict::Refuse(_) => false,
            };
            is_same && porter.logins.counts(&question.login, seconds())
        })
    }

    /// A place at the hub's own API until the answer ended: of a watch among the watches, of anything else among the answers.
    fn own_place(&self, question: &Question) -> Result<Held, Refused> {
        let user = question.login.person.user.clone();
        if question.asked.attributes.verb == "watch" {
            let share = self.watches.part(user, API_WATCHES_OF_PERSON_MAX);
            let share = share.ok_or_else(|| self.limited(Limit::Watches, refusal::watches()))?;
            return Ok(vec![Box::new(share)]);
        }
        let place = self.own_answers.place(user, API_REQUESTS_OF_PERSON_MAX);
        let place = place.map_err(|full| {
            let refused = match full {
                Full::Share => refusal::own_answers_of(),
                Full::All => refusal::own_answers(),
            };
            self.limited(Limit::Requests, refused)
        })?;
        Ok(vec![Box::new(place)])
    }

    fn limited(&self, limit: Limit, refused: Refused) -> Refused {
        self.tally.limited(limit);
        refused
    }

    /// The hub's own API answers.
    async fn here(&self, request: Request<Incoming>) -> Response<Body> {
        match self.own.clone().oneshot(request.map(Body::new)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// A question about oneself, which the hub answers by what it knows of rights.
    async fn review(
        &self,
        review: Review,
        request: Request<Incoming>,
        question: &Question,
        record: &mut Record,
    ) -> Result<Response<Body>, Refused> {
        let body = read(request, DOOR_BODY_BYTES_MAX).await?;
        record.line.bytes_up = body.len() as u64;
        let fleet = fleet(&self.state).ok_or_else(|| Refused::unavailable("the hub has accepted no revision yet"))?;
        let answer = review.answer(&fleet.access, &question.login.person, &body)?;
        let mut response = json_answer(&answer);
        *response.status_mut() = StatusCode::CREATED;
        Ok(response)
    }

    /// What a writer is told. Of an object that is new the body has the name.
    async fn write(&self, cluster: &ClusterName, request: Request<Incoming>, question: &Question) -> Refused {
        let attributes = &question.asked.attributes;
        let is_new = matches!(&attributes.target, Target::Resource { name, .. } if name.is_empty());
        let reading = self
            .written
            .try_acquire()
            .ok()
            .filter(|_| is_new && attributes.verb == "create");
        let body = match reading {
            Some(_reading) => read(request, DOOR_WRITTEN_BYTES_MAX).await.unwrap_or_default(),
            None => Bytes::new(),
        };
        let written = Written::of(attributes, &body);
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        Refused::method_not_allowed(writes::refusal(
            &state,
            &question.login.person,
            cluster,
            written.as_ref(),
        ))
    }
}

fn fleet(state: &SharedState) -> Option<Arc<Fleet>> {
    state.read().unwrap_or_else(PoisonError::into_inner).fleet.clone()
}

/// What is carried of a request.
async fn errand(
    (path, cluster, aim): (&str, ClusterName, Aim),
    mut request: Request<Incoming>,
    question: &Question,
    request_id: String,
) -> Result<Errand, Refused> {
    let path = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let method = request.method().clone();
    let passed = screen::to_cluster(request.headers(), question.asked.attributes.class());
    let upgrades = headers::names_protocol(request.headers());
    let goal = match aim {
        Aim::Read => Goal::Read,
        Aim::Interactive => Goal::Interactive(hyper::upgrade::on(&mut request)),
        Aim::Dial(address) => Goal::Dial(address),
    };
    let body = match (&goal, &method) {
        (Goal::Read, &Method::POST) => read(request, DOOR_BODY_BYTES_MAX).await?,
        // What becomes another protocol has none; a proxy takes what any server takes.
        (Goal::Interactive(_), _) if !upgrades => read(request, DOOR_BODY_BYTES_MAX).await?,
        (Goal::Read | Goal::Interactive(_) | Goal::Dial(_), _) => Bytes::new(),
    };
    Ok(Errand {
        cluster,
        method,
        path,
        headers: passed,
        body,
        person: Arc::clone(&question.login.person),
        request_id,
        goal,
    })
}

/// The body of a request, which only questions about oneself have, and what is sent through a proxy.
async fn read(request: Request<Incoming>, bytes_max: usize) -> Result<Bytes, Refused> {
    let body = Limited::new(request.into_body(), bytes_max).collect();
    match timeout(DOOR_BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(Refused::too_large(format!(
            "the body could not be read, or has more than {bytes_max} bytes"
        ))),
        Err(_) => Err(Refused::of(
            StatusCode::REQUEST_TIMEOUT,
            "Timeout",
            "the body did not come in time",
        )),
    }
}
