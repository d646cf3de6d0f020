//! The lines of a watch, as they come.

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes};
use serde_json::Value;

use super::{ANSWER_BYTES_MAX, ClientError, Server};

/// The lines of a watch, as they come.
pub(in crate::cli) struct Lines<B = hyper::body::Incoming> {
    server: Server,
    body: B,
    rest: Vec<u8>,
}

impl<B: Body<Data = Bytes> + Unpin> Lines<B> {
    pub(super) fn new(server: Server, body: B) -> Self {
        Self {
            server,
            body,
            rest: Vec::new(),
        }
    }

    /// The next line as JSON; `None` when the watch ended in good order.
    ///
    /// A connection that broke is [`ClientError::Lost`], which may be taken up again. A line that is no JSON
    /// is no hub's, and says so.
    pub(in crate::cli) async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.rest[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=searched + end).collect();
                return match serde_json::from_slice(&line) {
                    Ok(value) => Ok(Some(value)),
                    Err(error) => Err(self.not_a_hub(format!("a line of its watch is no JSON: {error}"))),
                };
            }
            searched = self.rest.len();
            match self.body.frame().await {
                None if self.rest.is_empty() => return Ok(None),
                None | Some(Err(_)) => {
                    return Err(ClientError::Lost {
                        server: self.server.clone(),
                    });
                }
                Some(Ok(frame)) => {
                    // Trailers say nothing that a watch needs.
                    let Ok(data) = frame.into_data() else { continue };
                    if self.rest.len() + data.len() > ANSWER_BYTES_MAX {
                        return Err(self.not_a_hub("a line of its watch has no end".to_owned()));
                    }
                    self.rest.extend_from_slice(&data);
                }
            }
        }
    }

    fn not_a_hub(&self, why: String) -> ClientError {
        ClientError::NotAHub {
            server: self.server.clone(),
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// What a body of these parts gives; the last part may be a broken connection.
    async fn read(parts: Vec<Result<&'static str, &'static str>>) -> (Vec<Value>, Result<(), ClientError>) {
        let frames = parts
            .into_iter()
            .map(|part| part.map(|text| Frame::data(Bytes::from_static(text.as_bytes()))));
        let body = StreamBody::new(stream::iter(frames.collect::<Vec<_>>()));
        let mut lines = Lines::new(Server::Tcp("hub:1".to_owned()), body);
        let mut values = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(value)) => values.push(value),
                Ok(None) => return (values, Ok(())),
                Err(error) => return (values, Err(error)),
            }
        }
    }

    #[tokio::test]
    async fn lines_are_put_together_from_what_comes() {
        let (values, ended) = read(vec![Ok("{\"a\":1}\n{\"b\""), Ok(":2}"), Ok("\n")]).await;
        assert_eq!(values, [serde_json::json!({"a": 1}), serde_json::json!({"b": 2})]);
        assert!(ended.is_ok(), "{ended:?}");
    }

    #[tokio::test]
    async fn garbage_is_an_error_and_a_broken_connection_another() {
        let (values, ended) = read(vec![Ok("{}\n<html>\n")]).await;
        assert_eq!(values.len(), 1, "what came before counts");
        assert!(matches!(ended, Err(ClientError::NotAHub { .. })), "{ended:?}");
        let (_, ended) = read(vec![Ok("{}\n"), Err("reset")]).await;
        assert!(matches!(ended, Err(ClientError::Lost { .. })), "{ended:?}");
        let (_, ended) = read(vec![Ok("{\"a\"")]).await;
        assert!(
            matches!(ended, Err(ClientError::Lost { .. })),
            "half a line is no end: {ended:?}"
        );
    }
}
