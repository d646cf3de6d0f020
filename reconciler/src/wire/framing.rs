//! Messages on a stream: a length (u32, big-endian) and that many bytes of JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::computing::computing;
use crate::limits::{DECODED_BESIDE_BYTES, MESSAGE_BYTES_MAX};

/// A message that could not be read or written. The stream is of no use afterwards.
#[derive(Debug, thiserror::Error)]
pub enum FramingError {
    /// The length is above the limit.
    #[error("a message of {bytes} bytes is above the limit of {bytes_max}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The stream failed or ended inside a message.
    #[error("the stream failed")]
    Stream(#[source] std::io::Error),
    /// The bytes are not the message that was expected.
    #[error("the message was not understood")]
    Decode(#[source] serde_json::Error),
    /// The message could not be written as JSON.
    #[error("the message could not be encoded")]
    Encode(#[source] serde_json::Error),
}

/// Writes one message and flushes.
pub async fn write_message<W, M>(writer: &mut W, message: &M) -> Result<(), FramingError>
where
    W: AsyncWrite + Unpin,
    M: Serialize,
{
    let body = serde_json::to_vec(message).map_err(FramingError::Encode)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|_| body.len() <= MESSAGE_BYTES_MAX);
    let length = length.ok_or(FramingError::TooLarge {
        bytes: body.len(),
        bytes_max: MESSAGE_BYTES_MAX,
    })?;
    writer
        .write_all(&length.to_be_bytes())
        .await
        .map_err(FramingError::Stream)?;
    writer.write_all(&body).await.map_err(FramingError::Stream)?;
    writer.flush().await.map_err(FramingError::Stream)
}

/// Reads one message; `None` when the stream ended before it. Not cancel-safe: a caller that selects over
/// it must keep the future.
pub async fn read_message<R, M>(reader: &mut R) -> Result<Option<M>, FramingError>
where
    R: AsyncRead + Unpin,
    M: DeserializeOwned + Send + 'static,
{
    read_message_within(reader, MESSAGE_BYTES_MAX).await
}

/// Like [`read_message`], for a message that is never as long as others may be.
pub async fn read_message_within<R, M>(reader: &mut R, bytes_max: usize) -> Result<Option<M>, FramingError>
where
    R: AsyncRead + Unpin,
    M: DeserializeOwned + Send + 'static,
{
    let mut length = [0; 4];
    match reader.read(&mut length).await.map_err(FramingError::Stream)? {
        0 => return Ok(None),
        read => reader
            .read_exact(&mut length[read..])
            .await
            .map_err(FramingError::Stream)?,
    };
    let bytes = u32::from_be_bytes(length) as usize;
    if bytes > bytes_max {
        return Err(FramingError::TooLarge { bytes, bytes_max });
    }
    // Grows with what arrives, so that a stated length alone takes no memory.
    let mut body = Vec::with_capacity(bytes.min(1 << 16));
    reader
        .take(bytes as u64)
        .read_to_end(&mut body)
        .await
        .map_err(FramingError::Stream)?;
    if body.len() < bytes {
        return Err(FramingError::Stream(std::io::ErrorKind::UnexpectedEof.into()));
    }
    let decoded = match bytes > DECODED_BESIDE_BYTES {
        true => computing(move || serde_json::from_slice(&body)).await,
        false => serde_json::from_slice(&body),
    };
    decoded.map(Some).map_err(FramingError::Decode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::computing::tests::is_elsewhere;

    #[tokio::test]
    async fn a_message_reads_back_and_the_end_is_seen() {
        let (mut near, mut far) = tokio::io::duplex(16);
        let writer =
            tokio::spawn(async move { write_message(&mut near, &vec!["long".repeat(50), "b".to_owned()]).await });
        let read: Option<Vec<String>> = read_message(&mut far).await.expect("the message is whole");
        assert_eq!(read.map(|items| items.len()), Some(2));
        writer.await.expect("the writer ends").expect("the writer succeeds");
        assert!(
            read_message::<_, Vec<String>>(&mut far)
                .await
                .expect("the end is clean")
                .is_none()
        );
    }

    #[test]
    fn a_long_message_is_decoded_beside_those_who_wait_for_sockets() {
        for (bytes, expected) in [(16, false), (DECODED_BESIDE_BYTES + 1, true)] {
            let text = serde_json::to_vec(&"x".repeat(bytes - 2)).expect("a text is JSON");
            let length = u32::try_from(text.len()).expect("it is below the limit");
            let message = [&length.to_be_bytes()[..], &text].concat();
            let message = std::io::Cursor::new(message);
            let read = |mut reader| async move { read_message::<std::io::Cursor<_>, String>(&mut reader).await };
            assert_eq!(is_elsewhere(async { message }, read), expected, "{bytes} bytes");
        }
    }

    #[tokio::test]
    async fn a_length_above_the_limit_is_refused_before_its_body() {
        let mut bytes: &[u8] = &[0xff, 0xff, 0xff, 0xff];
        let read = read_message::<_, String>(&mut bytes).await;
        assert!(matches!(read, Err(FramingError::TooLarge { .. })));
    }

    #[tokio::test]
    async fn an_end_inside_a_message_is_an_error() {
        let mut bytes: &[u8] = &[0, 0, 0, 9, b'"', b'a'];
        assert!(matches!(
            read_message::<_, String>(&mut bytes).await,
            Err(FramingError::Stream(_))
        ));
    }
}
