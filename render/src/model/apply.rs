//! How a unit's objects are applied and kept: what a Subscription says beside its feeds.

use serde::{Deserialize, Serialize};

use crate::model::DeclaredReplicas;
use crate::name::{ClusterName, ObjectKey, UnitKey};

/// How a unit is applied. It travels inside the unit's Description, so that whoever holds the content knows how to
/// treat it, also without a hub. Everything that is as it is by default is left out of the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplyPolicy {
    /// `spec.dependsOn`: units that must be healthy first. In the order written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// `spec.replace`: whether an object may be deleted and made anew when a field of it cannot change.
    #[serde(skip_serializing_if = "is_default")]
    pub replace: Replace,
    /// `spec.timeout` in seconds: how long an object may take to become healthy. `None`: the applier's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// `spec.healthChecks`: rules for kinds of which the applier knows none, or that it should judge otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub health_checks: Vec<HealthCheck>,
    /// `spec.drift.ignore`: fields that are made once and then left to others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<IgnoreRule>,
    /// `spec.deletionPolicy`: what becomes of the objects when the unit leaves a cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub deletion: DeletionPolicy,
    /// `spec.offline.enforceFor` of the Fleet: how long it is applied and kept without a hub. `None`: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_for_seconds: Option<u64>,
    /// `spec.policies.applySetLabels` of the Fleet: whether its objects carry the labels of an ApplySet.
    #[serde(skip_serializing_if = "is_default")]
    pub apply_set_labels: bool,
    /// Objects that a Suspension leaves as they are, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suspended: Vec<SuspendedObject>,
    /// `spec.decryption.secret`: the Secret beside the applier that holds age keys. `None`: the applier's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decryption_secret: Option<String>,
    /// `spec.replicaPaths`: where divided kinds say their replicas that are not built in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replica_paths: Vec<DeclaredReplicas>,
}

/// An object that is left as it is in clusters, until a time or for as long as it is here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspendedObject {
    /// Which.
    pub object: ObjectKey,
    /// Where; without any name on every cluster that has the unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterName>,
    /// Seconds since 1970, from when on it is an object like any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// The Suspension and its reason, for people.
    pub by: String,
}

impl SuspendedObject {
    /// Whether an object is left as it is on a cluster now, in seconds since 1970.
    pub fn holds(&self, object: &ObjectKey, cluster: &ClusterName, now: i64) -> bool {
        let is_there = self.clusters.is_empty() || self.clusters.contains(cluster);
        self.object == *object && is_there && self.until.is_none_or(|until| now < until)
    }
}

/// A unit that must be healthy before another one is applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// Which.
    pub unit: UnitKey,
    /// Where it must be healthy.
    #[serde(default, skip_serializing_if = "is_default")]
    pub clusters: DependencyClusters,
}

/// Where a unit that others need must be healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum DependencyClusters {
    /// On the cluster in question; where it is not placed, it is not waited for. The applier sees to it.
    #[default]
    Same,
    /// On every cluster that it is placed on; `release` sees to it.
    All,
}

/// What happens to an object when a field that cannot change should change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Replace {
    /// It stays, and the field is named.
    #[default]
    Never,
    /// It is deleted and made anew.
    WhenImmutable,
}

/// How the health of a kind is judged: CEL over the variable `object`, each giving a boolean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// `apiVersion`, of which only the group decides.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// True when it is as it should be.
    pub current: String,
    /// True while it is on its way; without it, whatever is neither current nor failed is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub in_progress: String,
    /// True when it will not become current by itself; looked at first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
}

/// Fields that are left to others once an object is there. Empty texts match anything.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IgnoreRule {
    /// `apiVersion`, of which only the group decides.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// JSON pointers (RFC 6901). Without any, the rule is about every field that one of `managers` owns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Field managers whose fields are left to them. Without any, whoever changes a field of `paths` keeps it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<String>,
}

/// What becomes of a unit's objects when it leaves a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum DeletionPolicy {
    /// They are removed, by proof.
    #[default]
    Delete,
    /// They stay, and are nobody's.
    Orphan,
}

/// What is done about a field that somebody else changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum DriftMode {
    /// It is put right at once.
    #[default]
    Correct,
    /// It is reported and left; what Git changes is still applied.
    Report,
    /// Nothing of the unit is changed at all, also not what Git changes.
    Freeze,
}

impl ApplyPolicy {
    /// Whether it is what every unit has without saying anything.
    pub fn is_default(&self) -> bool {
        is_default(self)
    }
}

impl DriftMode {
    /// Whether it is the mode that everything has without saying anything.
    pub fn is_default(&self) -> bool {
        is_default(self)
    }
}

impl IgnoreRule {
    /// Whether it is about an object.
    pub fn concerns(&self, object: &ObjectKey) -> bool {
        let matches = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let of_group = self.api_version.is_empty() || crate::name::group_of(&self.api_version) == object.group;
        of_group
            && matches(&self.kind, &object.kind)
            && matches(&self.namespace, &object.namespace)
            && matches(&self.name, &object.name)
    }
}

impl HealthCheck {
    /// Whether it judges a kind.
    pub fn concerns(&self, object: &ObjectKey) -> bool {
        crate::name::group_of(&self.api_version) == object.group && self.kind == object.kind
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_says_nothing_is_written_as_nothing() {
        let written = serde_json::to_value(ApplyPolicy::default()).expect("plain fields");
        assert_eq!(written, serde_json::json!({}));
        let read: ApplyPolicy = serde_json::from_value(written).expect("every field has a default");
        assert!(read.is_default());
    }

    #[test]
    fn an_empty_rule_is_about_everything_and_a_filled_one_about_what_it_names() {
        let deployment = ObjectKey::new("apps/v1", "Deployment", "shop", "web");
        assert!(IgnoreRule::default().concerns(&deployment));
        let rule = |api_version: &str, kind: &str, name: &str| IgnoreRule {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            ..IgnoreRule::default()
        };
        assert!(
            rule("apps/v1beta1", "Deployment", "web").concerns(&deployment),
            "the version does not matter"
        );
        assert!(!rule("v1", "Deployment", "").concerns(&deployment));
        assert!(!rule("apps/v1", "Deployment", "api").concerns(&deployment));
    }
}
