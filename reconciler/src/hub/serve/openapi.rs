//! `/openapi/v3`: what the fields of our kinds mean, for `kubectl explain`.
//!
//! Kinds that stand in the fleet repository have the schemas that load is tested against; of the others, which
//! the hub makes, the fields are here.

use std::sync::OnceLock;

use render::Digest;
use render::schema::SOURCE_KINDS;
use serde_json::{Map, Value, json};

use super::resource::{GROUP, Resource, VERSION};

/// Where the one document is.
pub(super) fn path() -> String {
    format!("/openapi/v3/apis/{GROUP}/{VERSION}")
}

/// `/openapi/v3`: which documents there are.
pub(super) fn index() -> Value {
    // The digest is of the document, so that clients may keep what they have.
    let url = format!("{}?hash={}", path(), Digest::of_value(document()).short(32));
    json!({ "paths": { format!("apis/{GROUP}/{VERSION}"): { "serverRelativeURL": url } } })
}

/// The document of our group.
pub(super) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let schemas: Map<String, Value> = Resource::ALL
            .into_iter()
            .map(|resource| (schema_name(resource), schema(resource)))
            .collect();
        let paths: Map<String, Value> = Resource::ALL.into_iter().map(operations).collect();
        json!({
            "openapi": "3.0.0",
            "info": { "title": "Flotilla", "version": env!("CARGO_PKG_VERSION") },
            "paths": paths,
            "components": { "schemas": schemas },
        })
    })
}

fn schema_name(resource: Resource) -> String {
    format!("dev.flotilla.fleet.{VERSION}.{}", resource.names().kind)
}

fn group_version_kind(resource: Resource) -> Value {
    json!({ "group": GROUP, "version": VERSION, "kind": resource.names().kind })
}

/// The one operation of a kind that tools look at.
fn operations(resource: Resource) -> (String, Value) {
    let names = resource.names();
    let namespace = if names.namespaced {
        "namespaces/{namespace}/"
    } else {
        ""
    };
    let path = format!("/apis/{GROUP}/{VERSION}/{namespace}{}", names.plural);
    let reference = json!({ "$ref": format!("#/components/schemas/{}", schema_name(resource)) });
    let get = json!({
        "description": format!("list objects of kind {}", names.kind),
        "operationId": format!("list{}", names.kind),
        "responses": { "200": { "description": "OK", "content": { "application/json": { "schema": reference } } } },
        "x-kubernetes-action": "list",
        "x-kubernetes-group-version-kind": group_version_kind(resource),
    });
    (path, json!({ "get": get }))
}

fn schema(resource: Resource) -> Value {
    let kind = resource.names().kind;
    let source = SOURCE_KINDS.iter().find(|source| source.kind == kind);
    let mut schema = match source {
        Some(source) => source.schema(status(resource)),
        None => own(resource),
    };
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(resource)]);
    schema
}

/// A kind that the hub makes.
fn own(resource: Resource) -> Value {
    let (description, spec) = match resource {
        Resource::Placements => ("One unit on one cluster, and how far it has come there.", PLACEMENT),
        Resource::Descriptions => (
            "One variant of a unit: which objects, and never what they say.",
            DESCRIPTION,
        ),
        Resource::Findings => ("What is wrong in the fleet repository, and where.", FINDING),
        Resource::Fleets | Resource::ManagedClusters | Resource::Subscriptions | Resource::Suspensions => ("", &[][..]),
    };
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "apiVersion": field("string", "Group and version."),
            "kind": field("string", "The kind's name."),
            "metadata": field("object", "Name, namespace and labels."),
            "spec": object("What was decided or found.", spec),
            "status": status(resource),
        },
    })
}

fn status(resource: Resource) -> Value {
    let fields = match resource {
        Resource::Fleets => FLEET_STATUS,
        Resource::ManagedClusters => CLUSTER_STATUS,
        Resource::Subscriptions => SUBSCRIPTION_STATUS,
        Resource::Placements => PLACEMENT_STATUS,
        Resource::Descriptions => &[("clusters", "integer", "Clusters that get it.")],
        Resource::Findings => &[],
        Resource::Suspensions => &[
            ("inForce", "boolean", "Whether it holds now."),
            ("holds", "integer", "Units on clusters that it keeps as they are."),
        ],
    };
    let mut status = object("What became of it, as the hub knows it.", fields);
    if !matches!(
        resource,
        Resource::Descriptions | Resource::Findings | Resource::Suspensions
    ) {
        status["properties"]["observedGeneration"] = field("integer", "The generation that status is of.");
        status["properties"]["conditions"] = json!({
            "type": "array",
            "description": "Ready, Reconciling or Stalled while they are true, then the rungs of the ladder.",
            "items": object("One thing that is so, is not so, or is not known.", CONDITION),
        });
    }
    status
}

fn object(description: &str, fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, kind, description)| ((*name).to_owned(), field(kind, description)))
        .collect();
    json!({ "type": "object", "description": description, "properties": properties })
}

fn field(kind: &str, description: &str) -> Value {
    match kind.strip_prefix("[]") {
        Some(items) => json!({ "type": "array", "description": description, "items": { "type": items } }),
        None => json!({ "type": kind, "description": description }),
    }
}

/// Name, type (`[]` before it: a list), and what it says.
type Field = (&'static str, &'static str, &'static str);

const CONDITION: &[Field] = &[
    ("type", "string", "What it is about."),
    ("status", "string", "True, False, or Unknown."),
    ("reason", "string", "A word for tools."),
    ("message", "string", "A sentence for people."),
    ("observedGeneration", "integer", "The generation that it is of."),
];

const PLACEMENT: &[Field] = &[
    ("subscription", "string", "The unit."),
    ("cluster", "string", "Where it is."),
    ("variant", "string", "Which variant the cluster gets."),
    ("digest", "string", "The variant's content."),
    (
        "revision",
        "string",
        "The source revision since which the content is as it is.",
    ),
    ("placedBy", "string", "The source revision that placed it so."),
    (
        "drift",
        "string",
        "What is done there about what others change: Correct, Report or Freeze.",
    ),
    ("replicas", "object", "Object to replicas, where they are divided."),
    ("reasons", "[]string", "Why this cluster has it, and this many."),
];

const PLACEMENT_STATUS: &[Field] = &[
    ("objects", "object", "How many objects are in which state."),
    (
        "worstObjects",
        "[]object",
        "The first objects that are not as they should be, in the API server's words.",
    ),
    (
        "drift",
        "[]object",
        "The first objects with fields that others changed and that are left so: what Git says, and what is there.",
    ),
    (
        "offline",
        "boolean",
        "Whether the cluster is away, so that this may be old.",
    ),
    (
        "leaving",
        "boolean",
        "Whether the unit has left this cluster's delivery.",
    ),
];

const DESCRIPTION: &[Field] = &[
    ("subscription", "string", "The unit."),
    ("variant", "string", "Its name."),
    ("digest", "string", "Names its content."),
    ("revision", "string", "The source revision since which it is as it is."),
    ("overrides", "[]string", "What made it differ from the Base, in order."),
    ("objects", "[]string", "Its objects."),
];

const FINDING: &[Field] = &[
    (
        "severity",
        "string",
        "Error holds something back; Warning and Info do not.",
    ),
    ("reason", "string", "A word for tools."),
    ("file", "string", "Path in the repository."),
    ("line", "integer", "Line in the file."),
    ("field", "string", "Path of the field."),
    ("message", "string", "What is wrong."),
    ("hint", "string", "What to do about it."),
    ("unit", "string", "The unit that is held."),
    (
        "cluster",
        "string",
        "The cluster that it is about, or the first of them.",
    ),
    ("alsoOn", "[]string", "The other clusters that it is about."),
];

const FLEET_STATUS: &[Field] = &[
    ("source", "string", "Where the source branch stands."),
    ("accepted", "string", "The newest source revision that was planned."),
    ("rendered", "string", "The commit of the rendered ref."),
    ("released", "string", "The commit of the released ref."),
    ("proposed", "string", "The branch that waits for a person to merge it."),
    ("sequence", "integer", "How often something was released."),
    (
        "recovering",
        "boolean",
        "Whether nothing is decided until it is known what clusters hold.",
    ),
    (
        "clusters",
        "object",
        "How many are connected, disconnected or never seen.",
    ),
    ("units", "object", "How many are ready."),
    ("findings", "object", "How many there are, by severity."),
];

const CLUSTER_STATUS: &[Field] = &[
    (
        "session",
        "string",
        "Connected, Disconnected, or NeverSeen since this hub runs; Renamed for a name whose key is another one's now.",
    ),
    (
        "renamedTo",
        "string",
        "Of a name whose file is gone: the cluster whose file has its key now.",
    ),
    (
        "awaySince",
        "string",
        "Since when it is away; absent while it is connected, and where the hub did not see it go.",
    ),
    (
        "keys",
        "[]object",
        "The keys in its file, each with when Git says that it came there (introduced).",
    ),
    ("k8sVersion", "string", "The version of its API server."),
    ("platform", "string", "What its API server runs on, as linux/amd64."),
    (
        "apiserverURL",
        "string",
        "Its API server's address, as its applier sees it.",
    ),
    ("agentVersion", "string", "The version of whoever applies there."),
    (
        "clusterCIDR",
        "string",
        "Where its pods have their addresses, with commas between ranges.",
    ),
    (
        "serviceCIDR",
        "string",
        "Where its Services have theirs, in the same way.",
    ),
    (
        "healthz",
        "boolean",
        "Whether its API server says there that all is well; absent where it could not be asked.",
    ),
    ("livez", "boolean", "The same of /livez."),
    ("readyz", "boolean", "The same of /readyz."),
    (
        "nodeStatistics",
        "object",
        "Its nodes by their condition Ready (readyNodes, notReadyNodes, unknownNodes, and lostNodes without one), and how many of them replicas are divided over (nodes).",
    ),
    (
        "allocatable",
        "object",
        "What its nodes let pods take, of each resource.",
    ),
    ("capacity", "object", "What its nodes have in all, of each resource."),
    (
        "appPusher",
        "boolean",
        "Whether the hub applies there, as in mode Push.",
    ),
    (
        "useSocket",
        "boolean",
        "Whether its API server is asked through a tunnel: it has an agent, and its mode is not Pull.",
    ),
    ("lastObservedTime", "string", "When it reported last."),
    ("heldSequence", "integer", "The sequence that it took last."),
    ("releasedSequence", "integer", "The sequence that was released last."),
    (
        "refused",
        "object",
        "The newer sequence that it did not believe, and why.",
    ),
    (
        "hubKeys",
        "[]object",
        "The keys of hubs that its agent believes, each with since when by the agent's own note (known).",
    ),
    (
        "keyChange",
        "object",
        "The key of its agent that is to be added to its file or taken out of it, and the branch that a person merges.",
    ),
    ("units", "object", "How many it has, and how many of them are ready."),
];

const SUBSCRIPTION_STATUS: &[Field] = &[
    ("revision", "string", "The source revision that it was made from."),
    ("clusters", "object", "How many clusters fare how."),
    ("objects", "integer", "Objects that its feeds select."),
    (
        "worstClusters",
        "[]object",
        "The first clusters that are not ready, and why.",
    ),
    (
        "worstObjects",
        "[]object",
        "The first objects that are not as they should be.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_schema_whose_fields_are_described() {
        for resource in Resource::ALL {
            let schema = schema(resource);
            assert_ne!(schema["description"], "", "{}", resource.names().kind);
            for part in ["spec", "status"] {
                let fields = schema["properties"][part]["properties"].as_object();
                let fields = fields.unwrap_or_else(|| panic!("{part} of {} has fields", resource.names().kind));
                assert!(
                    fields.values().all(|field| field["description"].is_string()),
                    "{schema:#}"
                );
            }
        }
    }
}
