//! Objects whose replicas or resources an autoscaler sets.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use render::ObjectKey;
use render::name::group_of;
use serde_json::Value;

use super::conflict::Cause;
use super::migrate::is_hand;

/// The pointer of the field that autoscalers set.
pub(in crate::apply) const REPLICAS: &str = "/spec/replicas";

/// The object whose replicas this one sets, if it is an autoscaler: a HorizontalPodAutoscaler, or KEDA's
/// ScaledObject, which makes one.
pub(in crate::apply) fn scaled_by(object: &Value) -> Option<ObjectKey> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let group = group_of(text("/apiVersion")?);
    let target = match (group, text("/kind")?) {
        ("autoscaling", "HorizontalPodAutoscaler") => "/spec/scaleTargetRef",
        ("keda.sh", "ScaledObject") => "/spec/scaleTargetRef",
        _ => return None,
    };
    let of_target = |field: &str| text(&format!("{target}/{field}"));
    Some(ObjectKey::new(
        of_target("apiVersion").unwrap_or("apps/v1"),
        of_target("kind").unwrap_or("Deployment"),
        text("/metadata/namespace")
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or("default"),
        of_target("name")?,
    ))
}

/// Whether a field was set in the way of autoscalers: replicas through `scale`, a pod's resources through `resize`, by
/// something that is no hand.
pub(super) fn is_scaled_by_controller(cause: &Cause) -> bool {
    let is_theirs = match cause.subresource.as_str() {
        "scale" => cause.field == ".spec.replicas",
        "resize" => cause.field.starts_with(".spec.containers"),
        _ => false,
    };
    is_theirs && !is_hand(&cause.manager)
}

/// The same of a field by its pointer, as the object's own entries say it.
pub(in crate::apply) fn is_left_to_scaler(pointer: &str, manager: &str, managed: &[ManagedFieldsEntry]) -> bool {
    let wrote_through = |subresource: &str| {
        managed
            .iter()
            .any(|entry| entry.subresource.as_deref() == Some(subresource) && entry.manager.as_deref() == Some(manager))
    };
    let through = match pointer {
        REPLICAS => "scale",
        _ if pointer.starts_with("/spec/containers/") && pointer.contains("/resources") => "resize",
        _ => return false,
    };
    !is_hand(manager) && wrote_through(through)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_controllers_write_in_the_way_of_autoscalers_is_left_to_them() {
        let entry = |manager: &str, subresource: Option<&str>| ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            subresource: subresource.map(str::to_owned),
            ..ManagedFieldsEntry::default()
        };
        let managed = [
            entry("keda", Some("scale")),
            entry("kubectl", Some("scale")),
            entry("updater", Some("resize")),
            entry("operator", None),
        ];
        let cpu = "/spec/containers/0/resources/requests/cpu";
        for (pointer, manager, expected) in [
            (REPLICAS, "keda", true),
            (REPLICAS, "kubectl", false),
            (REPLICAS, "operator", false),
            (REPLICAS, "updater", false),
            (cpu, "updater", true),
            (cpu, "keda", false),
            ("/spec/containers/0/image", "updater", false),
        ] {
            let left = is_left_to_scaler(pointer, manager, &managed);
            assert_eq!(left, expected, "{manager} at {pointer}");
        }
    }

    #[test]
    fn an_autoscaler_names_the_object_that_it_scales() {
        let deployment = ObjectKey::new("apps/v1", "Deployment", "shop", "web");
        let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "x", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
        assert_eq!(scaled_by(&autoscaler), Some(deployment.clone()));
        let keda = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": "x", "namespace": "shop"}, "spec": {"scaleTargetRef": {"name": "web"}}});
        assert_eq!(scaled_by(&keda), Some(deployment));
        assert_eq!(scaled_by(&json!({"apiVersion": "v1", "kind": "ConfigMap"})), None);
    }
}
