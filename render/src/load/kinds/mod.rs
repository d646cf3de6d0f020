//! The kinds of a fleet repository, field by field: one document goes in, a declaration and what is wrong
//! with it come out. Which declarations belong together is not decided here.

mod access;
mod apply;
mod budget;
mod chart;
mod cluster;
mod fleet;
mod health_rule;
mod labels;
mod metadata;
mod overrides;
mod predictor;
mod scheduling;
mod selector;
mod subscription;
mod suspension;

use serde_json::{Map, Value};

use super::declaration::{Declaration, DeclarationKey};
use super::fields::{Fields, Judge};
use crate::model::{CLUSTERNET_APPS_API_VERSION, CLUSTERNET_CLUSTERS_API_VERSION, FLEET_API_VERSION};
use crate::name::group_of;
use crate::nearest::{distance, nearest};
use crate::registration::{REQUEST_KIND, Request};
use metadata::Metadata;

pub(super) use access::AccessKind;
pub(super) use chart::check as check_chart;
pub(crate) use cluster::MODES;

/// What a document's `apiVersion` and `kind` make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A declaration of the fleet.
    Own(OwnKind),
    /// A HelmChart, from either group: an object to deliver.
    Chart,
    /// A kind that Clusternet writes itself or keeps state in.
    Unused,
    /// A kind or version in our group that this version does not know.
    Unknown,
    /// Anything else: an object to deliver.
    Object,
}

/// The kinds that declare the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OwnKind {
    Fleet,
    ManagedCluster,
    Subscription,
    Localization,
    Globalization,
    Suspension,
    PruneBudget,
    HealthRule,
    /// A role or binding, which is one below `access/` alone.
    Access(AccessKind),
}

impl OwnKind {
    /// Those that are told by apiVersion and kind alone.
    #[cfg(test)]
    pub(super) const ALL: [Self; 8] = [
        Self::Fleet,
        Self::ManagedCluster,
        Self::Subscription,
        Self::Localization,
        Self::Globalization,
        Self::Suspension,
        Self::PruneBudget,
        Self::HealthRule,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            OwnKind::Fleet => "Fleet",
            OwnKind::ManagedCluster => "ManagedCluster",
            OwnKind::Subscription => "Subscription",
            OwnKind::Localization => "Localization",
            OwnKind::Globalization => "Globalization",
            OwnKind::Suspension => "Suspension",
            OwnKind::PruneBudget => "PruneBudget",
            OwnKind::HealthRule => "HealthRule",
            OwnKind::Access(kind) => kind.name(),
        }
    }
}

/// Sorts a document by its `apiVersion` and `kind`.
pub(super) fn kind_of(api_version: &str, kind: &str) -> Kind {
    match (api_version, kind) {
        (FLEET_API_VERSION, "Fleet") => Kind::Own(OwnKind::Fleet),
        (FLEET_API_VERSION | CLUSTERNET_CLUSTERS_API_VERSION, "ManagedCluster") => Kind::Own(OwnKind::ManagedCluster),
        (FLEET_API_VERSION | CLUSTERNET_APPS_API_VERSION, "Subscription") => Kind::Own(OwnKind::Subscription),
        (FLEET_API_VERSION | CLUSTERNET_APPS_API_VERSION, "Localization") => Kind::Own(OwnKind::Localization),
        (FLEET_API_VERSION | CLUSTERNET_APPS_API_VERSION, "Globalization") => Kind::Own(OwnKind::Globalization),
        (FLEET_API_VERSION, "Suspension") => Kind::Own(OwnKind::Suspension),
        (FLEET_API_VERSION, "PruneBudget") => Kind::Own(OwnKind::PruneBudget),
        (FLEET_API_VERSION, "HealthRule") => Kind::Own(OwnKind::HealthRule),
        (FLEET_API_VERSION | CLUSTERNET_APPS_API_VERSION, "HelmChart") => Kind::Chart,
        _ if is_ours(api_version) || is_mistyped(api_version) => Kind::Unknown,
        // Under a version or a group that we do not read, it would be taken back without a word.
        _ if is_own_name(kind) && (is_clusternets(api_version) || is_nearly_ours(api_version)) => Kind::Unknown,
        _ if is_clusternets(api_version) => Kind::Unused,
        _ => Kind::Object,
    }
}

pub(super) fn is_ours(api_version: &str) -> bool {
    api_version.starts_with("fleet.flotilla.dev/")
}

/// Whether a kind has the name of one of ours, whatever its group: other projects have a Subscription too.
pub(super) fn is_own_name(kind: &str) -> bool {
    OWN_KINDS.into_iter().any(|own| own.name() == kind)
}

/// Whether a group is in our domain, or was left out: no kind of Kubernetes itself has one of our names.
fn is_nearly_ours(api_version: &str) -> bool {
    let group = group_of(api_version);
    group.is_empty() || group == "flotilla.dev" || group.ends_with(".flotilla.dev")
}

/// Letters in which the group of a manifest may differ from ours and still be meant as ours.
const MISTYPED_LETTERS_MAX: usize = 2;

/// Whether a group is nearly ours or Clusternet's: what it declares would be an object that nobody delivers.
fn is_mistyped(api_version: &str) -> bool {
    let group = group_of(api_version);
    let known = GROUPS.map(group_of);
    // Objects are many and their groups nothing like ours, so that most are told apart by their length.
    let near = |known: &str| {
        known.len().abs_diff(group.len()) <= MISTYPED_LETTERS_MAX && distance(group, known) <= MISTYPED_LETTERS_MAX
    };
    !known.contains(&group) && known.into_iter().any(near)
}

const GROUPS: [&str; 3] = [
    FLEET_API_VERSION,
    CLUSTERNET_APPS_API_VERSION,
    CLUSTERNET_CLUSTERS_API_VERSION,
];

/// What is said of a kind that is not declared here, and what a person writes in its place; the latter may be empty.
pub(super) fn unused(api_version: &str, kind: &str, file: &str, document: &Map<String, Value>) -> (String, String) {
    if kind != REQUEST_KIND {
        let message = format!("{kind} of {api_version} is not used: it is made or kept by the hub, not declared");
        return (message, String::new());
    }
    // It carries no key, so that it cannot say who may connect.
    let request = Request::read(document);
    let or_nothing = |fields: &[String]| match fields {
        [] => "nothing".to_owned(),
        fields => fields.join(", "),
    };
    let (used, unused) = (or_nothing(&request.used), or_nothing(&request.unused));
    let message = format!(
        "{kind} registers nobody, since it names no key of an agent; of it a cluster's file takes {used}, and leaves {unused}"
    );
    let name = match &request.name {
        Some(name) => format!("clusters/{name}.yaml"),
        None => "clusters/NAME.yaml, for --cluster NAME".to_owned(),
    };
    let hint = format!(
        "flotilla agent join --request {file} makes a key and prints the ManagedCluster to commit in its place as {name}"
    );
    (message, hint)
}

/// What an unknown kind or version may have been meant to be.
pub(super) fn meant(api_version: &str, kind: &str) -> String {
    let known = OWN_KINDS.map(OwnKind::name);
    let kind = match nearest(kind, known) {
        Some(near) => near,
        None => return format!("the kinds of {FLEET_API_VERSION} are {}", known.join(", ")),
    };
    let read = |version: &&str| matches!(kind_of(version, kind), Kind::Own(_));
    let group = nearest(
        group_of(api_version),
        GROUPS
            .iter()
            .filter(|version| read(version))
            .map(|version| group_of(version)),
    );
    let version = GROUPS.into_iter().find(|version| Some(group_of(version)) == group);
    format!("did you mean {kind} of {}?", version.unwrap_or(FLEET_API_VERSION))
}

const OWN_KINDS: [OwnKind; 8] = [
    OwnKind::Fleet,
    OwnKind::ManagedCluster,
    OwnKind::Subscription,
    OwnKind::Localization,
    OwnKind::Globalization,
    OwnKind::Suspension,
    OwnKind::PruneBudget,
    OwnKind::HealthRule,
];

fn is_clusternets(api_version: &str) -> bool {
    api_version.starts_with("apps.clusternet.io/") || api_version.starts_with("clusters.clusternet.io/")
}

/// A declaration that was read, or the key of one that has errors. Problems are left with the judge.
pub(super) struct Reading {
    pub(super) key: Option<DeclarationKey>,
    pub(super) declaration: Option<Declaration>,
}

/// Reads a declaration. `place` says where a field stands.
pub(super) fn read(kind: OwnKind, map: &Map<String, Value>, place: &Place<'_>, judge: &Judge) -> Reading {
    let mut top = Fields::new(map, "", judge);
    top.known(&["apiVersion", "kind"]);
    let metadata = Metadata::read(&mut top);
    let status = top.known(&["status"]);
    if status || metadata.has_server_fields {
        judge.say(
            crate::Severity::Info,
            "ServerFields",
            String::new(),
            "status and fields that an API server sets are not read",
            "",
        );
    }
    let reading = match kind {
        OwnKind::Fleet => fleet::read(&mut top, &metadata),
        OwnKind::ManagedCluster => cluster::read(&mut top, &metadata, place),
        OwnKind::Subscription => subscription::read(&mut top, &metadata, place),
        OwnKind::Localization => overrides::read_localization(&mut top, &metadata, place),
        OwnKind::Globalization => overrides::read_globalization(&mut top, &metadata, place),
        OwnKind::Suspension => suspension::read(&mut top, &metadata, place),
        OwnKind::PruneBudget => budget::read(&mut top, &metadata, place),
        OwnKind::HealthRule => health_rule::read(&mut top, &metadata, place),
        OwnKind::Access(kind) => access::read(kind, &mut top, &metadata, place),
    };
    top.finish();
    reading
}

/// Where a declaration stands.
pub(super) struct Place<'a> {
    pub(super) file: &'a std::sync::Arc<str>,
    pub(super) line: u32,
    /// The line of a field of the declaration.
    pub(super) line_of: &'a dyn Fn(&str) -> u32,
}
