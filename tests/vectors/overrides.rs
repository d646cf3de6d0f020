//! Steps of overrides, and their order.

use std::sync::Arc;

use render::describe::Content;
use render::load::load;
use render::localize::{localize, matching};
use render::model::{Override, OverrideKind, OverrideStep, OverrideStepType, Scheduling};
use render::schedule::Divided;
use render::{Base, Finding, Previous, Revision, SourceTree};
use serde_json::{Value, json};

use super::fleet::{cluster, everything, fleet, labels, list, object, override_of, selector, subscription, text};

/// A step whose value may be given as text or as JSON.
pub(super) fn step(step_type: OverrideStepType, value: &Value) -> OverrideStep {
    OverrideStep {
        name: String::new(),
        step_type,
        override_chart: false,
        value: text_of(value),
        line: 1,
    }
}

/// A document as an object. What it lacks to be one is lent to it, and taken back from the outcome.
pub(super) struct Wrapped {
    object: Value,
    lent: Vec<&'static str>,
}

const IDENTITY: [(&str, &str); 3] = [("apiVersion", "v1"), ("kind", "ConfigMap"), ("name", "document")];

impl Wrapped {
    pub(super) fn new(document: &Value) -> Self {
        let mut object = document.clone();
        let mut lent = Vec::new();
        for (field, value) in IDENTITY {
            let holder = if field == "name" {
                &mut object["metadata"]
            } else {
                &mut object
            };
            if holder[field].is_null() {
                holder[field] = Value::from(value);
                lent.push(field);
            }
        }
        Self { object, lent }
    }

    /// The document after these steps.
    pub(super) fn after(&self, steps: Vec<OverrideStep>) -> Result<Value, Vec<Finding>> {
        let base = Base::new(vec![object(self.object.clone())]);
        let kind = OverrideKind::Localization;
        let meets = Arc::new(override_of("vector", &base.objects[0].key, kind, steps));
        let description = localize(&base, &[&meets], &Divided::none())?;
        let Content::Plain { object } = &description.objects[0].content else {
            return Err(Vec::new());
        };
        let mut document = object.as_ref().clone();
        for field in &self.lent {
            let metadata = *field == "name";
            let holder = if metadata {
                &mut document["metadata"]
            } else {
                &mut document
            };
            holder.as_object_mut().expect("it holds the lent field").remove(*field);
        }
        let metadata = document["metadata"].as_object();
        if metadata.is_some_and(serde_json::Map::is_empty) {
            document.as_object_mut().expect("an object is a map").remove("metadata");
        }
        Ok(document)
    }
}

/// The steps as load reads them from a Localization; `None` where it refuses them.
fn loaded(given: &Value) -> Option<Vec<OverrideStep>> {
    let mut steps = given.clone();
    for step in steps.as_array_mut()? {
        let value = text_of(&step["value"]);
        step["value"] = Value::from(value);
        let known = ["type", "value", "overrideChart", "fieldPath", "fieldFormat"];
        step.as_object_mut()?.retain(|field, _| known.contains(&field.as_str()));
    }
    let declaration = json!({
        "apiVersion": "apps.clusternet.io/v1alpha1",
        "kind": "Localization",
        "metadata": { "name": "vector", "namespace": "member" },
        "spec": {
            "feed": { "apiVersion": "v1", "kind": "ConfigMap", "name": "document" },
            "overrides": steps,
        },
    });
    let revision = Revision::parse("0".repeat(40)).expect("it is a valid revision");
    let files = [
        ("document.yaml", Wrapped::new(&json!({})).object.to_string()),
        ("localization.yaml", declaration.to_string()),
    ];
    let tree = SourceTree::from_files(revision, files);
    let (fleet, findings) = load(&tree, &Previous::default());
    let refused = findings.iter().any(Finding::is_error);
    (!refused).then(|| fleet.overrides[0].steps.clone())
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn json_patch(input: &Value) -> Value {
    let patch = json!({ "type": "JSONPatch", "value": input["patch"] });
    steps(&json!({ "document": input["document"], "overrides": [patch] }))
}

/// The document after the vector's steps; `{"error": true}` where they do not fit.
pub(super) fn steps(input: &Value) -> Value {
    let Some(steps) = loaded(&input["overrides"]) else {
        return json!({ "error": true });
    };
    if input.get("chart_document").is_some() {
        return chart(steps);
    }
    match Wrapped::new(&input["document"]).after(steps) {
        Ok(document) => json!({ "document": document }),
        Err(_) => json!({ "error": true }),
    }
}

/// Values and chart apart, as upstream keeps them: it starts with a chart of nothing but its identity.
fn chart(steps: Vec<OverrideStep>) -> Value {
    let described = json!({
        "apiVersion": "apps.clusternet.io/v1alpha1",
        "kind": "HelmChart",
        "metadata": { "name": "document" },
        "spec": { "chart": "my-cert-manager", "targetNamespace": "kube-public" },
    });
    let mut wrapped = Wrapped::new(&described);
    wrapped.lent = vec!["apiVersion", "name"];
    match wrapped.after(steps) {
        Ok(mut chart) => {
            let values = chart["spec"].as_object_mut().and_then(|spec| spec.remove("values"));
            json!({ "document": values, "chart_document": chart })
        }
        Err(_) => json!({ "error": true }),
    }
}

/// Which overrides meet a cluster, in the order in which they apply.
pub(super) fn order(input: &Value) -> Value {
    let document = object(Wrapped::new(&json!({})).object);
    let globalization = &input["globalization"];
    let (overrides, cluster_labels): (Vec<Override>, _) = if globalization.is_null() {
        let names = list(&input["localizations"]).iter().map(|item| text(&item["name"]));
        let item = |name: String| override_of(&name, &document.key, OverrideKind::Localization, Vec::new());
        (names.map(item).collect(), labels(&Value::Null))
    } else {
        let affinity = &globalization["clusterAffinity"];
        let cluster_affinity = (!affinity.is_null()).then(|| selector(&affinity["matchLabels"]));
        let kind = OverrideKind::Globalization { cluster_affinity };
        let item = override_of("global", &document.key, kind, Vec::new());
        (vec![item], labels(&input["clusters_in_namespace"][0]))
    };
    let member = cluster("member", cluster_labels);
    let unit = subscription(Scheduling::Replication, vec![everything()]);
    let mut fleet = fleet(vec![member.clone()], unit, vec![Arc::clone(&document)]);
    fleet.overrides = overrides.into_iter().map(Arc::new).collect();
    fleet.overrides.sort_by(|a, b| a.order_key().cmp(&b.order_key()));
    let met = matching(&fleet, &member, &Base::new(vec![document]));
    if globalization.is_null() {
        json!({ "apply_order": met.iter().map(|item| &item.name).collect::<Vec<_>>() })
    } else {
        json!({ "applied": !met.is_empty() })
    }
}
