//! For whom the hub asks: read from the stream, and checked.

use http::header::HeaderMap;
use tokio::io::AsyncRead;
use tokio::time::timeout;

use crate::limits::{CALLER_BYTES_MAX, GATE_HEAD_TIMEOUT};
use crate::wire::{Caller, FramingError, NotImpersonated, read_message_within};

/// A caller that may be impersonated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Identity {
    /// Who asks, for the audit.
    pub(in crate::agent) caller: Caller,
    /// The headers that say so to the API server.
    pub(super) headers: HeaderMap,
}

/// Why a request is nobody's.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum NoCaller {
    #[error("the hub did not say for whom it asks")]
    Missing,
    #[error("what the hub said of its caller was not understood")]
    Unclear(#[source] FramingError),
    #[error("the hub asks for somebody who is not asked for")]
    Refused(#[source] NotImpersonated),
}

/// Reads for whom the hub asks. What follows on the stream is left there.
pub(in crate::agent) async fn identity<S>(stream: &mut S) -> Result<Identity, NoCaller>
where
    S: AsyncRead + Unpin,
{
    let read = read_message_within(stream, CALLER_BYTES_MAX);
    let caller: Caller = match timeout(GATE_HEAD_TIMEOUT, read).await {
        Ok(Ok(Some(caller))) => caller,
        Ok(Ok(None)) | Err(_) => return Err(NoCaller::Missing),
        Ok(Err(error)) => return Err(NoCaller::Unclear(error)),
    };
    let headers = caller.impersonation().map_err(NoCaller::Refused)?;
    Ok(Identity { caller, headers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::write_message;

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_does_not_say_for_whom_it_asks_gets_nothing() {
        let (mut near, mut far) = tokio::io::duplex(1 << 10);
        let silent = identity(&mut far).await;
        assert!(matches!(silent, Err(NoCaller::Missing)), "it said nothing");
        let caller = |user: &str| Caller {
            user: user.to_owned(),
            ..Caller::default()
        };
        write_message(&mut near, &caller("a")).await.expect("it fits");
        let found = identity(&mut far).await.expect("it said so");
        assert_eq!(found.caller.user, "a");
        write_message(&mut near, &caller("system:admin"))
            .await
            .expect("it fits");
        assert!(matches!(identity(&mut far).await, Err(NoCaller::Refused(_))));
    }
}
