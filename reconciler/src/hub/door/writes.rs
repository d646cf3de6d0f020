//! What a writer is told: where the object is declared, and so where it is changed.

use render::access::{Attributes, Target};
use render::intake::guessed_plural;
use render::{ClusterName, Fleet, ManifestObject, UnitKey};
use serde_json::Value;

use crate::hub::engine::State;

/// The object that a request would write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    group: String,
    resource: String,
    namespace: String,
    name: String,
}

impl Written {
    /// As the path has it, and for an object that is new, as its body has it.
    pub(super) fn of(attributes: &Attributes, body: &[u8]) -> Option<Self> {
        let Target::Resource {
            group,
            namespace,
            resource,
            name,
            ..
        } = &attributes.target
        else {
            return None;
        };
        let mut written = Self {
            group: group.clone(),
            resource: resource.clone(),
            // The API server has a Namespace in itself.
            namespace: Some(namespace)
                .filter(|_| resource != "namespaces")
                .cloned()
                .unwrap_or_default(),
            name: name.clone(),
        };
        if written.name.is_empty() {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            written.name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        }
        Some(written)
    }

    fn is(&self, object: &ManifestObject) -> bool {
        let key = &object.key;
        key.name == self.name
            && key.group == self.group
            && guessed_plural(&key.kind) == self.resource
            // Where a manifest names no namespace, the API server takes `default`.
            && (key.namespace == self.namespace || (key.namespace.is_empty() && self.namespace == "default"))
    }

    fn words(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        let kind = format!("{}{dot}{}", self.resource, self.group);
        match (self.namespace.as_str(), self.name.as_str()) {
            (_, "") => kind,
            ("", name) => format!("{kind} {name}"),
            (namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }
}

/// What whoever wants to write is told.
pub(super) fn refusal(state: &State, cluster: &ClusterName, written: Option<&Written>) -> String {
    let begin = "this way to a cluster only reads, dry runs included: change the fleet with a commit and `git push`";
    let Some(written) = written else {
        return begin.to_owned();
    };
    let what = written.words();
    match state
        .fleet
        .as_deref()
        .and_then(|fleet| declared(state, fleet, cluster, written))
    {
        Some((unit, object)) => format!(
            "{begin}; {what} is declared in {}, line {}, and unit {unit} brings it to {cluster}",
            object.file, object.line
        ),
        None if written.name.is_empty() => begin.to_owned(),
        None => format!(
            "{begin}; nothing of the fleet manages {what} in {cluster}: to bring it there, commit its manifest below \
             feeds/ and a Subscription that names it below subscriptions/"
        ),
    }
}

/// The unit that brings an object to a cluster, and its manifest.
fn declared<'a>(
    state: &State,
    fleet: &'a Fleet,
    cluster: &ClusterName,
    written: &Written,
) -> Option<(&'a UnitKey, &'a ManifestObject)> {
    let released = &state.released.as_ref()?.published.units;
    let there = |unit: &&UnitKey| {
        let placed = released.get(*unit);
        placed.is_some_and(|placement| placement.clusters.contains_key(cluster))
    };
    let units = fleet.units.iter().filter(|(unit, _)| there(unit));
    let mut found = units.flat_map(|(unit, loaded)| loaded.base.objects.iter().map(move |object| (unit, &**object)));
    found.find(|(_, object)| written.is(object))
}

#[cfg(test)]
mod tests {
    use render::access::attributes;

    use super::*;

    #[test]
    fn what_is_written_is_named_by_the_path_or_by_the_body() {
        let written = |method, path, body: &str| {
            let attributes = attributes(method, path, None).expect("a clear path");
            Written::of(&attributes, body.as_bytes()).map(|written| written.words())
        };
        let deployments = "/apis/apps/v1/namespaces/shop/deployments";
        let scale = format!("{deployments}/web/scale");
        assert_eq!(
            written("PATCH", &scale, "").as_deref(),
            Some("deployments.apps shop/web")
        );
        let body = r#"{"kind": "Deployment", "metadata": {"name": "web"}}"#;
        assert_eq!(
            written("POST", deployments, body).as_deref(),
            Some("deployments.apps shop/web")
        );
        assert_eq!(
            written("POST", deployments, "k8s\0").as_deref(),
            Some("deployments.apps")
        );
        let namespace = "/api/v1/namespaces/shop";
        assert_eq!(written("DELETE", namespace, "").as_deref(), Some("namespaces shop"));
        assert_eq!(written("POST", "/anything", ""), None);
    }
}
