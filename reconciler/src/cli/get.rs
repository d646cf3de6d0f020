//! `flotilla get`: lists and watches of the hub's kinds, as `kubectl get` shows them.

use std::process::ExitCode;

use serde_json::Value;

use super::USAGE;
use super::client::{ClientError, GROUP, ServerOptions, encoded};
use super::output::{self, Columns};

const JSON: &str = "application/json";

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// What to show, and how.
#[derive(Debug, clap::Args)]
pub(super) struct GetOptions {
    /// A kind in any of its names: `subscriptions`, `sub`, `placements`, `managedclusters`, `fleet`, `findings`;
    /// or KIND/NAME.
    kind: String,
    /// The name of one object; without it all are listed.
    name: Option<String>,
    /// The namespace; without it, all of them.
    #[arg(short, long, conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// All namespaces, which is the default here.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// How it is shown.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Labels that objects must have, as kubectl takes them.
    #[arg(short = 'l', long)]
    selector: Option<String>,
    /// Go on with what changes.
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    server: ServerOptions,
}

/// How objects are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
enum Output {
    /// In columns.
    #[default]
    Table,
    /// In more columns.
    Wide,
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
    /// Kind and name only.
    Name,
}

/// A kind as the hub has it.
struct Resource {
    plural: String,
    singular: String,
    namespaced: bool,
}

/// Shows what was asked for.
pub(super) fn run(options: &GetOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        match show(options).await {
            Ok(code) => code,
            Err(error) => failed(error),
        }
    }))
}

/// Says why there is no answer, and what to do about it.
pub(super) fn failed(error: ClientError) -> ExitCode {
    let unreachable = matches!(error, ClientError::Unreachable { .. } | ClientError::NotAHub { .. });
    let error = anyhow::Error::new(error);
    eprintln!("error: {}", output::visible(&format!("{error:#}")));
    if unreachable {
        eprintln!(
            "hint: start the hub with `flotilla hub`, and name its --api address with --server or FLOTILLA_SERVER"
        );
        return ExitCode::from(USAGE);
    }
    ExitCode::FAILURE
}

async fn show(options: &GetOptions) -> Result<ExitCode, ClientError> {
    let (kind, named) = match options.kind.split_once('/') {
        Some((kind, name)) => (kind, Some(name)),
        None => (options.kind.as_str(), options.name.as_deref()),
    };
    let resources = options.server.value(GROUP, JSON).await?;
    let Some(resource) = resource(&resources, kind) else {
        eprintln!("error: the hub has no kind {:?}", output::visible(kind));
        eprintln!("hint: it has {}", known(&resources).join(", "));
        return Ok(ExitCode::from(USAGE));
    };
    let path = path(options, &resource, named);
    let list = options.server.value(&path, options.output.accept()).await?;
    if options.output.count(&list) == 0 {
        if let (Some(name), false) = (named, options.watch) {
            eprintln!("error: {} {:?} not found", resource.plural, output::visible(name));
            return Ok(ExitCode::FAILURE);
        }
        eprintln!("No {} found.", resource.plural);
    }
    let mut printer = Printer {
        options,
        resource,
        columns: None,
    };
    let reading = output::print(&printer.list(&list, named.is_some()));
    if options.watch && reading {
        return watch(options, &path, &list, &mut printer).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows changes until somebody stops it; a watch that the hub ends after its time is taken up again.
async fn watch(
    options: &GetOptions,
    path: &str,
    list: &Value,
    printer: &mut Printer<'_>,
) -> Result<ExitCode, ClientError> {
    let version = |value: &Value| {
        let row = value.pointer("/rows/0/object/metadata/resourceVersion");
        row.or_else(|| value.pointer("/metadata/resourceVersion"))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let mut from = list
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    loop {
        let separator = if path.contains('?') { '&' } else { '?' };
        let watched = format!("{path}{separator}watch=true&allowWatchBookmarks=true&resourceVersion={from}");
        let mut lines = options.server.lines(&watched, options.output.accept()).await?;
        while let Some(event) = lines.next().await {
            let object = &event["object"];
            match event["type"].as_str() {
                Some("ERROR") => {
                    let message = object["message"].as_str().unwrap_or("the watch failed").to_owned();
                    return Err(ClientError::Refused { message });
                }
                Some("BOOKMARK") => {}
                _ if output::print(&printer.event(object)) => {}
                // Nobody reads any more.
                _ => return Ok(ExitCode::SUCCESS),
            }
            from = version(object).unwrap_or(from);
        }
    }
}

fn path(options: &GetOptions, resource: &Resource, named: Option<&str>) -> String {
    let root = match &options.namespace {
        Some(namespace) if resource.namespaced => {
            format!("{GROUP}/namespaces/{}/{}", encoded(namespace), resource.plural)
        }
        _ => format!("{GROUP}/{}", resource.plural),
    };
    let name = named.map(|name| format!("fieldSelector={}", encoded(&format!("metadata.name={name}"))));
    let labels = options
        .selector
        .as_ref()
        .map(|labels| format!("labelSelector={}", encoded(labels)));
    let query: Vec<_> = name.into_iter().chain(labels).collect();
    if query.is_empty() {
        root
    } else {
        format!("{root}?{}", query.join("&"))
    }
}

/// The kind that a person means by a word.
fn resource(list: &Value, word: &str) -> Option<Resource> {
    let word = word.to_ascii_lowercase();
    let word = word.split('.').next().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
    let means = |entry: &&Value| {
        let short = entry["shortNames"].as_array().into_iter().flatten().map(text);
        [&entry["name"], &entry["singularName"], &entry["kind"]]
            .into_iter()
            .map(text)
            .chain(short)
            .any(|name| name == word)
    };
    let entry = list["resources"].as_array()?.iter().find(means)?;
    Some(Resource {
        plural: text(&entry["name"]),
        singular: text(&entry["singularName"]),
        namespaced: entry["namespaced"].as_bool().unwrap_or_default(),
    })
}

fn known(list: &Value) -> Vec<&str> {
    let resources = list["resources"].as_array().into_iter().flatten();
    resources.filter_map(|entry| entry["name"].as_str()).collect()
}

impl Output {
    fn accept(self) -> &'static str {
        match self {
            Self::Table | Self::Wide => TABLE,
            Self::Json | Self::Yaml | Self::Name => JSON,
        }
    }

    fn count(self, list: &Value) -> usize {
        let entries = if self.accept() == TABLE {
            &list["rows"]
        } else {
            &list["items"]
        };
        entries.as_array().map_or(0, Vec::len)
    }
}

/// Shows one kind in one form.
struct Printer<'a> {
    options: &'a GetOptions,
    resource: Resource,
    /// The columns of the first table: what follows keeps to them.
    columns: Option<Columns>,
}

impl Printer<'_> {
    fn list(&mut self, list: &Value, named: bool) -> String {
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
    fn event(&mut self, object: &Value) -> String {
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
        format!(
            "{}.fleet.flotilla.dev/{}\n",
            self.resource.singular,
            output::visible(name)
        )
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
            let cells = shown.iter().map(|(index, _, _)| cell(&row["cells"][*index]));
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
