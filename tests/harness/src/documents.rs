//! What is answered beside resources: version, health, discovery, OpenAPI.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::cluster::Options;
use crate::failure::Failure;
use crate::fault::unavailable;
use crate::kinds::{self, Kind};
use crate::request::{Call, Target, wants_aggregated};
use crate::schema;
use crate::store::State;
use crate::verbs::Answer;

/// The media type of the aggregated discovery document.
pub(crate) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a request for a document.
pub(crate) fn answer(
    state: &State,
    options: &Options,
    away: &BTreeSet<String>,
    call: &Call,
    target: &Target,
) -> Result<Answer, Failure> {
    if call.method != http::Method::GET {
        return Err(Failure::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ));
    }
    let is_away = |group: &str| away.contains(group);
    let value = match target {
        Target::Version => version(options),
        Target::Health => return Ok(Answer::Text { code: 200, text: "ok" }),
        Target::CoreVersions if wants_aggregated(&call.accept) => kinds::aggregated(&state.kinds(), true, &is_away),
        Target::CoreVersions => kinds::legacy_core(),
        Target::Groups if wants_aggregated(&call.accept) => kinds::aggregated(&state.kinds(), false, &is_away),
        Target::Groups => kinds::group_list(&state.kinds()),
        Target::Group(group) => kinds::group_of(&state.kinds(), group).ok_or_else(Failure::nowhere)?,
        Target::Resources { group, .. } if is_away(group) => return Err(unavailable()),
        Target::Resources { group, version } => {
            kinds::resource_list(&state.kinds(), group, version).ok_or_else(Failure::nowhere)?
        }
        Target::OpenApi(path) if path.is_empty() => open_api_index(&state.kinds()),
        Target::OpenApi(path) => open_api(&state.kinds(), path).ok_or_else(Failure::nowhere)?,
        Target::OpenApiV2 => return Err(Failure::lacking("OpenAPI v2: ask for v3")),
        Target::Place(_) | Target::Nothing => return Err(Failure::nowhere()),
    };
    Ok(Answer::ok(value))
}

fn version(options: &Options) -> Value {
    let mut numbers = options.version.trim_start_matches('v').split('.');
    json!({"major": numbers.next().unwrap_or_default(), "minor": numbers.next().unwrap_or_default(),
        "gitVersion": options.version, "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": "in-memory"})
}

fn group_path(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("api/{}", kind.version)
    } else {
        format!("apis/{}/{}", kind.group, kind.version)
    }
}

fn open_api_index(kinds: &[Arc<Kind>]) -> Value {
    let paths: Map<_, _> = kinds
        .iter()
        .map(|kind| {
            let path = group_path(kind);
            let url = format!("/openapi/v3/{path}");
            (path, json!({ "serverRelativeURL": url }))
        })
        .collect();
    json!({ "paths": paths })
}

/// The document of a group and version: paths as far as clients look them up, and types without words.
fn open_api(kinds: &[Arc<Kind>], path: &str) -> Option<Value> {
    let here: Vec<_> = kinds.iter().filter(|kind| group_path(kind) == path).collect();
    let first = here.first()?;
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for kind in &here {
        let scope = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
        let place = format!("/{path}{scope}/{}", kind.plural);
        paths.insert(
            place.clone(),
            json!({"post": operation(kind, "post"), "get": operation(kind, "list")}),
        );
        let one = json!({"get": operation(kind, "get"), "put": operation(kind, "put"), "patch": operation(kind, "patch"),
            "delete": operation(kind, "delete")});
        paths.insert(format!("{place}/{{name}}"), one);
        if kind.custom.is_some() {
            schemas.insert(type_name(kind), with_kind(schema::json_schema(&kind.shape), kind));
        }
    }
    for (name, shape) in schema::builtins() {
        let mut json = schema::json_schema(shape);
        if let Some(kind) = here.iter().find(|kind| kind.type_name == Some(name)) {
            json = with_kind(json, kind);
        }
        schemas.insert(schema::definition_name(name), json);
    }
    Some(
        json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": first.api_version()}, "paths": paths,
        "components": {"schemas": schemas}}),
    )
}

fn type_name(kind: &Kind) -> String {
    let group: Vec<_> = kind.group.split('.').rev().collect();
    match kind.type_name {
        Some(name) => schema::definition_name(name),
        None => format!("{}.{}.{}", group.join("."), kind.version, kind.kind),
    }
}

fn with_kind(mut schema: Value, kind: &Kind) -> Value {
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": kind.group, "version": kind.version, "kind": kind.kind}]);
    schema
}

fn operation(kind: &Kind, action: &str) -> Value {
    let parameters = ["dryRun", "fieldManager", "fieldValidation"];
    let parameters: Vec<_> = parameters
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
        .collect();
    let reference = json!({"schema": {"$ref": format!("#/components/schemas/{}", type_name(kind))}});
    let mut operation = json!({"x-kubernetes-action": action, "parameters": parameters,
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "responses": {"200": {"description": "OK", "content": {"application/json": reference}}}});
    if action == "patch" {
        let patch = json!({"schema": {"type": "object"}});
        let mut content = json!({"application/apply-patch+yaml": patch, "application/json-patch+json": patch,
            "application/merge-patch+json": patch});
        if kind.custom.is_none() {
            content["application/strategic-merge-patch+json"] = patch;
        }
        operation["requestBody"] = json!({ "content": content });
    }
    operation
}
