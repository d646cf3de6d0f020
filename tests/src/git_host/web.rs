//! `git http-backend` behind a small TLS server that remembers who logged in to it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_util::sync::CancellationToken;

use crate::scratch;

/// How it answers.
#[derive(Clone, Debug, Default)]
pub struct WebOptions {
    /// Name and password that it takes; everybody without.
    pub login: Option<(String, String)>,
    /// Whether it refuses pushes, as hosts do for a read-only token.
    pub read_only: bool,
    /// Where it sends everybody instead.
    pub redirect_to: Option<String>,
    /// An answer to everything: a status, as of a host in trouble.
    pub trouble: Option<u16>,
}

/// A host on `https://localhost:PORT`, for all repositories below a folder.
#[derive(Debug)]
pub struct Web {
    port: u16,
    ca: PathBuf,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    options: Mutex<WebOptions>,
    authorizations: Mutex<Vec<Option<String>>>,
}

impl Web {
    /// Serves the repositories below `root`.
    pub fn start(root: &Path, options: WebOptions) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
        let port = listener.local_addr().expect("it is bound").port();
        let (config, pem) = certificate(port);
        let ca = scratch::folder("web").join("ca.pem");
        fs::write(&ca, pem).expect("the scratch folder is writable");
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            options: Mutex::new(options),
            authorizations: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let (serving, stopping) = (Arc::clone(&shared), stop.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime can be made");
            runtime.block_on(stopping.run_until_cancelled(serve(listener, config, serving)));
        });
        Self { port, ca, shared, stop }
    }

    /// The URL of a repository.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}/{path}", self.port)
    }

    /// The certificate that its own descends from.
    pub fn ca(&self) -> String {
        self.ca.display().to_string()
    }

    /// Answers otherwise from now on.
    pub fn change(&self, change: impl FnOnce(&mut WebOptions)) {
        change(&mut self.shared.options.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What the `Authorization` of each request so far was.
    pub fn authorizations(&self) -> Vec<Option<String>> {
        let seen = self
            .shared
            .authorizations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A server's configuration, and the authority that it descends from.
fn certificate(port: u16) -> (Arc<ServerConfig>, String) {
    let authority_key = rcgen::KeyPair::generate().expect("ring makes a key");
    let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("no names are good names");
    // Two authorities of one name are one to whoever verifies.
    let name = format!("tests of port {port}");
    authority.distinguished_name.push(rcgen::DnType::CommonName, name);
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&authority_key).expect("ring signs").pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().expect("ring makes a key");
    let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a good name");
    let leaf = leaf.signed_by(&key, &issuer).expect("ring signs");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .expect("key and certificate fit");
    (Arc::new(config), pem)
}

async fn serve(listener: TcpListener, config: Arc<ServerConfig>, shared: Arc<Shared>) {
    listener.set_nonblocking(true).expect("a socket");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime runs");
    let acceptor = TlsAcceptor::from(config);
    loop {
        let (stream, _) = listener.accept().await.expect("loopback");
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            // A client that does not trust the certificate goes away here.
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = hyper::service::service_fn(|request| answer(Arc::clone(&shared), request));
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _gone = connection.await;
        });
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let options = shared.options.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let value = |name| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let authorization = value(header::AUTHORIZATION);
    let seen = || shared.authorizations.lock().unwrap_or_else(PoisonError::into_inner);
    seen().push(authorization.clone());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let path = request.uri().path().to_owned();
    if let Some(status) = options.trouble {
        return Ok(status_only(status));
    }
    if let Some(to) = options.redirect_to {
        let mut response = status_only(302);
        let location = format!("{to}{}?{query}", path.trim_start_matches("/fleet.git"));
        let location = location.parse().expect("a URL is a header's value");
        response.headers_mut().insert(header::LOCATION, location);
        return Ok(response);
    }
    if let Some((name, password)) = &options.login {
        let expected = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
        if authorization != Some(format!("Basic {expected}")) {
            let mut response = status_only(401);
            let challenge = header::HeaderValue::from_static("Basic realm=\"git\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            return Ok(response);
        }
    }
    if options.read_only && (path.ends_with("git-receive-pack") || query.contains("git-receive-pack")) {
        return Ok(status_only(403));
    }
    let variables = BTreeMap::from([
        ("REQUEST_METHOD", request.method().to_string()),
        ("PATH_INFO", path),
        ("QUERY_STRING", query),
        ("CONTENT_TYPE", value(header::CONTENT_TYPE).unwrap_or_default()),
        (
            "HTTP_CONTENT_ENCODING",
            value(header::CONTENT_ENCODING).unwrap_or_default(),
        ),
        (
            "GIT_PROTOCOL",
            value(header::HeaderName::from_static("git-protocol")).unwrap_or_default(),
        ),
        ("REMOTE_USER", "somebody".to_owned()),
    ]);
    let body = request
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let backend = tokio::task::spawn_blocking(move || backend(&shared.root, &variables, &body));
    Ok(backend.await.expect("no panic"))
}

/// Runs `git http-backend` as a CGI program.
fn backend(root: &Path, variables: &BTreeMap<&str, String>, body: &[u8]) -> Response<Full<Bytes>> {
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("CONTENT_LENGTH", body.len().to_string())
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("git is installed");
    let mut stdin = child.stdin.take().expect("it was asked to be a pipe");
    let body = body.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&body));
    let output = child.wait_with_output().expect("a child ends");
    // A backend that does not want all of it has said so.
    let _written = writer.join();
    let end = output
        .stdout
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap_or_default();
    let (head, body) = output.stdout.split_at(end);
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(body.get(4..).unwrap_or_default())));
    for line in String::from_utf8_lossy(head).lines() {
        match line.split_once(": ") {
            Some(("Status", status)) => {
                let code = status.split(' ').next().and_then(|code| code.parse().ok());
                *response.status_mut() = code.expect("a status has a number");
            }
            Some((name, value)) => {
                let name = header::HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
                response
                    .headers_mut()
                    .insert(name, value.parse().expect("a header's value"));
            }
            None => {}
        }
    }
    response
}

fn status_only(code: u16) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::from_u16(code).expect("a status");
    response
}
