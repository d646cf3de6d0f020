//! Callers that ask many things over one connection.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{Request, StatusCode, header};
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::super::SOON;
use super::World;
use crate::hub::door::certificate;

/// A connection that speaks HTTP/2. What it asks has a body of which some comes.
pub(in crate::hub::door::tests) struct Http2(http2::SendRequest<BoxBody<Bytes, std::convert::Infallible>>);

impl Http2 {
    fn ask(&mut self, method: &str, who: &str, path: &str, ends: bool) -> impl Future<Output = StatusCode> + use<> {
        let some = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"{}")))]);
        let body = match ends {
            true => BoxBody::new(StreamBody::new(some)),
            false => BoxBody::new(StreamBody::new(some.chain(futures_util::stream::pending()))),
        };
        let answer = self.begin(method, who, path, body);
        async move { answer.await.expect("it answers") }
    }

    /// `None`: the connection has ended.
    fn begin(
        &mut self,
        method: &str,
        who: &str,
        path: &str,
        body: BoxBody<Bytes, std::convert::Infallible>,
    ) -> impl Future<Output = Option<StatusCode>> + use<> {
        let mut request = Request::builder().method(method).uri(format!("https://hub{path}"));
        if !who.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer long-token-of-{who}"));
        }
        let answer = self.0.send_request(request.body(body).expect("a request"));
        async move {
            let answer = timeout(SOON, answer).await.expect("it answers in time");
            answer.ok().map(|answer| answer.status())
        }
    }

    /// Begins a read, and gives what is answered when it is.
    pub(in crate::hub::door::tests) fn read(
        &mut self,
        who: &str,
        path: &str,
    ) -> impl Future<Output = Option<StatusCode>> + use<> {
        self.begin("GET", who, path, BoxBody::new(http_body_util::Empty::new()))
    }

    /// Begins a watch.
    pub(in crate::hub::door::tests) async fn watch(&mut self, who: &str, path: &str) -> http::Response<Incoming> {
        let nothing = BoxBody::new(http_body_util::Empty::new());
        let request = Request::get(format!("https://hub{path}"))
            .header(header::AUTHORIZATION, format!("Bearer long-token-of-{who}"))
            .body(nothing);
        let answer = timeout(SOON, self.0.send_request(request.expect("a request"))).await;
        answer.expect("it answers in time").expect("it answers")
    }

    /// A read by who the connection's certificate names. `None`: the connection has ended.
    pub(in crate::hub::door::tests) async fn get(&mut self, path: &str) -> Option<StatusCode> {
        let nothing = BoxBody::new(http_body_util::Empty::new());
        self.begin("GET", "", path, nothing).await
    }

    /// The same, as a browser asks for a page of somebody's.
    pub(in crate::hub::door::tests) async fn get_for_a_page(&mut self, path: &str) -> StatusCode {
        self.get_from("https://elsewhere.example", path).await
    }

    pub(in crate::hub::door::tests) async fn get_from(&mut self, origin: &str, path: &str) -> StatusCode {
        let request = Request::get(format!("https://hub{path}"))
            .header(header::ORIGIN, origin)
            .body(BoxBody::new(http_body_util::Empty::new()));
        let answer = timeout(SOON, self.0.send_request(request.expect("a request"))).await;
        answer.expect("it answers in time").expect("it answers").status()
    }

    /// Begins a POST, and never ends it.
    pub(in crate::hub::door::tests) fn half(
        &mut self,
        who: &str,
        path: &str,
    ) -> impl Future<Output = StatusCode> + use<> {
        self.ask("POST", who, path, false)
    }

    pub(in crate::hub::door::tests) async fn get_with_body(&mut self, who: &str, path: &str) -> StatusCode {
        self.ask("GET", who, path, true).await
    }
}

impl World {
    /// A connection that speaks HTTP/2.
    pub(in crate::hub::door::tests) async fn http2(&self) -> Http2 {
        self.http2_with(ClientConfig::clone(self.tls.config())).await
    }

    /// The same, with a certificate of cleo, who is of the ops.
    pub(in crate::hub::door::tests) async fn http2_certified(&self) -> Http2 {
        let key = rcgen::KeyPair::generate().expect("ring makes a key");
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "cleo");
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "ops");
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.clients).expect("it is signed");
        let chain = vec![certificate.der().clone()];
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring knows them")
            .with_root_certificates(self.roots())
            .with_client_auth_cert(chain, key.into());
        self.http2_with(config.expect("they go together")).await
    }

    fn roots(&self) -> rustls::RootCertStore {
        let authority = std::fs::read(self.folder.path().join("ca.crt")).expect("it is written");
        certificate::authorities(&authority).expect("it is a certificate")
    }

    async fn http2_with(&self, mut config: ClientConfig) -> Http2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
        let socket = TcpStream::connect(self.address).await.expect("the door listens");
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await;
        let io = TokioIo::new(stream.expect("its certificate is good"));
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io)
            .await
            .expect("it speaks HTTP/2");
        tokio::spawn(async move { drop(connection.await) });
        Http2(sender)
    }
}
