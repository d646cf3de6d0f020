//! Objects in the form that was asked for: whole, their metadata, or rows of a table.

mod age;
mod cells;
mod columns;
mod json_path;

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::request::{Form, Query};

/// One object.
pub(crate) fn one(kind: &Kind, form: Form, object: &Value, query: &Query) -> Value {
    match form {
        Form::Whole => object.clone(),
        Form::Metadata => partial(object),
        Form::Table => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            table(kind, std::slice::from_ref(object), metadata, query, true)
        }
    }
}

/// A list.
pub(crate) fn many(kind: &Kind, form: Form, objects: Vec<Value>, metadata: Value, query: &Query) -> Value {
    match form {
        Form::Whole => json!({"kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
            "metadata": metadata, "items": items(kind, objects)}),
        Form::Metadata => {
            let items: Vec<_> = objects.iter().map(partial).collect();
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items})
        }
        Form::Table => table(kind, &objects, metadata, query, true),
    }
}

/// What a watch shows; only the first row of a watch brings its columns.
pub(crate) fn watched(kind: &Kind, form: Form, object: &Value, query: &Query, first: bool) -> Value {
    match form {
        Form::Table => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            table(kind, std::slice::from_ref(object), metadata, query, first)
        }
        form => one(kind, form, object, query),
    }
}

/// A bookmark in a form: an object that has nothing but a version.
pub(crate) fn bookmark(kind: &Kind, form: Form, version: u64, ends_initial: bool) -> Value {
    let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
    if ends_initial {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    match form {
        Form::Whole => json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata}),
        Form::Metadata => {
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
        }
        Form::Table => {
            let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
            json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": version.to_string()}, "columnDefinitions": [],
                "rows": [{"cells": [], "object": object}]})
        }
    }
}

/// Items of built-in lists come without kind and version, as from the real server.
fn items(kind: &Kind, mut objects: Vec<Value>) -> Vec<Value> {
    if kind.custom.is_none() {
        for object in objects.iter_mut().filter_map(Value::as_object_mut) {
            object.remove("kind");
            object.remove("apiVersion");
        }
    }
    objects
}

fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn table(kind: &Kind, objects: &[Value], metadata: Value, query: &Query, with_columns: bool) -> Value {
    let columns = columns::of(kind);
    let rows = objects.iter().map(|object| {
        let cells: Vec<_> = columns.iter().map(|column| column.cell(object)).collect();
        let mut row = json!({ "cells": cells });
        match query.text("includeObject") {
            Some("None") => {}
            Some("Object") => row["object"] = object.clone(),
            _ => row["object"] = partial(object),
        }
        row
    });
    let rows: Vec<_> = rows.collect();
    let definitions: Vec<_> = if with_columns {
        columns.iter().map(columns::Column::definition).collect()
    } else {
        Vec::new()
    };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows})
}
