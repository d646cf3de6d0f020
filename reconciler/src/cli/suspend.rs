//! `flotilla suspend` and `flotilla resume`: a Suspension in the clone, written and removed as a commit.
//!
//! Files that hold more than one declaration are a person's and are not rewritten.

use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::{ArgGroup, Args};
use render::load::LoadMemo;
use render::model::{FLEET_API_VERSION, ObjectName, SuspendedClusters, Suspension};
use render::nearest::hint;
use render::{ClusterName, Digest, Fleet, UnitKey};
use serde_json::{Map, Value, json};

use super::clone::{Change, Clone, CloneOptions, Edit};
use super::output;
use crate::hub::load_revision;
use crate::hub::source::Source;

/// What is suspended or resumed.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).multiple(true).args(["subscription", "cluster", "object"])))]
struct Target {
    /// The Subscription, as NAMESPACE/NAME; without it every one, on the cluster that is named.
    #[arg(value_name = "SUBSCRIPTION")]
    subscription: Option<UnitKey>,
    /// The cluster; without it every one.
    #[arg(long)]
    cluster: Option<ClusterName>,
    /// One object, as KIND/NAME, that is left as it is while everything else is delivered.
    #[arg(long, value_name = "KIND/NAME", value_parser = kind_and_name)]
    object: Option<(String, String)>,
    /// The object's namespace; without it, one that has none.
    #[arg(short, long, requires = "object")]
    namespace: Option<String>,
}

/// A target, with its object as the repository declares it.
#[derive(Debug)]
struct Meant<'a> {
    subscription: Option<&'a UnitKey>,
    cluster: Option<&'a ClusterName>,
    object: Option<ObjectName>,
}

/// Commit a Suspension: what it names keeps its older revision on its clusters, while rendered moves on.
#[derive(Debug, Args)]
pub(super) struct Suspend {
    #[command(flatten)]
    target: Target,
    /// Why, for whoever finds it.
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    /// When it ends by itself, such as 2026-12-01T09:00:00Z; without it, with `flotilla resume`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,
    #[command(flatten)]
    clone: CloneOptions,
}

/// Commit the end of a Suspension: what it named gets what is rendered.
#[derive(Debug, Args)]
pub(super) struct Resume {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    clone: CloneOptions,
}

pub(super) fn suspend(arguments: &Suspend) -> anyhow::Result<ExitCode> {
    let clone = arguments.clone.open()?;
    let fleet = fleet(&clone)?;
    let target = &arguments.target.meant(&fleet)?;
    let reason = arguments.reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let path = match target.find(&fleet).as_slice() {
        [] => target.free_path(&clone)?,
        found
            if found
                .iter()
                .any(|held| held.reason == reason && held.until == arguments.until) =>
        {
            let label = found[0].label();
            output::tell(&format!(
                "{target} is suspended already, by {label}; there is nothing to do.\n"
            ));
            return Ok(ExitCode::SUCCESS);
        }
        [found] => {
            own_file(&clone, found)?;
            found.file.to_string()
        }
        [first, second, ..] => bail!(
            "{target} is suspended by {} and {}; edit them",
            first.label(),
            second.label()
        ),
    };
    let text = render::yaml::write(&target.declaration(&reason, arguments.until));
    let change = Change {
        edits: vec![Edit {
            path,
            content: Some(text.into_bytes()),
        }],
        subject: format!("Suspend {target}"),
        body: reason,
        trailers: Vec::new(),
    };
    arguments.clone.commit(&clone, &change)
}

pub(super) fn resume(arguments: &Resume) -> anyhow::Result<ExitCode> {
    let clone = arguments.clone.open()?;
    let fleet = fleet(&clone)?;
    let target = &arguments.target.resumed(&fleet);
    let found = target.find(&fleet);
    if found.is_empty() {
        let others: Vec<_> = fleet
            .suspensions
            .iter()
            .map(|held| format!("\n  {}", held.label()))
            .collect();
        let others = match others.is_empty() {
            true => "; nothing is".to_owned(),
            false => format!("; what is suspended:{}", others.concat()),
        };
        bail!(
            "{target} is not suspended by itself in the newest commit of {}{others}",
            clone.branch()
        );
    }
    for held in &found {
        own_file(&clone, held)?;
    }
    let edits = found.iter().map(|held| Edit {
        path: held.file.to_string(),
        content: None,
    });
    let change = Change {
        edits: edits.collect(),
        subject: format!("Resume {target}"),
        body: String::new(),
        trailers: Vec::new(),
    };
    arguments.clone.commit(&clone, &change)
}

fn kind_and_name(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok((kind.to_owned(), name.to_owned())),
        Some(_) | None => Err("an object is KIND/NAME, such as ConfigMap/settings".to_owned()),
    }
}

fn time(text: &str) -> Result<i64, String> {
    render::time::seconds(text).ok_or_else(|| "it is no time such as 2026-12-01T09:00:00Z".to_owned())
}

/// What the clone's newest commit says.
pub(super) fn fleet(clone: &Clone) -> anyhow::Result<Fleet> {
    let source = Source::open(clone.root(), clone.branch())?;
    let head = source.resolve("HEAD").context("the clone has no commit yet")?;
    let (fleet, _) = load_revision(&source, &head, &mut LoadMemo::default())
        .with_context(|| format!("failed to read the fleet at {head}"))?;
    Ok(fleet)
}

/// Refuses a file in which more stands than this Suspension.
fn own_file(clone: &Clone, held: &Suspension) -> anyhow::Result<()> {
    let text = clone.read(&held.file)?;
    let documents = render::yaml::read(&text).map_err(|error| anyhow::anyhow!("{}: {error}", held.file))?;
    let is_own = matches!(documents.as_slice(), [document] if document.value["kind"] == "Suspension");
    if !is_own {
        bail!(
            "{}:{} holds other declarations as well, and is left to you: edit it and commit",
            held.file,
            held.line
        );
    }
    Ok(())
}

impl Target {
    /// What is meant, if there is such a thing, as the newest commit says.
    fn meant(&self, fleet: &Fleet) -> anyhow::Result<Meant<'_>> {
        if let Some(unit) = self
            .subscription
            .as_ref()
            .filter(|unit| !fleet.units.contains_key(unit))
        {
            return Err(absent("Subscription", unit, fleet.units.keys()));
        }
        if let Some(name) = self.cluster.as_ref().filter(|name| !fleet.clusters.contains_key(name)) {
            return Err(absent("cluster", name, fleet.clusters.keys()));
        }
        let object = self
            .object
            .as_ref()
            .map(|(kind, name)| self.declared(fleet, kind, name));
        Ok(Meant {
            subscription: self.subscription.as_ref(),
            cluster: self.cluster.as_ref(),
            object: object.transpose()?,
        })
    }

    /// The object that the repository declares under this kind and name.
    fn declared(&self, fleet: &Fleet, kind: &str, name: &str) -> anyhow::Result<ObjectName> {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let is_meant = |unit: &&UnitKey| self.subscription.as_ref().is_none_or(|own| own == *unit);
        let units = fleet.units.iter().filter(|(unit, _)| is_meant(unit));
        let objects = units.flat_map(|(_, unit)| &unit.base.objects);
        let mut found: Vec<ObjectName> = objects
            .filter(|object| object.key.kind.eq_ignore_ascii_case(kind))
            .filter(|object| object.key.name == name && object.key.namespace == namespace)
            .map(|object| ObjectName {
                api_version: object.api_version.clone(),
                kind: object.key.kind.clone(),
                namespace: object.key.namespace.clone(),
                name: object.key.name.clone(),
            })
            .collect();
        found.sort();
        found.dedup_by_key(|object| object.key());
        match found.as_slice() {
            [object] => Ok(object.clone()),
            [] => bail!("no Subscription delivers {kind} {namespace}/{name}; hint: -n names its namespace"),
            [first, second, ..] => bail!(
                "{kind} {namespace}/{name} is of {} and of {}; edit a Suspension and commit",
                first.api_version,
                second.api_version
            ),
        }
    }

    /// What is to be resumed. An object that is declared no more may still be suspended.
    fn resumed(&self, fleet: &Fleet) -> Meant<'_> {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let object = self.object.as_ref().map(|(kind, name)| {
            let named = |object: &&ObjectName| {
                object.kind.eq_ignore_ascii_case(kind) && object.name == *name && object.namespace == namespace
            };
            let suspended = fleet.suspensions.iter().flat_map(|held| &held.objects);
            suspended.clone().find(named).cloned().unwrap_or_else(|| ObjectName {
                api_version: String::new(),
                kind: kind.clone(),
                namespace: namespace.to_owned(),
                name: name.clone(),
            })
        });
        Meant {
            subscription: self.subscription.as_ref(),
            cluster: self.cluster.as_ref(),
            object,
        }
    }
}

impl Meant<'_> {
    /// The Suspensions of exactly this.
    fn find<'f>(&self, fleet: &'f Fleet) -> Vec<&'f Suspension> {
        let clusters = self.cluster.map(|cluster| SuspendedClusters {
            names: vec![cluster.clone()],
            selector: None,
        });
        let is_same = |held: &&Suspension| {
            held.unit.as_ref() == self.subscription
                && held.clusters == clusters
                && held.objects.as_slice() == self.object.as_slice()
        };
        fleet.suspensions.iter().map(|held| &**held).filter(is_same).collect()
    }

    /// A name that no other target has: neither a unit's namespace nor a cluster's name has a dot.
    fn name(&self) -> String {
        let object = self.object.as_ref().map(|object| {
            let namespace = match object.namespace.as_str() {
                "" => String::new(),
                namespace => format!("{namespace}."),
            };
            format!("object.{}.{namespace}{}", object.kind.to_lowercase(), object.name)
        });
        let rest = self.rest();
        match object {
            Some(object) if rest == "fleet" => object,
            Some(object) => format!("{object}.{rest}"),
            None => rest,
        }
    }

    fn rest(&self) -> String {
        match (self.subscription, self.cluster) {
            (Some(unit), None) => format!("unit.{}.{}", unit.namespace(), unit.name()),
            (Some(unit), Some(cluster)) => format!("cluster.{cluster}.unit.{}.{}", unit.namespace(), unit.name()),
            (None, Some(cluster)) => format!("cluster.{cluster}"),
            (None, None) => "fleet".to_owned(),
        }
    }

    /// Where its file goes. `a-b/c` and `a/b-c` would share one, so the second gets digits.
    fn free_path(&self, clone: &Clone) -> anyhow::Result<String> {
        let unit = self
            .subscription
            .map(|unit| format!("-{}-{}", unit.namespace(), unit.name()));
        let cluster = self.cluster.map(|cluster| format!("-cluster-{cluster}"));
        let object = self.object.as_ref();
        let object = object.map(|object| format!("-{}-{}", object.kind.to_lowercase(), object.name));
        let stem = format!(
            "policies/suspend{}{}{}",
            object.unwrap_or_default(),
            unit.unwrap_or_default(),
            cluster.unwrap_or_default()
        );
        let digits = Digest::of_bytes(self.name().as_bytes()).short(8);
        for path in [format!("{stem}.yaml"), format!("{stem}-{digits}.yaml")] {
            if !clone.has(&path)? {
                return Ok(path);
            }
        }
        bail!("{stem}.yaml is there already and is another declaration")
    }

    fn declaration(&self, reason: &str, until: Option<i64>) -> Value {
        let mut spec = Map::new();
        if let Some(unit) = &self.subscription {
            let unit = json!({"namespace": unit.namespace(), "name": unit.name()});
            spec.insert("subscription".to_owned(), unit);
        }
        if let Some(cluster) = &self.cluster {
            spec.insert("clusters".to_owned(), json!([cluster]));
        }
        if let Some(object) = &self.object {
            let mut named = json!({"apiVersion": object.api_version, "kind": object.kind, "name": object.name});
            if !object.namespace.is_empty() {
                named["namespace"] = json!(object.namespace);
            }
            spec.insert("objects".to_owned(), json!([named]));
        }
        if !reason.is_empty() {
            spec.insert("reason".to_owned(), json!(reason));
        }
        if let Some(until) = until {
            spec.insert("until".to_owned(), json!(render::time::rfc3339(until)));
        }
        json!({
            "apiVersion": FLEET_API_VERSION,
            "kind": "Suspension",
            "metadata": {"name": self.name()},
            "spec": spec,
        })
    }
}

impl std::fmt::Display for Meant<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(object) = &self.object {
            write!(f, "{} ", object.kind)?;
            if !object.namespace.is_empty() {
                write!(f, "{}/", object.namespace)?;
            }
            write!(f, "{}", object.name)?;
            return match (self.subscription, self.cluster) {
                (Some(unit), None) => write!(f, " of {unit}"),
                (Some(unit), Some(cluster)) => write!(f, " of {unit} on {cluster}"),
                (None, Some(cluster)) => write!(f, " on {cluster}"),
                (None, None) => Ok(()),
            };
        }
        match (self.subscription, self.cluster) {
            (Some(unit), None) => write!(f, "{unit}"),
            (Some(unit), Some(cluster)) => write!(f, "{unit} on {cluster}"),
            (None, Some(cluster)) => write!(f, "cluster {cluster}"),
            (None, None) => write!(f, "the fleet"),
        }
    }
}

/// That there is no such thing, with those that there are.
pub(super) fn absent<'a, T: std::fmt::Display + 'a>(
    kind: &str,
    name: &T,
    all: impl Iterator<Item = &'a T>,
) -> anyhow::Error {
    let all: Vec<_> = all.map(|one| one.to_string()).collect();
    let hint = hint(&name.to_string(), all.iter().map(String::as_str));
    anyhow!("there is no {kind} {name}; there are: {}{hint}", list(all.iter()))
}

/// The first few of them.
pub(super) fn list<T: std::fmt::Display>(all: impl Iterator<Item = T>) -> String {
    let all: Vec<_> = all.map(|one| one.to_string()).collect();
    match all.as_slice() {
        [] => "none".to_owned(),
        few @ [..] if few.len() <= NAMES_SHOWN_MAX => few.join(", "),
        many => format!(
            "{} and {} more",
            many[..NAMES_SHOWN_MAX].join(", "),
            many.len() - NAMES_SHOWN_MAX
        ),
    }
}

/// Names in a message; more is no help.
const NAMES_SHOWN_MAX: usize = 10;
