//! `flotilla kubeconfig`: how kubectl finds the hub's read-only API.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;

use super::client::{Server, ServerOptions};
use super::{exit, output};

/// What is written, and where to.
#[derive(Debug, clap::Args)]
pub(super) struct KubeconfigOptions {
    /// The file to write, which must not be there yet; without it, stdout.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// The name of its context.
    #[arg(long, default_value = "flotilla")]
    name: String,
    /// The namespace that kubectl shows when none is named.
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Writes a kubeconfig with one context.
pub(super) fn run(options: &KubeconfigOptions) -> anyhow::Result<ExitCode> {
    let Server::Tcp(authority) = options.server.server() else {
        output::tell(
            "error: kubectl cannot use a unix socket\nhint: start the hub with --api 127.0.0.1:7070, or look with `flotilla get`, which can\n",
        );
        return Ok(exit::usage());
    };
    let mut context = json!({ "cluster": options.name, "user": options.name });
    if let Some(namespace) = &options.namespace {
        context["namespace"] = json!(namespace);
    }
    let text = render::yaml::write(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": options.name, "cluster": { "server": format!("http://{authority}") } }],
        // The API knows no callers: there is nothing to log in with.
        "users": [{ "name": options.name, "user": {} }],
        "contexts": [{ "name": options.name, "context": context }],
        "current-context": options.name,
    }));
    match &options.output {
        None => drop(output::print(&text)),
        Some(path) => return write(path, &text),
    }
    Ok(ExitCode::SUCCESS)
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
