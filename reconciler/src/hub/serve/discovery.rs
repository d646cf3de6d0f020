//! What this API serves, in the two forms that clients ask for, and its version.

use serde_json::{Value, json};

use super::resource::{GROUP, Resource, VERSION};

const VERBS: [&str; 3] = ["get", "list", "watch"];

/// Category of all our kinds: `kubectl get flotilla`.
const CATEGORY: &str = "flotilla";

/// What is told of one Subscription and stands in no list.
const EXPLANATION: &str = "explanation";

/// `/api`: the core group, of which nothing is served; clients expect it to be there.
pub(super) fn core_versions() -> Value {
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })
}

/// `/api/v1`.
pub(super) fn core_resources() -> Value {
    json!({ "kind": "APIResourceList", "groupVersion": "v1", "resources": [] })
}

/// `/apis`.
pub(super) fn groups() -> Value {
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [entry()] })
}

/// `/apis/<group>`.
pub(super) fn group() -> Value {
    let mut group = entry();
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    group
}

fn entry() -> Value {
    let version = json!({ "groupVersion": format!("{GROUP}/{VERSION}"), "version": VERSION });
    json!({ "name": GROUP, "versions": [version], "preferredVersion": version })
}

/// `/apis/<group>/<version>`.
pub(super) fn resources() -> Value {
    let resource = |resource: Resource| {
        let names = resource.names();
        json!({
            "name": names.plural,
            "singularName": names.singular,
            "namespaced": names.namespaced,
            "kind": names.kind,
            "verbs": VERBS,
            "shortNames": names.short,
            "categories": [CATEGORY],
        })
    };
    let mut resources: Vec<_> = Resource::ALL.into_iter().map(resource).collect();
    resources.push(json!({
        "name": format!("{}/{EXPLANATION}", Resource::Subscriptions.names().plural),
        "singularName": "",
        "namespaced": true,
        "kind": "Explanation",
        "verbs": ["get"],
    }));
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/{VERSION}"), "resources": resources })
}

/// `/apis` in the aggregated form: one request instead of three.
pub(super) fn aggregated() -> Value {
    let resource = |resource: Resource| {
        let names = resource.names();
        json!({
            "resource": names.plural,
            "responseKind": { "group": GROUP, "version": VERSION, "kind": names.kind },
            "scope": if names.namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": names.singular,
            "verbs": VERBS,
            "shortNames": names.short,
            "categories": [CATEGORY],
        })
    };
    let resources: Vec<_> = Resource::ALL.into_iter().map(resource).collect();
    let version = json!({ "version": VERSION, "resources": resources, "freshness": "Current" });
    aggregated_of(&[json!({ "metadata": { "name": GROUP }, "versions": [version] })])
}

/// `/api` in the aggregated form.
pub(super) fn aggregated_core() -> Value {
    aggregated_of(&[])
}

fn aggregated_of(groups: &[Value]) -> Value {
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups })
}

/// `/version`: the Kubernetes whose conventions are spoken here, as clients compare it with their own; our
/// own version stands behind the plus.
pub(super) fn version() -> Value {
    let own = env!("CARGO_PKG_VERSION");
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": format!("v1.36.0+flotilla.{own}"),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
