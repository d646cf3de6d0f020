//! Chart repositories: a plain HTTP server that remembers who logged in to it, and the real registry.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use flotilla_tests::{Child, Output, eventually, parts, ports, scratch, wait};
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_util::sync::CancellationToken;

/// `flotilla`, `open sesame`, as a registry and a repository know them.
pub(super) const NAME: &str = "flotilla";
pub(super) const PASSWORD: &str = "open sesame";
const BASIC: &str = "Basic ZmxvdGlsbGE6b3BlbiBzZXNhbWU=";
const HTPASSWD: &str = "flotilla:$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n";

/// What a server answers to a path.
#[derive(Clone)]
pub(super) enum Page {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Go there.
    Redirect(String),
}

/// A server on loopback.
pub(super) struct Server {
    scheme: &'static str,
    port: u16,
    /// The authority that its certificate descends from.
    pub(super) authority: String,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Shared {
    pages: Mutex<BTreeMap<String, Page>>,
    /// Whether everybody has to log in.
    is_private: bool,
    /// Path, and the `Authorization` that came with it.
    seen: Mutex<Vec<(String, Option<String>)>>,
}

impl Server {
    /// One that speaks HTTP.
    pub(super) fn plain(is_private: bool) -> Self {
        Self::start("http", is_private)
    }

    /// One that speaks HTTPS.
    pub(super) fn tls(is_private: bool) -> Self {
        Self::start("https", is_private)
    }

    fn start(scheme: &'static str, is_private: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
        let port = listener.local_addr().expect("it is bound").port();
        let certificate = Certificate::new(port);
        let acceptor = (scheme == "https").then(|| certificate.acceptor());
        let shared = Arc::new(Shared {
            is_private,
            ..Shared::default()
        });
        let stop = CancellationToken::new();
        let (serving, stopping) = (Arc::clone(&shared), stop.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime can be made");
            runtime.block_on(stopping.run_until_cancelled(serve(listener, acceptor, serving)));
        });
        Self {
            scheme,
            port,
            authority: certificate.authority,
            shared,
            stop,
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}://localhost:{}{path}", self.scheme, self.port)
    }

    pub(super) fn page(&self, path: &str, page: Page) {
        let mut pages = self.shared.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.insert(path.to_owned(), page);
    }

    /// An index with one version of chart `web`.
    pub(super) fn index(&self, address: &str, digest: &str) {
        let index = format!(
            "apiVersion: v1\nentries:\n  other:\n  - version: 9.0.0\n    urls: [x.tgz]\n  web:\n  - name: web\n    version: 1.0.0\n    urls:\n    - {address}\n    digest: {digest}\n"
        );
        self.page("/charts/index.yaml", Page::Bytes(index.into_bytes()));
    }

    /// What was asked for, with the `Authorization` that came with it.
    pub(super) fn seen(&self) -> Vec<(String, Option<String>)> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(listener: TcpListener, acceptor: Option<TlsAcceptor>, shared: Arc<Shared>) {
    listener.set_nonblocking(true).expect("a listener can be asked to");
    let listener = tokio::net::TcpListener::from_std(listener).expect("it is a listener");
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let answer = answer(&request, &shared);
                async move { Ok::<_, Infallible>(answer) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            // Whoever does not trust us hangs up.
            match acceptor {
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ended = http.serve_connection(TokioIo::new(stream), service).await;
                    }
                }
                None => {
                    let _ended = http.serve_connection(TokioIo::new(stream), service).await;
                }
            }
        });
    }
}

fn answer(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let is_known = authorization.as_deref() == Some(BASIC);
    shared
        .seen
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((path.clone(), authorization));
    let page = shared
        .pages
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&path)
        .cloned();
    let mut response = Response::new(Full::default());
    match page {
        _ if shared.is_private && !is_known => *response.status_mut() = StatusCode::UNAUTHORIZED,
        None => *response.status_mut() = StatusCode::NOT_FOUND,
        Some(Page::Bytes(bytes)) => *response.body_mut() = Full::from(bytes),
        Some(Page::Redirect(address)) => {
            *response.status_mut() = StatusCode::FOUND;
            response
                .headers_mut()
                .insert(header::LOCATION, address.parse().expect("a good address"));
        }
    }
    response
}

/// A certificate for `localhost`, and the authority it descends from.
pub(crate) struct Certificate {
    /// The authority, as PEM.
    pub(crate) authority: String,
    chain: rcgen::Certificate,
    key: rcgen::KeyPair,
}

impl Certificate {
    pub(crate) fn new(port: u16) -> Self {
        let authority_key = rcgen::KeyPair::generate().expect("ring makes a key");
        let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("no names are good names");
        // Two authorities of one name are one to whoever verifies.
        authority
            .distinguished_name
            .push(rcgen::DnType::CommonName, format!("tests of port {port}"));
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = authority.self_signed(&authority_key).expect("ring signs").pem();
        let issuer = rcgen::Issuer::new(authority, authority_key);
        let key = rcgen::KeyPair::generate().expect("ring makes a key");
        let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a good name");
        let chain = leaf.signed_by(&key, &issuer).expect("ring signs");
        Self {
            authority: pem,
            chain,
            key,
        }
    }

    /// What serves with it.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has them")
            .with_no_client_auth()
            .with_single_cert(vec![self.chain.der().clone()], key)
            .expect("key and certificate fit");
        TlsAcceptor::from(Arc::new(config))
    }
}

/// The real registry, with TLS and a login.
pub(super) struct Registry {
    port: u16,
    folder: PathBuf,
    /// The authority that its certificate descends from.
    pub(super) authority: String,
    _child: Child,
}

impl Registry {
    /// Starts it. Debian and Ubuntu have it as package `docker-registry`.
    pub(super) fn start() -> Self {
        let (port, folder) = (ports::free(), scratch::folder("registry"));
        let certificate = Certificate::new(port);
        let write =
            |name: &str, text: &str| fs::write(folder.join(name), text).expect("the scratch folder is writable");
        write("cert.pem", &certificate.chain.pem());
        write("key.pem", &certificate.key.serialize_pem());
        write("ca.pem", &certificate.authority);
        write("htpasswd", HTPASSWD);
        let place = folder.display();
        write(
            "config.yml",
            &format!(
                "version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: {place}/data}}}}\nauth: {{htpasswd: {{realm: charts, path: {place}/htpasswd}}}}\nhttp: {{addr: '127.0.0.1:{port}', tls: {{certificate: {place}/cert.pem, key: {place}/key.pem}}}}\n"
            ),
        );
        let mut registry = Command::new("docker-registry");
        registry.arg("serve").arg(folder.join("config.yml"));
        let mut child = Child::start("docker-registry", &folder, &mut registry);
        eventually(wait::LONG, "the registry listens", || {
            child.assert_running();
            std::net::TcpStream::connect(("127.0.0.1", port))
                .map(drop)
                .map_err(|error| error.to_string())
        });
        Self {
            port,
            folder,
            authority: certificate.authority,
            _child: child,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("oci://localhost:{}/charts", self.port)
    }

    /// Pushes an archive, with helm as its author does.
    pub(super) fn push(&self, archive: &Path) {
        let host = format!("localhost:{}", self.port);
        let helm = |arguments: &[&str]| {
            let mut helm = parts::command("helm");
            helm.env("HELM_REGISTRY_CONFIG", self.folder.join("login.json"));
            let authority = self.folder.join("ca.pem");
            Output::of(helm.args(arguments).arg("--ca-file").arg(authority)).expect_ok();
        };
        helm(&["registry", "login", &host, "-u", NAME, "-p", PASSWORD]);
        helm(&["push", archive.to_str().expect("a plain path"), &self.url()]);
    }
}

/// Packs a chart, as its author does.
pub(super) fn archive(files: &[(&str, &str)]) -> PathBuf {
    let folder = scratch::folder("archive");
    for (path, text) in files {
        let file = folder.join("web").join(path);
        fs::create_dir_all(file.parent().expect("it is in a folder")).expect("the scratch folder is writable");
        fs::write(file, text).expect("the scratch folder is writable");
    }
    let mut helm = parts::command("helm");
    helm.arg("package")
        .arg(folder.join("web"))
        .arg("--destination")
        .arg(&folder);
    Output::of(&mut helm).expect_ok();
    folder.join("web-1.0.0.tgz")
}
