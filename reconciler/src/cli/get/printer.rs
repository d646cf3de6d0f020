//! One kind's objects in the form that was asked for.

use serde_json::Value;

use super::resource::Resource;
use super::{GetOptions, Output};
use crate::cli::output::{self, Columns};

/// Shows one kind in one form.
pub(super) struct Printer<'a> {
    options: &'a GetOptions,
    resource: &'a Resource,
    /// Whether names carry their kind, since other kinds stand beside.
    with_kind: bool,
    /// The columns of the first table: what follows keeps to them.
    columns: Option<Columns>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(options: &'a GetOptions, resource: &'a Resource, with_kind: bool) -> Self {
        Self {
            options,
            resource,
            with_kind,
            columns: None,
        }
    }

    pub(super) fn list(&mut self, list: &Value, named: bool) -> String {
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        match (self.options.output, items) {
            (Output::Table | Output::Wide, _) => self.table(list),
            (Output::Name, _) => items.iter().map(|item| self.name(item)).collect(),
            (Output::Json | Output::Yaml, [one]) if named => self.whole(one),
            (Output::Json | Output::Yaml, _) if self.options.watch => {
                items.iter().map(|item| self.whole(item)).collect()
            }
            (Output::Json | Output::Yaml, _) => self.whole(list),
        }
    }

    /// What a watch says of one object.
    pub(super) fn event(&mut self, object: &Value) -> String {
        match self.options.output {
            Output::Table | Output::Wide => self.table(object),
            Output::Name => self.name(object),
            Output::Json | Output::Yaml => self.whole(object),
        }
    }

    fn whole(&self, value: &Value) -> String {
        match self.options.output {
            Output::Json => output::json(value),
            _ if self.options.watch => format!("---\n{}", render::yaml::write(value)),
            _ => render::yaml::write(value),
        }
    }

    fn name(&self, object: &Value) -> String {
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        format!("{}{}\n", self.kind_of_name(), output::visible(name))
    }

    fn kind_of_name(&self) -> String {
        format!("{}.fleet.flotilla.dev/", self.resource.singular)
    }

    fn table(&mut self, table: &Value) -> String {
        let wide = self.options.output == Output::Wide;
        let shown: Vec<_> = definitions(table)
            .filter(|(_, priority, _)| wide || *priority == 0)
            .collect();
        let with_namespace = self.resource.namespaced && self.options.namespace.is_none();
        let namespace = with_namespace.then(|| "NAMESPACE".to_owned());
        let header: Vec<_> = namespace
            .into_iter()
            .chain(shown.iter().map(|(_, _, name)| name.to_uppercase()))
            .collect();
        let row = |row: &Value| {
            let namespace = row
                .pointer("/object/metadata/namespace")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let namespace = with_namespace.then(|| output::visible(namespace));
            let cells = shown.iter().map(|(index, _, _)| match index {
                0 if self.with_kind => format!("{}{}", self.kind_of_name(), cell(&row["cells"][0])),
                index => cell(&row["cells"][*index]),
            });
            namespace.into_iter().chain(cells).collect::<Vec<_>>()
        };
        let rows: Vec<_> = table["rows"].as_array().into_iter().flatten().map(row).collect();
        if rows.is_empty() {
            return String::new();
        }
        if let Some(columns) = &self.columns {
            return rows.iter().map(|row| columns.line(row)).collect();
        }
        let all: Vec<_> = std::iter::once(header).chain(rows).collect();
        let columns = Columns::fitting(&all);
        let text = all.iter().map(|row| columns.line(row)).collect();
        self.columns = Some(columns);
        text
    }
}

/// Index, priority and name of each column.
fn definitions(table: &Value) -> impl Iterator<Item = (usize, i64, &str)> {
    let columns = table["columnDefinitions"].as_array().into_iter().flatten().enumerate();
    columns.map(|(index, column)| {
        (
            index,
            column["priority"].as_i64().unwrap_or_default(),
            column["name"].as_str().unwrap_or_default(),
        )
    })
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => output::visible(text),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
