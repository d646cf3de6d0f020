//! `flotilla agent join`: a cluster's key, the file that registers it, and what its agent needs in it.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use render::ClusterName;
use render::limits::FILE_BYTES_MAX;
use render::name::{wrong_label_key, wrong_label_value};
use serde_json::Value;
use tunnel::PublicKey;

use super::agent::{AgentMode, key_path};
use super::hub_url::hub_url;
use super::{exit, keys, output};
use crate::agent::manifests::{Manifests, Rights};
use crate::registration::cluster_file;

/// Arguments of `agent join`.
#[derive(Debug, Args)]
pub(super) struct Join {
    /// The cluster's name.
    #[arg(long)]
    cluster: ClusterName,
    /// Where its key is kept, made when it is missing; without it, flotilla-CLUSTER.key.
    #[arg(long)]
    key: Option<PathBuf>,
    /// A label of the cluster, KEY=VALUE; may be given more than once.
    #[arg(long = "label", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Who applies, and what the hub may reach.
    #[arg(long, value_enum, default_value_t)]
    sync_mode: AgentMode,
    /// Write to FILE what `kubectl apply` needs so that the agent runs in the cluster.
    #[arg(long, value_name = "FILE", requires_all = ["hub", "hub_keys", "image"])]
    manifests: Option<PathBuf>,
    /// For the manifests: where the hub listens, as in `flotilla agent`.
    #[arg(long, requires = "manifests", value_parser = hub_url)]
    hub: Option<String>,
    /// For the manifests: the hub's public key (`flotilla hub key` prints it); may be given more than once.
    #[arg(long = "hub-key", requires = "manifests", value_delimiter = ',', value_parser = keys::public)]
    hub_keys: Vec<PublicKey>,
    /// For the manifests: an image that has the binary flotilla.
    #[arg(long, requires = "manifests")]
    image: Option<String>,
    /// For the manifests: what the agent may do to what the feeds hold: cluster-admin, or a FILE of ClusterRoles and
    /// Roles, which are bound to it. Without it, only what every agent needs.
    #[arg(long, requires = "manifests", value_name = "FILE|cluster-admin")]
    rights: Option<PathBuf>,
    /// Put the cluster's key into the manifests as a Secret. Without it, a command is told that does so.
    #[arg(long, requires = "manifests")]
    with_key: bool,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
    if let Some(rule) = wrong_label_key(key) {
        return Err(format!("the key {key:?} is not valid: {rule}"));
    }
    if let Some(rule) = wrong_label_value(value) {
        return Err(format!("the value {value:?} is not valid: {rule}"));
    }
    Ok((key.to_owned(), value.to_owned()))
}

pub(super) fn run(join: &Join) -> anyhow::Result<ExitCode> {
    for (at, (label, _)) in join.labels.iter().enumerate() {
        if join.labels[..at].iter().any(|(earlier, _)| earlier == label) {
            output::tell(&format!(
                "error: --label {label} is given twice\nhint: a cluster has one value for each label\n"
            ));
            return Ok(exit::usage());
        }
    }
    let path = key_path(join.key.clone(), &join.cluster);
    // Before a key is made: what is wrong with the rights is wrong without one.
    let rights = rights(join.rights.as_deref())?;
    let key = keys::read_or_make(&path)?;
    output::tell(&format!(
        "The key of cluster {} is in {}; keep it where its agent runs.\n",
        join.cluster,
        path.display()
    ));
    if let Some(file) = &join.manifests {
        write_manifests(join, file, rights, &path)?;
    }
    let file = cluster_file(&join.cluster, &key.public(), &join.labels, join.sync_mode.text());
    output::print(&file);
    Ok(ExitCode::SUCCESS)
}

fn write_manifests(join: &Join, file: &Path, rights: Rights, key: &Path) -> anyhow::Result<()> {
    let secret = if join.with_key { Some(bounded(key)?) } else { None };
    let applies_nothing = matches!(rights, Rights::None);
    let manifests = Manifests {
        cluster: &join.cluster,
        hub: join.hub.as_deref().context("--hub is missing")?,
        hub_keys: &join.hub_keys,
        image: join.image.as_deref().context("--image is missing")?,
        people: join.sync_mode != AgentMode::Pull,
        allow: join.sync_mode.allow(),
        rights,
        key: secret,
    };
    save(file, &manifests.yaml(), join.with_key).with_context(|| format!("failed to write {}", file.display()))?;
    if !join.with_key {
        output::tell(&format!(
            "Before the agent in it can start: kubectl --namespace flotilla-system create secret generic flotilla-agent --from-file=key={}\n",
            key.display()
        ));
    }
    if applies_nothing {
        output::tell(
            "warning: the agent may apply nothing but namespaces yet\nhint: name its rights with --rights, or bind roles to it\n",
        );
    }
    Ok(())
}

/// Writes a file anew; one with a key is its owner's alone, also if it was there before.
fn save(file: &Path, text: &str, is_secret: bool) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    if is_secret {
        options.mode(0o600);
    }
    let mut file = options.open(file)?;
    if is_secret {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    file.write_all(text.as_bytes())
}

/// The roles in the file that `--rights` names.
fn rights(given: Option<&Path>) -> anyhow::Result<Rights> {
    let Some(given) = given else { return Ok(Rights::None) };
    if given == Path::new("cluster-admin") {
        return Ok(Rights::ClusterAdmin);
    }
    let name = given.display();
    let documents = render::yaml::read(&bounded(given)?).with_context(|| format!("failed to read {name}"))?;
    let mut roles = Vec::with_capacity(documents.len());
    for document in documents {
        let line = document.line;
        roles.push(role(document.value).with_context(|| format!("{name}, line {line}, grants nothing"))?);
    }
    if roles.is_empty() {
        bail!("{name} holds no ClusterRole and no Role; hint: --rights cluster-admin grants everything");
    }
    Ok(Rights::Roles(roles))
}

fn role(value: Value) -> anyhow::Result<Value> {
    let word = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (word("/kind"), word("/metadata/name"));
    if word("/apiVersion") != "rbac.authorization.k8s.io/v1" || !["ClusterRole", "Role"].contains(&kind) {
        bail!("it is no ClusterRole and no Role of rbac.authorization.k8s.io/v1");
    }
    if name.is_empty() {
        bail!("it has no name");
    }
    if kind == "Role" && word("/metadata/namespace").is_empty() {
        bail!("a Role has a namespace");
    }
    Ok(value)
}

fn bounded(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let mut text = String::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text));
    read.with_context(|| format!("failed to read {name}"))?;
    if text.len() > FILE_BYTES_MAX {
        bail!("{name} has more than {FILE_BYTES_MAX} bytes");
    }
    Ok(text)
}
