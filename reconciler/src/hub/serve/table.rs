//! Objects in the form that was asked for: as they are, as metadata, or as rows of a table.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::accept::Form;
use super::query::Rows;
use super::resource::{AGE, Column, GROUP, Resource, VERSION};
use super::shelf::Item;

/// How objects are to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) resource: Resource,
    pub(super) form: Form,
    pub(super) rows: Rows,
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

    /// A list. `metadata` is the list's own.
    pub(super) fn list(&self, metadata: Value, items: &[Arc<Item>]) -> Value {
        let (api_version, kind) = match self.form {
            Form::Table => return self.table(metadata, items),
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned()),
            Form::Plain | Form::Discovery => (
                format!("{GROUP}/{VERSION}"),
                format!("{}List", self.resource.names().kind),
            ),
        };
        let items: Vec<_> = items.iter().map(|item| self.one(item)).collect();
        json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "items": items })
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
        if let Some(index) = self.resource.age_index() {
            cells.insert(index, json!(age(item.object.created, Timestamp::now().as_second())));
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

/// How long ago that was, as kubectl writes it: in one unit, or two while the first is a small number.
fn age(created: Option<i64>, now: i64) -> String {
    let Some(created) = created else {
        return "<unknown>".to_owned();
    };
    // A commit's time is its author's clock, which may be ahead of ours.
    let seconds = (now - created).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let two = |large: i64, large_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{large_unit}"),
        small => format!("{large}{large_unit}{small}{small_unit}"),
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: i64, expected: &str) {
        assert_eq!(age(Some(1_000), 1_000 + seconds), expected);
    }

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        check(-5, "0s");
        check(119, "119s");
        check(120, "2m");
        check(301, "5m1s");
        check(900, "15m");
        check(4 * 3_600 + 60, "4h1m");
        check(12 * 3_600, "12h");
        check(3 * 86_400 + 3_600, "3d1h");
        check(30 * 86_400, "30d");
        check(3 * 365 * 86_400, "3y");
        assert_eq!(age(None, 5), "<unknown>", "nothing is made up");
    }
}
