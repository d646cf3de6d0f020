//! One request through a cluster's tunnel, or to its API server where it has no agent, and its answer as it comes.

use std::error::Error;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use kube::Client;
use render::ClusterName;
use render::access::Person;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Duration, Instant, sleep, timeout};
use tunnel::{Open, OpenCode, OpenError, StreamError, TargetClass, TunnelStream};

use super::kept::{self, Kept, Owner};
use super::lane::{Lanes, NoPlace, Place};
use super::screen;
use crate::apply::Unreached;
use crate::exchange::{Answer, Line, Unanswered};
use crate::fault::line;
use crate::hub::asking::Door as Way;
use crate::hub::dispatch::{Absent, Dispatch};
use crate::limits::{DOOR_HEAD_TIMEOUT, DOOR_RECONNECT_HOPE, DOOR_RECONNECT_PATIENCE};
use crate::wire::{Caller, headers, write_message};

/// How long a tunnel that broke under a request rests before the next one is looked for.
const BROKEN_REST: Duration = Duration::from_millis(50);

/// What is to be carried.
pub(super) struct Errand {
    pub(super) cluster: ClusterName,
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    /// What goes on of the caller's headers.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) person: Arc<Person>,
    pub(super) request_id: String,
    pub(super) goal: Goal,
}

/// What is to be reached there.
pub(super) enum Goal {
    /// The API server, to be read.
    Read,
    /// The API server, and what it leads into; the caller's side of what the connection becomes.
    Interactive(OnUpgrade),
    /// An address that the agent's policy lists: `host:port`, and whether TLS is spoken with it.
    Dial(super::route::Address),
}

/// Why nothing was carried.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotCarried {
    /// Its agent is not connected.
    Away(Absent),
    /// There is no place.
    NoPlace(NoPlace),
    /// The agent, or the tunnel, said no.
    Refused(OpenCode, String),
    /// It did not answer in time.
    Late,
    /// The answer broke before it began.
    Broken(String),
    /// A cluster without an agent cannot be reached so.
    NoAgent,
}

/// Carries requests, each cluster's apart.
pub(super) struct Carrier {
    dispatch: Arc<Dispatch>,
    lanes: Lanes,
    dialler: super::dial::Dialler,
    pub(super) kept: Kept,
}

/// An answer that began.
pub(super) struct Carried {
    pub(super) response: Response<Body>,
    /// Both sides of what became another protocol: the caller's, and the cluster's.
    pub(super) spliced: Option<(OnUpgrade, OnUpgrade)>,
}

impl From<Response<Body>> for Carried {
    fn from(response: Response<Body>) -> Self {
        Self {
            response,
            spliced: None,
        }
    }
}

impl Carrier {
    pub(super) fn new(dispatch: Arc<Dispatch>) -> Self {
        Self {
            dispatch,
            lanes: Lanes::default(),
            dialler: super::dial::Dialler::default(),
            kept: Kept::new(kept::ROOM),
        }
    }

    /// A place for a request, before anything of it is kept.
    pub(super) async fn place(&self, cluster: &ClusterName, person: &Person) -> Result<Place, NotCarried> {
        let lane = self.lanes.lane(cluster);
        lane.place(&person.user).await.map_err(NotCarried::NoPlace)
    }

    /// Carries a request that has its place, and gives the answer once it begins.
    pub(super) async fn carry(&self, mut errand: Errand) -> Result<Carried, NotCarried> {
        let lane = self.lanes.lane(&errand.cluster);
        let until = Instant::now() + DOOR_RECONNECT_PATIENCE;
        let may_be_repeated = matches!(errand.goal, Goal::Read);
        loop {
            let way = self
                .dispatch
                .door_soon(&errand.cluster, until, DOOR_RECONNECT_HOPE)
                .await;
            let answered = match way.map_err(NotCarried::Away)? {
                way @ (Way::Agent(_) | Way::Peer(_)) => {
                    let again = timeout(DOOR_HEAD_TIMEOUT, self.again(&way, &errand)).await;
                    if let Some(answered) = again.unwrap_or(Some(Err(NotCarried::Late))) {
                        return answered;
                    }
                    let opening = lane.opening().await.map_err(NotCarried::NoPlace)?;
                    timeout(DOOR_HEAD_TIMEOUT, self.through(&way, opening, &mut errand)).await
                }
                Way::ApiServer(client) => timeout(DOOR_HEAD_TIMEOUT, ask(client, &errand)).await,
            };
            // Nothing was done yet, and a read may be done twice.
            if let Ok(Err(NotCarried::Refused(OpenCode::Gone, _))) = &answered
                && may_be_repeated
                && Instant::now() < until
            {
                sleep(BROKEN_REST).await;
                continue;
            }
            return answered.unwrap_or(Err(NotCarried::Late));
        }
    }

    /// Asks on a stream that stayed of this person's requests before. `None`: there is none, or it is gone by now, and what is
    /// read may be asked twice.
    async fn again(&self, way: &Way, errand: &Errand) -> Option<Result<Carried, NotCarried>> {
        let owner = owner(way, errand)?;
        let line = self.kept.take(&errand.cluster, &owner)?;
        let request = match keeping(errand) {
            Ok(request) => request,
            Err(not_carried) => return Some(Err(not_carried)),
        };
        let home = self.kept.home(errand.cluster.clone(), owner);
        let answer = line.ask(request, Some(home)).await.ok()?;
        Some(answered(answer, None))
    }

    async fn through(
        &self,
        way: &Way,
        opening: OwnedSemaphorePermit,
        errand: &mut Errand,
    ) -> Result<Carried, NotCarried> {
        let (class, target) = match &errand.goal {
            Goal::Read => (TargetClass::ApiServer, String::new()),
            Goal::Interactive(_) => (TargetClass::Interactive, String::new()),
            Goal::Dial(address) => (TargetClass::Dial, address.target()),
        };
        let open = Open {
            request_id: errand.request_id.clone(),
            ..Open::new(class, target, DOOR_HEAD_TIMEOUT)
        };
        let (opener, open) = way.tunnel(open).map_err(refused)?;
        let (mut stream, grant) = opener.begin(&open).map_err(refused)?;
        let caller = caller(errand);
        if let Goal::Dial(address) = &errand.goal {
            grant.wait().await.map_err(refused)?;
            drop(opening);
            // The agent asks nobody's name for it; the hub that holds the tunnel judges by it.
            if matches!(way, Way::Peer(_)) {
                write_message(&mut stream, &caller)
                    .await
                    .map_err(|error| broken(&error))?;
            }
            let request = request_to(errand, &address.target())?;
            return match address.tls {
                true => read(self.dialler.trust(stream, address).await?, request).await,
                false => read(stream, request).await,
            };
        }
        // The request is on its way before the agent has answered: a round trip less.
        let conversation = async {
            if let Err(error) = write_message(&mut stream, &caller).await {
                return Err(broken(&error));
            }
            if let Some(owner) = owner(way, errand) {
                let line = Line::over(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
                let home = self.kept.home(errand.cluster.clone(), owner);
                let answer = line.ask(keeping(errand)?, Some(home)).await;
                return answered(answer?, None);
            }
            let request = request_to(errand, errand.cluster.as_str())?;
            match std::mem::replace(&mut errand.goal, Goal::Read) {
                Goal::Interactive(upgrade) => change(stream, request, upgrade).await,
                Goal::Read | Goal::Dial(_) => read(stream, request).await,
            }
        };
        let mut conversation = std::pin::pin!(conversation);
        tokio::select! {
            biased;
            granted = grant.wait() => granted.map_err(refused)?,
            answered = &mut conversation => return answered,
        }
        drop(opening);
        conversation.await
    }
}

/// Whose a stream would be that stays for the next request. What passes through another hub ends with its answer: that hub
/// writes down each.
fn owner(way: &Way, errand: &Errand) -> Option<Owner> {
    match (way, &errand.goal) {
        (Way::Agent(opener), Goal::Read) => Some(Owner {
            opener: opener.clone(),
            person: Arc::clone(&errand.person),
        }),
        _ => None,
    }
}

fn caller(errand: &Errand) -> Caller {
    Caller {
        user: errand.person.user.clone(),
        groups: errand.person.groups.clone(),
        request_id: errand.request_id.clone(),
    }
}

fn request_to(errand: &Errand, host: &str) -> Result<Request<Full<Bytes>>, NotCarried> {
    let mut request = Request::builder()
        .method(errand.method.clone())
        .uri(&errand.path)
        .body(Full::new(errand.body.clone()))
        .map_err(|error| NotCarried::Broken(error.to_string()))?;
    *request.headers_mut() = errand.headers.clone();
    let host = HeaderValue::from_str(host).map_err(|error| NotCarried::Broken(error.to_string()))?;
    request.headers_mut().insert(header::HOST, host);
    Ok(request)
}

/// A request whose stream stays.
fn keeping(errand: &Errand) -> Result<Request<Full<Bytes>>, NotCarried> {
    let mut request = request_to(errand, errand.cluster.as_str())?;
    let id = HeaderValue::from_str(&errand.request_id).map_err(|error| NotCarried::Broken(error.to_string()))?;
    headers::keep(request.headers_mut(), id);
    Ok(request)
}

/// One request and its answer over a stream of its own.
async fn read<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Carried, NotCarried>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let line = Line::over(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    answered(line.ask(request, None).await?, None)
}

/// The same, for what may become another protocol; `upgrade` is the caller's side of it.
async fn change(
    stream: TunnelStream,
    request: Request<Full<Bytes>>,
    upgrade: OnUpgrade,
) -> Result<Carried, NotCarried> {
    let line = Line::changing(TokioIo::new(stream)).await;
    let line = line.map_err(|error| broken(&error))?;
    answered(line.ask(request, None).await?, Some(upgrade))
}

impl From<Unanswered<Full<Bytes>>> for NotCarried {
    fn from(unanswered: Unanswered<Full<Bytes>>) -> Self {
        broken(&unanswered.error)
    }
}

fn answered(mut response: Response<Answer<Full<Bytes>>>, upgrade: Option<OnUpgrade>) -> Result<Carried, NotCarried> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let Some(upgrade) = upgrade else {
            return Err(NotCarried::Broken("it became another protocol unasked".to_owned()));
        };
        let there = hyper::upgrade::on(&mut response);
        // Beside `Upgrade` the agent's side says `close`, and Go's clients then read neither.
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        return Ok(Carried {
            response: response.map(|_| Body::empty()),
            spliced: Some((upgrade, there)),
        });
    }
    screen::from_cluster(response.headers_mut());
    Ok(response.map(Body::new).into())
}

/// Asks an API server with the hub's own credential, for the person.
async fn ask(client: Client, errand: &Errand) -> Result<Carried, NotCarried> {
    if !matches!(errand.goal, Goal::Read) {
        return Err(NotCarried::NoAgent);
    }
    let mut request = Request::builder()
        .method(errand.method.clone())
        .uri(&errand.path)
        .body(kube::client::Body::from(errand.body.to_vec()))
        .map_err(|error| NotCarried::Broken(error.to_string()))?;
    *request.headers_mut() = errand.headers.clone();
    let person = caller(errand).impersonation();
    let person = person.map_err(|nobody| NotCarried::Refused(OpenCode::NotAllowed, nobody.to_string()))?;
    request.headers_mut().extend(person);
    let mut response = client.send(request).await.map_err(|error| {
        tracing::debug!(cluster = %errand.cluster, error = line(&error), "Got no answer of an API server.");
        NotCarried::Broken(Unreached::of(&error).to_string())
    })?;
    screen::from_cluster(response.headers_mut());
    Ok(response.map(Body::new).into())
}

fn refused(error: OpenError) -> NotCarried {
    NotCarried::Refused(error.code, error.text)
}

/// What a failed exchange means: the tunnel's own code where there is one.
pub(super) fn broken(error: &(dyn Error + 'static)) -> NotCarried {
    match StreamError::in_chain(error) {
        Some(ended) => NotCarried::Refused(ended.code, ended.text.clone()),
        None => NotCarried::Broken(line(error)),
    }
}
