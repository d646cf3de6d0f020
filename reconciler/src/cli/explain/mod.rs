//! `flotilla explain`: why a unit is where it is, from the hub, or from a clone before a push.

#[cfg(feature = "hub")]
mod offline;
mod room;
mod text;

use std::process::ExitCode;

use http::StatusCode;
use render::nearest::nearest;
use serde_json::Value;

use super::client::{ClientError, GROUP, JSON, ServerOptions, encoded, failed};
use super::{exit, output, wait_for};

/// Which unit is explained, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::HELP_ASKING)]
pub(super) struct ExplainOptions {
    /// The Subscription, as NAMESPACE/NAME or as a name with -n.
    subscription: String,
    /// Its namespace.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// One cluster alone.
    #[arg(long)]
    cluster: Option<String>,
    /// How it is told.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Explain this revision of a clone and ask no hub: what clusters say is not known then.
    #[cfg(feature = "hub")]
    #[arg(long)]
    revision: Option<String>,
    #[cfg(feature = "hub")]
    #[command(flatten)]
    rooms: super::rooms::RoomOptions,
    #[cfg(feature = "hub")]
    #[command(flatten)]
    clone: super::plan::CloneOptions,
    #[command(flatten)]
    server: ServerOptions,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Explains a unit.
pub(super) fn run(options: &ExplainOptions) -> anyhow::Result<ExitCode> {
    let (namespace, name) = options
        .subscription
        .split_once('/')
        .unwrap_or((&options.namespace, &options.subscription));
    #[cfg(feature = "hub")]
    if let Some(revision) = &options.revision {
        return Ok(match offline::explanation(options, revision, namespace, name)? {
            Some(explanation) => print(options, &explanation),
            None => ExitCode::FAILURE,
        });
    }
    wait_for(async {
        match asked(options, namespace, name).await {
            Ok(explanation) => print(options, &explanation),
            Err(error) => {
                let code = failed(&error);
                let missing = matches!(&error, ClientError::Refused { status, .. } if *status == StatusCode::NOT_FOUND);
                if missing && let Ok(names) = names(options, "subscriptions").await {
                    let asked = format!("{namespace}/{name}");
                    match &options.cluster {
                        // Then it is the cluster that is missing.
                        Some(cluster) if names.contains(&asked) => {
                            if let Ok(names) = self::names(options, "managedclusters").await {
                                hint(cluster, &names);
                            }
                        }
                        _ => hint(&asked, &names),
                    }
                }
                code
            }
        }
    })
}

async fn asked(options: &ExplainOptions, namespace: &str, name: &str) -> Result<Value, ClientError> {
    let cluster = options
        .cluster
        .as_ref()
        .map(|cluster| format!("?cluster={}", encoded(cluster)));
    let path = format!(
        "{GROUP}/namespaces/{}/subscriptions/{}/explanation{}",
        encoded(namespace),
        encoded(name),
        cluster.unwrap_or_default()
    );
    options.server.value(&path, JSON).await
}

/// The Subscriptions that there are, or the clusters.
async fn names(options: &ExplainOptions, plural: &str) -> Result<Vec<String>, ClientError> {
    let list = options.server.value(&format!("{GROUP}/{plural}"), JSON).await?;
    let items = list["items"].as_array().into_iter().flatten();
    let key = |item: &Value| {
        let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
        match text("namespace").as_str() {
            "" => text("name"),
            namespace => format!("{namespace}/{}", text("name")),
        }
    };
    Ok(items.map(key).collect())
}

/// Says what may be meant.
fn hint(asked: &str, names: &[String]) {
    let bare = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let same_name = names.iter().find(|name| bare(name) == bare(asked)).map(String::as_str);
    let meant = same_name.or_else(|| nearest(asked, names.iter().map(String::as_str)));
    if let Some(meant) = meant.filter(|meant| *meant != asked) {
        output::tell(&format!("hint: did you mean {}?\n", output::visible(meant)));
    }
}

fn print(options: &ExplainOptions, explanation: &Value) -> ExitCode {
    output::print(&match options.output {
        Output::Text => text::text(explanation),
        Output::Json => output::json(explanation),
        Output::Yaml => render::yaml::write(explanation),
    });
    ExitCode::SUCCESS
}
