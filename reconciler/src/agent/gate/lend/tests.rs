//! A gate behind a real tunnel, and a hub that asks for whatever it likes.

use std::time::Duration;

use kube::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use tunnel::{AcceptOptions, ConnectOptions, OpenError, Opener, SecretKey, Session};

use super::*;
use crate::audit::AuditTo;
use crate::limits::{AUDIT_BEGUN_AFTER, GATE_KEPT_MAX, GATE_REQUESTS_MAX};
use crate::wire::{Caller, DependantsQuestion, Pong, read_message, write_message};

const SOON: Duration = Duration::from_secs(20);

/// The hub's end of a tunnel to a gate.
struct Hub {
    opener: Opener,
    mode: watch::Sender<SyncMode>,
    counts: Arc<Counts>,
    gate: Arc<Gate>,
    /// Of all streams.
    ended: CancellationToken,
    folder: tempfile::TempDir,
    _session: Session,
    _serves: AbortOnDropHandle<()>,
}

impl Hub {
    /// With an agent that lends this of a cluster whose API server answers nothing but `{}`.
    async fn start(allowed: &[&str]) -> Self {
        Self::within(allowed, tempfile::tempdir().expect("a folder")).await
    }

    async fn within(allowed: &[&str], folder: tempfile::TempDir) -> Self {
        let audit = AuditLog::open(Some(&AuditTo::File(folder.path().join("audit.log")))).expect("it is writable");
        Self::telling(allowed, audit, folder).await
    }

    async fn telling(allowed: &[&str], audit: AuditLog, folder: tempfile::TempDir) -> Self {
        let allowed = allowed.iter().map(|allow| allow.parse().expect("a rule"));
        let policy = Policy::of(allowed.collect());
        let (mode, told) = watch::channel(SyncMode::Dual);
        let url = format!("http://{}", api_server().await).parse().expect("an address");
        let client = Client::try_from(Config::new(url)).expect("a client");
        let counts = Arc::<Counts>::default();
        let cluster = ClusterName::parse("north").expect("a name");
        let client = (client.clone(), client.into());
        let gate = Arc::new(Gate::new(cluster, policy, told, client, audit, Arc::clone(&counts)));
        let (hub, agent) = tunnels().await;
        let mut incoming = agent.incoming;
        let ended = CancellationToken::new();
        let (serving, ends) = (Arc::clone(&gate), ended.clone());
        let serves = tokio::spawn(async move {
            while let Some(opened) = incoming.next().await {
                let (gate, ended) = (Arc::clone(&serving), ends.clone());
                tokio::spawn(async move { gate.open(opened, &ended).await });
            }
            drop(agent.session);
        });
        Self {
            opener: hub.opener,
            mode,
            counts,
            gate,
            ended,
            folder,
            _session: hub.session,
            _serves: AbortOnDropHandle::new(serves),
        }
    }

    async fn open(&self, class: TargetClass, target: &str) -> Result<TunnelStream, OpenCode> {
        let opened = self.opener.open(class, target, SOON).await;
        opened.map_err(|OpenError { code, .. }| code)
    }

    /// Asks the API server in somebody's name; all of the answer.
    async fn get(&self, user: &str, path: &str) -> std::io::Result<String> {
        self.ask(
            TargetClass::ApiServer,
            user,
            &format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"),
        )
        .await
    }

    async fn ask(&self, class: TargetClass, user: &str, head: &str) -> std::io::Result<String> {
        let mut stream = self.begin(class, user, head).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    async fn begin(&self, class: TargetClass, user: &str, head: &str) -> std::io::Result<TunnelStream> {
        let mut stream = self.open(class, "").await.expect("it is lent");
        let caller = Caller {
            user: user.to_owned(),
            ..Caller::default()
        };
        write_message(&mut stream, &caller)
            .await
            .map_err(std::io::Error::other)?;
        stream.write_all(head.as_bytes()).await?;
        Ok(stream)
    }

    /// Waits until so many lines are written down.
    async fn lines(&self, count: usize) -> Vec<serde_json::Value> {
        let path = self.folder.path().join("audit.log");
        let read = async {
            loop {
                let text = tokio::fs::read_to_string(&path).await.expect("it is readable");
                if text.lines().count() >= count {
                    return text;
                }
                tokio::task::yield_now().await;
            }
        };
        let text = tokio::time::timeout(SOON, read)
            .await
            .expect("each stream leaves a line");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}

async fn api_server() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 1024];
                let read = socket.read(&mut head).await.unwrap_or_default();
                if head[..read].starts_with(b"GET /api/v1/pods?watch") {
                    // An answer without an end.
                    let _told = socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n{}\n").await;
                    let _gone = socket.read(&mut head).await;
                } else {
                    let _told = socket
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                        .await;
                }
            });
        }
    });
    address
}

async fn tunnels() -> (tunnel::Tunnel, tunnel::Tunnel) {
    let key = || Arc::new(SecretKey::generate().expect("random bytes"));
    let (hub_key, agent_key) = (key(), key());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("wss://{}", listener.local_addr().expect("it is bound"));
    let registered = agent_key.public();
    let pins = vec![hub_key.public()];
    let lookup = move |_: &str| Some(vec![registered]);
    let accepting = AcceptOptions::new(hub_key, Arc::new(lookup)).expect("a certificate");
    let connecting = ConnectOptions::new(url, pins, "north", agent_key, 7);
    let hub = async {
        let (socket, _) = listener.accept().await.expect("the agent dials");
        tunnel::accept(socket, &accepting).await.expect("the hub accepts")
    };
    let agent = async { tunnel::connect(&connecting).await.expect("the agent connects") };
    tokio::join!(hub, agent)
}

#[tokio::test]
async fn what_is_not_lent_is_refused_on_its_own_stream_alone() {
    let hub = Hub::start(&["read", "dial:127.0.0.1:1"]).await;
    for class in [
        TargetClass::Interactive,
        TargetClass::Push,
        TargetClass::Unknown("root".into()),
    ] {
        let refused = hub.open(class.clone(), "").await.map(drop);
        assert_eq!(refused, Err(OpenCode::NotAllowed), "{class:?}");
    }
    for target in [
        "169.254.169.254:80",
        "127.0.0.1:2",
        "localhost:1",
        "[::ffff:127.0.0.1]:1",
        "unix:/run/x",
    ] {
        let refused = hub.open(TargetClass::Dial, target).await.map(drop);
        assert_ne!(refused, Ok(()), "{target}");
    }
    let closed = hub.open(TargetClass::Dial, "127.0.0.1:1").await.map(drop);
    assert_eq!(
        closed,
        Err(OpenCode::Refused),
        "which is listed, and where nobody listens"
    );
    let answer = hub.get("ann", "/api/v1/pods").await.expect("reads go on");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let refused = hub.get("system:admin", "/api/v1/pods").await;
    let error = refused.expect_err("nobody is the cluster's own");
    assert!(error.to_string().contains("begins with system:"), "{error}");
    let counted = *hub.counts.told().borrow();
    let by_class = [
        counted.refused_read,
        counted.refused_interactive,
        counted.refused_push,
        counted.refused_other,
    ];
    assert_eq!(by_class, [1; 4], "{counted:?}");
    assert!(counted.refused_dial > 0, "{counted:?}");
}

/// The API server here would answer everything, as one does whose RBAC lets somebody read all Secrets.
#[tokio::test]
async fn a_reader_of_all_secrets_does_not_read_the_agents_own() {
    let hub = Hub::start(&["read", "interactive"]).await;
    let own = "/api/v1/namespaces/flotilla-system/secrets/flotilla-agent";
    for path in [own, "/api/v1/secrets", "/api/v1/secrets?watch=true"] {
        let answer = hub.get("ann", path).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 403 "), "{path}: {answer}");
        assert!(answer.contains("the agent's own"), "{path}: {answer}");
    }
    let exec =
        "GET /api/v1/namespaces/flotilla-system/pods/flotilla-agent-0/exec?command=cat HTTP/1.1\r\nhost: a\r\n\r\n";
    let answer = hub.ask(TargetClass::Interactive, "ann", exec).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let others = hub
        .get("ann", "/api/v1/namespaces/shop/secrets")
        .await
        .expect("an answer");
    assert!(others.starts_with("HTTP/1.1 200 "), "{others}");
}

#[tokio::test]
async fn every_stream_leaves_one_line_also_a_refused_one() {
    let hub = Hub::start(&["read"]).await;
    hub.get("ann", "/api/v1/namespaces/shop/pods/web?pretty=secret")
        .await
        .expect("an answer");
    let _refused = hub.open(TargetClass::Push, "").await.map(drop);
    let lines = hub.lines(2).await;
    let of = |class: &str| lines.iter().find(|line| line["class"] == class).expect("it is there");
    let read = of("apiserver");
    assert_eq!(
        (&read["user"], &read["resource"], &read["code"]),
        (&"ann".into(), &"pods".into(), &200.into())
    );
    assert!(
        read["bytesUp"].as_u64() > Some(0) && read["bytesDown"].as_u64() > Some(0),
        "{read}"
    );
    assert_eq!(read["close"], "done");
    assert!(!read.to_string().contains("secret"), "no query: {read}");
    assert_eq!(of("push")["close"], "not-allowed");
}

#[tokio::test]
async fn in_pull_the_hub_opens_no_stream_and_those_that_are_open_end() {
    let hub = Hub::start(&["read", "interactive", "push", "dial:127.0.0.1:1"]).await;
    let mut watch = hub.open(TargetClass::ApiServer, "").await.expect("reads are lent");
    let caller = Caller {
        user: "ann".to_owned(),
        ..Caller::default()
    };
    write_message(&mut watch, &caller).await.expect("it is taken");
    watch
        .write_all(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .expect("it is taken");
    let mut head = [0; 12];
    watch.read_exact(&mut head).await.expect("an answer begins");
    hub.mode.send_replace(SyncMode::Pull);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(SOON, watch.read_to_end(&mut rest)).await;
    assert!(ended.expect("it ends").is_err(), "the watch is cut off");
    for class in [
        TargetClass::ApiServer,
        TargetClass::Interactive,
        TargetClass::Push,
        TargetClass::Dial,
    ] {
        let refused = hub.open(class.clone(), "127.0.0.1:1").await.map(drop);
        assert_eq!(refused, Err(OpenCode::NotAllowed), "{class:?}");
    }
    hub.mode.send_replace(SyncMode::Dual);
    hub.get("ann", "/api/v1/pods").await.expect("and back");
}

#[tokio::test]
async fn an_agent_takes_256_streams_and_refuses_the_next_by_limit() {
    let hub = Hub::start(&["read", "push"]).await;
    hub.mode.send_replace(SyncMode::Push);
    let mut open = Vec::new();
    for _ in 0..GATE_REQUESTS_MAX {
        open.push(hub.open(TargetClass::ApiServer, "").await.expect("there is room"));
    }
    let next = hub.open(TargetClass::ApiServer, "").await.map(drop);
    assert_eq!(next, Err(OpenCode::Limit), "of people");
    hub.open(TargetClass::Push, "").await.expect("readers stop no applier");
    open.pop();
    let taken = async {
        while hub.open(TargetClass::ApiServer, "").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, taken)
        .await
        .expect("one that ends makes room");
}

/// One request after another on a stream of somebody's.
struct Following(TunnelStream);

impl Following {
    async fn of(hub: &Hub, user: &str) -> Self {
        Self(hub.begin(TargetClass::ApiServer, user, "").await.expect("it is lent"))
    }

    async fn ask(&mut self, head: &str) -> String {
        let request = format!("{head} HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\n\r\n");
        self.send(&request).await
    }

    /// The head of the answer, and its body.
    async fn send(&mut self, request: &str) -> String {
        self.0.write_all(request.as_bytes()).await.expect("the stream stays");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.expect("an answer"));
        }
        let mut head = String::from_utf8(head).expect("text").to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
        self.0.read_exact(&mut body).await.expect("an answer");
        head.push_str(&String::from_utf8_lossy(&body));
        head
    }

    /// Asks, and whether the stream ended without an answer.
    async fn ends_when_asked(mut self) -> bool {
        let request = b"GET /api/v1/pods HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\n\r\n";
        // It may be gone by now.
        let _sent = self.0.write_all(request).await;
        self.ended().await
    }

    async fn ended(mut self) -> bool {
        let ended = tokio::time::timeout(SOON, self.0.read_u8()).await;
        ended.expect("it ends or is answered").is_err()
    }
}

#[tokio::test]
async fn requests_that_follow_one_another_on_a_stream_leave_a_line_each() {
    let hub = Hub::start(&["read"]).await;
    let mut stream = Following::of(&hub, "ann").await;
    for (number, path) in [(1, "pods/one"), (2, "pods/two?pretty=secret"), (3, "secrets/three")] {
        let request = format!(
            "GET /api/v1/namespaces/shop/{path} HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\naudit-id: r-{number}\r\n\r\n"
        );
        let answer = stream.send(&request).await;
        assert!(answer.starts_with("http/1.1 200"), "{answer}");
        // Written as soon as it is answered, and not with what follows.
        assert_eq!(hub.lines(number).await.len(), number);
    }
    let write = stream.ask("DELETE /api/v1/namespaces/shop/pods/one").await;
    assert!(write.starts_with("http/1.1 403"), "{write}");
    drop(stream);
    let lines = hub.lines(4).await;
    let told = |line: &serde_json::Value| {
        let fields = ["user", "requestId", "verb", "resource", "name", "code", "close", "more"];
        fields.map(|field| line[field].to_string().replace('"', "")).join(" ")
    };
    assert_eq!(
        lines.iter().map(told).collect::<Vec<_>>(),
        [
            "ann r-1 get pods one 200 done null",
            "ann r-2 get pods two 200 done null",
            "ann r-3 get secrets three 200 done null",
            // Nothing is read of what may not pass.
            "ann null null null null 403 done null",
        ]
    );
    let bytes = |line: &serde_json::Value, way: &str| line[way].as_u64().expect("a number");
    let [first, second, ..] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert!(bytes(first, "bytesDown") >= 40 && bytes(first, "bytesDown") == bytes(second, "bytesDown"));
    let longer = "?pretty=secret".len() as u64;
    let caller = bytes(first, "bytesUp") - (bytes(second, "bytesUp") - longer);
    assert_eq!(
        caller, 0,
        "of its own request alone, and for whom it is asked is none of it"
    );
    // The stream's own end is none of these.
    hub.ended.cancel();
    hub.gate.end().await;
    assert_eq!(hub.lines(4).await.len(), 4);
}

#[tokio::test]
async fn a_stream_that_waits_for_its_next_request_takes_nobodys_place() {
    let hub = Hub::start(&["read"]).await;
    let mut kept = Vec::new();
    for number in 0..=GATE_KEPT_MAX {
        let mut stream = Following::of(&hub, "ann").await;
        let answer = stream.ask("GET /api/v1/pods").await;
        assert!(answer.starts_with("http/1.1 200"), "{answer}");
        let stays = !answer.contains("connection: close\r\n");
        assert_eq!(stays, number < GATE_KEPT_MAX, "{number}: {answer}");
        match stays {
            true => kept.push(stream),
            false => assert!(stream.ended().await),
        }
    }
    let mut open = Vec::new();
    for _ in 0..GATE_REQUESTS_MAX {
        open.push(hub.open(TargetClass::ApiServer, "").await.expect("there is room"));
    }
    let next = kept.pop().expect("they stay");
    assert!(next.ends_when_asked().await, "no room for a request");
    open.clear();
    let served = async {
        while hub.get("ann", "/api/v1/pods").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, served).await.expect("what ended made room");
    let mut next = kept.pop().expect("they stay");
    assert!(next.ask("GET /api/v1/pods").await.starts_with("http/1.1 200"));
    // What lasts is the last on its stream, and leaves its place to another that waits.
    let head = next.ask("GET /api/v1/pods?watch=true").await;
    assert!(head.contains("connection: close\r\n"), "{head}");
    let mut another = Following::of(&hub, "ann").await;
    let answer = another.ask("GET /api/v1/pods").await;
    assert!(!answer.contains("connection: close\r\n"), "{answer}");
    hub.mode.send_replace(SyncMode::Pull);
    assert!(another.ended().await, "in Pull none stays");
}

#[tokio::test]
async fn a_stream_that_stays_answers_nobody_while_the_audit_log_cannot_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink("/dev/full", folder.path().join("audit.log")).expect("it is writable");
    let hub = Hub::within(&["read"], folder).await;
    let mut stream = Following::of(&hub, "ann").await;
    // Its line is what cannot be written.
    let answer = stream.ask("GET /api/v1/pods").await;
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    let noticed = async {
        while !hub.gate.log.audit.fails() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, noticed).await.expect("it is noticed");
    assert!(stream.ends_when_asked().await);
    assert_eq!(
        hub.open(TargetClass::ApiServer, "").await.map(drop),
        Err(OpenCode::Refused),
        "which says why"
    );
}

#[tokio::test]
async fn a_line_has_its_place_before_anybody_is_answered() {
    let (audit, mut lines) = AuditLog::read(1);
    let hub = Hub::telling(&["read"], audit.clone(), tempfile::tempdir().expect("a folder")).await;
    let mut stream = Following::of(&hub, "ann").await;
    audit.write_soon(&"another", crate::audit::Share::Whole);
    assert_eq!(audit.lost().count(), 1, "the stream has the only place");
    stream.ask("GET /api/v1/pods").await;
    let first = lines.recv().await.expect("a line");
    assert!(first.contains(r#""close":"done""#), "{first}");
    audit.write_soon(&"another", crate::audit::Share::Whole);
    tokio::time::pause();
    assert!(stream.ends_when_asked().await, "there is none in time");
}

#[tokio::test]
async fn a_watch_after_other_requests_has_its_line_once_it_lasts() {
    let (audit, mut lines) = AuditLog::read(10);
    let hub = Hub::telling(&["read"], audit, tempfile::tempdir().expect("a folder")).await;
    let mut stream = Following::of(&hub, "ann").await;
    stream.ask("GET /api/v1/pods").await;
    let first = lines.recv().await.expect("a line");
    assert!(first.contains(r#""close":"done""#), "{first}");
    let head = stream.ask("GET /api/v1/pods?watch=true").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    tokio::time::pause();
    let begun = Instant::now();
    let second = lines.recv().await.expect("a line");
    assert!(
        second.contains(r#""stage":"begun""#) && second.contains(r#""verb":"watch""#),
        "{second}"
    );
    let took = begun.elapsed();
    assert!(took <= AUDIT_BEGUN_AFTER + Duration::from_secs(1), "{took:?}");
    tokio::time::resume();
    drop(stream);
    let third = lines.recv().await.expect("a line");
    assert!(
        third.contains(r#""verb":"watch""#) && !third.contains("stage"),
        "{third}"
    );
}

#[tokio::test]
async fn a_question_is_lent_as_other_things_are_and_leaves_its_line() {
    let hub = Hub::start(&["none"]).await;
    let refused = hub.open(TargetClass::Look, "dependants").await.map(drop);
    assert_eq!(refused, Err(OpenCode::NotAllowed), "none is nothing");
    let mut ping = Box::pin(
        hub.open(TargetClass::Look, PING_TARGET)
            .await
            .expect("a ping is answered"),
    );
    let pong: Option<Pong> = read_message(&mut ping).await.expect("an answer");
    assert_eq!(
        pong.map(|pong| pong.version).as_deref(),
        Some(env!("CARGO_PKG_VERSION"))
    );
    let lines = hub.lines(2).await;
    let told = |line: &serde_json::Value| {
        let field = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        [field("cluster"), field("class"), field("target"), field("close")]
    };
    assert_eq!(told(&lines[0]), ["north", "look", "dependants", "not-allowed"]);
    assert_eq!(told(&lines[1]), ["north", "look", PING_TARGET, "done"]);

    let hub = Hub::start(&["look"]).await;
    hub.mode.send_replace(SyncMode::Pull);
    let mut question = hub.open(TargetClass::Look, "dependants").await.expect("it is lent");
    write_message(&mut question, &DependantsQuestion { objects: Vec::new() })
        .await
        .expect("it is taken");
    let lines = hub.lines(1).await;
    assert_eq!(told(&lines[0]), ["north", "look", "dependants", "done"]);
}

#[tokio::test]
async fn who_wanted_another_protocol_and_gets_an_answer_instead_reads_it_to_its_end() {
    let hub = Hub::start(&["interactive"]).await;
    for path in ["pods/b/exec?command=sh", "pods/b"] {
        let head = format!(
            "GET /api/v1/namespaces/a/{path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        );
        let answer = hub.ask(TargetClass::Interactive, "ann", &head).await;
        let answer = answer.expect("the stream ends in good order");
        assert!(answer.starts_with("HTTP/1.1 ") && answer.ends_with('}'), "{answer}");
    }
}

#[tokio::test]
async fn watches_that_are_alike_are_one_line_that_counts_them() {
    let hub = Hub::start(&["read"]).await;
    let ask = |path: &'static str| hub.get("ann", path);
    for _ in 0..3 {
        ask("/api/v1/namespaces/a/pods?watch=true").await.expect("an answer");
    }
    ask("/api/v1/namespaces/b/pods?watch=true").await.expect("an answer");
    ask("/api/v1/namespaces/a/pods").await.expect("an answer");
    hub.lines(3).await;
    hub.gate.end().await;
    let lines = hub.lines(4).await;
    let told: Vec<_> = lines
        .iter()
        .map(|line| [&line["verb"], &line["namespace"], &line["more"]])
        .map(|told| told.map(ToString::to_string).join(" "))
        .collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert_eq!(told[3], r#""watch" "a" 1"#, "of two that were left out: {told:?}");
}

#[tokio::test]
async fn what_goes_on_when_the_agent_ends_leaves_its_line() {
    let hub = Hub::start(&["read"]).await;
    let head = "GET /api/v1/pods?watch=true HTTP/1.1\r\nhost: a\r\n\r\n";
    let begun = hub.begin(TargetClass::ApiServer, "ann", head).await;
    let mut watch = begun.expect("it is asked");
    watch.read_u8().await.expect("it is answered");
    hub.ended.cancel();
    hub.gate.end().await;
    let lines = hub.lines(1).await;
    assert_eq!((lines.len(), &lines[0]["user"]), (1, &"ann".into()), "{lines:?}");
}

#[tokio::test]
async fn an_agent_whose_audit_log_cannot_be_written_serves_the_applier_and_nobody_else() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink("/dev/full", folder.path().join("audit.log")).expect("it is writable");
    let hub = Hub::within(&["read", "interactive", "push"], folder).await;
    let refused = async {
        loop {
            match hub.open(TargetClass::ApiServer, "").await {
                Ok(stream) => drop(stream),
                Err(code) => return code,
            }
        }
    };
    let refused = tokio::time::timeout(SOON, refused).await.expect("it is noticed");
    assert_eq!(refused, OpenCode::Refused);
    let interactive = hub.open(TargetClass::Interactive, "").await;
    assert_eq!(interactive.map(drop), Err(OpenCode::Refused));
    hub.mode.send_replace(SyncMode::Push);
    let pushed = hub.open(TargetClass::Push, "").await;
    assert!(pushed.is_ok(), "{:?}", pushed.err());
}

#[tokio::test]
async fn streams_that_a_full_disk_refuses_wait_for_nothing_and_leave_room_for_what_was_served() {
    let (audit, mut waiting) = AuditLog::failing(4);
    let hub = Hub::telling(&["read", "push"], audit, tempfile::tempdir().expect("a folder")).await;
    for _ in 0..20 {
        let refused = hub.open(TargetClass::ApiServer, "").await.map(drop);
        assert_eq!(refused, Err(OpenCode::Refused));
    }
    let all_gone = async {
        while !hub.gate.open.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, all_gone).await.expect("none of them waits");
    hub.mode.send_replace(SyncMode::Push);
    drop(hub.open(TargetClass::Push, "").await.expect("the applier goes on"));
    let pushed = async {
        let mut refused = 0;
        while let Some(line) = waiting.recv().await {
            if line.contains(r#""class":"push""#) {
                break;
            }
            refused += 1;
        }
        refused
    };
    let refused = tokio::time::timeout(SOON, pushed).await.expect("its line has room");
    assert_eq!(refused, 2, "half of the room");
    hub.gate.end().await;
    assert_eq!(hub.counts.told().borrow().audit_lines_lost, 18);
}

#[tokio::test]
async fn an_agent_ends_in_time_although_its_disk_hangs() {
    let (audit, _waiting) = AuditLog::read(2);
    let hub = Hub::telling(&["read"], audit.clone(), tempfile::tempdir().expect("a folder")).await;
    for _ in 0..2 {
        let watch = hub.get("ann", "/api/v1/namespaces/a/pods?watch=true").await;
        watch.expect("an answer");
    }
    let left_out = async {
        while !hub.gate.open.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, left_out).await.expect("both ended");
    audit.write_soon(&"another", crate::audit::Share::Whole);
    tokio::time::pause();
    let ended = tokio::time::timeout(GATE_END_TIMEOUT * 2, hub.gate.end()).await;
    assert!(ended.is_ok(), "SIGTERM is obeyed");
    assert_eq!(hub.counts.told().borrow().audit_lines_lost, 1);
}
