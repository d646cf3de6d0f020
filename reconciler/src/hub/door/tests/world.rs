//! A door, the people who know a token, and cluster `oslo` with an agent that is played.

mod http2;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming as Body;
use hyper_util::rt::TokioIo;
use render::load::load;
use render::{ClusterName, Previous, SourceTree};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tunnel::{
    AcceptOptions, ConnectOptions, Incoming, IncomingOpen, OpenCode, SecretKey, Session, TargetClass, TunnelStream,
};

use super::super::*;
use super::SOON;
use crate::audit::AuditTo;
use crate::hub::asking::Door as Way;
use crate::hub::dispatch::Dial;
use crate::hub::serve::Routes;
use crate::wire::{Caller, read_message};

const FILES: [(&str, &str); 2] = [
    (
        "clusters/oslo.yaml",
        "{apiVersion: fleet.flotilla.dev/v1alpha1, kind: ManagedCluster, metadata: {name: oslo}, spec: {clusterId: 6a1f}}",
    ),
    (
        "access/ops.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pods}
rules:
  - {apiGroups: ['', apps], resources: [pods, pods/log, configmaps, deployments], verbs: [get, list, watch]}
  - {apiGroups: [''], resources: [pods/exec, services/proxy], verbs: [create]}
  - {apiGroups: [fleet.flotilla.dev], resources: [managedclusters], verbs: [get, list, watch]}
  - {apiGroups: [fleet.flotilla.dev], resources: [managedclusters/dependants], verbs: [get]}
  - {nonResourceURLs: [/hangs], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pods}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: ops}]
",
    ),
];

/// What an agent was asked.
pub(super) struct Seen {
    pub(super) caller: Caller,
    pub(super) head: String,
    /// On its how manyth stream.
    pub(super) stream: usize,
}

/// An answer without an end, at the agent.
pub(super) struct Endless(TunnelStream);

/// An answer, whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// An answer as it comes.
pub(super) struct Coming(
    Body,
    #[expect(dead_code, reason = "the connection lives as long")] tokio::task::JoinHandle<()>,
);

/// A door and what is behind it.
pub(super) struct World {
    address: std::net::SocketAddr,
    tls: TlsConnector,
    state: SharedState,
    dispatch: Arc<Dispatch>,
    saw: mpsc::Sender<Seen>,
    seen: mpsc::Receiver<Seen>,
    held: mpsc::Sender<TunnelStream>,
    endless: mpsc::Receiver<TunnelStream>,
    sessions: (Session, Session),
    folder: tempfile::TempDir,
    /// Signs people's certificates.
    clients: rcgen::Issuer<'static, rcgen::KeyPair>,
    pub(super) stop: CancellationToken,
    /// Ends when the door has.
    pub(super) open: tokio::task::JoinHandle<()>,
    _stopped_when_dropped: tokio_util::sync::DropGuard,
}

const TOKENS: [&str; 3] = [
    "long-token-of-ada,ada,1,\"ops\"",
    "long-token-of-bob,bob,2",
    "long-token-of-eve,eve,3,\"ops\"",
];

/// Who signs certificates, and its own.
fn authority() -> (rcgen::Issuer<'static, rcgen::KeyPair>, String) {
    let key = rcgen::KeyPair::generate().expect("ring makes a key");
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).expect("it signs itself").pem();
    (rcgen::Issuer::new(params, key), pem)
}

pub(in crate::hub::door) fn fleet(files: &[(&str, &str)]) -> Arc<render::Fleet> {
    let revision = "1".repeat(40).parse().expect("forty hex digits");
    let files = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    let (fleet, findings) = load(&SourceTree::from_files(revision, files), &Previous::default());
    let errors: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity == render::Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    Arc::new(fleet)
}

/// Oslo, and what the ops may there.
pub(in crate::hub::door) fn oslo_fleet() -> Arc<render::Fleet> {
    fleet(&FILES)
}

impl World {
    pub(super) async fn new() -> Self {
        Self::that(false).await
    }

    /// A hub with `--allow-interactive`, or without.
    pub(super) async fn that(interactive: bool) -> Self {
        Self::within(interactive, tempfile::tempdir().expect("a folder")).await
    }

    /// A hub whose audit log has no room.
    pub(super) async fn with_a_full_disk() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/dev/full", folder.path().join("audit")).expect("it is writable");
        Self::within(true, folder).await
    }

    /// A hub whose audit lines go there.
    pub(super) async fn telling(log: AuditLog) -> Self {
        Self::with(true, log, tempfile::tempdir().expect("a folder")).await
    }

    async fn within(interactive: bool, folder: tempfile::TempDir) -> Self {
        let to = AuditTo::File(folder.path().join("audit"));
        let log = AuditLog::open(Some(&to)).expect("it is writable");
        Self::with(interactive, log, folder).await
    }

    async fn with(interactive: bool, log: AuditLog, folder: tempfile::TempDir) -> Self {
        let tokens = folder.path().join("tokens");
        std::fs::write(&tokens, TOKENS.join("\n")).expect("it is writable");
        let (clients, pem) = authority();
        std::fs::write(folder.path().join("clients.crt"), pem).expect("it is writable");
        let options = DoorOptions {
            address: "127.0.0.1:0".parse().expect("an address"),
            identity: Identity::Own {
                key: folder.path().join("ca.key"),
                names: vec!["127.0.0.1".to_owned()],
            },
            client_authority: Some(folder.path().join("clients.crt")),
            tokens: Some(tokens),
            oidc: None,
            interactive,
            audit: None,
        };
        let (stop, state, dispatch) = (
            CancellationToken::new(),
            SharedState::default(),
            Arc::<Dispatch>::default(),
        );
        state.write().unwrap_or_else(PoisonError::into_inner).fleet = Some(fleet(&FILES));
        let bound = bind(&options, log, Arc::default(), &stop).await.expect("it opens");
        let address = bound.listener.local_addr().expect("it is bound");
        let own = Routes::alone(Arc::clone(&state), stop.clone()).judged();
        let own = own.route("/hangs", axum::routing::get(std::future::pending::<StatusCode>));
        let open = tokio::spawn(run(bound, Arc::clone(&state), Arc::clone(&dispatch), own, stop.clone()));
        let authority = std::fs::read(folder.path().join("ca.crt")).expect("it is written");
        let roots = certificate::authorities(&authority).expect("it is a certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring knows them")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (hub, agent) = tunnel().await;
        let oslo = ClusterName::parse("oslo").expect("a valid cluster");
        let dial = Dial { epoch: 1, instance: "" };
        let _begun = dispatch.begin(&oslo, dial, &stop).expect("it is alone");
        dispatch.open(&oslo, 1, Way::Agent(hub.opener.clone()));
        let ((saw, seen), (held, endless)) = (mpsc::channel(100), mpsc::channel(100));
        tokio::spawn(play((0, agent.incoming), saw.clone(), held.clone()));
        Self {
            address,
            tls: TlsConnector::from(Arc::new(config)),
            state,
            dispatch,
            saw,
            seen,
            held,
            endless,
            sessions: (hub.session, agent.session),
            folder,
            clients,
            _stopped_when_dropped: stop.clone().drop_guard(),
            stop,
            open,
        }
    }

    /// The first audit line that fits, as soon as it is there.
    pub(super) async fn audited(&self, fits: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let file = self.folder.path().join("audit");
        let found = async {
            loop {
                let text = std::fs::read_to_string(&file).expect("it is there");
                let mut lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
                match lines.find(&fits) {
                    Some(line) => return line,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        timeout(SOON, found).await.expect("it is written")
    }

    /// Takes somebody's line out of the file of tokens.
    pub(super) fn log_out(&self, who: &str) {
        let others = TOKENS.iter().filter(|line| !line.contains(who)).copied();
        let others: Vec<_> = others.collect();
        std::fs::write(self.folder.path().join("tokens"), others.join("\n")).expect("it is writable");
    }

    /// Believes another authority of people's certificates.
    pub(super) fn change_authority(&self) {
        std::fs::write(self.folder.path().join("clients.crt"), authority().1).expect("it is writable");
    }

    /// Says nothing, from an address of this machine. `None`: it was closed at once.
    pub(super) async fn silent(&self, from: &str) -> Option<TcpStream> {
        let socket = tokio::net::TcpSocket::new_v4().expect("there are sockets");
        let from = format!("{from}:0").parse().expect("an address");
        socket.bind(from).expect("it is this machine's");
        let mut socket = socket.connect(self.address).await.ok()?;
        let closed = timeout(Duration::from_millis(20), socket.read_u8()).await;
        closed.is_err().then_some(socket)
    }

    /// Whether nobody listens.
    pub(super) async fn is_closed(&self) -> bool {
        TcpStream::connect(self.address).await.is_err()
    }

    async fn dial(&self) -> tokio_rustls::client::TlsStream<TcpStream> {
        let socket = TcpStream::connect(self.address).await.expect("the door listens");
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        self.tls.connect(name, socket).await.expect("its certificate is good")
    }

    async fn send(
        &self,
        who: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (http::Response<Body>, tokio::task::JoinHandle<()>) {
        let stream = self.dial().await;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .expect("it speaks HTTP");
        let connection = tokio::spawn(async move { drop(connection.with_upgrades().await) });
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "hub");
        if !who.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer long-token-of-{who}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        // A header of our own says how many bytes follow.
        let bytes = headers.iter().find(|(name, _)| *name == "X-Body-Bytes");
        let bytes = bytes.map(|(_, bytes)| bytes.parse().expect("a number"));
        let text = headers.iter().find(|(name, _)| *name == "X-Body");
        let body = match (method, bytes) {
            _ if text.is_some() => Bytes::from(text.map_or("", |(_, text)| text).to_owned()),
            (_, Some(bytes)) => Bytes::from(vec![b' '; bytes]),
            ("POST", None) => Bytes::from_static(b"{}"),
            (_, None) => Bytes::new(),
        };
        let request = request.body(Full::new(body)).expect("a request");
        let response = timeout(SOON, sender.send_request(request))
            .await
            .expect("it answers in time");
        (response.expect("it answers"), connection)
    }

    pub(super) async fn ask(&self, who: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let (response, _connection) = self.send(who, method, path, headers).await;
        let (parts, body) = response.into_parts();
        let body = timeout(SOON, body.collect()).await.expect("in time").expect("whole");
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        }
    }

    pub(super) async fn get(&self, who: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(who, "GET", path, headers).await
    }

    pub(super) async fn begin(&self, who: &str, path: &str) -> Coming {
        let (response, connection) = self.send(who, "GET", path, &[]).await;
        assert_eq!(response.status(), StatusCode::OK);
        Coming(response.into_body(), connection)
    }

    /// Runs a command in a pod, and gives what its connection became.
    pub(super) async fn exec(&self, who: &str, path: &str) -> Result<TokioIo<hyper::upgrade::Upgraded>, StatusCode> {
        self.exec_by(who, path, "SPDY/3.1").await
    }

    /// The same, by SPDY or a WebSocket.
    pub(super) async fn exec_by(
        &self,
        who: &str,
        path: &str,
        protocol: &str,
    ) -> Result<TokioIo<hyper::upgrade::Upgraded>, StatusCode> {
        let headers = [
            ("Connection", "Upgrade"),
            ("Upgrade", protocol),
            ("X-Stream-Protocol-Version", "v4.channel.k8s.io"),
        ];
        let (response, _connection) = self.send(who, "GET", path, &headers).await;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(response.status());
        }
        assert_eq!(response.headers()["upgrade"], protocol);
        Ok(TokioIo::new(
            hyper::upgrade::on(response).await.expect("it is upgraded"),
        ))
    }

    pub(super) async fn seen(&mut self) -> Seen {
        let seen = timeout(SOON, self.seen.recv()).await.expect("the agent is asked");
        seen.expect("it lives")
    }

    pub(super) async fn endless(&mut self) -> Endless {
        let stream = timeout(SOON, self.endless.recv()).await.expect("the agent is asked");
        Endless(stream.expect("it lives"))
    }

    /// Streams of the hub that are open.
    pub(super) fn streams(&self) -> usize {
        self.sessions.0.streams()
    }

    pub(super) fn seen_nothing(&self) -> bool {
        self.seen.is_empty()
    }

    pub(super) fn take_rights_away(&self) {
        self.accept(&FILES[..1]);
    }

    /// A commit puts the cluster into mode Pull.
    pub(super) fn pull(&self) {
        let (path, text) = FILES[0];
        let text = text.replace("clusterId: 6a1f", "clusterId: 6a1f, syncMode: Pull");
        self.accept(&[(path, &text), FILES[1]]);
    }

    fn accept(&self, files: &[(&str, &str)]) {
        self.state.write().unwrap_or_else(PoisonError::into_inner).fleet = Some(fleet(files));
    }

    /// The cluster's agent dials once more, and numbers streams from `first` on. What it had before lasts as long as what is
    /// given here.
    pub(super) async fn dials_again(&mut self, first: usize) -> (Session, Session) {
        let (hub, agent) = tunnel().await;
        let oslo = ClusterName::parse("oslo").expect("a valid cluster");
        let dial = Dial { epoch: 2, instance: "" };
        let _begun = self.dispatch.begin(&oslo, dial, &self.stop).expect("it is newer");
        self.dispatch.open(&oslo, 2, Way::Agent(hub.opener.clone()));
        tokio::spawn(play((first, agent.incoming), self.saw.clone(), self.held.clone()));
        std::mem::replace(&mut self.sessions, (hub.session, agent.session))
    }

    /// Ends the cluster's session, at a time in seconds since 1970.
    pub(super) fn disconnect(&mut self, at: i64) {
        let oslo = ClusterName::parse("oslo").expect("a valid cluster");
        self.dispatch.end(&oslo, 1);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.clusters.entry(oslo).or_default().away_since = Some(at);
    }
}

impl Coming {
    pub(super) async fn next(&mut self) -> Option<String> {
        let frame = self.0.frame().await?.ok()?;
        let data = frame.into_data().ok()?;
        Some(String::from_utf8_lossy(&data).into_owned())
    }
}

impl Endless {
    pub(super) async fn say(&mut self, text: &str) {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.0.write_all(chunk.as_bytes()).await.expect("somebody listens");
    }

    /// Ends it as a whole.
    pub(super) async fn end(mut self) {
        self.0.write_all(b"0\r\n\r\n").await.expect("somebody listens");
        self.0.shutdown().await.expect("somebody listens");
    }

    pub(super) async fn closed(mut self) {
        while self.0.read(&mut [0; 64]).await.is_ok_and(|bytes| bytes > 0) {}
    }
}

async fn tunnel() -> (tunnel::Tunnel, tunnel::Tunnel) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let key = || Arc::new(SecretKey::generate().expect("there is randomness"));
    let (hub_key, agent_key) = (key(), key());
    let registered = agent_key.public();
    let lookup = move |cluster: &str| (cluster == "oslo").then(|| vec![registered]);
    let pins = vec![hub_key.public()];
    let accept = AcceptOptions::new(hub_key, Arc::new(lookup)).expect("a certificate");
    let connect = ConnectOptions::new(format!("wss://127.0.0.1:{port}"), pins, "oslo", agent_key, 1);
    let hub = async {
        let (socket, _) = listener.accept().await.expect("it dials");
        Box::pin(tunnel::accept(socket, &accept)).await
    };
    let (hub, agent) = timeout(Duration::from_secs(20), async {
        tokio::join!(hub, Box::pin(tunnel::connect(&connect)))
    })
    .await
    .expect("a handshake ends");
    (hub.expect("it is known"), agent.expect("it is let in"))
}

/// Answers as an agent does: `pods` to everything, an answer without an end to a watch.
async fn play(
    (mut streams, mut incoming): (usize, Incoming),
    saw: mpsc::Sender<Seen>,
    held: mpsc::Sender<TunnelStream>,
) {
    while let Some(IncomingOpen { open, responder }) = incoming.next().await {
        let interactive = open.class == TargetClass::Interactive;
        assert!(interactive || open.class == TargetClass::ApiServer);
        let stream = responder.accept().expect("it is there");
        tokio::spawn(serve((streams, interactive), stream, saw.clone(), held.clone()));
        streams += 1;
    }
}

/// One stream, with a request or, where that is asked for, several.
async fn serve(
    (number, interactive): (usize, bool),
    mut stream: TunnelStream,
    saw: mpsc::Sender<Seen>,
    held: mpsc::Sender<TunnelStream>,
) {
    let caller: Caller = read_message(&mut stream).await.expect("a caller").expect("a caller");
    let mut leaves = false;
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        if head.contains("/refused ") {
            return stream.reset(OpenCode::NotAllowed, "the policy says no");
        }
        if leaves {
            return stream.reset(OpenCode::Gone, "it is being left");
        }
        // At its next request.
        leaves = head.contains("/leaves ");
        let watches = head.contains("watch=true") || head.contains("follow=true");
        let stays = head.to_lowercase().contains("connection: keep-alive\r\n");
        let protocol = head.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("upgrade: ")
                .map(|_| line["upgrade: ".len()..].to_owned())
        });
        let seen = Seen {
            caller: caller.clone(),
            head,
            stream: number,
        };
        let _sent = saw.send(seen).await;
        if interactive && let Some(protocol) = protocol {
            let answer =
                format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("somebody listens");
            let (mut reader, mut writer) = tokio::io::split(stream);
            drop(tokio::io::copy(&mut reader, &mut writer).await);
            return drop(writer.shutdown().await);
        }
        let answer = match watches {
            true => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            false => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npods",
        };
        stream.write_all(answer.as_bytes()).await.expect("somebody listens");
        if watches {
            let _sent = held.send(stream).await;
            return;
        }
        if !stays {
            return drop(stream.shutdown().await);
        }
    }
}
