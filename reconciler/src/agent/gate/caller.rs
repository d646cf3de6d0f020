//! For whom the hub asks: read, checked, and made into the headers that impersonate them.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::AsyncRead;
use tokio::time::timeout;

use crate::limits::{CALLER_BYTES_MAX, CALLER_GROUPS_MAX, CALLER_NAME_CHARS_MAX, GATE_HEAD_TIMEOUT};
use crate::wire::{Caller, FramingError, IMPERSONATION_PREFIX, read_message_within};

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// Names that Kubernetes keeps for itself: a service account, a node, `system:masters`.
const RESERVED: &str = "system:";

/// A caller that may be impersonated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Identity {
    /// Who asks, for the audit.
    pub(in crate::agent) caller: Caller,
    /// The headers that say so to the API server.
    pub(super) headers: HeaderMap,
}

/// Why nobody is impersonated.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum NotImpersonated {
    #[error("the hub did not say for whom it asks")]
    Missing,
    #[error("what the hub said of its caller was not understood")]
    Unclear(#[source] FramingError),
    #[error("the caller has no name")]
    Nobody,
    #[error("{0:?} is a name that Kubernetes keeps for itself")]
    Reserved(String),
    #[error("{0:?} begins as names do that agents make")]
    Prefixed(String),
    #[error("{0:?} has characters that no name has, or is too long")]
    Malformed(String),
    #[error("the caller has {0} groups, and {CALLER_GROUPS_MAX} are the most")]
    TooMany(usize),
}

/// Reads for whom the hub asks. What follows on the stream is left there.
pub(in crate::agent) async fn identity<S>(stream: &mut S) -> Result<Identity, NotImpersonated>
where
    S: AsyncRead + Unpin,
{
    match timeout(GATE_HEAD_TIMEOUT, read_message_within(stream, CALLER_BYTES_MAX)).await {
        Ok(Ok(Some(caller))) => Identity::of(caller),
        Ok(Ok(None)) | Err(_) => Err(NotImpersonated::Missing),
        Ok(Err(error)) => Err(NotImpersonated::Unclear(error)),
    }
}

impl Identity {
    /// Checks a caller. One bad group refuses all: whoever leaves it out changes what somebody may.
    fn of(caller: Caller) -> Result<Self, NotImpersonated> {
        if caller.user.is_empty() {
            return Err(NotImpersonated::Nobody);
        }
        if caller.groups.len() > CALLER_GROUPS_MAX {
            return Err(NotImpersonated::TooMany(caller.groups.len()));
        }
        let mut headers = HeaderMap::with_capacity(1 + caller.groups.len());
        headers.insert(USER, prefixed(&caller.user)?);
        for group in &caller.groups {
            headers.append(GROUP, prefixed(group)?);
        }
        if !is_plain(&caller.request_id) {
            return Err(NotImpersonated::Malformed(shown(&caller.request_id)));
        }
        Ok(Self { caller, headers })
    }
}

/// A name as the cluster's bindings have it.
fn prefixed(name: &str) -> Result<HeaderValue, NotImpersonated> {
    // Blanks at the ends are lost on the way, and then it would be another's name.
    if name.is_empty() || name.trim() != name || !is_plain(name) {
        return Err(NotImpersonated::Malformed(shown(name)));
    }
    if name.starts_with(RESERVED) {
        return Err(NotImpersonated::Reserved(name.to_owned()));
    }
    if name.starts_with(IMPERSONATION_PREFIX) {
        return Err(NotImpersonated::Prefixed(name.to_owned()));
    }
    HeaderValue::from_bytes(format!("{IMPERSONATION_PREFIX}{name}").as_bytes())
        .map_err(|_| NotImpersonated::Malformed(shown(name)))
}

fn is_plain(text: &str) -> bool {
    text.len() <= CALLER_NAME_CHARS_MAX && !text.chars().any(char::is_control)
}

fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::write_message;

    fn caller(user: &str, groups: &[&str]) -> Caller {
        Caller {
            user: user.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            request_id: "r-1".to_owned(),
        }
    }

    #[test]
    fn a_caller_is_impersonated_with_a_name_that_is_the_fleets() {
        let identity = Identity::of(caller("zoë@example.com", &["crew", "crew:night"])).expect("a good caller");
        let said = |name: HeaderName| -> Vec<String> {
            let values = identity.headers.get_all(name).iter();
            values
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect()
        };
        assert_eq!(said(USER), ["flotilla:zoë@example.com"]);
        assert_eq!(said(GROUP), ["flotilla:crew", "flotilla:crew:night"]);
    }

    #[test]
    fn nobody_is_impersonated_that_the_cluster_knows_already() {
        for (user, groups) in [
            ("", &[][..]),
            ("system:admin", &[]),
            ("system:serviceaccount:kube-system:default", &[]),
            ("flotilla:somebody", &[]),
            ("a\nImpersonate-Group: system:masters", &[]),
            ("a\0", &[]),
            (" a", &[]),
            ("a\u{a0}", &[]),
            ("a", &["system:masters"]),
            ("a", &["crew", "flotilla:crew"]),
            ("a", &["crew\r"]),
            ("a", &[""]),
        ] {
            assert!(
                Identity::of(caller(user, groups)).is_err(),
                "{user:?} in {groups:?} is nobody of the fleet's"
            );
        }
        let many = vec!["crew"; CALLER_GROUPS_MAX + 1];
        assert!(matches!(
            Identity::of(caller("a", &many)),
            Err(NotImpersonated::TooMany(_))
        ));
        let long = "a".repeat(CALLER_NAME_CHARS_MAX + 1);
        assert!(Identity::of(caller(&long, &[])).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_does_not_say_for_whom_it_asks_gets_nothing() {
        let (mut near, mut far) = tokio::io::duplex(1 << 10);
        assert!(
            matches!(identity(&mut far).await, Err(NotImpersonated::Missing)),
            "it said nothing"
        );
        write_message(&mut near, &caller("a", &["crew"]))
            .await
            .expect("it fits");
        let found = identity(&mut far).await.expect("it said so");
        assert_eq!(found.caller.user, "a");
    }
}
