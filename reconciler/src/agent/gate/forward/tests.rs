use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, HOST};
use http_body_util::{BodyExt as _, Either, Empty, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http1 as client;
use kube::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::agent::gate::identity;
use crate::agent::gate::talk::Log;
use crate::audit::{AuditLog, StreamLine};
use crate::wire::{Caller, write_message};

type Seen = Request<()>;
type Chunks = futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>;
type Answer = Response<Either<Full<Bytes>, StreamBody<Chunks>>>;

/// An API server over plain HTTP that answers as `answer` says, and what it was asked.
struct Server {
    passage: Passage,
    seen: mpsc::Receiver<Seen>,
    _runs: AbortOnDropHandle<()>,
}

impl Server {
    async fn start(answer: impl Fn(&mut Request<Incoming>) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (told, seen) = mpsc::channel(8);
        let answer = Arc::new(answer);
        let runs = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (answer, told) = (Arc::clone(&answer), told.clone());
                let serve = service_fn(move |mut request: Request<Incoming>| {
                    let response = answer(&mut request);
                    let _unheard = told.try_send(request.map(drop));
                    async { Ok::<_, Infallible>(response) }
                });
                let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), serve);
                tokio::spawn(connection.with_upgrades());
            }
        });
        let url = format!("http://{address}").parse().expect("an address");
        Self {
            passage: Passage::fixed(&Config::new(url)).expect("it can be used"),
            seen,
            _runs: AbortOnDropHandle::new(runs),
        }
    }

    /// One stream to it through a gate: the hub's end.
    async fn stream(&self, entry: Entry) -> (DuplexStream, AbortOnDropHandle<()>) {
        let (mut near, mut far) = tokio::io::duplex(1 << 10);
        let (passage, room) = (self.passage.clone(), Room::of_people());
        let serving = tokio::spawn(async move {
            let identity = match entry {
                Entry::Push => None,
                Entry::Read | Entry::Interactive => Some(identity(&mut far).await.expect("a good caller")),
            };
            // How it ends is the tests' to provoke.
            let forwarding = Forwarding {
                passage: &passage,
                room: &room,
                entry,
                own: &Own::default(),
                identity: identity.as_ref(),
                talk: &Talk::begin(StreamLine::default(), Arc::new(Log::new(AuditLog::default()))),
            };
            let _ended = serve(forwarding, far, room.place().expect("there is room")).await;
        });
        if entry != Entry::Push {
            let caller = Caller {
                user: "ann".to_owned(),
                groups: vec!["crew".to_owned()],
                request_id: String::new(),
            };
            write_message(&mut near, &caller).await.expect("it is taken");
        }
        (near, AbortOnDropHandle::new(serving))
    }

    async fn ask(&self, entry: Entry, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let (near, serving) = self.stream(entry).await;
        let (mut sender, connection) = client::handshake(TokioIo::new(near)).await.expect("HTTP");
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.expect("an answer");
        // It goes on in the background: an answer's body is read after this.
        tokio::spawn(serving);
        answer
    }
}

fn get(path: &str) -> http::request::Builder {
    Request::get(path).header(HOST, "hub.example")
}

fn full(text: &'static str) -> Answer {
    Response::new(Either::Left(Full::new(Bytes::from_static(text.as_bytes()))))
}

async fn text(answer: Response<Incoming>) -> String {
    let whole = answer.into_body().collect().await.expect("a whole body");
    String::from_utf8(whole.to_bytes().to_vec()).expect("text")
}

#[tokio::test]
async fn a_read_reaches_the_api_server_in_its_callers_name_and_with_no_credential_of_theirs() {
    let mut server = Server::start(|_| full("{}")).await;
    let request = get("/api/v1/pods?limit=5&watch=false")
        .header(AUTHORIZATION, "Bearer theirs")
        .header(COOKIE, "a=b")
        .header("accept", "application/json")
        .body(Full::default())
        .expect("a request");
    let answer = server.ask(Entry::Read, request).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(text(answer).await, "{}");
    let seen = server.seen.recv().await.expect("it was asked");
    assert_eq!(
        seen.uri().path_and_query().map(|path| path.as_str()),
        Some("/api/v1/pods?limit=5&watch=false")
    );
    let headers = seen.headers();
    assert_eq!(headers["impersonate-user"], "flotilla:ann");
    assert_eq!(headers["impersonate-group"], "flotilla:crew");
    assert_eq!(headers["accept"], "application/json");
    assert!(!headers.contains_key(AUTHORIZATION) && !headers.contains_key(COOKIE));
    assert_ne!(headers[HOST], "hub.example");
}

#[tokio::test]
async fn what_may_not_pass_does_not_reach_the_api_server() {
    let mut server = Server::start(|_| full("{}")).await;
    let body = || Full::new(Bytes::from_static(b"{}"));
    let requests = [
        (Request::delete("/api/v1/namespaces/a/pods/b").body(body()), 403),
        (
            Request::patch("/api/v1/namespaces/a/pods/b?dryRun=All").body(body()),
            403,
        ),
        (
            get("/api/v1/pods")
                .header("impersonate-group", "system:masters")
                .body(Full::default()),
            403,
        ),
        (get("/api/v1/namespaces/a%2f..%2fb/pods").body(Full::default()), 400),
        (get("/api/v1/pods").body(body()), 400),
    ];
    for (request, code) in requests {
        let answer = server.ask(Entry::Read, request.expect("a request")).await;
        assert_eq!(answer.status(), code);
        assert!(text(answer).await.contains("\"kind\":\"Status\""), "kubectl reads why");
    }
    assert!(server.seen.try_recv().is_err(), "nothing was asked");
}

#[tokio::test]
async fn an_answer_goes_on_as_it_comes_and_its_reader_holds_it_up() {
    let (chunks, said) = mpsc::channel::<&str>(1);
    let said = Mutex::new(Some(said));
    let server = Server::start(move |_| {
        let said = said.lock().expect("one request").take().expect("one request");
        let chunks = futures_util::stream::unfold(said, |mut said| async {
            let chunk = said.recv().await?;
            Some((Ok(Frame::data(Bytes::from_static(chunk.as_bytes()))), said))
        });
        Response::new(Either::Right(StreamBody::new(Box::pin(chunks) as Chunks)))
    })
    .await;
    chunks.send("one\n").await.expect("somebody listens");
    let request = get("/api/v1/namespaces/a/pods/b/log?follow=true").body(Full::default());
    let mut answer = server.ask(Entry::Read, request.expect("a request")).await.into_body();
    let first = answer.frame().await.expect("a frame").expect("a good one");
    assert_eq!(first.into_data().expect("bytes"), "one\n", "before there is a second");
    chunks.send("two\n").await.expect("somebody listens");
    let second = answer.frame().await.expect("a frame").expect("a good one");
    assert_eq!(second.into_data().expect("bytes"), "two\n");
}

#[tokio::test]
async fn with_its_stream_a_request_ends_at_the_api_server() {
    let (chunks, said) = mpsc::channel::<&str>(1);
    let said = Mutex::new(Some(said));
    let mut server = Server::start(move |_| {
        let said = said.lock().expect("one request").take().expect("one request");
        let waiting = futures_util::stream::unfold(said, |mut said| async {
            let chunk: &str = said.recv().await?;
            Some((Ok(Frame::data(Bytes::from_static(chunk.as_bytes()))), said))
        });
        Response::new(Either::Right(StreamBody::new(Box::pin(waiting) as Chunks)))
    })
    .await;
    let (mut near, serving) = server.stream(Entry::Read).await;
    near.write_all(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .expect("it is taken");
    server.seen.recv().await.expect("it was asked");
    let mut head = [0; 12];
    near.read_exact(&mut head).await.expect("an answer began");
    drop(near);
    serving.await.expect("the gate ends");
    // The server's half of the answer is dropped, and so is what it waited for.
    chunks.closed().await;
}

#[tokio::test]
async fn an_upgrade_passes_on_its_own_class_both_ways() {
    let server = Server::start(|request| {
        let upgrade = hyper::upgrade::on(request);
        tokio::spawn(async move {
            let mut io = TokioIo::new(upgrade.await.expect("it is upgraded"));
            let mut word = [0; 4];
            io.read_exact(&mut word).await.expect("a word");
            word.reverse();
            io.write_all(&word).await.expect("it is taken");
        });
        Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .body(Either::Left(Full::default()))
            .expect("an answer")
    })
    .await;
    let exec = "/api/v1/namespaces/a/pods/b/exec?command=sh";
    let (near, _serving) = server.stream(Entry::Interactive).await;
    let (mut sender, connection) = client::handshake(TokioIo::new(near)).await.expect("HTTP");
    tokio::spawn(connection.with_upgrades());
    let request = get(exec).header("connection", "upgrade").header("upgrade", "websocket");
    let request = request.body(Empty::<Bytes>::new()).expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut io = TokioIo::new(hyper::upgrade::on(answer).await.expect("it is upgraded"));
    io.write_all(b"abcd").await.expect("it is taken");
    let mut word = [0; 4];
    io.read_exact(&mut word).await.expect("a word");
    assert_eq!(&word, b"dcba");
    let on_read = get(exec).header("connection", "upgrade").header("upgrade", "websocket");
    let refused = server
        .ask(Entry::Read, on_read.body(Full::default()).expect("a request"))
        .await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_hubs_applier_asks_as_the_agent_and_again_on_the_same_stream() {
    let mut server = Server::start(|_| full("{}")).await;
    let (near, _serving) = server.stream(Entry::Push).await;
    let (mut sender, connection) = client::handshake(TokioIo::new(near)).await.expect("HTTP");
    tokio::spawn(connection);
    for _ in 0..2 {
        let request = Request::patch("/api/v1/namespaces/a/configmaps/b?fieldManager=flotilla");
        let request = request
            .header(HOST, "a")
            .header("content-type", "application/apply-patch+yaml");
        let answer = sender
            .send_request(request.body(Full::new(Bytes::from_static(b"{}"))).expect("a request"))
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        let seen = server.seen.recv().await.expect("it was asked");
        assert!(!seen.headers().contains_key("impersonate-user"));
        assert_eq!(seen.headers()["content-type"], "application/apply-patch+yaml");
        drop(text(answer).await);
        sender.ready().await.expect("the stream goes on");
    }
}

#[tokio::test]
async fn a_persons_requests_follow_one_another_in_their_name_where_the_hub_asks_for_it() {
    let mut server = Server::start(|_| full("{}")).await;
    let (near, _serving) = server.stream(Entry::Read).await;
    let (mut sender, connection) = client::handshake(TokioIo::new(near)).await.expect("HTTP");
    tokio::spawn(connection);
    for (connection, stays) in [("keep-alive", true), ("keep-alive", true), ("close", false)] {
        let request = get("/api/v1/pods")
            .header("connection", connection)
            .header("audit-id", "r-1");
        let request = request.body(Full::<Bytes>::default()).expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        let closes = answer.headers().get("connection").is_some_and(|said| said == "close");
        assert_eq!(closes, !stays, "{:?}", answer.headers());
        let seen = server.seen.recv().await.expect("it was asked");
        assert_eq!(seen.headers()["impersonate-user"], "flotilla:ann");
        assert!(!seen.headers().contains_key("audit-id"));
        drop(text(answer).await);
        assert_eq!(sender.ready().await.is_ok(), stays);
    }
}

#[tokio::test]
async fn a_question_is_small_and_only_the_hubs_applier_sends_large_bodies() {
    let server = Server::start(|_| full("{}")).await;
    let post = |bytes: usize| {
        let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").header(HOST, "a");
        request
            .body(Full::new(Bytes::from(vec![b' '; bytes])))
            .expect("a request")
    };
    for (entry, bytes, code) in [
        (Entry::Read, 1 << 10, StatusCode::OK),
        (Entry::Read, 1 << 20, StatusCode::PAYLOAD_TOO_LARGE),
        (Entry::Push, 1 << 20, StatusCode::OK),
        (Entry::Push, 4 << 20, StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let answer = server.ask(entry, post(bytes)).await;
        assert_eq!(answer.status(), code, "{bytes} bytes by {entry:?}");
    }
}

#[tokio::test]
async fn the_agents_own_trouble_is_not_its_callers() {
    let server = Server::start(|_| {
        let mut answer = full("{}");
        *answer.status_mut() = StatusCode::UNAUTHORIZED;
        answer
    })
    .await;
    let ask = || get("/api/v1/pods").body(Full::default()).expect("a request");
    let answer = server.ask(Entry::Read, ask()).await;
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    assert!(text(answer).await.contains("the agent's own credential"));
    let nowhere = Config::new("http://127.0.0.1:1".parse().expect("an address"));
    let gone = Server {
        passage: Passage::fixed(&nowhere).expect("it can be used"),
        ..server
    };
    let answer = gone.ask(Entry::Read, ask()).await;
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    let said = text(answer).await;
    assert!(said.contains("no connection") && !said.contains("127.0.0.1"), "{said}");
}
