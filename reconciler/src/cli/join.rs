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
use render::model::CLUSTERNET_CLUSTERS_API_VERSION;
use render::name::{wrong_label_key, wrong_label_value};
use render::registration::{REQUEST_KIND, Request, is_request};
use serde_json::Value;
use tunnel::PublicKey;

use super::agent::{AgentMode, key_path};
use super::hub_url::hub_url;
use super::{exit, keys, output};
use crate::agent::manifests::{Manifests, Rights};
use crate::registration::requested_cluster_file;

/// Arguments of `agent join`.
#[derive(Debug, Args)]
pub(super) struct Join {
    /// The cluster's name; without it, that of the request.
    #[arg(long, required_unless_present = "request")]
    cluster: Option<ClusterName>,
    /// A FILE with Clusternet's ClusterRegistrationRequest: what it says of the cluster goes into the printed file, and
    /// what is left of it is told. Other flags count before it.
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Where its key is kept, made when it is missing; without it, flotilla-CLUSTER.key.
    #[arg(long)]
    key: Option<PathBuf>,
    /// A label of the cluster, KEY=VALUE; may be given more than once.
    #[arg(long = "label", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Who applies, and what the hub may reach; without it and a request, dual.
    #[arg(long, value_enum)]
    sync_mode: Option<AgentMode>,
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
    let request = join.request.as_deref().map(request).transpose()?;
    let Some(cluster) = join.cluster.clone().or_else(|| request.as_ref()?.name.clone()) else {
        output::tell(
            "error: the request has no clusterName that a cluster can have here\nhint: give a name with --cluster\n",
        );
        return Ok(exit::usage());
    };
    let requested = request.as_ref().map(|request| AgentMode::of(request.sync_mode));
    let mode = join.sync_mode.or(requested).unwrap_or_default();
    let path = key_path(join.key.clone(), &cluster);
    // Before a key is made: what is wrong with the rights is wrong without one.
    let rights = rights(join.rights.as_deref())?;
    let key = keys::read_or_make(&path)?;
    output::tell(&format!(
        "The key of cluster {} is in {}; keep it where its agent runs.\n",
        cluster,
        path.display()
    ));
    if let Some(file) = &join.manifests {
        write_manifests(join, (&cluster, mode), file, rights, &path)?;
    }
    if let Some(request) = request.as_ref().filter(|request| !request.unused.is_empty()) {
        output::tell(&format!("Not used of the request: {}.\n", request.unused.join(", ")));
    }
    let file = requested_cluster_file(&cluster, &key.public(), &join.labels, mode.text(), request.as_ref());
    output::print(&file);
    Ok(ExitCode::SUCCESS)
}

/// The request in a file.
fn request(path: &Path) -> anyhow::Result<Request> {
    let name = path.display();
    let documents = render::yaml::read(&bounded(path)?).with_context(|| format!("failed to read {name}"))?;
    let mut requests = documents
        .iter()
        .filter(|document| is_request(&document.value))
        .filter_map(|document| document.value.as_object());
    match (requests.next(), requests.next()) {
        (Some(request), None) => Ok(Request::read(request)),
        (None, _) => bail!("{name} holds no {REQUEST_KIND} of {CLUSTERNET_CLUSTERS_API_VERSION}"),
        (Some(_), Some(_)) => {
            bail!("{name} holds more than one {REQUEST_KIND}; hint: each cluster has a key of its own")
        }
    }
}

fn write_manifests(
    join: &Join,
    (cluster, mode): (&ClusterName, AgentMode),
    file: &Path,
    rights: Rights,
    key: &Path,
) -> anyhow::Result<()> {
    let secret = if join.with_key { Some(bounded(key)?) } else { None };
    let applies_nothing = matches!(rights, Rights::None);
    let manifests = Manifests {
        cluster,
        hub: join.hub.as_deref().context("--hub is missing")?,
        hub_keys: &join.hub_keys,
        image: join.image.as_deref().context("--image is missing")?,
        people: mode != AgentMode::Pull,
        allow: mode.allow(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<Request, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("request.yaml");
        std::fs::write(&path, text).expect("it is writable");
        request(&path).map_err(|error| format!("{error:#}"))
    }

    const REQUEST: &str = "apiVersion: clusters.clusternet.io/v1beta1\nkind: ClusterRegistrationRequest\n";

    #[test]
    fn one_request_is_taken_from_a_file_and_none_or_two_are_told() {
        let one = found(&format!("{REQUEST}spec: {{clusterName: paris}}\n---\nkind: Other\n"));
        assert_eq!(
            one.map(|request| request.name.map(|name| name.to_string())),
            Ok(Some("paris".to_owned()))
        );
        let none = found("kind: ClusterRegistrationRequest\n").expect_err("it is another group's");
        assert!(
            none.contains("holds no ClusterRegistrationRequest of clusters.clusternet.io/v1beta1"),
            "{none}"
        );
        let two = found(&format!("{REQUEST}---\n{REQUEST}")).expect_err("each has a key of its own");
        assert!(two.contains("more than one"), "{two}");
    }
}
