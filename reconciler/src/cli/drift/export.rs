//! The smallest Localization that accepts what is there: one for each object, a step for each field.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use render::model::ANNOTATION_UNIT;
use serde_json::{Value, json};

use super::ExportOptions;
use super::fields::{Drifted, label};
use crate::cli::client::ClientError;
use crate::cli::{exit, output};
use crate::wire::{FieldDrift, ObjectDrift};

/// Writes the Localizations, or prints them.
pub(super) async fn run(options: &ExportOptions) -> Result<ExitCode, ClientError> {
    let read = super::read(&options.server, Some(&options.unit), Some(&options.cluster)).await?;
    let wrong = |words: &str| {
        output::tell(words);
        Ok(ExitCode::from(exit::DRIFT_ERROR))
    };
    let drifted = match read {
        Ok(drifted) => drifted,
        Err(words) => return wrong(&words),
    };
    let Some(placement) = drifted.first() else {
        output::tell("No drift found.\n");
        return Ok(ExitCode::SUCCESS);
    };
    let namespace = super::namespace_of(&options.server, &options.cluster).await?;
    let namespace = namespace.unwrap_or_else(|| options.cluster.clone());
    let (text, notes) = localizations(placement, &namespace);
    notes.iter().for_each(|note| output::tell(note));
    if let Some(left_out) = placement.left_out() {
        output::tell(&left_out);
    }
    if text.is_empty() {
        return wrong(
            "error: nothing of it can be accepted\nhint: change it in Git by hand, or leave it to others with spec.drift.ignore\n",
        );
    }
    match &options.write {
        None => {
            output::print(&text);
        }
        Some(folder) => match write(folder, placement, &text) {
            Ok(file) => output::tell(&format!(
                "Wrote {}. Commit and push it to accept what is there.\n",
                output::visible(&file)
            )),
            Err(words) => return wrong(&words),
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, placement: &Drifted, text: &str) -> Result<String, String> {
    let file = folder.join(format!("{}-{}-accepted.yaml", placement.namespace, placement.unit));
    let shown = file.display().to_string();
    let said = |error: std::io::Error| format!("error: failed to write {}: {error}\n", output::visible(&shown));
    std::fs::create_dir_all(folder).map_err(said)?;
    // A file that a person wrote is that person's.
    let made = std::fs::File::create_new(&file);
    let mut made = made.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => format!(
            "error: {} is there already\nhint: merge what `flotilla drift export` prints without --write into it\n",
            output::visible(&shown)
        ),
        _ => said(error),
    })?;
    std::io::Write::write_all(&mut made, text.as_bytes()).map_err(said)?;
    Ok(shown)
}

/// A placement's differences as Localizations, and a note for each that cannot be accepted by one.
fn localizations(placement: &Drifted, namespace: &str) -> (String, Vec<String>) {
    let mut notes = Vec::new();
    let mut names = BTreeSet::new();
    let mut documents = Vec::new();
    for object in &placement.objects {
        let is_acceptable = |field: &&FieldDrift| object.chart.is_none() && is_acceptable(field);
        let (fields, others): (Vec<_>, Vec<_>) = object.fields.iter().partition(is_acceptable);
        notes.extend(others.into_iter().map(|field| note(object, field)));
        if !fields.is_empty() {
            let name = free_name(&placement.unit, object, &mut names);
            documents.push(render::yaml::write(&localization(namespace, &name, object, &fields)));
        }
    }
    (documents.join("---\n"), notes)
}

/// Whether its value is told, and is Git's to say.
fn is_acceptable(field: &FieldDrift) -> bool {
    !field.hidden && field.path != format!("/metadata/annotations/{}", escaped(ANNOTATION_UNIT))
}

fn note(object: &ObjectDrift, field: &FieldDrift) -> String {
    let why = match &object.chart {
        Some(chart) => format!(
            "it is made by HelmChart {}/{}, whose values may accept it",
            chart.namespace, chart.name
        ),
        None if field.hidden => "its value is not told, since it is a Secret's or too long".to_owned(),
        None => "it is not in Git".to_owned(),
    };
    let (path, object) = (output::visible(&field.path), output::visible(&label(object)));
    format!("note: {path} of {object} is not accepted: {}\n", output::visible(&why))
}

fn localization(namespace: &str, name: &str, object: &ObjectDrift, fields: &[&FieldDrift]) -> Value {
    let key = &object.object;
    let mut feed = json!({ "apiVersion": object.api_version, "kind": key.kind, "name": key.name });
    if !key.namespace.is_empty() {
        feed["namespace"] = json!(key.namespace);
    }
    json!({
        "apiVersion": "fleet.flotilla.dev/v1alpha1",
        "kind": "Localization",
        "metadata": { "namespace": namespace, "name": name },
        "spec": {
            "feed": feed,
            "overrides": [{ "name": "accepted", "type": "JSONPatch", "value": patch(fields) }],
        },
    })
}

/// A name of an object's Localization. Names of objects may have what ours may not, and objects of two namespaces may
/// have one name.
fn free_name(unit: &str, object: &ObjectDrift, taken: &mut BTreeSet<String>) -> String {
    let key = &object.object;
    let parts = [unit, &key.kind.to_lowercase(), &key.namespace, &key.name, "accepted"];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let plain = |letter: char| if is_plain(letter) { letter } else { '-' };
    let name: String = parts.join("-").to_lowercase().chars().map(plain).collect();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let free = names.find(|name| taken.insert(name.clone()));
    free.unwrap_or(name)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A JSON Patch to what is there. What is gone is taken out last, from the end, so that no path moves before its turn.
fn patch(fields: &[&FieldDrift]) -> String {
    let put = fields.iter().filter_map(|field| {
        let value = field.found.as_ref()?;
        // What Git does not say has nothing that could be replaced.
        let op = if field.wanted.is_some() { "replace" } else { "add" };
        Some(json!({ "op": op, "path": field.path, "value": value }))
    });
    let gone = fields.iter().rev().filter(|field| field.found.is_none());
    let removed = gone.map(|field| json!({ "op": "remove", "path": field.path }));
    Value::Array(put.chain(removed).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use render::ObjectKey;

    use super::*;

    fn field(path: &str, found: Option<Value>) -> FieldDrift {
        FieldDrift {
            path: path.to_owned(),
            wanted: Some(json!("wanted")),
            found,
            hidden: false,
            manager: "kubectl-edit".to_owned(),
        }
    }

    #[test]
    fn what_is_there_is_put_in_and_what_is_gone_is_taken_out_from_the_end() {
        let fields = [
            field("/spec/containers/0", None),
            field("/spec/containers/1", None),
            field("/spec/replicas", Some(json!(1))),
        ];
        let expected = json!([
            {"op": "replace", "path": "/spec/replicas", "value": 1},
            {"op": "remove", "path": "/spec/containers/1"},
            {"op": "remove", "path": "/spec/containers/0"},
        ]);
        assert_eq!(patch(&fields.iter().collect::<Vec<_>>()), expected.to_string());
    }

    fn object(namespace: &str, name: &str, field: FieldDrift) -> ObjectDrift {
        ObjectDrift {
            object: ObjectKey::new("v1", "ConfigMap", namespace, name),
            api_version: "v1".to_owned(),
            fields: vec![field],
            more: 0,
            message: String::new(),
            chart: None,
        }
    }

    #[test]
    fn each_object_has_a_name_of_its_own_and_what_cannot_be_accepted_is_noted() {
        let hidden = FieldDrift {
            hidden: true,
            ..field("/data/token", None)
        };
        let ours = field("/metadata/annotations/fleet.flotilla.dev~1unit", None);
        let placement = Drifted::of(
            "web",
            vec![
                object("shop", "system:a", field("/data/a", Some(json!("1")))),
                object("shop", "system-a", field("/data/a", Some(json!("1")))),
                object("office", "system-a", field("/data/a", Some(json!("1")))),
                object("shop", "hidden", hidden),
                object("shop", "ours", ours),
                ObjectDrift {
                    chart: Some(ObjectKey::new(
                        "fleet.flotilla.dev/v1alpha1",
                        "HelmChart",
                        "team",
                        "web",
                    )),
                    ..object("shop", "charted", field("/data/a", Some(json!("1"))))
                },
            ],
        );
        let (text, notes) = localizations(&placement, "north");
        let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
        let expected = [
            "web-configmap-shop-system-a-accepted",
            "web-configmap-shop-system-a-accepted-2",
            "web-configmap-office-system-a-accepted",
        ];
        assert_eq!(names, expected, "{text}");
        assert_eq!(text.matches("  namespace: north\n").count(), 3, "{text}");
        let expected = [
            "note: /data/token of ConfigMap shop/hidden is not accepted: its value is not told, since it is a Secret's or too long\n",
            "note: /metadata/annotations/fleet.flotilla.dev~1unit of ConfigMap shop/ours is not accepted: it is not in Git\n",
            "note: /data/a of ConfigMap shop/charted is not accepted: it is made by HelmChart team/web, whose values may accept it\n",
        ];
        assert_eq!(notes, expected);
    }
}
