//! The smallest Localization that accepts what is there: one for each object, a step for each field.

use std::path::Path;
use std::process::ExitCode;

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
    let text = match localizations(placement) {
        Ok(text) => text,
        Err(words) => return wrong(&words),
    };
    if let Some(left_out) = placement.left_out() {
        output::tell(&left_out);
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

/// All of a placement's differences, as Localizations; or why they cannot be accepted.
fn localizations(placement: &Drifted) -> Result<String, String> {
    let documents: Result<Vec<_>, _> = placement
        .objects
        .iter()
        .map(|object| localization(placement, object))
        .collect();
    let documents: Vec<_> = documents?.iter().map(render::yaml::write).collect();
    Ok(documents.join("---\n"))
}

fn localization(placement: &Drifted, object: &ObjectDrift) -> Result<Value, String> {
    if let Some(hidden) = object.fields.iter().find(|field| field.hidden) {
        return Err(format!(
            "error: the value of {} of {} is not told, so it cannot be accepted\nhint: it is a Secret\'s or too long; change it in Git by hand, or leave it to others with spec.drift.ignore\n",
            output::visible(&hidden.path),
            output::visible(&label(object))
        ));
    }
    let key = &object.object;
    let mut feed = json!({ "apiVersion": object.api_version, "kind": key.kind, "name": key.name });
    if !key.namespace.is_empty() {
        feed["namespace"] = json!(key.namespace);
    }
    let name = format!("{}-{}-{}-accepted", placement.unit, key.kind.to_lowercase(), key.name);
    Ok(json!({
        "apiVersion": "fleet.flotilla.dev/v1alpha1",
        "kind": "Localization",
        "metadata": { "namespace": placement.cluster, "name": name },
        "spec": {
            "feed": feed,
            "overrides": [{ "name": "accepted", "type": "JSONPatch", "value": patch(&object.fields) }],
        },
    }))
}

/// A JSON Patch to what is there. What is gone is taken out last, from the end, so that no path moves before its turn.
fn patch(fields: &[FieldDrift]) -> String {
    let replaced = fields.iter().filter_map(|field| {
        let value = field.found.as_ref()?;
        Some(json!({ "op": "replace", "path": field.path, "value": value }))
    });
    let gone = fields.iter().rev().filter(|field| field.found.is_none());
    let removed = gone.map(|field| json!({ "op": "remove", "path": field.path }));
    Value::Array(replaced.chain(removed).collect()).to_string()
}

#[cfg(test)]
mod tests {
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
        assert_eq!(patch(&fields), expected.to_string());
    }
}
