//! What a writer is told: where the object is declared, and so where it is changed.

use render::access::{Attributes, Person, Target};
use render::intake::guessed_plural;
use render::{ClusterName, Fleet, ManifestObject, UnitKey};
use serde_json::Value;

use super::verdict::{as_read, may_read};
use crate::hub::engine::State;

/// The object that a request would write, asked for as if it were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written(Attributes);

impl Written {
    /// As the path has it, and for an object that is new, as its body has it.
    pub(super) fn of(attributes: &Attributes, body: &[u8]) -> Option<Self> {
        let mut named = attributes.clone();
        if let Target::Resource { name, .. } = &mut named.target
            && name.is_empty()
        {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            body["metadata"]["name"].as_str().unwrap_or_default().clone_into(name);
        }
        as_read(&named).map(Self)
    }

    /// Namespace and name. The API server has a Namespace in itself.
    fn names(&self) -> (&str, &str) {
        match &self.0.target {
            Target::Resource { resource, name, .. } if resource == "namespaces" => ("", name),
            Target::Resource { namespace, name, .. } => (namespace, name),
            Target::Path(_) => ("", ""),
        }
    }

    fn is(&self, object: &ManifestObject) -> bool {
        let Target::Resource { group, resource, .. } = &self.0.target else {
            return false;
        };
        let (key, (namespace, name)) = (&object.key, self.names());
        key.name == name
            && key.group == *group
            && guessed_plural(&key.kind) == *resource
            // Where a manifest names no namespace, the API server takes `default`.
            && (key.namespace == namespace || (key.namespace.is_empty() && namespace == "default"))
    }

    fn words(&self) -> String {
        let kind = self.0.target.resource_name();
        match self.names() {
            ("", name) => format!("{kind} {name}"),
            (namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }
}

/// What whoever wants to write is told. Where the object is declared, and whether it is, they are told who may read it.
pub(super) fn refusal(state: &State, person: &Person, cluster: &ClusterName, written: Option<&Written>) -> String {
    let begin = "this way to a cluster only reads, dry runs included: change the fleet with a commit and `git push`";
    let fleet = state.fleet.as_deref();
    let readable = |written: &&Written| fleet.is_some_and(|fleet| may_read(fleet, person, cluster, &written.0));
    let Some(written) = written.filter(readable) else {
        return begin.to_owned();
    };
    let what = written.words();
    match fleet.and_then(|fleet| declared(state, fleet, cluster, written)) {
        Some((unit, object)) => format!(
            "{begin}; {what} is declared in {}, line {}, and unit {unit} brings it to {cluster}",
            object.file, object.line
        ),
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

    use super::super::tests::fleet;
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
            None,
            "it names nothing"
        );
        let namespace = "/api/v1/namespaces/shop";
        assert_eq!(written("DELETE", namespace, "").as_deref(), Some("namespaces shop"));
        assert_eq!(written("POST", "/anything", ""), None);
    }

    #[test]
    fn a_writer_is_told_of_an_object_that_they_may_read_and_of_no_other() {
        let mut state = State::default();
        state.fleet = Some(fleet(&[
            (
                "clusters/oslo.yaml",
                "{apiVersion: fleet.flotilla.dev/v1alpha1, kind: ManagedCluster, metadata: {name: oslo}, spec: {}}",
            ),
            (
                "access/sue.yaml",
                "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: sue, namespace: shop},
                      roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
                      subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: sue}]}",
            ),
        ]));
        let sue = Person {
            user: "sue".to_owned(),
            groups: Vec::new(),
        };
        let oslo = ClusterName::parse("oslo").expect("a valid cluster");
        let told = |path: &str| {
            let attributes = attributes("DELETE", path, None).expect("a clear path");
            refusal(&state, &sue, &oslo, Written::of(&attributes, b"").as_ref())
        };
        let hers = told("/api/v1/namespaces/shop/configmaps/page");
        assert!(
            hers.contains("nothing of the fleet manages configmaps shop/page in oslo"),
            "{hers}"
        );
        let plain = told("/anything");
        for other in ["payments/configmaps/page", "payments/secrets/key", "shop/secrets/key"] {
            assert_eq!(told(&format!("/api/v1/namespaces/{other}")), plain, "{other}");
        }
    }
}
