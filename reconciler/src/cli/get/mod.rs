//! `flotilla get`: lists and watches of the hub's kinds, as `kubectl get` shows them.
//!
//! In: a kind, a name, labels. Out: tables, JSON, YAML or names on stdout; everything else on stderr. What an
//! object says is the hub's matter; asking is [`super::client`]'s.

mod capacity;
mod printer;
mod resource;
mod watch;

use std::process::ExitCode;

use render::nearest::nearest;
use serde_json::{Value, json};

use super::client::{ClientError, GROUP, JSON, ServerOptions, encoded, failed};
use super::{exit, output, wait_for};
use printer::Printer;
use resource::Resource;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// What to show, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::HELP_ASKING)]
pub(super) struct GetOptions {
    /// A kind in any of its names: `subscriptions` (`sub`), `placements` (`place`), `descriptions` (`desc`),
    /// `managedclusters` (`mcls`, `cluster`), `fleet`, `findings`, `suspensions`; several with commas; `all`; or
    /// KIND/NAME. `capacity` is the room that clusters said they have.
    kind: String,
    /// The name of one object, also as NAMESPACE/NAME; without it all are listed.
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
    /// Go on with what changes, also when the hub is away for a moment.
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

/// What was asked for, read.
struct Asked<'a> {
    resources: Vec<Resource>,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
}

/// Shows what was asked for.
pub(super) fn run(options: &GetOptions) -> anyhow::Result<ExitCode> {
    wait_for(async {
        match show(options).await {
            Ok(code) => code,
            Err(error) => failed(&error),
        }
    })
}

async fn show(options: &GetOptions) -> Result<ExitCode, ClientError> {
    let known = resource::all(&options.server.value(GROUP, JSON).await?);
    if let Some(name) = capacity::asked(options) {
        return capacity::show(options, &known, name).await;
    }
    let asked = match asked(options, &known) {
        Ok(asked) => asked,
        Err(wrong) => {
            output::tell(&wrong);
            return Ok(exit::usage());
        }
    };
    let [resource] = asked.resources.as_slice() else {
        return several(options, &asked).await;
    };
    let path = path(options, &asked, resource);
    let list = options.server.value(&path, options.output.accept()).await?;
    if options.output.count(&list) == 0 {
        if let (Some(name), false) = (asked.name, options.watch) {
            return not_found(options, resource, name).await;
        }
        output::tell(&format!("No {} found.\n", resource.plural));
    }
    let mut printer = Printer::new(options, resource, false);
    let reading = output::print(&printer.list(&list, asked.name.is_some()));
    if options.watch && reading {
        return watch::follow(options, &path, &list, &mut printer).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// The kinds and the name that are meant, or what is wrong with how they were asked for.
fn asked<'a>(options: &'a GetOptions, known: &[Resource]) -> Result<Asked<'a>, String> {
    let (kinds, named) = match options.kind.split_once('/') {
        Some((kind, name)) => (kind, Some(name)),
        None => (options.kind.as_str(), options.name.as_deref()),
    };
    let mut resources: Vec<Resource> = Vec::new();
    for word in kinds.split(',') {
        if word.eq_ignore_ascii_case("all") {
            resources.extend(known.iter().cloned());
            continue;
        }
        let Some(found) = known.iter().find(|resource| resource.is_called(word)) else {
            return Err(unknown_kind(word, known));
        };
        resources.push(found.clone());
    }
    if resources.len() > 1 && (named.is_some() || options.watch) {
        let what = if options.watch { "a watch" } else { "a name" };
        return Err(format!("error: {what} is of one kind, and {kinds:?} is several\n"));
    }
    let (namespace, name) = match named.and_then(|name| name.split_once('/')) {
        Some((namespace, name)) => (Some(namespace), Some(name)),
        None => (options.namespace.as_deref(), named),
    };
    Ok(Asked {
        resources,
        namespace,
        name,
    })
}

fn unknown_kind(word: &str, known: &[Resource]) -> String {
    let names: Vec<_> = known.iter().map(|resource| resource.plural.as_str()).collect();
    let meant = nearest(word, names.iter().copied().chain(["all", "capacity"]));
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
    let list = names.join(", ");
    let word = output::visible(word);
    format!("error: the hub has no kind {word:?}\nhint: {meant}it has {list}, all for every kind, and capacity\n")
}

/// Says that there is no such object, and which there is of nearly that name.
async fn not_found(options: &GetOptions, resource: &Resource, name: &str) -> Result<ExitCode, ClientError> {
    let unnamed = Asked {
        resources: Vec::new(),
        namespace: None,
        name: None,
    };
    let list = options.server.value(&path(options, &unnamed, resource), JSON).await?;
    let names = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["metadata"]["name"].as_str());
    let (plural, shown) = (&resource.plural, output::visible(name));
    let meant = nearest(name, names).map_or_else(
        || format!("`flotilla get {plural}` lists those that there are"),
        |meant| format!("did you mean {:?}?", output::visible(meant)),
    );
    output::tell(&format!("error: {plural} {shown:?} not found\nhint: {meant}\n"));
    Ok(ExitCode::FAILURE)
}

/// Lists of several kinds: one table after the other, or one list of all objects.
async fn several(options: &GetOptions, asked: &Asked<'_>) -> Result<ExitCode, ClientError> {
    let mut items = Vec::new();
    let mut tables = Vec::new();
    for resource in &asked.resources {
        let path = path(options, asked, resource);
        let mut list = options.server.value(&path, options.output.accept()).await?;
        let mut printer = Printer::new(options, resource, true);
        match options.output {
            Output::Json | Output::Yaml => {
                items.extend(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default());
            }
            Output::Name => tables.push(printer.list(&list, false)),
            Output::Table | Output::Wide if options.output.count(&list) > 0 => {
                tables.push(printer.list(&list, false));
            }
            Output::Table | Output::Wide => {}
        }
    }
    let whole = json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items });
    match options.output {
        Output::Json => output::print(&output::json(&whole)),
        Output::Yaml => output::print(&render::yaml::write(&whole)),
        Output::Name => output::print(&tables.concat()),
        Output::Table | Output::Wide => output::print(&tables.join("\n")),
    };
    Ok(ExitCode::SUCCESS)
}

fn path(options: &GetOptions, asked: &Asked<'_>, resource: &Resource) -> String {
    let root = match asked.namespace {
        Some(namespace) if resource.namespaced => {
            format!("{GROUP}/namespaces/{}/{}", encoded(namespace), resource.plural)
        }
        _ => format!("{GROUP}/{}", resource.plural),
    };
    let name = asked
        .name
        .map(|name| format!("fieldSelector={}", encoded(&format!("metadata.name={name}"))));
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
