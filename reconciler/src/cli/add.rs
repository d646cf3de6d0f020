//! `flotilla add`: manifests into the clone as one commit, after an API server was asked about each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use clap::{ArgGroup, Args};
use render::intake::{Manifest, file_stem, guessed_plural};
use render::load::LoadMemo;
use render::model::{FLEET_API_VERSION, Feed, PlaintextSecrets};
use render::name::{wrong_label_key, wrong_label_value};
use render::tree::{SourceEntry, SourceFile};
use render::{Base, Finding, Fleet, ManifestObject, ObjectKey, SourceTree, UnitKey};
use serde_json::json;

use super::clone::{Change, Clone, CloneOptions, Edit};
use super::{manifests, output, wait_for};
use crate::apply::{ApiServer, Checked, Verdict, dry_run};
use crate::hub::source::Source;
use crate::hub::{load_tree, plan_anew};

/// Write manifests below `feeds/` and commit them, after a server-side dry run of each on one cluster.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("where").required(true).multiple(true).args(["to", "into"])))]
pub(super) struct Add {
    /// Manifests: files, folders, or `-` for stdin.
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    filenames: Vec<PathBuf>,
    /// The Subscription that delivers them, as NAMESPACE/NAME. It is made when there is none; one that is there is
    /// never rewritten.
    #[arg(long, value_name = "SUBSCRIPTION")]
    to: Option<UnitKey>,
    /// The folder that they go to, from the repository's root; without it, where the Subscription's files are.
    #[arg(long, value_name = "FOLDER", value_parser = folder_below)]
    into: Option<String>,
    /// Of a new Subscription: a label that clusters must have. Without it, it is for every cluster.
    #[arg(long = "select", value_name = "LABEL=VALUE", value_parser = label, requires = "to")]
    labels: Vec<(String, String)>,
    /// A kubeconfig of the cluster whose API server is asked; without it, ~/.kube/config as for kubectl.
    #[arg(long, env = "KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Its context; without it, the file's current one.
    #[arg(long)]
    context: Option<String>,
    /// Ask no API server.
    #[arg(long)]
    no_check: bool,
    #[command(flatten)]
    clone: CloneOptions,
}

/// The clone with what its newest commit says.
struct Present {
    tree: SourceTree,
    fleet: Arc<Fleet>,
    findings: Vec<Finding>,
}

pub(super) fn run(arguments: &Add) -> anyhow::Result<ExitCode> {
    let clone = arguments.clone.open()?;
    let manifests = match read(arguments)? {
        Ok(manifests) => manifests,
        Err(findings) => return Ok(refused("the manifests cannot be read", &findings)),
    };
    let objects: Vec<_> = manifests.iter().map(|manifest| manifest.object.clone()).collect();
    twice(&objects)?;
    let plurals = if arguments.no_check {
        objects.iter().map(|object| guessed_plural(&object.key.kind)).collect()
    } else {
        match check(arguments, &objects)? {
            Some(plurals) => plurals,
            None => return Ok(ExitCode::FAILURE),
        }
    };
    let source = Source::open(clone.root(), clone.branch())?;
    let head = source.resolve("HEAD").context("the clone has no commit yet")?;
    let present = Present::of(&source, source.tree(&head)?)?;
    if let Some(findings) = plaintext(&objects, &present.fleet) {
        return Ok(refused("nothing was added", &findings));
    }
    let folder = arguments.folder(&present.fleet);
    let mut edits = edits(&present.tree, &folder, &manifests, &plurals)?;
    let subscription = arguments
        .to
        .as_ref()
        .filter(|unit| !present.fleet.units.contains_key(unit));
    if let Some(unit) = subscription {
        edits.push(arguments.subscription(&clone, unit, &folder)?);
    }
    if edits.is_empty() {
        output::tell("All of it is there already; there is nothing to do.\n");
        return Ok(ExitCode::SUCCESS);
    }
    unusable_labels(arguments, &present.fleet)?;
    let next = Present::of(&source, with(&present.tree, &edits))?;
    let new = next.new_errors(&present);
    if !new.is_empty() {
        return Ok(refused("the fleet would have new errors, so nothing was added", &new));
    }
    let change = arguments.change(&manifests, &folder, edits);
    let code = arguments.clone.commit(&clone, &change)?;
    arguments.tell_of_delivery(&next.fleet, &objects, &folder, subscription.is_some());
    Ok(code)
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => match wrong_label_key(key).or_else(|| wrong_label_value(value)) {
            Some(rule) => Err(format!("no cluster can have this label: {rule}")),
            None => Ok((key.to_owned(), value.to_owned())),
        },
        _ => Err("it is no LABEL=VALUE".to_owned()),
    }
}

/// A folder that a feed can name: its path is written into a pattern as it is.
fn folder_below(text: &str) -> Result<String, String> {
    let names: Vec<_> = text.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    if text.starts_with('/') || names.is_empty() {
        return Err("name a folder below the repository's root".to_owned());
    }
    if text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
        return Err(
            "a feed's path is a pattern, in which *?[]{}\\ mean something else; choose another name".to_owned(),
        );
    }
    Ok(names.join("/"))
}

/// What `--select` asks for and could not be done.
fn unusable_labels(arguments: &Add, fleet: &Fleet) -> anyhow::Result<()> {
    let mut keys = BTreeSet::new();
    if let Some((key, _)) = arguments.labels.iter().find(|(key, _)| !keys.insert(key)) {
        bail!("--select {key} is given twice; hint: a cluster has one value for each label");
    }
    if let Some(unit) = arguments.to.as_ref().filter(|unit| fleet.units.contains_key(unit))
        && !arguments.labels.is_empty()
    {
        bail!("{unit} is there already; --select is for a new one");
    }
    Ok(())
}

fn read(arguments: &Add) -> anyhow::Result<Result<Vec<Manifest>, Vec<Finding>>> {
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for (name, bytes) in manifests::read(&arguments.filenames)? {
        let (manifests, findings) = render::intake::manifests(&name, &bytes);
        all.extend(manifests);
        for finding in findings {
            match finding.is_error() {
                true => errors.push(finding),
                false => output::tell(&format!("{finding}\n")),
            }
        }
    }
    if !errors.is_empty() {
        return Ok(Err(errors));
    }
    if all.is_empty() {
        bail!("there is no manifest in what -f names");
    }
    Ok(Ok(all))
}

/// Findings, and that they are why nothing was done.
fn refused(what: &str, findings: &[Finding]) -> ExitCode {
    for finding in findings {
        output::tell(&format!("{finding}\n"));
    }
    output::tell(&format!("error: {what}\n"));
    ExitCode::FAILURE
}

fn twice(objects: &[ManifestObject]) -> anyhow::Result<()> {
    let mut seen = BTreeMap::new();
    for object in objects {
        if let Some(first) = seen.insert(&object.key, object) {
            let (a, b) = ((&first.file, first.line), (&object.file, object.line));
            bail!(
                "{} is there twice: in {}:{} and in {}:{}",
                object.key,
                a.0,
                a.1,
                b.0,
                b.1
            );
        }
    }
    Ok(())
}

/// Asks the API server. The plurals of the kinds; `None` where it refuses something, which has been told then.
fn check(arguments: &Add, objects: &[ManifestObject]) -> anyhow::Result<Option<Vec<String>>> {
    let kubeconfig = arguments.kubeconfig()?;
    output::tell(&format!(
        "Asking the API server about {}.\n",
        output::counted(objects.len(), "object")
    ));
    let checked: Vec<Checked> = wait_for(async {
        let server = ApiServer::from_kubeconfig(&kubeconfig, arguments.context.as_deref()).await?;
        anyhow::Ok(dry_run(&server.client, objects).await?)
    })?
    .map_err(|error| or_no_check(error.as_ref()))?;
    let mut refused = 0;
    for (object, checked) in objects.iter().zip(&checked) {
        let place = format!("{}:{}: {}", object.file, object.line, object.key);
        match &checked.verdict {
            Verdict::Taken => {}
            Verdict::Noted(words) => output::tell(&format!("{place}: note: {}\n", output::visible(words))),
            Verdict::Refused(words) => {
                refused += 1;
                output::tell(&format!("{place}: {}\n", output::visible(words)));
            }
        }
    }
    if refused > 0 {
        let what = output::counted(refused, "object");
        output::tell(&format!("error: the API server refuses {what}, so nothing was added\n"));
        return Ok(None);
    }
    let plural = |(object, checked): (&ManifestObject, Checked)| {
        checked.plural.unwrap_or_else(|| guessed_plural(&object.key.kind))
    };
    Ok(Some(objects.iter().zip(checked).map(plural).collect()))
}

/// An error of who cannot ask, with what to do besides.
fn or_no_check(error: &dyn std::error::Error) -> anyhow::Error {
    let (said, hint) = crate::fault::told(error);
    let hint = hint.map(|hint| format!("{hint}, or ")).unwrap_or_default();
    anyhow!("{said}; hint: {hint}ask no API server with --no-check")
}

/// Secrets in plain text, where the fleet refuses them; where it warns, they are told.
fn plaintext(objects: &[ManifestObject], fleet: &Fleet) -> Option<Vec<Finding>> {
    let base = Base::new(objects.iter().cloned().map(Arc::new).collect());
    let findings = render::policy::check_base(&base, fleet.spec.plaintext_secrets());
    if fleet.spec.plaintext_secrets() == PlaintextSecrets::Refuse && !findings.is_empty() {
        return Some(findings);
    }
    for finding in findings {
        output::tell(&format!("{finding}\n"));
    }
    None
}

/// A file for each object, but for those that are there as they are.
fn edits(tree: &SourceTree, folder: &str, manifests: &[Manifest], plurals: &[String]) -> anyhow::Result<Vec<Edit>> {
    let mut taken = BTreeSet::new();
    let mut edits = Vec::new();
    for (manifest, plural) in manifests.iter().zip(plurals) {
        let key = &manifest.object.key;
        let path = [false, true]
            .map(|with_group| format!("{folder}/{}.yaml", file_stem(plural, key, with_group)))
            .into_iter()
            .find(|path| !taken.contains(path) && holds_nothing_but(tree, path, key));
        let Some(path) = path else {
            bail!("the file that {key} would get in {folder} is another's; choose another folder with --into");
        };
        let is_there = matches!(tree.files.get(path.as_str()), Some(SourceEntry::File(file)) if *file.bytes == *manifest.text.as_bytes());
        taken.insert(path.clone());
        if !is_there {
            edits.push(Edit {
                path,
                content: Some(manifest.text.clone().into_bytes()),
            });
        }
    }
    Ok(edits)
}

/// Whether a path is free, or has this one object, which is then replaced.
fn holds_nothing_but(tree: &SourceTree, path: &str, key: &ObjectKey) -> bool {
    match tree.files.get(path) {
        None => true,
        Some(SourceEntry::File(file)) => {
            let (there, findings) = render::load::objects(path, file);
            let own = matches!(there.as_slice(), [object] if object.key == *key);
            own && !findings.iter().any(Finding::is_error)
        }
        Some(_) => false,
    }
}

/// The files as they will be.
fn with(tree: &SourceTree, edits: &[Edit]) -> SourceTree {
    let mut tree = tree.clone();
    for edit in edits {
        let content = edit.content.clone().unwrap_or_default();
        let entry = SourceEntry::File(SourceFile::from_bytes(content));
        tree.files.insert(edit.path.as_str().into(), entry);
    }
    tree
}

impl Present {
    fn of(source: &Source, tree: SourceTree) -> anyhow::Result<Self> {
        let loaded = load_tree(source, &tree, &mut LoadMemo::default());
        let (fleet, found) = loaded.with_context(|| format!("failed to read the fleet at {}", tree.revision))?;
        let fleet = Arc::new(fleet);
        let (_, findings) = plan_anew(&fleet, found);
        Ok(Self { tree, fleet, findings })
    }

    /// Errors that were not there before, wherever their line was.
    fn new_errors(&self, before: &Self) -> Vec<Finding> {
        let place = |finding: &Finding| Finding {
            line: 0,
            ..finding.clone()
        };
        let known: BTreeSet<_> = before.findings.iter().map(place).collect();
        let is_new = |finding: &&Finding| finding.is_error() && !known.contains(&place(finding));
        self.findings.iter().filter(is_new).cloned().collect()
    }
}

impl Add {
    /// The kubeconfig that is named, or the one that kubectl takes.
    fn kubeconfig(&self) -> anyhow::Result<PathBuf> {
        let named = self.kubeconfig.clone().filter(|path| !path.as_os_str().is_empty());
        let home = || std::env::home_dir().map(|home| home.join(".kube/config"));
        named.or_else(home).context(
            "no kubeconfig is named, and there is no home folder; hint: name one with --kubeconfig, or ask no API server with --no-check",
        )
    }

    /// Where the files go.
    fn folder(&self, fleet: &Fleet) -> String {
        if let Some(folder) = &self.into {
            return folder.clone();
        }
        let unit = self.to.as_ref();
        let declared = unit
            .and_then(|unit| fleet.units.get(unit))
            .map(|unit| &unit.subscription.feeds);
        let folder = declared.into_iter().flatten().find_map(|feed| match feed {
            Feed::Path { path, .. } => path
                .strip_suffix("/**")
                .filter(|folder| !folder.contains(['*', '?', '[', '{'])),
            Feed::Object { .. } | Feed::Selector { .. } => None,
        });
        let own = || format!("feeds/{}", unit.map(UnitKey::name).unwrap_or_default());
        folder.map_or_else(own, str::to_owned)
    }

    fn subscription(&self, clone: &Clone, unit: &UnitKey, folder: &str) -> anyhow::Result<Edit> {
        let path = format!("subscriptions/{}/{}.yaml", unit.namespace(), unit.name());
        if clone.has(&path)? {
            bail!("{path} is there already and declares no Subscription {unit}");
        }
        let labels: BTreeMap<_, _> = self.labels.iter().cloned().collect();
        let affinity = match labels.is_empty() {
            true => json!({}),
            false => json!({ "matchLabels": labels }),
        };
        let declaration = json!({
            "apiVersion": FLEET_API_VERSION,
            "kind": "Subscription",
            "metadata": {"namespace": unit.namespace(), "name": unit.name()},
            "spec": {
                "schedulingStrategy": "Replication",
                "subscribers": [{"clusterAffinity": affinity}],
                "feeds": [{"path": format!("{folder}/**")}],
            },
        });
        Ok(Edit {
            path,
            content: Some(render::yaml::write(&declaration).into_bytes()),
        })
    }

    fn change(&self, manifests: &[Manifest], folder: &str, edits: Vec<Edit>) -> Change {
        let what = match manifests {
            [one] => format!("{} {}", one.object.key.kind, one.object.key.name),
            many => output::counted(many.len(), "object"),
        };
        let to = self.to.as_ref().map_or_else(|| folder.to_owned(), UnitKey::to_string);
        Change {
            edits,
            subject: format!("Add {what} to {to}"),
            body: String::new(),
            trailers: Vec::new(),
        }
    }

    /// Whether the Subscription delivers all of it, and which lines are missing where it does not.
    fn tell_of_delivery(&self, fleet: &Fleet, objects: &[ManifestObject], folder: &str, is_new: bool) {
        let Some(unit) = self.to.as_ref().and_then(|unit| fleet.units.get(unit)) else {
            return;
        };
        let declared = &unit.subscription;
        if is_new && self.labels.is_empty() {
            output::tell(&format!(
                "{} is for every cluster; its file says so under subscribers.\n",
                declared.key
            ));
        }
        let delivered: BTreeSet<_> = unit.base.objects.iter().map(|object| &object.key).collect();
        if objects.iter().any(|object| !delivered.contains(&object.key)) {
            output::tell(&format!(
                "note: {} does not deliver {folder}; add these lines to spec.feeds in {}:\n\n    - path: {folder}/**\n\n",
                declared.key, declared.file
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_that_a_feed_can_name() {
        for (given, folder) in [
            ("feeds/web", "feeds/web"),
            ("./feeds//web/", "feeds/web"),
            ("../x", "../x"),
        ] {
            assert_eq!(folder_below(given).as_deref(), Ok(folder), "{given}");
        }
        for wrong in ["", ".", "./", "/", "/abs", "feeds/we*b", "a?", "a[b]", "{a,b}", "a\\b"] {
            assert!(folder_below(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_selected_label_is_one_that_a_cluster_can_have() {
        assert_eq!(label("env=prod"), Ok(("env".to_owned(), "prod".to_owned())));
        assert_eq!(
            label("example.com/env="),
            Ok(("example.com/env".to_owned(), String::new()))
        );
        for wrong in ["env", "=x", "env==prod", "env=a b", "e nv=x", "env=-x"] {
            assert!(label(wrong).is_err(), "{wrong}");
        }
    }
}
