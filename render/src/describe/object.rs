//! What an object's own words say of its identity.

use serde_json::Value;

use crate::model::{CLUSTERNET_APPS_API_VERSION, FLEET_API_VERSION};
use crate::name::{ObjectKey, group_of};

/// The key of an object by its own words; `None` without `apiVersion`, `kind` and `metadata.name`.
pub fn key_of(object: &Value) -> Option<ObjectKey> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let namespace = text("/metadata/namespace").unwrap_or_default();
    Some(ObjectKey::new(
        text("/apiVersion")?,
        text("/kind")?,
        namespace,
        text("/metadata/name")?,
    ))
}

/// Whether SOPS encrypted it: nobody here can read it, and its own text is what travels.
pub(crate) fn is_encrypted(object: &Value) -> bool {
    object.get("sops").is_some_and(|sops| sops.get("mac").is_some())
}

/// Whether it is a HelmChart of our group or of Clusternet's: an order for a release, and no object of the
/// cluster it goes to.
pub fn is_chart(key: &ObjectKey) -> bool {
    let groups = [FLEET_API_VERSION, CLUSTERNET_APPS_API_VERSION].map(group_of);
    key.kind == "HelmChart" && groups.contains(&key.group.as_str())
}
