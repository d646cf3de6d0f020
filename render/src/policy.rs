//! What a repository may hold: Secrets whose values stand in plain text, and encrypted documents.
//!
//! In: a unit's Base, a variant's Description, and the policy in force. Out: findings. No finding, and
//! nothing else here, repeats a value.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::describe::{CarriedStep, Content, Description};
use crate::finding::{Finding, Severity};
use crate::fleet::{Base, ManifestObject};
use crate::model::{IgnoreRule, PlaintextSecrets, Subscription};
use crate::name::ObjectKey;
use crate::yaml;

/// One finding per Secret with values in plain text: of the Base, which are in the repository whatever an
/// override makes of them, and of the Description, where an override put them in. The place is the
/// Secret's or the override's.
///
/// With [`PlaintextSecrets::Refuse`] the findings are Errors, and the unit keeps what it had.
pub fn check_secrets(base: &Base, description: &Description, policy: PlaintextSecrets) -> Vec<Finding> {
    let mut found = BTreeMap::new();
    for object in &description.objects {
        let written = object.provenance.iter().find(|written| is_value(&written.field));
        let in_plain_text = match &object.content {
            Content::Chart { object: value, .. } | Content::Plain { object: value } => holds_values(&object.key, value),
            // Its own values are encrypted; those of an override that is carried along are not.
            Content::Encrypted { overrides, .. } => object.key.is_secret() && overrides.iter().any(touches_values),
        };
        if in_plain_text {
            let place = written
                .and_then(|written| written.at.rsplit_once(':'))
                .unwrap_or_default();
            found.insert(&object.key, (place.0, place.1.parse().unwrap_or(0)));
        }
    }
    for object in &base.objects {
        if !object.is_encrypted() && holds_values(&object.key, &object.value) {
            found.insert(&object.key, (object.file.as_ref(), object.line));
        }
    }
    found
        .into_iter()
        .map(|(key, (file, line))| finding(key, policy).at(file, line))
        .collect()
}

/// As [`check_secrets`], of objects before any override.
pub fn check_base(base: &Base, policy: PlaintextSecrets) -> Vec<Finding> {
    let plain = |object: &&Arc<ManifestObject>| !object.is_encrypted() && holds_values(&object.key, &object.value);
    let found = base.objects.iter().filter(plain);
    found
        .map(|object| finding(&object.key, policy).at(object.file.as_ref(), object.line))
        .collect()
}

/// A Warning per encrypted document that no applier can decrypt, since none of its recipients is an age key.
pub fn check_encrypted(base: &Base) -> Vec<Finding> {
    let sealed = base.objects.iter().filter(|object| {
        let original = object.original.as_deref();
        original.is_some_and(|original| !has_age_recipient(original))
    });
    sealed
        .map(|object| {
            let message = format!(
                "{} {} is encrypted for no age key: no cluster can decrypt it, and nothing of its unit is applied",
                object.key.kind, object.key.name
            );
            Finding::warning("EncryptedDocument", message)
                .at(object.file.as_ref(), object.line)
                .hint("add an age recipient with sops rotate --in-place --add-age RECIPIENT FILE")
        })
        .collect()
}

fn has_age_recipient(original: &str) -> bool {
    let Ok(tree) = yaml::read_tree(original) else {
        return false;
    };
    let recipients = tree.get("sops").and_then(|section| section.get("age"));
    matches!(recipients, Some(yaml::Node::Sequence(recipients)) if !recipients.is_empty())
}

/// A Warning per rule of `spec.drift.ignore` that is about no object of the unit: a misspelt name would otherwise
/// be found out when the field is overwritten.
pub fn check_ignore_rules(base: &Base, subscription: &Subscription) -> Vec<Finding> {
    let rules = subscription.apply.ignore.iter().enumerate();
    let unused = rules.filter(|(_, rule)| !base.objects.iter().any(|object| is_about(rule, &object.key)));
    unused
        .map(|(index, _)| {
            Finding::warning(
                "IgnoreRuleUnused",
                "unused ignore rule: no object of the unit is what it names",
            )
            .at(subscription.file.as_ref(), subscription.line)
            .field(format!("spec.drift.ignore[{index}]"))
            .hint("correct apiVersion, kind, namespace and name, or remove the rule")
        })
        .collect()
}

fn is_about(rule: &IgnoreRule, key: &ObjectKey) -> bool {
    // Where no namespace is written, the object goes to this one, if its kind has namespaces.
    let in_default = || ObjectKey {
        namespace: "default".to_owned(),
        ..key.clone()
    };
    rule.concerns(key) || (key.namespace.is_empty() && rule.concerns(&in_default()))
}

/// Whether a carried step may put values in: a JSON patch names its fields, a merge patch has them as keys.
fn touches_values(step: &CarriedStep) -> bool {
    let names_values = |operation: &Value| operation["path"].as_str().is_some_and(is_value);
    match &step.value {
        Value::Array(operations) => operations.iter().any(names_values),
        patch => ["data", "stringData"]
            .iter()
            .any(|field| patch.get(field).is_some_and(|value| !value.is_null())),
    }
}

fn is_value(field: &str) -> bool {
    field.starts_with("/data") || field.starts_with("/stringData")
}

/// Whether it is a Secret with a value that is not empty.
fn holds_values(key: &ObjectKey, object: &Value) -> bool {
    let filled = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    let holds = |field| match &object[field] {
        Value::Object(map) => map.values().any(filled),
        value => filled(value),
    };
    key.is_secret() && (holds("data") || holds("stringData"))
}

fn finding(key: &ObjectKey, policy: PlaintextSecrets) -> Finding {
    let severity = match policy {
        PlaintextSecrets::Refuse => Severity::Error,
        PlaintextSecrets::Warn => Severity::Warning,
    };
    let namespace = match key.namespace.as_str() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let message = format!("the values of Secret {namespace}{} stand in plain text", key.name);
    Finding::new(severity, "PlaintextSecret", message)
        .hint("encrypt it with sops and an age key (docs/secrets.md), make it in the cluster by other means, or allow it with spec.plaintextSecrets: warn in fleet.yaml")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{base, encrypted, localization, step};
    use crate::localize::localize;
    use crate::model::{OverrideStepType, Scheduling};
    use crate::schedule::Divided;

    fn found(base: &Base, policy: PlaintextSecrets) -> Vec<Finding> {
        let description = localize(base, &[], &Divided::none()).expect("there is nothing to fit");
        check_secrets(base, &description, policy)
    }

    fn secret(fields: Value) -> Value {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "a"}});
        json_patch::merge(&mut secret, &fields);
        secret
    }

    #[track_caller]
    fn check(object: Value, found: bool) {
        let findings = self::found(&base([object.clone()]), PlaintextSecrets::Refuse);
        assert_eq!(!findings.is_empty(), found, "{object}");
    }

    #[test]
    fn a_secret_with_values_in_plain_text_is_found() {
        check(secret(json!({"data": {"password": "aHVudGVyMg=="}})), true);
        check(secret(json!({"stringData": {"password": "hunter2"}})), true);
        check(secret(json!({"data": {"a": ""}, "stringData": {"b": "hunter2"}})), true);
        check(secret(json!({"stringData": {"port": 5432}})), true);
    }

    #[test]
    fn a_secret_without_values_is_none() {
        check(secret(json!({})), false);
        check(secret(json!({"data": {}, "stringData": null})), false);
        check(secret(json!({"data": {"password": ""}})), false);
        check(secret(json!({"type": "kubernetes.io/service-account-token"})), false);
        check(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}),
            false,
        );
        check(
            json!({"apiVersion": "x.io/v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "b"}}),
            false,
        );
    }

    #[test]
    fn an_ignore_rule_that_is_about_no_object_is_found() {
        let config = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let base = base([config("filled-by-job")]);
        let rule = |namespace: &str, name: &str| IgnoreRule {
            kind: "ConfigMap".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            paths: vec!["/data".to_owned()],
            ..IgnoreRule::default()
        };
        let mut subscription = crate::fixture::subscription(Scheduling::Replication, Vec::new());
        subscription.apply.ignore = vec![
            rule("", "filled-by-job"),
            rule("default", "filled-by-job"),
            rule("", "filled-by-jbo"),
            rule("other", "filled-by-job"),
        ];
        let found: Vec<_> = check_ignore_rules(&base, &subscription)
            .into_iter()
            .map(|finding| (finding.severity, finding.field))
            .collect();
        let expected = [2, 3].map(|index| (Severity::Warning, format!("spec.drift.ignore[{index}]")));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_policy_decides_how_bad_it_is_and_no_value_is_told() {
        let base = base([secret(json!({"stringData": {"password": "hunter2"}}))]);
        for (policy, severity) in [
            (PlaintextSecrets::Refuse, Severity::Error),
            (PlaintextSecrets::Warn, Severity::Warning),
        ] {
            let finding = found(&base, policy).remove(0);
            assert_eq!(finding.severity, severity);
            assert_eq!(finding.message, "the values of Secret a/db stand in plain text");
            assert_eq!((finding.file.as_str(), finding.line), ("object.yaml", 1));
        }
    }

    #[test]
    fn an_encrypted_secret_is_none_and_is_warned_of_where_no_age_key_opens_it() {
        let sealed = |text: &str| {
            let object = encrypted(secret(json!({"data": {"password": "ENC[AES256_GCM]"}})), text);
            Base::new(vec![Arc::new(object)])
        };
        let base = sealed("{sops: {age: [{recipient: age1x, enc: y}]}}");
        assert_eq!(found(&base, PlaintextSecrets::Refuse), []);
        assert_eq!(check_encrypted(&base), []);
        for text in ["{sops: {pgp: [{fp: x}]}}", "{sops: {age: []}}", "{sops: {}}"] {
            let warning = check_encrypted(&sealed(text)).remove(0);
            assert_eq!(
                (warning.severity, warning.file.as_str()),
                (Severity::Warning, "object.yaml")
            );
            assert!(
                warning.message.starts_with("Secret db is encrypted for no age key: "),
                "{warning}"
            );
        }
        assert_eq!(check_encrypted(&self::base([secret(json!({}))])), []);
    }

    #[test]
    fn a_value_that_an_override_puts_in_is_found_at_the_override() {
        let base = base([secret(json!({}))]);
        let patch = step(
            OverrideStepType::MergePatch,
            r#"{"stringData": {"password": "hunter2"}}"#,
        );
        let meets = Arc::new(localization("leak", &base.objects[0].key, vec![patch]));
        let description = localize(&base, &[&meets], &Divided::none()).expect("the override fits");
        assert_eq!(found(&base, PlaintextSecrets::Refuse), []);
        let finding = check_secrets(&base, &description, PlaintextSecrets::Refuse).remove(0);
        assert_eq!((finding.file.as_str(), finding.line), ("leak.yaml", 7));
        assert!(!finding.to_string().contains("hunter2"));
    }

    #[test]
    fn a_value_that_is_carried_along_to_an_encrypted_secret_is_found() {
        let object = encrypted(secret(json!({"data": {"password": "ENC[AES256_GCM]"}})), "text");
        let base = Base::new(vec![Arc::new(object)]);
        let carried = |step_type, patch: &str| {
            let patch = step(step_type, patch);
            let meets = Arc::new(localization("leak", &base.objects[0].key, vec![patch]));
            let description = localize(&base, &[&meets], &Divided::none()).expect("it is carried along");
            check_secrets(&base, &description, PlaintextSecrets::Refuse)
        };
        let merge = |patch| carried(OverrideStepType::MergePatch, patch).len();
        assert_eq!(merge(r#"{"stringData": {"password": "hunter2"}}"#), 1);
        assert_eq!(merge(r#"{"metadata": {"labels": {"a": "b"}}}"#), 0);
        let patch = r#"[{"op": "add", "path": "/data/password", "value": "aHVudGVyMg=="}]"#;
        assert_eq!(carried(OverrideStepType::JsonPatch, patch).len(), 1);
    }
}
