//! How an object fares, from its own status: kstatus' rules (kubernetes-sigs/cli-utils, `pkg/kstatus`),
//! written anew as functions over JSON.
//!
//! Where kstatus and `kubectl rollout status` differ, the stricter one counts, but for what never comes in clusters
//! without load balancers, or before a pod asks for it: that blocks nothing. Looking at objects is deliberately not here.

mod check;
mod conditions;
mod custom;
mod kinds;

use render::name::group_of;
use serde_json::Value;

pub(super) use check::Check;

use super::order::is_built_in;
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

/// What is said of a custom resource without any status: it may be that nobody reports, or that nobody has yet.
const SILENT: &str = "nothing was said of how it fares yet";

impl Verdict {
    /// Whether nothing was said of how it fares. It counts as Current, but for a while after it was applied, where
    /// its kind has a status that somebody may still write.
    pub(super) fn is_silent(&self) -> bool {
        self.health == Health::Current && self.message == SILENT
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
        None if object["status"].is_null() && is_custom(object) => Verdict::new(Health::Current, SILENT),
        None => conditions::generic(object),
    }
}

fn is_custom(object: &Value) -> bool {
    !is_built_in(group_of(object["apiVersion"].as_str().unwrap_or_default()))
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
