//! A client of the hub's read-only API, over loopback or a unix socket.

mod error;
mod lines;
#[cfg(feature = "hub")]
mod questions;
pub(super) mod rooms;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

pub(super) use error::{ClientError, failed, is_outage};
pub(super) use lines::Lines;
#[cfg(feature = "hub")]
pub(super) use questions::Questions;

/// Bytes of one answer: the placements of 1,000 clusters with 100 units each are about 200 MiB.
pub(super) const ANSWER_BYTES_MAX: usize = 512 << 20;

/// How long connecting may take; the hub is on this machine, or at the other end of a port forward.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The root of our kinds.
pub(super) const GROUP: &str = "/apis/fleet.flotilla.dev/v1alpha1";

/// What answers are asked for where nothing else is said.
pub(super) const JSON: &str = "application/json";

/// Where the hub answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// Host and port.
    Tcp(String),
    /// A unix socket.
    Unix(PathBuf),
}

/// Which hub is asked.
#[derive(Debug, clap::Args)]
pub(super) struct ServerOptions {
    /// Where the hub answers: `http://127.0.0.1:7070`, or `unix:/path` of its socket.
    #[arg(long, env = "FLOTILLA_SERVER", default_value = "http://127.0.0.1:7070")]
    server: Server,
    /// Seconds that an answer may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = seconds)]
    timeout: u64,
}

/// How long somebody waits at most.
const TIMEOUT_SECONDS_MAX: u64 = 600;

fn seconds(text: &str) -> Result<u64, String> {
    let found = text
        .parse()
        .ok()
        .filter(|seconds| (1..=TIMEOUT_SECONDS_MAX).contains(seconds));
    found.ok_or_else(|| format!("it is no whole number of seconds from 1 to {TIMEOUT_SECONDS_MAX}"))
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        if text.starts_with("https://") {
            return Err(
                "the hub's read-only API speaks http, on its own machine only: name it as http://HOST:PORT".to_owned(),
            );
        }
        let authority = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let parsed = authority.parse::<http::uri::Authority>();
        match parsed {
            Ok(parsed) if parsed.port_u16().is_some() => Ok(Self::Tcp(authority.to_owned())),
            _ => Err("it is neither http://HOST:PORT nor unix:PATH".to_owned()),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(authority) => write!(f, "http://{authority}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl ServerOptions {
    /// Where the hub answers.
    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// A JSON value.
    pub(super) async fn value(&self, path: &str, accept: &str) -> Result<Value, ClientError> {
        self.answer(Method::GET, path, accept).await
    }

    /// Asks for something to be done; the answer is a JSON value.
    #[cfg(feature = "hub")]
    pub(super) async fn post(&self, path: &str) -> Result<Value, ClientError> {
        self.answer(Method::POST, path, JSON).await
    }

    async fn answer(&self, method: Method, path: &str, accept: &str) -> Result<Value, ClientError> {
        let answer = async {
            let response = self.ask(method, path, accept).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let bytes = body.map_err(|error| self.unread(error.as_ref()))?.to_bytes();
            let value = serde_json::from_slice(&bytes);
            match value {
                Ok(value) if status.is_success() => Ok(value),
                Ok(value) => Err(self.refused(status, &value)),
                Err(_) if !status.is_success() => Err(self.refused(status, &Value::Null)),
                Err(error) => Err(self.not_a_hub(error.to_string())),
            }
        };
        self.in_time(answer).await
    }

    /// The lines of a watch.
    pub(super) async fn lines(&self, path: &str, accept: &str) -> Result<Lines, ClientError> {
        let response = self.in_time(self.ask(Method::GET, path, accept)).await?;
        if !response.status().is_success() {
            return Err(self.refused(response.status(), &Value::Null));
        }
        Ok(Lines::new(self.server.clone(), response.into_body()))
    }

    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
        let too_long = |_| {
            Err(ClientError::TooLong {
                server: self.server.clone(),
                seconds: self.timeout,
            })
        };
        timeout(Duration::from_secs(self.timeout), answer)
            .await
            .unwrap_or_else(too_long)
    }

    async fn ask(&self, method: Method, path: &str, accept: &str) -> Result<Response<Incoming>, ClientError> {
        let unreachable = |source| ClientError::Unreachable {
            server: self.server.clone(),
            source,
        };
        let too_long = |_| unreachable(io::ErrorKind::TimedOut.into());
        match &self.server {
            Server::Tcp(authority) => {
                let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(authority))
                    .await
                    .map_err(too_long)?;
                self.send(stream.map_err(unreachable)?, authority, request(method, path, accept))
                    .await
            }
            Server::Unix(socket) => {
                let stream = timeout(CONNECT_TIMEOUT, UnixStream::connect(socket))
                    .await
                    .map_err(too_long)?;
                self.send(stream.map_err(unreachable)?, "localhost", request(method, path, accept))
                    .await
            }
        }
    }

    async fn send<S>(
        &self,
        stream: S,
        host: &str,
        request: http::request::Builder,
    ) -> Result<Response<Incoming>, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let failed = |error: hyper::Error| self.failed(&error);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        // It ends with its one answer; what went wrong is seen there.
        tokio::spawn(async move { drop(connection.await) });
        let request = request
            .header(header::HOST, host)
            .body(Empty::<Bytes>::new())
            .map_err(|error| self.not_a_hub(error.to_string()))?;
        sender.send_request(request).await.map_err(failed)
    }

    /// Why an answer that began was not read to its end.
    fn unread(&self, error: &(dyn std::error::Error + 'static)) -> ClientError {
        match error.downcast_ref::<hyper::Error>() {
            Some(error) => self.failed(error),
            None => self.not_a_hub(error.to_string()),
        }
    }

    /// Why there is no answer on a connection that stands. One that breaks is a hub's that ended just then, as a rule;
    /// what is no HTTP is somebody else's.
    fn failed(&self, error: &hyper::Error) -> ClientError {
        let source = std::error::Error::source(error);
        let broke = source.is_some_and(|source| source.is::<io::Error>());
        if error.is_incomplete_message() || error.is_closed() || error.is_canceled() || broke {
            return ClientError::Lost {
                server: self.server.clone(),
            };
        }
        self.not_a_hub(crate::fault::line(error))
    }

    fn not_a_hub(&self, why: String) -> ClientError {
        ClientError::NotAHub {
            server: self.server.clone(),
            why,
        }
    }

    fn refused(&self, status: StatusCode, answer: &Value) -> ClientError {
        let message = match answer["message"].as_str() {
            Some(message) => message.to_owned(),
            None if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                format!("{} says {status}", self.server)
            }
            None => return self.not_a_hub(format!("it says {status}")),
        };
        ClientError::Refused { status, message }
    }
}

fn request(method: Method, path: &str, accept: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, accept)
}

/// A parameter's value as it stands in a query.
pub(super) fn encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    value
        .bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
