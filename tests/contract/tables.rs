//! The in-memory server's tables of kinds and types, taken from a real server's discovery and OpenAPI.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use http::Request;
use kube::Client;
use serde_json::Value;

/// Types that are scalars or kept as they are, whatever their documents say.
const SPECIAL: [(&str, &str); 7] = [
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "x"),
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "q"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "t"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "t"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "*"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", "*"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "*"),
];

/// Schemas inside of schemas are kept as they are: every one of these begins so.
const SCHEMA_PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Long beginnings of type names, and what the table writes.
const SHORT: [(&str, &str); 4] = [
    ("io.k8s.apimachinery.pkg.apis.meta.", "meta."),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
        "apiextensions.",
    ),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.", "apiregistration."),
    ("io.k8s.api.", ""),
];

/// Where the tables are: kinds, and types.
pub(super) fn files() -> [PathBuf; 2] {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("harness/src");
    [source.join("kinds/kinds.txt"), source.join("schema/types.txt")]
}

/// Both tables as a server's documents give them, for the kinds that are listed now.
pub(super) async fn tables(client: &Client) -> [String; 2] {
    let [kinds_file, _] = files();
    let listed = fs::read_to_string(kinds_file).expect("the table of kinds is there");
    let core = client.list_core_api_versions_aggregated().await.expect("discovery");
    let groups = client.list_api_groups_aggregated().await.expect("discovery");
    let mut types = Types::default();
    let mut kinds = String::new();
    for line in listed.lines() {
        let words: Vec<_> = line.split('\t').collect();
        let (api_version, plural) = (words[0], words[2]);
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        types.read(client, api_version).await;
        let all = core.items.iter().chain(&groups.items);
        let served = all
            .filter(|found| {
                found
                    .metadata
                    .as_ref()
                    .and_then(|metadata| metadata.name.as_deref())
                    .unwrap_or_default()
                    == group
            })
            .flat_map(|found| &found.versions)
            .filter(|found| found.version.as_deref() == Some(version))
            .flat_map(|found| &found.resources)
            .find(|found| found.resource.as_deref() == Some(plural))
            .unwrap_or_else(|| panic!("{plural} of {api_version} is served"));
        let kind = served
            .response_kind
            .as_ref()
            .and_then(|kind| kind.kind.clone())
            .unwrap_or_default();
        let type_name = types.of_kind(group, version, &kind);
        let subresources = served.subresources.iter().filter_map(|sub| sub.subresource.clone());
        let scope = if served.scope.as_deref() == Some("Namespaced") {
            "namespaced"
        } else {
            "cluster"
        };
        let line = [
            api_version,
            &kind,
            plural,
            served.singular_resource.as_deref().unwrap_or_default(),
            scope,
            &joined(served.short_names.clone()),
            &joined(served.categories.clone()),
            &sorted(served.verbs.clone()),
            &sorted(subresources.collect()),
            &short(&type_name),
        ]
        .join("\t");
        kinds.push_str(&format!("{line}\n"));
    }
    [kinds, types.text()]
}

fn joined(words: Vec<String>) -> String {
    if words.is_empty() {
        "-".to_owned()
    } else {
        words.join(",")
    }
}

fn sorted(mut words: Vec<String>) -> String {
    words.sort();
    joined(words)
}

fn short(name: &str) -> String {
    let found = SHORT
        .iter()
        .find_map(|(long, short)| name.strip_prefix(long).map(|rest| format!("{short}{rest}")));
    found.unwrap_or_else(|| name.to_owned())
}

/// The types that the kinds need.
#[derive(Default)]
struct Types {
    read: BTreeSet<String>,
    schemas: BTreeMap<String, Value>,
    wanted: BTreeSet<String>,
}

impl Types {
    async fn read(&mut self, client: &Client, api_version: &str) {
        let prefix = if api_version.contains('/') { "apis" } else { "api" };
        if !self.read.insert(api_version.to_owned()) {
            return;
        }
        let request = Request::get(format!("/openapi/v3/{prefix}/{api_version}"))
            .body(Vec::new())
            .expect("a request");
        let document: Value = client.request(request).await.expect("an OpenAPI document");
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        self.schemas
            .extend(schemas.iter().map(|(name, schema)| (name.clone(), schema.clone())));
    }

    fn of_kind(&mut self, group: &str, version: &str, kind: &str) -> String {
        let fits = |schema: &&Value| {
            let kinds = schema["x-kubernetes-group-version-kind"]
                .as_array()
                .into_iter()
                .flatten();
            let mut fit =
                kinds.filter(|found| found["group"] == group && found["version"] == version && found["kind"] == kind);
            fit.next().is_some()
        };
        let found = self.schemas.iter().find(|(_, schema)| fits(schema));
        let name = found
            .map(|(name, _)| name.clone())
            .unwrap_or_else(|| panic!("{kind} has a type"));
        self.wanted.insert(name.clone());
        name
    }

    /// All types that are wanted, and those that they name.
    fn text(&self) -> String {
        let mut waiting: Vec<_> = self.wanted.iter().cloned().collect();
        let mut texts = BTreeMap::new();
        while let Some(name) = waiting.pop() {
            if texts.contains_key(&short(&name)) {
                continue;
            }
            let schema = &self.schemas[&name];
            let mut named = BTreeSet::new();
            texts.insert(short(&name), type_text(&name, schema, &mut named));
            waiting.extend(named);
        }
        texts.into_values().collect()
    }
}

fn type_text(name: &str, schema: &Value, named: &mut BTreeSet<String>) -> String {
    let mark = if schema["x-kubernetes-map-type"] == "atomic" {
        "!"
    } else {
        ""
    };
    let mut text = format!("{}{mark}\n", short(name));
    let Some(properties) = schema["properties"]
        .as_object()
        .filter(|properties| !properties.is_empty())
    else {
        return text + "  * *\n";
    };
    for (field, property) in properties {
        text.push_str(&format!("  {field} {}", shape(property, property, named)));
        let required = schema["required"].as_array().into_iter().flatten();
        if required.into_iter().any(|required| required == field.as_str()) {
            text.push_str(" required");
        }
        if let Some(strategy) = property["x-kubernetes-patch-strategy"].as_str() {
            text.push_str(&format!(" patch={strategy}"));
        }
        if let Some(key) = property["x-kubernetes-patch-merge-key"].as_str() {
            text.push_str(&format!(" key={key}"));
        }
        let default = &property["default"];
        let says_nothing = match default {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
        };
        if !says_nothing {
            text.push_str(&format!(" default={default}"));
        }
        text.push('\n');
    }
    text
}

/// A property in the table's letters; `said` is where its extensions stand.
fn shape(property: &Value, said: &Value, named: &mut BTreeSet<String>) -> String {
    let mark = || {
        if said["x-kubernetes-map-type"] == "atomic" {
            "!"
        } else {
            ""
        }
    };
    if let Some(inner) = property["allOf"].get(0) {
        return shape(inner, property, named);
    }
    if let Some(reference) = property["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        if name.starts_with(SCHEMA_PROPS) {
            return "*".to_owned();
        }
        if let Some((_, letter)) = SPECIAL.iter().find(|(special, _)| *special == name) {
            return (*letter).to_owned();
        }
        named.insert(name.to_owned());
        return format!("#{}{}", short(name), mark());
    }
    match property["type"].as_str() {
        Some("string") => match property["format"].as_str() {
            Some("date-time") => "t",
            Some("byte") => "y",
            _ => "s",
        }
        .to_owned(),
        Some("integer") => "i".to_owned(),
        Some("number") => "n".to_owned(),
        Some("boolean") => "b".to_owned(),
        Some("array") => format!(
            "[{}]{}",
            shape(&property["items"], &property["items"], named),
            list_rule(property)
        ),
        _ => match &property["additionalProperties"] {
            Value::Object(_) => {
                let of = &property["additionalProperties"];
                format!("{{{}}}{}", shape(of, of, named), mark())
            }
            _ if property["type"].is_null() && property.get("oneOf").is_some() => "x".to_owned(),
            _ => "*".to_owned(),
        },
    }
}

fn list_rule(property: &Value) -> String {
    let strategy = property["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
    let merges = strategy.split(',').any(|word| word == "merge");
    let keys = property["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
    let keys: Vec<_> = keys.filter_map(Value::as_str).collect();
    match (
        property["x-kubernetes-list-type"].as_str(),
        property["x-kubernetes-patch-merge-key"].as_str(),
    ) {
        (Some("map"), _) => format!("map({})", keys.join(",")),
        (None, Some(key)) if merges => format!("map({key})"),
        (Some("set"), _) => "set".to_owned(),
        (None, None) if merges => "set".to_owned(),
        _ => String::new(),
    }
}
