//! What the hub says of the fleet and its units, as far as commands wait for it or act on it.

use render::{Revision, UnitKey};
use serde_json::Value;

use super::client::{ClientError, GROUP, JSON, ServerOptions};
use super::conditions::condition;

/// One object of the hub, as it was last read.
pub(super) struct View(Value);

/// One condition of it.
pub(super) struct Condition<'a> {
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

#[cfg(test)]
impl From<Value> for View {
    fn from(object: Value) -> Self {
        Self(object)
    }
}

impl View {
    /// The Fleet.
    pub(super) async fn fleet(server: &ServerOptions) -> Result<Self, ClientError> {
        server.value(&format!("{GROUP}/fleets/fleet"), JSON).await.map(Self)
    }

    /// A Subscription.
    pub(super) async fn unit(server: &ServerOptions, unit: &UnitKey) -> Result<Self, ClientError> {
        let (namespace, name) = (unit.namespace(), unit.name());
        let path = format!("{GROUP}/namespaces/{namespace}/subscriptions/{name}");
        server.value(&path, JSON).await.map(Self)
    }

    /// A condition; one that is not said is not known.
    pub(super) fn condition(&self, kind: &str) -> Condition<'_> {
        let found = condition(&self.0, kind);
        let text = |field: &str| found.and_then(|found| found[field].as_str());
        Condition {
            status: text("status").unwrap_or("Unknown"),
            reason: text("reason").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
        }
    }

    /// A field of its status, as a commit: `main@sha1:<hex>` without what stands before it.
    pub(super) fn revision(&self, field: &str) -> Option<Revision> {
        let text = self.0["status"][field].as_str()?;
        Revision::parse(text.rsplit(':').next()?).ok()
    }

    /// The branch that the hub follows.
    pub(super) fn branch(&self) -> Option<&str> {
        let (branch, _) = self.0["status"]["source"].as_str()?.rsplit_once('@')?;
        Some(branch)
    }
}
