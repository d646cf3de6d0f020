//! One list of like things: the rules of kinds that are no API server's own and that many clusters have.
//!
//! Their controllers are known to report, so that an empty status is never taken for a good one.

use serde_json::Value;

use super::Verdict;
use super::conditions::{self, Conditions};

/// The rule of an object's kind, if it has one.
pub(super) fn rule(group: &str, kind: &str) -> Option<fn(&Value) -> Verdict> {
    let rule = match (group, kind) {
        ("cert-manager.io", "CertificateRequest") => certificate_request,
        ("cert-manager.io", "Certificate" | "Issuer" | "ClusterIssuer") => ready,
        ("acme.cert-manager.io", "Order" | "Challenge") => acme,
        ("gateway.networking.k8s.io", "GatewayClass") => gateway_class,
        ("gateway.networking.k8s.io", "Gateway") => gateway,
        ("gateway.networking.k8s.io", "HTTPRoute" | "GRPCRoute" | "TCPRoute" | "TLSRoute" | "UDPRoute") => route,
        ("argoproj.io", "Rollout") => rollout,
        ("monitoring.coreos.com", "Prometheus" | "PrometheusAgent" | "Alertmanager" | "ThanosRuler") => monitoring,
        _ => return None,
    };
    Some(rule)
}

fn unheard() -> Verdict {
    Verdict::in_progress("its controller has not said anything yet")
}

/// All of these conditions hold; the first that does not says why.
fn all(conditions: &Conditions<'_>, names: &[&str]) -> Verdict {
    for name in names {
        match conditions.status(name) {
            Some("True") => {}
            Some(_) => return Verdict::in_progress(conditions.message(name)),
            None => return unheard(),
        }
    }
    Verdict::current()
}

/// What keeps a certificate or an issuer from being ready is tried again by its controller.
fn ready(object: &Value) -> Verdict {
    all(&Conditions::of(object), &["Ready"])
}

fn certificate_request(object: &Value) -> Verdict {
    let conditions = Conditions::of(object);
    for name in ["Denied", "InvalidRequest"] {
        if conditions.is(name, "True") {
            return Verdict::failed(conditions.message(name));
        }
    }
    if conditions.is("Ready", "False") && matches!(conditions.reason("Ready"), "Failed" | "Denied") {
        return Verdict::failed(conditions.message("Ready"));
    }
    all(&conditions, &["Ready"])
}

fn acme(object: &Value) -> Verdict {
    let state = object["status"]["state"].as_str().unwrap_or_default();
    let reason = object["status"]["reason"].as_str().unwrap_or_default();
    let words = format!("{state} {reason}");
    match state {
        "valid" => Verdict::current(),
        "invalid" | "errored" | "expired" => Verdict::failed(words.trim()),
        "" => unheard(),
        _ => Verdict::in_progress(words.trim()),
    }
}

fn gateway_class(object: &Value) -> Verdict {
    all(&Conditions::of(object), &["Accepted"])
}

fn gateway(object: &Value) -> Verdict {
    let conditions = Conditions::of(object);
    // As a Service without an address: who has no load balancers never gets one.
    if conditions.is("Accepted", "True") && conditions.reason("Programmed") == "AddressNotAssigned" {
        return Verdict::current();
    }
    all(&conditions, &["Accepted", "Programmed"])
}

/// A route belongs to one or more Gateways, and each says for itself.
fn route(object: &Value) -> Verdict {
    let parents = object["status"]["parents"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if parents.is_empty() {
        return Verdict::in_progress("no Gateway has taken it yet");
    }
    for parent in parents {
        let conditions = Conditions::new(&parent["conditions"], conditions::generation(object));
        let verdict = all(&conditions, &["Accepted"]);
        if verdict != Verdict::current() {
            return verdict;
        }
        if conditions.is("ResolvedRefs", "False") {
            return Verdict::in_progress(conditions.message("ResolvedRefs"));
        }
    }
    Verdict::current()
}

fn rollout(object: &Value) -> Verdict {
    // It writes the generation as a text.
    let observed = object["status"]["observedGeneration"].as_str();
    let generation = conditions::generation(object).map(|generation| generation.to_string());
    if observed.is_some() && generation.is_some() && observed != generation.as_deref() {
        return Verdict::in_progress("its newest generation was not observed yet");
    }
    let message = object["status"]["message"].as_str().unwrap_or_default();
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    let words = if message.is_empty() { phase } else { message };
    match phase {
        "Healthy" => Verdict::current(),
        "Degraded" => Verdict::failed(words),
        "" => unheard(),
        // Also while it is paused: half of it is the older content.
        _ => Verdict::in_progress(words),
    }
}

fn monitoring(object: &Value) -> Verdict {
    all(&Conditions::of(object), &["Reconciled", "Available"])
}
