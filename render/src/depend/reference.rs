//! The annotation that names the objects which an object needs.

use serde_json::Value;

use crate::model::ANNOTATION_DEPENDS_ON;
use crate::name::ObjectKey;

/// The annotation that other tools have for it; it counts as ours does.
const ANNOTATION_OTHERS: &str = "config.kubernetes.io/depends-on";

/// A reference that names no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no object")]
pub struct BadReference(pub String);

/// The annotations of an object that say what it needs, by name; empty for nearly every object.
pub fn annotations(object: &Value) -> impl Iterator<Item = (&'static str, &str)> {
    [ANNOTATION_DEPENDS_ON, ANNOTATION_OTHERS]
        .into_iter()
        .filter_map(|name| Some((name, object["metadata"]["annotations"][name].as_str()?)))
}

/// The objects that an annotation's text names, in its order: separated by commas, each `group/kind/namespace/name`,
/// `group/kind/name` without a namespace, or as other tools have it, `group/namespaces/namespace/kind/name`.
///
/// # Errors
///
/// The first reference that is none of these.
pub fn references(text: &str) -> Result<Vec<ObjectKey>, BadReference> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| reference(part).ok_or_else(|| BadReference(part.to_owned())))
        .collect()
}

fn reference(text: &str) -> Option<ObjectKey> {
    let parts: Vec<_> = text.split('/').collect();
    let (group, kind, namespace, name) = match parts.as_slice() {
        [group, "namespaces", namespace, kind, name] => (group, kind, *namespace, name),
        [group, kind, namespace, name] => (group, kind, *namespace, name),
        [group, kind, name] => (group, kind, "", name),
        _ => return None,
    };
    let is_whole = !kind.is_empty() && !name.is_empty() && (parts.len() < 5 || !namespace.is_empty());
    is_whole.then(|| ObjectKey {
        group: (*group).to_owned(),
        kind: (*kind).to_owned(),
        namespace: namespace.to_owned(),
        name: (*name).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[ObjectKey]) {
        assert_eq!(references(text).expect("a reference"), expected, "{text}");
    }

    #[test]
    fn a_reference_is_read_in_each_of_its_forms() {
        let web = ObjectKey::new("apps/v1", "Deployment", "shop", "web");
        let config = ObjectKey::new("v1", "ConfigMap", "shop", "c");
        check("apps/Deployment/shop/web", std::slice::from_ref(&web));
        check("apps/namespaces/shop/Deployment/web", std::slice::from_ref(&web));
        check("/ConfigMap/shop/c", std::slice::from_ref(&config));
        check("/namespaces/shop/ConfigMap/c", std::slice::from_ref(&config));
        check("/Namespace/shop", &[ObjectKey::new("v1", "Namespace", "", "shop")]);
        // As keys are written everywhere else.
        check("/Namespace//shop", &[ObjectKey::new("v1", "Namespace", "", "shop")]);
        check(" /ConfigMap/shop/c , apps/Deployment/shop/web,", &[config, web]);
        check("", &[]);
    }

    #[test]
    fn what_names_no_object_is_said() {
        for text in [
            "web",
            "Deployment/web",
            "apps/namespaces//Deployment/web",
            "apps//shop/web",
            "a/b/c/d/e",
        ] {
            let wrong = references(&format!("/ConfigMap/shop/c,{text}"));
            assert_eq!(wrong, Err(BadReference(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn both_annotations_count() {
        let object = json!({"metadata": {"annotations": {
            "config.kubernetes.io/depends-on": "/ConfigMap/shop/b", "fleet.flotilla.dev/depends-on": "/ConfigMap/shop/a"}}});
        let found: Vec<_> = annotations(&object).map(|(_, text)| text).collect();
        assert_eq!(found, ["/ConfigMap/shop/a", "/ConfigMap/shop/b"]);
        assert_eq!(annotations(&json!({"metadata": {}})).count(), 0);
    }
}
