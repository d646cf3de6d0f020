//! `flotilla drift`: which fields others changed in the fleet's clusters, as their reports say.
//!
//! In: a unit, a cluster. Out: fields with what Git says and what is there on stdout, and what a report left out on
//! stderr. Comparing is deliberately not here: each cluster's applier does it where the objects are.

mod export;
mod fields;

use std::path::PathBuf;
use std::process::ExitCode;

use http::StatusCode;
use serde_json::Value;

use self::fields::Drifted;
use super::client::{ClientError, GROUP, JSON, ServerOptions, encoded, failed};
use super::{exit, output, wait_for};

/// Which differences are shown.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::HELP_DRIFT, args_conflicts_with_subcommands = true)]
pub(super) struct DriftOptions {
    #[command(subcommand)]
    command: Option<DriftCommand>,
    /// The Subscription, as NAMESPACE/NAME; without it, all of them.
    unit: Option<String>,
    /// One cluster alone.
    #[arg(long)]
    cluster: Option<String>,
    /// How it is shown.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    server: ServerOptions,
}

#[derive(Debug, clap::Subcommand)]
enum DriftCommand {
    /// Write the Localization that accepts what is there, so that it is no difference any more.
    Export(ExportOptions),
}

/// What is accepted.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::HELP_DRIFT_EXPORT)]
struct ExportOptions {
    /// The Subscription, as NAMESPACE/NAME.
    unit: String,
    /// The cluster whose differences are accepted.
    #[arg(long)]
    cluster: String,
    /// A folder of the fleet repository, such as localizations/paris, in which the file is made; without it, the
    /// Localizations are printed.
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    #[command(flatten)]
    server: ServerOptions,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
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
    /// The placements alone, as `flotilla get` names them.
    Name,
}

/// Shows differences, or accepts them.
pub(super) fn run(options: &DriftOptions) -> anyhow::Result<ExitCode> {
    wait_for(async {
        let done = match &options.command {
            None => show(options).await,
            Some(DriftCommand::Export(options)) => export::run(options).await,
        };
        // What keeps an answer from coming has its own code; whatever else went wrong is no difference.
        match done {
            Ok(code) => code,
            Err(error @ ClientError::Refused { .. }) => {
                failed(&error);
                ExitCode::from(exit::DRIFT_ERROR)
            }
            Err(error) => failed(&error),
        }
    })
}

async fn show(options: &DriftOptions) -> Result<ExitCode, ClientError> {
    let drifted = match read(&options.server, options.unit.as_deref(), options.cluster.as_deref()).await? {
        Ok(drifted) => drifted,
        Err(wrong) => {
            output::tell(&wrong);
            return Ok(ExitCode::from(exit::DRIFT_ERROR));
        }
    };
    output::print(&match options.output {
        Output::Table => fields::table(&drifted, false),
        Output::Wide => fields::table(&drifted, true),
        Output::Json => output::json(&fields::value(&drifted)),
        Output::Yaml => render::yaml::write(&fields::value(&drifted)),
        Output::Name => drifted.iter().map(Drifted::name).collect(),
    });
    for left_out in drifted.iter().filter_map(Drifted::left_out) {
        output::tell(&left_out);
    }
    if drifted.is_empty() {
        output::tell("No drift found.\n");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// What clusters report; or what is wrong with what was asked for.
async fn read(
    server: &ServerOptions,
    unit: Option<&str>,
    cluster: Option<&str>,
) -> Result<Result<Vec<Drifted>, String>, ClientError> {
    let (namespace, name) = match unit.map(|unit| unit.split_once('/').unwrap_or(("default", unit))) {
        Some((namespace, name)) => (Some(namespace), Some(name)),
        None => (None, None),
    };
    let root = namespace.map_or_else(
        || format!("{GROUP}/placements"),
        |namespace| format!("{GROUP}/namespaces/{}/placements", encoded(namespace)),
    );
    let list = server.value(&root, JSON).await?;
    let items = list["items"].as_array().into_iter().flatten();
    let text = |item: &Value, field: &str| item["spec"][field].as_str().unwrap_or_default().to_owned();
    let meant = |item: &&Value| {
        let is = |field: &str, wanted: Option<&str>| wanted.is_none_or(|wanted| text(item, field) == wanted);
        is("subscription", name) && is("cluster", cluster)
    };
    let placements: Vec<_> = items.filter(meant).collect();
    if placements.is_empty()
        && let Some(wrong) = nothing(server, namespace, name, cluster).await?
    {
        return Ok(Err(wrong));
    }
    Ok(Ok(placements.into_iter().filter_map(Drifted::read).collect()))
}

/// Why there is no placement of what was asked for; `None` where there just is none.
async fn nothing(
    server: &ServerOptions,
    namespace: Option<&str>,
    name: Option<&str>,
    cluster: Option<&str>,
) -> Result<Option<String>, ClientError> {
    let there = async |path: String| match server.value(&path, JSON).await {
        Ok(_) => Ok(true),
        Err(ClientError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => Ok(false),
        Err(error) => Err(error),
    };
    if let (Some(namespace), Some(name)) = (namespace, name) {
        let path = format!(
            "{GROUP}/namespaces/{}/subscriptions/{}",
            encoded(namespace),
            encoded(name)
        );
        if !there(path).await? {
            let unit = output::visible(&format!("{namespace}/{name}"));
            return Ok(Some(format!(
                "error: subscription {unit} not found\nhint: `flotilla get subscriptions` lists those that there are\n"
            )));
        }
    }
    if let Some(cluster) = cluster
        && namespace_of(server, cluster).await?.is_none()
    {
        let cluster = output::visible(cluster);
        return Ok(Some(format!(
            "error: cluster {cluster} not found\nhint: `flotilla get managedclusters` lists those that there are\n"
        )));
    }
    Ok(None)
}

/// The namespace in which a cluster's Localizations stand; `None` where no cluster has that name.
async fn namespace_of(server: &ServerOptions, cluster: &str) -> Result<Option<String>, ClientError> {
    let path = format!(
        "{GROUP}/managedclusters?fieldSelector=metadata.name%3D{}",
        encoded(cluster)
    );
    let list = server.value(&path, JSON).await?;
    let namespace = list.pointer("/items/0/metadata/namespace").and_then(Value::as_str);
    Ok(namespace.map(str::to_owned))
}
