//! The kinds of a fleet repository as schemas, for editors, `kubectl explain` and API servers.
//!
//! In: nothing. Out: a structural OpenAPI schema for each kind of our group, and CustomResourceDefinitions of
//! them. What a field means beyond its type, and which fields go together, is [`crate::load`]'s to judge; a test
//! there fails when the two know different fields.

mod fields;
mod kinds;

use serde_json::{Value, json};

use crate::model::FLEET_API_VERSION;

pub use kinds::SOURCE_KINDS;

/// A kind of a fleet repository.
#[derive(Clone, Copy, Debug)]
pub struct SourceKind {
    /// `kind`.
    pub kind: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Other names that people call it by.
    pub short: &'static [&'static str],
    /// Whether it stands in a namespace.
    pub namespaced: bool,
    /// What it is, for people.
    pub description: &'static str,
    /// Whether `spec` must be there.
    pub needs_spec: bool,
    /// The schema of `spec`.
    pub spec: fn() -> Value,
}

impl SourceKind {
    /// The schema of the whole object. `status` is the schema of its status.
    pub fn schema(&self, status: Value) -> Value {
        let mut schema = json!({
            "type": "object",
            "description": self.description,
            "properties": {
                "apiVersion": fields::text("Group and version: fleet.flotilla.dev/v1alpha1."),
                "kind": fields::text("The kind's name."),
                "metadata": { "type": "object", "description": "Name, namespace, labels and annotations." },
                "spec": (self.spec)(),
                "status": status,
            },
        });
        if self.needs_spec {
            schema["required"] = json!(["spec"]);
        }
        schema
    }

    /// The kind as a CustomResourceDefinition.
    pub fn crd(&self) -> Value {
        let (group, version) = FLEET_API_VERSION.split_once('/').unwrap_or((FLEET_API_VERSION, ""));
        let status = json!({
            "type": "object",
            "description": "What became of it; never written by people.",
            "x-kubernetes-preserve-unknown-fields": true,
        });
        let mut schema = self.schema(status);
        // API servers describe it themselves, and take no other words.
        schema["properties"]["metadata"] = json!({ "type": "object" });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{}.{group}", self.plural) },
            "spec": {
                "group": group,
                "names": {
                    "kind": self.kind,
                    "listKind": format!("{}List", self.kind),
                    "plural": self.plural,
                    "singular": self.kind.to_lowercase(),
                    "shortNames": self.short,
                },
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": [{
                    "name": version,
                    "served": true,
                    "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                    "subresources": { "status": {} },
                }],
            },
        })
    }
}

/// Every kind of a fleet repository as a CustomResourceDefinition.
pub fn crds() -> Vec<Value> {
    SOURCE_KINDS.iter().map(SourceKind::crd).collect()
}

/// Every field of a schema as a path: `spec.feeds[].path`.
#[cfg(test)]
pub(crate) fn paths(schema: &Value) -> std::collections::BTreeSet<String> {
    let mut found = std::collections::BTreeSet::new();
    collect(schema, "", &mut found);
    found
}

#[cfg(test)]
fn collect(schema: &Value, path: &str, found: &mut std::collections::BTreeSet<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        found.insert(path.clone());
        collect(field, &path, found);
        collect(&field["items"], &format!("{path}[]"), found);
    }
}
