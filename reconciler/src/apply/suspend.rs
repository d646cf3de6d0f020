//! Objects that are left as they are, since somebody said so in Git: by a Suspension that travels in the unit's content,
//! or by an annotation of the object.
//!
//! Nor is anything done about a unit whose cluster has heard of no hub for longer than `spec.offline.enforceFor` allows.
//!
//! Such an object is neither made nor changed, put right or removed, and of a HelmChart neither is its release, nor what
//! the release has. Whole units and clusters that are suspended are
//! deliberately not here: they are told nothing new, by `render::release`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use render::describe::is_chart;
use render::model::{ANNOTATION_RECONCILE, ApplyPolicy, DriftMode};
use render::{ClusterName, ObjectKey};
use serde_json::Value;

use super::helm::{self, Chart};
use super::session::{Outcome, Session, Slot, Unit};
use crate::wire::ObjectState;

/// How often an applier that stopped for want of a hub looks whether there is one.
const AWAY_LOOK_SECONDS: u64 = 5;

/// Flux's annotation of the same meaning.
const ANNOTATION_FLUX_RECONCILE: &str = "kustomize.toolkit.fluxcd.io/reconcile";

/// The annotation of a manifest that leaves its object alone, if it has one.
pub(super) fn annotation(object: &Value) -> Option<&'static str> {
    let annotations = &object["metadata"]["annotations"];
    [ANNOTATION_RECONCILE, ANNOTATION_FLUX_RECONCILE]
        .into_iter()
        .find(|name| annotations[*name] == "disabled")
}

/// By what an object is suspended on a cluster at a time, in words for people.
pub(super) fn by_policy(policy: &ApplyPolicy, object: &ObjectKey, cluster: &ClusterName, now: i64) -> Option<String> {
    let held = policy.suspended.iter().filter(|held| held.holds(object, cluster, now));
    // Of several, the one that holds longest.
    let longest = held.max_by_key(|held| held.until.unwrap_or(i64::MAX))?;
    Some(match longest.until {
        Some(until) => format!("suspended by {}, until {}", longest.by, render::time::rfc3339(until)),
        None => format!("suspended by {}", longest.by),
    })
}

/// Why a unit is not enforced any more, if it is not: no hub was heard of for longer than its policy allows.
fn expired(policy: &ApplyPolicy, away_since: Option<i64>, now: i64) -> Option<String> {
    let (allowed, since) = (policy.enforce_for_seconds?, away_since?);
    (now.saturating_sub(since) >= i64::try_from(allowed).unwrap_or(i64::MAX)).then(|| {
        let since = render::time::rfc3339(since);
        format!("it is left as it is: without a hub since {since}, longer than spec.offline.enforceFor allows")
    })
}

impl Session {
    fn away_since(&self) -> Option<i64> {
        *self.away.as_ref()?.borrow()
    }

    /// Sees to it that nothing is done about what is suspended now, and that what is no more is compared anew.
    pub(super) fn hold_suspended(&mut self) {
        let now = Timestamp::now().as_second();
        let away_since = self.away_since();
        let cluster = &self.cluster;
        for unit in self.units.values_mut() {
            let expired = expired(&unit.policy, away_since, now);
            for slot in &mut unit.slots {
                let said = expired.clone().or_else(|| slot.suspension(&unit.policy, cluster, now));
                // What is frozen says so already.
                if said.is_some() || unit.drift != DriftMode::Freeze {
                    slot.suspend(said);
                }
            }
            for chart in &mut unit.charts {
                let said = expired.clone();
                chart.suspension = said.or_else(|| chart.suspension(&unit.policy, cluster, now));
            }
        }
    }

    /// Which objects nothing is to be done about now, of those that units have.
    pub(super) fn held_back(&self, among: &BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        let now = Timestamp::now().as_second();
        let mut held = BTreeSet::new();
        for unit in self.units.values() {
            let is_expired = expired(&unit.policy, self.away_since(), now).is_some();
            for slot in &unit.slots {
                let Some(place) = slot.place.as_ref().filter(|place| among.contains(&place.key)) else {
                    continue;
                };
                if is_expired || slot.suspension(&unit.policy, &self.cluster, now).is_some() {
                    held.insert(place.key.clone());
                }
            }
        }
        held
    }

    /// Why an object that left its unit is not removed, if somebody suspended it.
    pub(super) fn suspended(&self, key: &ObjectKey, unit: &render::UnitKey) -> Option<String> {
        let policy = &self.units.get(unit)?.policy;
        let now = Timestamp::now().as_second();
        let said = |key: &ObjectKey| by_policy(policy, key, &self.cluster, now);
        expired(policy, self.away_since(), now).or_else(|| {
            if is_chart(key) {
                helm::names(key).find_map(|name| said(&name))
            } else {
                said(key)
            }
        })
    }

    /// In how many seconds the next object is one like any other again.
    pub(super) fn next_resumption(&self) -> Option<u64> {
        let now = Timestamp::now().as_second();
        let suspended = self.units.values().flat_map(|unit: &Unit| &unit.policy.suspended);
        let ends = suspended.filter_map(|held| held.until).filter(|until| *until > now);
        let next_end = ends.map(|until| until.abs_diff(now)).min();
        let is_expired = |unit: &Unit| expired(&unit.policy, self.away_since(), now).is_some();
        // A hub that comes back is seen soon: what it says is often what is held, which wakes nobody.
        let looks = self.units.values().any(is_expired).then_some(AWAY_LOOK_SECONDS);
        next_end.into_iter().chain(looks).min()
    }
}

impl Chart {
    /// By what its release is suspended, in words for people.
    fn suspension(&self, policy: &ApplyPolicy, cluster: &ClusterName, now: i64) -> Option<String> {
        match self.suspended_by {
            Some(annotation) => Some(by_annotation(annotation)),
            None => self.names().find_map(|key| by_policy(policy, &key, cluster, now)),
        }
    }
}

fn by_annotation(annotation: &str) -> String {
    format!("suspended by its annotation {annotation}")
}

impl Slot {
    /// By what the object is suspended, in words for people.
    fn suspension(&self, policy: &ApplyPolicy, cluster: &ClusterName, now: i64) -> Option<String> {
        match self.identity.suspended_by {
            Some(annotation) => Some(by_annotation(annotation)),
            None => self.names().find_map(|key| by_policy(policy, key, cluster, now)),
        }
    }

    fn suspend(&mut self, said: Option<String>) {
        match said {
            Some(message) => self.outcome = Outcome::new(ObjectState::Suspended, message),
            None if self.outcome.state == ObjectState::Suspended => self.outcome = Outcome::waiting(""),
            None => {}
        }
    }

    /// Its key as its manifest has it, and in the cluster, where it may have got a namespace.
    fn names(&self) -> impl Iterator<Item = &ObjectKey> {
        let place = self.place.as_ref().map(|place| &place.key);
        std::iter::once(&self.identity.key).chain(place)
    }
}

#[cfg(test)]
mod tests {
    use render::model::SuspendedObject;
    use serde_json::json;

    use super::*;

    fn cluster(name: &str) -> ClusterName {
        ClusterName::parse(name).expect("a valid name")
    }

    fn held(clusters: &[&str], until: Option<i64>, by: &str) -> SuspendedObject {
        SuspendedObject {
            object: ObjectKey::new("v1", "ConfigMap", "shop", "a"),
            clusters: clusters.iter().map(|name| cluster(name)).collect(),
            until,
            by: by.to_owned(),
        }
    }

    #[test]
    fn a_suspension_holds_its_object_on_its_clusters_until_its_time() {
        let policy = ApplyPolicy {
            suspended: vec![held(&["oslo"], None, "x"), held(&[], Some(100), "y")],
            ..ApplyPolicy::default()
        };
        let key = ObjectKey::new("v1", "ConfigMap", "shop", "a");
        let said = |name: &str, now| by_policy(&policy, &key, &cluster(name), now);
        assert_eq!(
            said("oslo", 50).as_deref(),
            Some("suspended by x"),
            "the one that holds longest"
        );
        assert_eq!(
            said("bergen", 50).as_deref(),
            Some("suspended by y, until 1970-01-01T00:01:40Z")
        );
        assert_eq!(said("bergen", 100), None, "its time is over");
        let other = ObjectKey::new("v1", "ConfigMap", "shop", "b");
        assert_eq!(by_policy(&policy, &other, &cluster("oslo"), 0), None);
    }

    #[test]
    fn without_a_hub_a_unit_is_enforced_for_as_long_as_its_policy_says() {
        let policy = |seconds| ApplyPolicy {
            enforce_for_seconds: seconds,
            ..ApplyPolicy::default()
        };
        let hour = policy(Some(3_600));
        assert_eq!(expired(&hour, Some(0), 3_599), None);
        let said = expired(&hour, Some(0), 3_600).expect("its time is over");
        assert!(said.contains("without a hub since 1970-01-01T00:00:00Z"), "{said}");
        assert_eq!(expired(&hour, None, i64::MAX), None, "there is a hub");
        assert_eq!(
            expired(&policy(None), Some(0), i64::MAX),
            None,
            "for ever is the default"
        );
    }

    #[test]
    fn an_annotation_suspends_only_with_the_word_disabled() {
        let with = |name: &str, value: &str| json!({"metadata": {"annotations": {name: value}}});
        assert!(annotation(&with(ANNOTATION_RECONCILE, "disabled")).is_some());
        assert!(annotation(&with(ANNOTATION_FLUX_RECONCILE, "disabled")).is_some());
        assert!(annotation(&with(ANNOTATION_RECONCILE, "enabled")).is_none());
        assert!(annotation(&json!({"metadata": {"name": "x"}})).is_none());
    }
}
