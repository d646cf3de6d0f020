//! How a Subscription's objects are applied: the fields of our group that Clusternet's lacks.

use super::super::fields::Fields;
use crate::expression::Expression;
use crate::model::{
    ApplyPolicy, DeletionPolicy, Dependency, DependencyClusters, DriftMode, HealthCheck, IgnoreRule, Replace,
};
use crate::name::UnitKey;
use crate::time::{DURATION_FORMS, duration_seconds};

const DRIFT_MODES: &[(&str, DriftMode)] = &[
    ("Correct", DriftMode::Correct),
    ("Report", DriftMode::Report),
    ("Freeze", DriftMode::Freeze),
];

/// Reads them; in Clusternet's group they are unknown fields. `unit` is whose they are.
pub(super) fn read(spec: &mut Fields<'_>, unit: Option<&UnitKey>) -> (ApplyPolicy, Option<DriftMode>) {
    let mut policy = ApplyPolicy::default();
    if !spec.judge().ours {
        return (policy, None);
    }
    let dependencies = spec.objects("dependsOn").unwrap_or_default();
    for dependency in dependencies {
        policy.depends_on.extend(read_dependency(dependency, unit));
    }
    let words = [("Never", Replace::Never), ("WhenImmutable", Replace::WhenImmutable)];
    policy.replace = spec.choice("replace", &words).unwrap_or_default();
    policy.timeout_seconds = duration(spec, "timeout");
    let checks = spec.objects("healthChecks").unwrap_or_default();
    policy.health_checks = checks.into_iter().filter_map(health_check).collect();
    let mut mode = None;
    if let Some(mut drift) = spec.object("drift") {
        mode = drift.choice("mode", DRIFT_MODES);
        let rules = drift.objects("ignore").unwrap_or_default();
        policy.ignore = rules.into_iter().filter_map(ignore_rule).collect();
        drift.finish();
    }
    policy.deletion = deletion_policy(spec).unwrap_or_default();
    if let Some(mut decryption) = spec.object("decryption") {
        policy.decryption_secret = decryption.required_text("secret").map(str::to_owned);
        decryption.finish();
    }
    (policy, mode)
}

/// `deletionPolicy`, of a Subscription and of a cluster.
pub(super) fn deletion_policy(spec: &mut Fields<'_>) -> Option<DeletionPolicy> {
    if !spec.judge().ours {
        return None;
    }
    let words = [("Delete", DeletionPolicy::Delete), ("Orphan", DeletionPolicy::Orphan)];
    spec.choice("deletionPolicy", &words)
}

/// `drift.mode` alone, as a cluster has it.
pub(super) fn drift_mode(spec: &mut Fields<'_>) -> Option<DriftMode> {
    let mut drift = spec.object("drift")?;
    let mode = drift.choice("mode", DRIFT_MODES);
    drift.finish();
    mode
}

/// A length of time as Go writes it, at least a second.
pub(super) fn duration(fields: &mut Fields<'_>, name: &'static str) -> Option<u64> {
    let text = fields.text_as(name, |number| format!("write {number}s if seconds are meant"))?;
    let seconds = duration_seconds(text).filter(|seconds| *seconds > 0);
    if seconds.is_none() {
        let message = format!("{text:?} is not a length of time of a second or more");
        fields.error(name, "FieldInvalid", message, DURATION_FORMS);
    }
    seconds
}

fn read_dependency(mut fields: Fields<'_>, unit: Option<&UnitKey>) -> Option<Dependency> {
    let name = fields.required_text("name").map(str::to_owned);
    let namespace = fields.text("namespace").map(str::to_owned);
    let words = [("Same", DependencyClusters::Same), ("All", DependencyClusters::All)];
    let clusters = fields.choice("clusters", &words).unwrap_or_default();
    // A unit of the same namespace, as people mean it who write none.
    let namespace = namespace.unwrap_or_else(|| unit.map_or("default", UnitKey::namespace).to_owned());
    let dependency = match UnitKey::new(&namespace, name?) {
        Ok(key) if Some(&key) == unit => {
            fields.error("name", "FieldInvalid", "a unit cannot wait for itself", "remove it");
            None
        }
        Ok(unit) => Some(Dependency { unit, clusters }),
        Err(error) => {
            fields.error("name", "FieldInvalid", error.to_string(), "");
            None
        }
    };
    fields.finish();
    dependency
}

pub(super) fn health_check(mut fields: Fields<'_>) -> Option<HealthCheck> {
    let api_version = fields.required_text("apiVersion").map(str::to_owned);
    let kind = fields.required_text("kind").map(str::to_owned);
    let current = fields.required_text("current").map(str::to_owned);
    let mut optional = |name| fields.text(name).unwrap_or_default().to_owned();
    let (in_progress, failed) = (optional("inProgress"), optional("failed"));
    let current_text = current.as_deref().unwrap_or_default();
    for (name, text) in [
        ("current", current_text),
        ("inProgress", &in_progress),
        ("failed", &failed),
    ] {
        if let Some(error) = Expression::parse(text).err().filter(|_| !text.is_empty()) {
            let hint = "CEL over object that gives a boolean, as in has(object.status.phase) && object.status.phase == 'Ready'";
            fields.error(name, "FieldInvalid", error.to_string(), hint);
        }
    }
    fields.finish();
    Some(HealthCheck {
        api_version: api_version?,
        kind: kind?,
        current: current?,
        in_progress,
        failed,
    })
}

fn ignore_rule(mut fields: Fields<'_>) -> Option<IgnoreRule> {
    let mut text = |name| fields.text(name).unwrap_or_default().to_owned();
    let [api_version, kind, namespace, name] = ["apiVersion", "kind", "namespace", "name"].map(&mut text);
    let paths = fields.texts("paths").unwrap_or_default();
    let managers = fields.texts("managers").unwrap_or_default();
    for (index, path) in paths.iter().enumerate() {
        if !path.starts_with('/') {
            let message = format!("{path:?} is not a JSON pointer");
            let hint = "as in /spec/replicas, with ~1 for a slash inside a name";
            fields.error(&format!("paths[{index}]"), "FieldInvalid", message, hint);
        }
    }
    let says_what = !paths.is_empty() || !managers.is_empty();
    if !says_what && !fields.has_unknown() {
        fields.error(
            "",
            "FieldMissing",
            "says neither paths nor managers, so it would leave out everything",
            "name the fields in paths, or the field managers that keep theirs in managers",
        );
    }
    fields.finish();
    says_what.then_some(IgnoreRule {
        api_version,
        kind,
        namespace,
        name,
        paths,
        managers,
    })
}
