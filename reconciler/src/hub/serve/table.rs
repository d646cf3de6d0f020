//! Objects in the form that was asked for: as they are, as metadata, or as rows of a table.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::accept::Form;
use super::query::Rows;
use super::resource::{AGE, Column, GROUP, Resource, VERSION};
use super::shelf::Item;
use crate::hub::asking::Asking;
use crate::words::age;

/// How objects are to be written.
#[derive(Clone)]
pub(super) struct Shape {
    pub(super) resource: Resource,
    pub(super) form: Form,
    pub(super) rows: Rows,
    /// Knows the tunnels that are there at the moment; without it, there are none.
    pub(super) asking: Option<Asking>,
}

impl Shape {
    /// One object.
    pub(super) fn one(&self, item: &Arc<Item>) -> Value {
        match self.form {
            Form::Table => self.table(
                json!({ "resourceVersion": item.version.to_string() }),
                &[Arc::clone(item)],
            ),
            Form::Metadata => self.metadata(item),
            Form::Plain | Form::Discovery => self.whole(item),
        }
    }

    /// What a list begins with, up to its first element. `metadata` is the list's own.
    pub(super) fn head(&self, metadata: Value) -> String {
        let (mut head, elements) = match self.form {
            Form::Table => (self.with_rows(metadata, &[]), "rows"),
            Form::Metadata => (
                json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": metadata }),
                "items",
            ),
            Form::Plain | Form::Discovery => {
                let kind = format!("{}List", self.resource.names().kind);
                let head = json!({ "apiVersion": format!("{GROUP}/{VERSION}"), "kind": kind, "metadata": metadata });
                (head, "items")
            }
        };
        if let Some(head) = head.as_object_mut() {
            head.remove(elements);
        }
        let head = head.to_string();
        // Without the brace that ends it.
        let begun = head.strip_suffix('}').unwrap_or(&head);
        format!("{begun},{elements:?}:[")
    }

    /// One element of a list.
    pub(super) fn element(&self, item: &Arc<Item>) -> Value {
        match self.form {
            Form::Table => self.row(item),
            Form::Metadata | Form::Plain | Form::Discovery => self.one(item),
        }
    }

    /// An object of which only the version is told.
    pub(super) fn bookmark(&self, version: u64, initial_events_end: bool) -> Value {
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if initial_events_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        match self.form {
            Form::Table => {
                let object =
                    json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata });
                let rows = [json!({ "cells": [], "object": object })];
                self.with_rows(json!({ "resourceVersion": version.to_string() }), &rows)
            }
            Form::Metadata => {
                json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata })
            }
            Form::Plain | Form::Discovery => json!({
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": self.resource.names().kind,
                "metadata": metadata,
            }),
        }
    }

    fn whole(&self, item: &Item) -> Value {
        item.object.whole(self.resource, item.version, item.generation)
    }

    fn metadata(&self, item: &Item) -> Value {
        json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": item.object.metadata(self.resource, item.version, item.generation),
        })
    }

    fn table(&self, metadata: Value, items: &[Arc<Item>]) -> Value {
        let rows: Vec<_> = items.iter().map(|item| self.row(item)).collect();
        self.with_rows(metadata, &rows)
    }

    fn with_rows(&self, metadata: Value, rows: &[Value]) -> Value {
        let name = json!({
            "name": "Name", "type": "string", "format": "name", "priority": 0,
            "description": "The object's name.",
        });
        let mut columns: Vec<_> = std::iter::once(name)
            .chain(self.resource.columns().iter().map(column))
            .collect();
        if let Some(index) = self.resource.age_index() {
            columns.insert(index, column(&AGE));
        }
        json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "Table",
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        })
    }

    fn row(&self, item: &Item) -> Value {
        let mut cells: Vec<_> = std::iter::once(json!(item.object.name))
            .chain(item.object.cells.iter().cloned())
            .collect();
        let now = Timestamp::now().as_second();
        if let Some(live) = &item.object.live {
            let tunnel = self
                .asking
                .as_ref()
                .and_then(|asking| asking.tunnel(&live.cluster).tunnel);
            live.fill(&mut cells[1..], tunnel.as_ref(), now);
        }
        if let Some(index) = self.resource.age_index() {
            cells.insert(index, json!(age(item.object.created, now)));
        }
        match self.rows {
            Rows::None => json!({ "cells": cells }),
            Rows::Metadata => json!({ "cells": cells, "object": self.metadata(item) }),
            Rows::Object => json!({ "cells": cells, "object": self.whole(item) }),
        }
    }
}

fn column(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.type_name,
        "format": "",
        "priority": column.priority,
        "description": column.description,
    })
}
