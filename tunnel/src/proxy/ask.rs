//! One CONNECT and its answer.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Proxy;
use crate::limits::{PROXY_ANSWER_BYTES_MAX, PROXY_REASON_CHARS_MAX};

/// Why a proxy did not lead on.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The connection to it broke.
    #[error("the connection to the proxy failed")]
    Connection(#[source] std::io::Error),
    /// It closed before its answer was whole.
    #[error("the proxy closed the connection before it answered")]
    Closed,
    /// Its answer does not end.
    #[error("the proxy's answer is longer than {PROXY_ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// What it said is no answer of HTTP.
    #[error("what answers is no HTTP proxy")]
    NotHttp,
    /// It said no.
    #[error("the proxy answered {status} {reason}")]
    Refused {
        /// Its status; never 2xx.
        status: u16,
        /// Its own words for it.
        reason: String,
    },
}

/// Asks a proxy to lead `socket` to `target` (`host:port`); from then on its bytes are the target's.
pub(crate) async fn ask<S>(socket: &mut S, proxy: &Proxy, target: &str) -> Result<(), AskError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(authorization) = &proxy.authorization {
        request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    request.push_str("\r\n");
    let written = socket.write_all(request.as_bytes()).await;
    written.map_err(AskError::Connection)?;
    socket.flush().await.map_err(AskError::Connection)?;
    let head = head(socket).await?;
    match status(&head).ok_or(AskError::NotHttp)? {
        (200..=299, _) => Ok(()),
        (status, reason) => Err(AskError::Refused { status, reason }),
    }
}

/// The answer up to its empty line. The target says nothing before it was spoken to, so nothing of it follows.
async fn head<S: AsyncRead + Unpin>(socket: &mut S) -> Result<Vec<u8>, AskError> {
    let mut head = Vec::with_capacity(512);
    loop {
        let mut block = [0; 512];
        let room = block.len().min(PROXY_ANSWER_BYTES_MAX - head.len());
        let read = socket.read(&mut block[..room]).await.map_err(AskError::Connection)?;
        if read == 0 {
            return Err(if room == 0 { AskError::TooLong } else { AskError::Closed });
        }
        head.extend_from_slice(&block[..read]);
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            return if end + 4 == head.len() {
                Ok(head)
            } else {
                refused_with_body(&head)
            };
        }
        if head.len() >= PROXY_ANSWER_BYTES_MAX {
            return Err(AskError::TooLong);
        }
    }
}

/// A refusal often has a page for people behind it; what follows a consent is not the target's.
fn refused_with_body(head: &[u8]) -> Result<Vec<u8>, AskError> {
    match status(head) {
        Some((200..=299, _)) | None => Err(AskError::NotHttp),
        Some(_) => Ok(head.to_vec()),
    }
}

/// Status and reason of the first line.
fn status(head: &[u8]) -> Option<(u16, String)> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let rest = line.strip_prefix("HTTP/1.")?.get(1..)?.strip_prefix(' ')?;
    let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    if code.len() != 3 {
        return None;
    }
    let reason = reason.chars().filter(|c| !c.is_control()).take(PROXY_REASON_CHARS_MAX);
    Some((code.parse().ok()?, reason.collect()))
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    /// What a proxy was asked, and what came of its answer.
    async fn asked(proxy: &str, answer: &[u8]) -> (String, Result<(), AskError>) {
        let proxy = Proxy::parse(proxy).expect("it is a proxy");
        let (mut near, mut far) = duplex(64 * 1024);
        far.write_all(answer).await.expect("there is room");
        let outcome = ask(&mut near, &proxy, "hub.test:443").await;
        drop(near);
        let mut request = String::new();
        let read = far.read_to_string(&mut request).await;
        read.expect("a request is text");
        (request, outcome)
    }

    #[tokio::test]
    async fn a_proxy_is_asked_with_its_credentials_and_leads_on() {
        let (request, outcome) = asked("http://ann:secret@proxy", b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\n").await;
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(
            request,
            "CONNECT hub.test:443 HTTP/1.1\r\nHost: hub.test:443\r\nProxy-Authorization: Basic YW5uOnNlY3JldA==\r\n\r\n"
        );
        let (request, outcome) = asked("http://proxy", b"HTTP/1.0 200 Connection established\r\n\r\n").await;
        assert!(
            outcome.is_ok() && !request.contains("Authorization"),
            "{outcome:?} {request}"
        );
    }

    #[track_caller]
    fn says(outcome: &Result<(), AskError>, words: &str) {
        let said = outcome.as_ref().expect_err("it did not lead on").to_string();
        assert!(said.contains(words), "{said}");
        assert!(!said.contains("secret") && !said.contains("YW5u"), "{said}");
    }

    #[tokio::test]
    async fn a_refusal_is_told_in_the_proxys_own_words_and_without_the_password() {
        for (answer, words) in [
            (
                &b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"[..],
                "407 Proxy Authentication Required",
            ),
            (
                b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nbusy",
                "502 Bad Gateway",
            ),
            (b"HTTP/1.1 403\r\n\r\n", "403"),
            (b"HTTP/1.1 503 \x1b[31mred\r\n\r\n", "503 [31mred"),
            (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP proxy"),
            (b"HTTP/1.1 200 OK\r\n\r\nmore", "no HTTP proxy"),
            (b"HTTP/1.1 99 Odd\r\n\r\n", "no HTTP proxy"),
        ] {
            says(&asked("http://ann:secret@proxy", answer).await.1, words);
        }
    }

    #[tokio::test]
    async fn an_answer_that_does_not_end_is_cut_off() {
        let long = [&b"HTTP/1.1 200 OK\r\nX: "[..], &[b'a'; 32 * 1024]].concat();
        says(&asked("http://ann:secret@proxy", &long).await.1, "longer than");
    }

    #[tokio::test]
    async fn a_proxy_that_hangs_up_is_told() {
        let proxy = Proxy::parse("http://proxy").expect("it is a proxy");
        let (mut near, far) = duplex(1024);
        let hang_up = async {
            let mut far = far;
            let mut request = [0; 10];
            let read = far.read_exact(&mut request).await;
            read.expect("it is asked");
        };
        let (outcome, ()) = tokio::join!(ask(&mut near, &proxy, "hub.test:443"), hang_up);
        says(&outcome, "closed");
    }
}
