//! `flotilla kubeconfig`: how kubectl finds the hub, and every cluster through it.

mod people;

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::{Value, json};

use self::people::{PeopleFlags, Unusable};
use super::client::{Server, ServerOptions};
use super::{exit, output, wait_for};

/// What is written, and where to.
#[derive(Debug, clap::Args)]
pub(super) struct KubeconfigOptions {
    /// The file to write, which must not be there yet; without it, stdout.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// The name of the hub's own context.
    #[arg(long, default_value = "flotilla")]
    name: String,
    /// The namespace that kubectl shows when none is named.
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    people: PeopleFlags,
}

/// One context: its name, and the address behind it.
struct Entry {
    name: String,
    server: String,
}

/// Writes a kubeconfig with a context for the hub, and where the hub serves people, one for each cluster.
pub(super) fn run(options: &KubeconfigOptions) -> anyhow::Result<ExitCode> {
    let text = match options.people.hub() {
        None => match options.server.server() {
            Server::Tcp(authority) => {
                let own = Entry {
                    name: options.name.clone(),
                    server: format!("http://{authority}"),
                };
                // The API knows no callers: there is nothing to log in with.
                document(options, &[own], &json!({}), &json!({}))
            }
            Server::Unix(_) => {
                output::tell(
                    "error: kubectl cannot use a unix socket\nhint: start the hub with --api 127.0.0.1:7070, or look with `flotilla get`, which can\n",
                );
                return Ok(exit::usage());
            }
        },
        Some(hub) => match wait_for(people(options, hub))? {
            Ok(text) => text,
            Err(Unusable::Usage(why)) => {
                output::tell(&format!("error: {why}\n"));
                return Ok(exit::usage());
            }
            Err(Unusable::Hub { why, code }) => {
                output::tell(&format!(
                    "error: the hub does not say which clusters there are: {why}\nhint: name them with --cluster NAME\n"
                ));
                return Ok(ExitCode::from(code));
            }
        },
    };
    match &options.output {
        None => drop(output::print(&text)),
        Some(path) => return write(path, &text),
    }
    Ok(ExitCode::SUCCESS)
}

async fn people(options: &KubeconfigOptions, hub: &str) -> Result<String, Unusable> {
    let (trust, login) = (options.people.trust()?, options.people.login()?);
    let own = Entry {
        name: options.name.clone(),
        server: hub.to_owned(),
    };
    let alone = document(options, std::slice::from_ref(&own), &trust, &login);
    let clusters = options.people.clusters(&alone).await?;
    let entry = |cluster: String| Entry {
        server: format!("{hub}/clusters/{cluster}"),
        // Two contexts of one name are one to kubectl.
        name: match cluster == options.name {
            true => format!("cluster-{cluster}"),
            false => cluster,
        },
    };
    let entries: Vec<_> = std::iter::once(own).chain(clusters.into_iter().map(entry)).collect();
    Ok(document(options, &entries, &trust, &login))
}

fn document(options: &KubeconfigOptions, entries: &[Entry], trust: &Value, login: &Value) -> String {
    let cluster = |entry: &Entry| {
        let mut cluster = json!({ "server": entry.server });
        for (key, value) in trust.as_object().into_iter().flatten() {
            cluster[key] = value.clone();
        }
        json!({ "name": entry.name, "cluster": cluster })
    };
    let context = |entry: &Entry| {
        let mut context = json!({ "cluster": entry.name, "user": options.name });
        if let Some(namespace) = &options.namespace {
            context["namespace"] = json!(namespace);
        }
        json!({ "name": entry.name, "context": context })
    };
    render::yaml::write(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": entries.iter().map(cluster).collect::<Vec<_>>(),
        "users": [{ "name": options.name, "user": login }],
        "contexts": entries.iter().map(context).collect::<Vec<_>>(),
        "current-context": options.name,
    }))
}

/// A file that is there may be somebody's only way into their clusters: it is never written over.
fn write(path: &Path, text: &str) -> anyhow::Result<ExitCode> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    match file {
        Ok(mut file) => {
            let written = file.write_all(text.as_bytes());
            written.with_context(|| format!("failed to write {}", path.display()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let path = path.display();
            output::tell(&format!(
                "error: {path} exists already, and nothing was written\nhint: name another file, and join the two with KUBECONFIG={path}:OTHER\n"
            ));
            Ok(exit::usage())
        }
        Err(error) => Err(error).with_context(|| format!("failed to make {}", path.display())),
    }
}
