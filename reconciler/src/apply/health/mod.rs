//! How an object fares, from its own status: kstatus' rules (kubernetes-sigs/cli-utils, `pkg/kstatus`),
//! written anew as functions over JSON.
//!
//! Where kstatus and `kubectl rollout status` differ, the stricter one counts. Looking at objects is
//! deliberately not here.

mod conditions;
mod kinds;

use serde_json::Value;

use crate::wire::Health;

/// What a status says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The health.
    pub health: Health,
    /// Why, when it is not Current.
    pub message: String,
}

impl Verdict {
    fn current() -> Self {
        Self::new(Health::Current, "")
    }

    fn in_progress(message: impl Into<String>) -> Self {
        Self::new(Health::InProgress, message)
    }

    fn failed(message: impl Into<String>) -> Self {
        Self::new(Health::Failed, message)
    }

    fn new(health: Health, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { health, message }
    }
}

/// Reads an object's health.
pub(super) fn health(object: &Value) -> Verdict {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Verdict::new(Health::Terminating, "it is being deleted");
    }
    if let Some(verdict) = conditions::generation_lags(object) {
        return verdict;
    }
    match kinds::rule(object) {
        Some(rule) => rule(object),
        None => conditions::generic(object),
    }
}

/// Whether the health of this kind can be anything but Current, so that its status is worth reading.
pub(super) fn has_status(group: &str, kind: &str) -> bool {
    match group {
        "rbac.authorization.k8s.io"
        | "storage.k8s.io"
        | "scheduling.k8s.io"
        | "node.k8s.io"
        | "coordination.k8s.io" => false,
        "" => !matches!(
            kind,
            "ConfigMap" | "Secret" | "ServiceAccount" | "LimitRange" | "Endpoints" | "PodTemplate" | "Event"
        ),
        "networking.k8s.io" => kind == "Ingress",
        "admissionregistration.k8s.io" => !kind.ends_with("WebhookConfiguration"),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
