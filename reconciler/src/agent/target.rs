//! What the hub may reach through an agent: classes that the agent resolves itself, nothing else.
//!
//! Only the API server that the agent's own kubeconfig names is reachable, and not in mode Pull. The hub
//! speaks TLS with it inside the stream, so the agent sees bytes and lends no credential.

use std::time::Duration;

use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::TcpStream;
use tunnel::OpenCode;

/// Why a target is not reached.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Denial {
    pub(super) code: OpenCode,
    pub(super) text: String,
}

/// Dials the API server for the hub.
pub(super) async fn dial_api_server(server: &Uri, allowed: bool, limit: Duration) -> Result<TcpStream, Denial> {
    if !allowed {
        let text = "this cluster is in sync mode Pull: the hub opens no stream to its API server".to_owned();
        return Err(Denial {
            code: OpenCode::NotAllowed,
            text,
        });
    }
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = server.port_u16().unwrap_or(443);
    match tokio::time::timeout(limit, TcpStream::connect((host, port))).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(Denial {
            code: OpenCode::Unreachable,
            text: error.to_string(),
        }),
        Err(_) => Err(Denial {
            code: OpenCode::DialTimeout,
            text: "the API server did not answer".to_owned(),
        }),
    }
}

/// Carries bytes both ways until either side ends.
pub(super) async fn splice<S>(stream: S, mut target: TcpStream)
where
    S: AsyncRead + AsyncWrite,
{
    let mut stream = Box::pin(stream);
    match copy_bidirectional(&mut stream, &mut target).await {
        Ok((up, down)) => tracing::debug!(up, down, "Ended API server stream."),
        Err(error) => tracing::debug!(%error, "Lost API server stream."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn in_pull_the_hub_reaches_no_api_server() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let server: Uri = format!("https://127.0.0.1:{port}").parse().expect("a valid address");
        let denied = dial_api_server(&server, false, Duration::from_secs(5)).await;
        assert_eq!(
            denied.map(drop).map_err(|denial| denial.code),
            Err(OpenCode::NotAllowed)
        );
        assert!(dial_api_server(&server, true, Duration::from_secs(5)).await.is_ok());
    }
}
