//! For whom the hub asks: the first message of a stream to a cluster's API server, before the request; and the headers
//! that say so to the API server.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use render::access::{PREFIX, is_reserved};
use serde::{Deserialize, Serialize};

use crate::limits::{CALLER_GROUPS_MAX, CALLER_NAME_CHARS_MAX};

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// Who asks, as the hub knows them: names without the prefix that they have in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Caller {
    /// Their name.
    pub user: String,
    /// The groups that they are in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Ties lines of both logs together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
}

/// Why nobody is impersonated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotImpersonated {
    /// There is no name.
    #[error("the caller has no name")]
    Nobody,
    /// The name is Kubernetes' own, or has the prefix already.
    #[error("{0:?} begins with system: or {PREFIX}, as nobody of the fleet does")]
    Reserved(String),
    /// It would be read as another name, or cut.
    #[error("{0:?} has characters that no name has, or is too long")]
    Malformed(String),
    /// More than anybody is in.
    #[error("the caller has {0} groups, and {CALLER_GROUPS_MAX} are the most")]
    TooMany(usize),
}

impl Caller {
    /// The headers that have an API server answer as to this person. One bad group refuses all: whoever leaves it out changes
    /// what somebody may.
    pub fn impersonation(&self) -> Result<HeaderMap, NotImpersonated> {
        if self.user.is_empty() {
            return Err(NotImpersonated::Nobody);
        }
        if self.groups.len() > CALLER_GROUPS_MAX {
            return Err(NotImpersonated::TooMany(self.groups.len()));
        }
        let mut headers = HeaderMap::with_capacity(1 + self.groups.len());
        headers.insert(USER, prefixed(&self.user)?);
        for group in &self.groups {
            headers.append(GROUP, prefixed(group)?);
        }
        if !is_plain(&self.request_id) {
            return Err(NotImpersonated::Malformed(shown(&self.request_id)));
        }
        Ok(headers)
    }
}

/// A name as the cluster's bindings have it.
fn prefixed(name: &str) -> Result<HeaderValue, NotImpersonated> {
    // Blanks at the ends are lost on the way, and then it would be another's name.
    if name.is_empty() || name.trim() != name || !is_plain(name) {
        return Err(NotImpersonated::Malformed(shown(name)));
    }
    if is_reserved(name) {
        return Err(NotImpersonated::Reserved(name.to_owned()));
    }
    HeaderValue::from_bytes(format!("{PREFIX}{name}").as_bytes()).map_err(|_| NotImpersonated::Malformed(shown(name)))
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

    fn impersonation(user: &str, groups: &[&str]) -> Result<HeaderMap, NotImpersonated> {
        let caller = Caller {
            user: user.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            request_id: "r-1".to_owned(),
        };
        caller.impersonation()
    }

    #[test]
    fn a_caller_is_impersonated_with_a_name_that_is_the_fleets() {
        let headers = impersonation("zoë@example.com", &["crew", "crew:night"]).expect("a good caller");
        let said = |name: HeaderName| -> Vec<String> {
            let values = headers.get_all(name).iter();
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
            let found = impersonation(user, groups);
            assert!(found.is_err(), "{user:?} in {groups:?} is nobody of the fleet's");
        }
        let many = vec!["crew"; CALLER_GROUPS_MAX + 1];
        assert!(matches!(impersonation("a", &many), Err(NotImpersonated::TooMany(_))));
        let long = "a".repeat(CALLER_NAME_CHARS_MAX + 1);
        assert!(impersonation(&long, &[]).is_err());
    }
}
