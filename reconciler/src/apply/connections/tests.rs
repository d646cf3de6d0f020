use std::convert::Infallible;
use std::sync::Mutex;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::service_fn;

use super::*;

/// Lines to `server:6443`, and the other end of each as it is made.
fn lines() -> (Lines, mpsc::Receiver<DuplexStream>) {
    let (made, ends) = mpsc::channel(API_IDLE_MAX);
    let streams = service_fn(move |()| {
        let (end, other) = duplex(1 << 16);
        let made = made.clone();
        async move { made.send(other).await.map(|()| TokioIo::new(end)) }
    });
    let server = Server::at(&Uri::from_static("https://server:6443")).expect("an address");
    (Lines::new(ROOM, connect(streams), server), ends)
}

/// Serves each connection, and says how many are open and how many there were.
fn serve(mut ends: mpsc::Receiver<DuplexStream>) -> Arc<Mutex<[usize; 2]>> {
    let counts = Arc::<Mutex<[usize; 2]>>::default();
    let count = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Some(end) = ends.recv().await {
            let count = Arc::clone(&count);
            count.lock().expect("nobody panicked").iter_mut().for_each(|n| *n += 1);
            tokio::spawn(async move {
                let answer = hyper::service::service_fn(async |request: Request<Incoming>| {
                    let said = format!(
                        "{}{}",
                        request.headers()[HOST].to_str().unwrap_or_default(),
                        request.uri()
                    );
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(said))))
                });
                let _ended = http1::Builder::new().serve_connection(TokioIo::new(end), answer).await;
                count.lock().expect("nobody panicked")[0] -= 1;
            });
        }
    });
    counts
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).expect("a request")
}

fn post() -> Request<Body> {
    Request::post("/api/v1/namespaces")
        .body(Body::from(b"{}".to_vec()))
        .expect("a request")
}

async fn said(answer: Response<Answer<Body>>) -> Bytes {
    answer.into_body().collect().await.expect("a body").to_bytes()
}

/// Reads a request to the end of its head and of `body`.
async fn read(end: &mut DuplexStream, body: &str) -> String {
    let mut read = Vec::new();
    while !read.ends_with(format!("\r\n\r\n{body}").as_bytes()) {
        assert_ne!(end.read_buf(&mut read).await.expect("it is open"), 0);
    }
    String::from_utf8(read).expect("text")
}

#[tokio::test]
async fn a_connection_is_asked_again_once_its_answer_ended_whether_it_had_a_body_or_not() {
    let (lines, ends) = lines();
    let counts = serve(ends);
    for method in [Method::GET, Method::HEAD, Method::GET] {
        let mut request = get("/version?a=b");
        *request.method_mut() = method.clone();
        let answer = lines.clone().ask(request).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        let said = said(answer).await;
        assert_eq!(said.is_empty(), method == Method::HEAD);
        assert!(said.is_empty() || said == "server:6443/version?a=b", "{said:?}");
    }
    // Of two at a time each has its own.
    let first = lines.clone().ask(get("/a")).await.expect("an answer");
    let second = lines.clone().ask(get("/b")).await.expect("an answer");
    assert_eq!(
        [said(first).await, said(second).await],
        ["server:6443/a", "server:6443/b"]
    );
    assert_eq!(*counts.lock().expect("nobody panicked"), [2, 2]);
}

#[tokio::test]
async fn a_connection_whose_answer_nobody_wants_ends_and_is_not_asked_again() {
    let (lines, mut ends) = lines();
    let asking = tokio::spawn(lines.clone().ask(get("/long")));
    let mut end = ends.recv().await.expect("a connection");
    read(&mut end, "").await;
    end.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegin")
        .await
        .expect("it is open");
    drop(asking.await.expect("no panic").expect("an answer"));
    assert_eq!(end.read(&mut [0]).await.expect("an end"), 0);
    let _asking = tokio::spawn(lines.ask(get("/next")));
    assert!(
        read(&mut ends.recv().await.expect("another one"), "")
            .await
            .starts_with("GET /next")
    );
}

#[tokio::test]
async fn what_a_connection_that_ended_did_not_take_is_asked_on_another_one_and_what_it_took_is_not() {
    let (lines, mut ends) = lines();
    let mut asking = JoinSet::new();
    let mut end = None;
    for _ in 0..2 {
        // The first one, as an API server ends one that nobody asked for a while.
        drop(end.take());
        asking.spawn(lines.clone().ask(post()));
        end = ends.recv().await;
        let end = end.as_mut().expect("a connection");
        read(end, "{}").await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        end.write_all(answer).await.expect("it is open");
        let answered = asking.join_next().await.expect("one").expect("no panic");
        assert!(answered.is_ok());
    }
    let mut second = end.expect("a connection");
    // It took this one, perhaps did it, and says nothing.
    asking.spawn(lines.clone().ask(post()));
    read(&mut second, "{}").await;
    drop(second);
    let cut = asking.join_next().await.expect("one").expect("no panic");
    let cut = cut.map(drop).expect_err("no answer");
    assert!(cut.is::<hyper::Error>(), "{cut}");
    assert!(ends.try_recv().is_err(), "it was not asked again");
}

#[tokio::test]
async fn a_connection_is_asked_again_after_every_answer_that_ends_without_ending_it() {
    let upgrade = || {
        let request = Request::get("/exec")
            .header("connection", "upgrade")
            .header("upgrade", "a");
        request.body(Body::empty()).expect("a request")
    };
    let long = || {
        let request = Request::post("/long").body(Body::from(vec![b' '; 1 << 20]));
        request.expect("a request")
    };
    for (request, answer, (status, expected), is_kept) in [
        (get("/"), "204 No Content\r\n\r\n", (204, ""), true),
        (get("/"), "304 Not Modified\r\netag: a\r\n\r\n", (304, ""), true),
        (
            get("/"),
            "200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            (200, "ok"),
            true,
        ),
        (post(), "409 Conflict\r\ncontent-length: 2\r\n\r\nno", (409, "no"), true),
        (
            get("/"),
            "200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
            (200, "ok"),
            false,
        ),
        (
            upgrade(),
            "101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: a\r\n\r\n",
            (101, ""),
            false,
        ),
        // The rest of the body is not read.
        (long(), "413 Too Large\r\ncontent-length: 0\r\n\r\n", (413, ""), false),
    ] {
        let (lines, mut ends) = lines();
        let asking = tokio::spawn(lines.clone().ask(request));
        let mut end = ends.recv().await.expect("a connection");
        let mut asked = Vec::new();
        let body = |asked: &[u8]| asked.starts_with(b"POST /api").then_some(&b"{}"[..]);
        while !(String::from_utf8_lossy(&asked).contains("\r\n\r\n")
            && asked.ends_with(body(&asked).unwrap_or_default()))
        {
            assert_ne!(end.read_buf(&mut asked).await.expect("it is open"), 0);
        }
        end.write_all(format!("HTTP/1.1 {answer}").as_bytes())
            .await
            .expect("it is open");
        let answered = asking.await.expect("no panic").expect("an answer");
        assert_eq!(answered.status(), status);
        assert_eq!(said(answered).await, expected, "{answer}");
        let _next = tokio::spawn(lines.ask(get("/next")));
        if !is_kept {
            end = ends.recv().await.expect("another connection");
        }
        assert!(read(&mut end, "").await.starts_with("GET /next "), "{answer}");
        assert!(ends.try_recv().is_err(), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn connections_that_nobody_asks_again_end_and_no_more_than_some_wait() {
    let (lines, ends) = lines();
    let counts = serve(ends);
    let mut answers = Vec::new();
    for _ in 0..API_IDLE_MAX + 3 {
        answers.push(lines.clone().ask(get("/a")).await.expect("an answer"));
    }
    for answer in answers {
        said(answer).await;
    }
    sleep(API_IDLE_FOR / 2).await;
    assert_eq!(counts.lock().expect("nobody panicked")[0], API_IDLE_MAX);
    said(lines.clone().ask(get("/a")).await.expect("an answer")).await;
    sleep(API_IDLE_FOR / 2 + API_IDLE_LOOK).await;
    let expected = [1, API_IDLE_MAX + 3];
    assert_eq!(
        *counts.lock().expect("nobody panicked"),
        expected,
        "the one that was asked"
    );
    sleep(API_IDLE_FOR).await;
    assert_eq!(counts.lock().expect("nobody panicked")[0], 0);
}

#[test]
fn a_server_is_asked_below_its_own_path_and_by_its_name_without_a_password() {
    for (server, asked, expected) in [
        ("https://a", "/version", ("a", "/version")),
        ("https://a:6443/", "/api?watch=true", ("a:6443", "/api?watch=true")),
        (
            "http://me:secret@a:80/k8s/clusters/c/",
            "/api",
            ("a", "/k8s/clusters/c/api"),
        ),
        ("https://a:443", "/api", ("a", "/api")),
        ("https://a:80", "/api", ("a:80", "/api")),
        ("https://[::1]:443", "/api", ("[::1]", "/api")),
        ("https://[::443]", "/api", ("[::443]", "/api")),
        ("https://[::1]:6443", "https://elsewhere/api", ("[::1]:6443", "/api")),
        ("https://a/b", "https://elsewhere", ("a", "/b/")),
    ] {
        let mut request = get(asked);
        let server = Server::at(&server.parse().expect("an address")).expect("a host");
        server.address(&mut request).expect("a path");
        let seen = (
            request.headers()[HOST].to_str().expect("text"),
            request.uri().to_string(),
        );
        assert_eq!(seen, (expected.0, expected.1.to_owned()), "{asked}");
    }
}
