//! Kinds that a CustomResourceDefinition brings.

use std::sync::Arc;

use serde_json::Value;

use super::{Custom, Kind};
use crate::schema;

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The served versions of a definition, the preferred one first.
pub(crate) fn from_definition(definition: &Value) -> Vec<Arc<Kind>> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    let mut kinds: Vec<_> = served
        .filter_map(|version| kind(&definition["spec"], version))
        .collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(priority(&kind.version)));
    kinds.into_iter().map(Arc::new).collect()
}

fn kind(spec: &Value, version: &Value) -> Option<Kind> {
    let names = &spec["names"];
    let list = |value: &Value| -> Vec<Box<str>> {
        let words = value.as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(Into::into).collect()
    };
    let kind = names["kind"].as_str()?;
    let (group, plural) = (spec["group"].as_str()?, names["plural"].as_str()?);
    let subresources = ["status", "scale"]
        .into_iter()
        .filter(|name| version["subresources"].get(*name).is_some());
    Some(Kind {
        group: group.into(),
        version: version["name"].as_str()?.into(),
        kind: kind.into(),
        plural: plural.into(),
        singular: names["singular"]
            .as_str()
            .map_or_else(|| kind.to_lowercase().into(), Into::into),
        namespaced: spec["scope"] != "Cluster",
        short_names: list(&names["shortNames"]),
        categories: list(&names["categories"]),
        verbs: VERBS.iter().map(|verb| (*verb).into()).collect(),
        subresources: subresources.map(Into::into).collect(),
        shape: schema::from_definition(version["schema"].get("openAPIV3Schema")),
        type_name: None,
        shelf: format!("{plural}.{group}").into(),
        custom: Some(Custom {
            columns: version["additionalPrinterColumns"]
                .as_array()
                .cloned()
                .unwrap_or_default(),
            scale: version["subresources"].get("scale").cloned(),
        }),
    })
}

/// Kubernetes' order of versions: v2 before v1 before v1beta2 before v1alpha1 before other words.
fn priority(version: &str) -> (u8, u64, u64) {
    let Some(rest) = version.strip_prefix('v') else {
        return (0, 0, 0);
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse() else {
        return (0, 0, 0);
    };
    let number = |text: &str| text.parse().unwrap_or(0);
    match &rest[digits..] {
        "" => (3, major, 0),
        stage if stage.starts_with("beta") => (2, major, number(&stage[4..])),
        stage if stage.starts_with("alpha") => (1, major, number(&stage[5..])),
        _ => (0, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_preferred_in_kubernetes_order() {
        let mut versions = ["v1alpha1", "v2", "foo", "v1beta2", "v1", "v1beta1"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
