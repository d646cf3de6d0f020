//! Which of the fields that differ between two manifests cannot change.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::changes_in_stateful_set;
use super::table::{DEFAULTS, Fixed, RULES, SUSPENDED_JOB};
use crate::name::ObjectKey;
use crate::quantity::quantity;

/// The fields of an object that differ between two manifests of it and that no API server changes, as API servers write
/// them (`spec.template.spec.containers[0].image`), sorted as they stand in the object. A kind that is not built in has
/// none here.
///
/// Manifests are all there is to go by: where one says nothing, what the API server put in counts where that is known
/// by the kind, and is taken for something else where it is not.
pub fn fields(key: &ObjectKey, from: &Value, to: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let is_core = key.group.is_empty();
    match key.kind.as_str() {
        "StatefulSet" if key.group == "apps" => {
            differing(from, to, "spec", &mut found);
            found.retain(|field| !changes_in_stateful_set(field));
        }
        "Pod" if is_core => {
            differing(from, to, "spec", &mut found);
            found.retain(|field| !changes_in_pod(field));
        }
        "ConfigMap" | "Secret" if is_core && from.get("immutable") == Some(&Value::Bool(true)) => {
            let fixed = ["data", "binaryData", "stringData", "immutable", "type"];
            fixed.iter().for_each(|field| differing(from, to, field, &mut found));
        }
        "Service" if is_core && !is_allocated(from, to) => {}
        _ => {
            let rules = RULES
                .iter()
                .filter(|rule| rule.group == key.group && rule.kind == key.kind);
            for rule in rules {
                match &rule.fixed {
                    Fixed::Only(fields) => fields.iter().for_each(|field| differing(from, to, field, &mut found)),
                    Fixed::AllBut(above, but) => {
                        differing(from, to, above, &mut found);
                        found.retain(|field| !but.iter().any(|free| is_below(field, free)));
                    }
                }
            }
        }
    }
    match key.kind.as_str() {
        "Job" => exempt_job(from, to, &mut found),
        "PersistentVolumeClaim" if is_core && shrinks(from, to) => {
            found.push("spec.resources.requests.storage".to_owned());
        }
        _ => {}
    }
    found.retain(|field| !is_default(key, field, from, to));
    found
}

fn differing(from: &Value, to: &Value, field: &str, found: &mut Vec<String>) {
    compare(at(from, field), at(to, field), field, found);
}

/// A field as API servers write it; absent and null are one.
fn at<'v>(value: &'v Value, field: &str) -> Option<&'v Value> {
    let pointer: String = field
        .split('.')
        .map(|name| format!("/{}", name.replace('[', "/").replace(']', "")))
        .collect();
    value.pointer(&pointer).filter(|value| !value.is_null())
}

fn compare(from: Option<&Value>, to: Option<&Value>, field: &str, found: &mut Vec<String>) {
    match (from, to) {
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
            for name in names {
                compare(said(from, name), said(to, name), &format!("{field}.{name}"), found);
            }
        }
        (Some(Value::Array(from)), Some(Value::Array(to))) if from.len() == to.len() => {
            for (index, (from, to)) in from.iter().zip(to).enumerate() {
                compare(Some(from), Some(to), &format!("{field}[{index}]"), found);
            }
        }
        (from, to) if from == to || is_one_quantity(field, from, to) => {}
        _ => found.push(field.to_owned()),
    }
}

fn said<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// `1000m` and `1` are one, where quantities stand.
fn is_one_quantity(field: &str, from: Option<&Value>, to: Option<&Value>) -> bool {
    let of = |value: Option<&Value>| value.and_then(quantity);
    let is_there = [".resources.", ".limits.", ".requests.", ".capacity.", "sizeLimit"];
    is_there.iter().any(|part| field.contains(part)) && of(from).is_some() && of(from) == of(to)
}

/// Whether a field is another one, or stands below it.
fn is_below(field: &str, above: &str) -> bool {
    field
        .strip_prefix(above)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn changes_in_pod(field: &str) -> bool {
    let is_image = field.ends_with(".image")
        && (field.starts_with("spec.containers[") || field.starts_with("spec.initContainers["));
    let free = ["spec.activeDeadlineSeconds", "spec.tolerations", "spec.schedulingGates"];
    is_image || free.iter().any(|above| is_below(field, above))
}

/// Whether both forms of a Service have an address of the cluster: only that cannot change, and one that is left to the
/// API server stays as it is.
fn is_allocated(from: &Value, to: &Value) -> bool {
    let is_external = |service: &Value| at(service, "spec.type").is_some_and(|kind| kind == "ExternalName");
    let says = |service: &Value| {
        ["spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies"]
            .iter()
            .any(|field| at(service, field).is_some())
    };
    !is_external(from) && !is_external(to) && says(to)
}

/// A Job that waits, and never ran, takes another node or size; an indexed one may grow and shrink as a whole.
fn exempt_job(from: &Value, to: &Value, found: &mut Vec<String>) {
    let is = |field: &str, wanted: &Value| at(from, field) == Some(wanted);
    if is("spec.suspend", &Value::Bool(true)) {
        let may_change = |field: &String| {
            let is_container = is_below(field, "spec.template.spec.containers");
            SUSPENDED_JOB.iter().any(|free| is_below(field, free)) && (!is_container || field.contains(".resources."))
        };
        found.retain(|field| !may_change(field));
    }
    let count = at(to, "spec.completions");
    if is("spec.completionMode", &Value::from("Indexed")) && count.is_some() && count == at(to, "spec.parallelism") {
        found.retain(|field| field != "spec.completions");
    }
}

/// Whether a claim is to become smaller.
fn shrinks(from: &Value, to: &Value) -> bool {
    let size = |claim: &Value| quantity(at(claim, "spec.resources.requests.storage")?);
    matches!((size(from), size(to)), (Some(from), Some(to)) if to < from)
}

/// Whether all that differs is that one of the two says what the API server puts in anyway.
fn is_default(key: &ObjectKey, field: &str, from: &Value, to: &Value) -> bool {
    let (from, to) = (at(from, field), at(to, field));
    if key.kind == "Service" && (from.is_none() || to.is_none()) {
        // An address that is given up stays; of one that is given first nobody knows whether it is the one that is there.
        return to.is_none();
    }
    let only = match (from, to) {
        (Some(only), None) | (None, Some(only)) => only,
        _ => return false,
    };
    DEFAULTS
        .iter()
        .any(|(kind, name, value)| key.kind == *kind && field == *name && only == value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: (&str, &str), from: Value, to: Value, expected: &[&str]) {
        let key = ObjectKey::new(kind.0, kind.1, "shop", "x");
        assert_eq!(fields(&key, &from, &to), expected, "{kind:?}: {from} -> {to}");
    }

    fn job(image: &str, more: Value) -> Value {
        let mut job = json!({"spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
        for (name, value) in more.as_object().into_iter().flatten() {
            job["spec"][name] = value.clone();
        }
        job
    }

    #[test]
    fn a_field_that_cannot_change_is_named_exactly() {
        let image = "spec.template.spec.containers[0].image";
        let batch = ("batch/v1", "Job");
        check(batch, job("a", json!({})), job("b", json!({})), &[image]);
        check(
            batch,
            job("a", json!({"parallelism": 1})),
            job("a", json!({"parallelism": 2})),
            &[],
        );
        check(
            batch,
            job("a", json!({"completions": 1})),
            job("a", json!({"completions": 2})),
            &["spec.completions"],
        );
        let set = |size: &str, replicas: u64| json!({"spec": {"replicas": replicas, "template": {"image": size}, "volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": size}}}}]}});
        let storage = "spec.volumeClaimTemplates[0].spec.resources.requests.storage";
        check(("apps/v1", "StatefulSet"), set("1Gi", 1), set("2Gi", 2), &[storage]);
        check(("apps/v1", "StatefulSet"), set("1Gi", 1), set("1024Mi", 1), &[]);
        let selector = |app: &str| json!({"spec": {"replicas": 1, "selector": {"matchLabels": {"app": app}}}});
        for kind in ["Deployment", "DaemonSet", "ReplicaSet"] {
            check(
                ("apps/v1", kind),
                selector("a"),
                selector("b"),
                &["spec.selector.matchLabels.app"],
            );
        }
        check(("x.io/v1", "Deployment"), selector("a"), selector("b"), &[]);
        let role = |name: &str| json!({"roleRef": {"name": name}, "subjects": [{"name": name}]});
        check(
            ("rbac.authorization.k8s.io/v1", "RoleBinding"),
            role("a"),
            role("b"),
            &["roleRef.name"],
        );
    }

    #[test]
    fn what_may_change_after_all_is_not_named() {
        let claim = |size: &str, class: Option<&str>| {
            let mut claim =
                json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}});
            if let Some(class) = class {
                claim["spec"]["storageClassName"] = class.into();
            }
            claim
        };
        let kind = ("v1", "PersistentVolumeClaim");
        check(kind, claim("1Gi", Some("a")), claim("2Gi", Some("a")), &[]);
        check(
            kind,
            claim("2Gi", Some("a")),
            claim("1Gi", Some("b")),
            &["spec.storageClassName", "spec.resources.requests.storage"],
        );
        let mut mode = claim("1Gi", None);
        mode["spec"]["volumeMode"] = "Filesystem".into();
        check(kind, claim("1Gi", None), mode.clone(), &[]);
        mode["spec"]["volumeMode"] = "Block".into();
        check(kind, claim("1Gi", None), mode, &["spec.volumeMode"]);
        let service = |ip: Value| json!({"spec": {"clusterIP": ip, "ports": []}});
        let kind = ("v1", "Service");
        check(
            kind,
            service(json!("10.0.0.7")),
            service(json!("None")),
            &["spec.clusterIP"],
        );
        check(kind, service(json!("10.0.0.7")), service(Value::Null), &[]);
        check(
            kind,
            service(Value::Null),
            service(json!("10.0.0.7")),
            &["spec.clusterIP"],
        );
        check(
            kind,
            service(json!("None")),
            json!({"spec": {"type": "ExternalName"}}),
            &[],
        );
        let sealed = |value: &str, sealed: bool| json!({"immutable": sealed, "data": {"a": value}});
        check(("v1", "ConfigMap"), sealed("1", true), sealed("2", true), &["data.a"]);
        check(("v1", "ConfigMap"), sealed("1", false), sealed("2", true), &[]);
        let indexed = |count: u64| {
            job(
                "a",
                json!({"completionMode": "Indexed", "completions": count, "parallelism": count}),
            )
        };
        check(("batch/v1", "Job"), indexed(1), indexed(2), &[]);
        let waiting = |image: &str, zone: &str| {
            let mut waiting = job(image, json!({"suspend": true}));
            waiting["spec"]["template"]["spec"]["nodeSelector"] = json!({"zone": zone});
            waiting
        };
        let image = "spec.template.spec.containers[0].image";
        check(("batch/v1", "Job"), waiting("a", "x"), waiting("b", "y"), &[image]);
        let pod = |image: &str, node: &str| json!({"spec": {"nodeName": node, "containers": [{"image": image}]}});
        check(("v1", "Pod"), pod("a", "x"), pod("b", "y"), &["spec.nodeName"]);
    }
}
