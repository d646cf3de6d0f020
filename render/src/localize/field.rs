//! YAML or JSON inside a string field.
//!
//! The text is read, changed and written anew: keys come back sorted, YAML loses its comments, and a YAML
//! number is written as it was understood (`1.0` as `1`).

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

use crate::localize::problem::Problem;
use crate::model::FieldFormat;
use crate::yaml;

/// Changes the document that stands as text in a string field. Blank text is left alone: there is no
/// document to patch.
pub(super) fn edit(
    object: &mut Value,
    pointer: &str,
    format: FieldFormat,
    change: impl FnOnce(&mut Value) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let field = object.pointer_mut(pointer);
    let field = field.ok_or_else(|| Problem::FieldMissing(pointer.to_owned()))?;
    let Value::String(text) = field else {
        return Err(Problem::FieldNotText(pointer.to_owned()));
    };
    if text.trim().is_empty() {
        return Ok(());
    }
    let mut document = read(text, format).map_err(|why| Problem::FieldUnreadable {
        field: pointer.to_owned(),
        format: format.name(),
        why,
    })?;
    change(&mut document)?;
    *text = write(&document, format);
    Ok(())
}

fn read(text: &str, format: FieldFormat) -> Result<Value, String> {
    match format {
        FieldFormat::Json => {
            // The parser's own words may quote what it read.
            let value = serde_json::from_str(text)
                .map_err(|error| format!("mistake in line {}, column {}", error.line(), error.column()))?;
            // JSON's reader drops the first of two equal keys and the last digits of long integers; this
            // one refuses both.
            yaml::read(text).map_err(|error| error.to_string())?;
            Ok(value)
        }
        FieldFormat::Yaml => {
            let mut documents = yaml::read(text).map_err(|error| error.to_string())?;
            match (documents.pop(), documents.is_empty()) {
                (Some(document), true) => Ok(document.value),
                (None, _) => Ok(Value::Null),
                (Some(_), false) => Err("it is more than one document".to_owned()),
            }
        }
    }
}

fn write(document: &Value, format: FieldFormat) -> String {
    match format {
        FieldFormat::Yaml => yaml::write(document),
        FieldFormat::Json => indented(document),
    }
}

/// JSON with keys sorted and four blanks a level.
fn indented(document: &Value) -> String {
    let mut document = document.clone();
    document.sort_all_objects();
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    document
        .serialize(&mut serializer)
        .expect("a JSON value has only text keys, and a Vec takes any length");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}
