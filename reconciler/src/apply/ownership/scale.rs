//! Objects whose replicas an autoscaler sets.

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

/// Whether replicas were set through `scale` by something that is no hand: an autoscaler goes that way.
pub(super) fn is_scaled_by_controller(cause: &Cause) -> bool {
    cause.subresource == "scale" && !is_hand(&cause.manager)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
