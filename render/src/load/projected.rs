//! Units that nobody declares: what clusters are told of `access/`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::access::meant;
use super::catalog::Catalog;
use super::declaration::Declaration;
use super::gather::Declared;
use crate::access::{ACCESS_FOLDER, ACCESS_NAMESPACE, Access, Binding, Projected, Projection, project};
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::{Base, ManifestObject, Unit};
use crate::model::{ApplyPolicy, Feed, Placing, Replace, Scheduling, Subscriber, Subscription, Toleration};
use crate::name::{ObjectKey, UnitKey};

/// One unit for each distinct selector of a binding. A fleet without bindings has none.
pub(super) fn units(access: &Access, declared: &Declared, catalog: &Catalog<'_>) -> BTreeMap<UnitKey, Unit> {
    let held = held(declared, catalog);
    let projections = project(&with_kept(access, &declared.kept_access));
    let unit = |projection: Projection| {
        let key = UnitKey::new(ACCESS_NAMESPACE, projection.name.as_str()).ok()?;
        let unit = unit(key.clone(), projection, &held);
        Some((key, unit))
    };
    projections.into_iter().filter_map(unit).collect()
}

/// Access with what gives nothing and stays in clusters.
fn with_kept(access: &Access, kept: &[Declaration]) -> Access {
    let mut access = access.clone();
    for declaration in kept {
        if let Declaration::Role(role) = declaration {
            access.roles.entry(role.key.clone()).or_insert_with(|| role.clone());
        }
    }
    for declaration in kept {
        if let Declaration::Binding(binding) = declaration
            && let Some(role) = meant(&binding.role, &access)
        {
            let binding = Binding {
                role,
                ..Binding::clone(binding)
            };
            access
                .bindings
                .entry(binding.key.clone())
                .or_insert_with(|| Arc::new(binding));
        }
    }
    access
}

/// Why clusters keep what they were told: what is not known may be a role or a binding.
fn held(declared: &Declared, catalog: &Catalog<'_>) -> Vec<Finding> {
    let unread = catalog.unknown.iter().filter(|path| path.starts_with(ACCESS_FOLDER));
    let unread = unread.map(|path| {
        let message = format!("{path} cannot be read, so clusters keep the roles and bindings that they were told");
        Finding::error("AccessUnreadable", message)
            .at(&**path, 0)
            .hint("correct or remove it")
    });
    unread.chain(declared.unclear_access.values().cloned()).collect()
}

fn unit(key: UnitKey, projection: Projection, held: &[Finding]) -> Unit {
    let first = projection.objects.first();
    let file = first.map_or_else(|| ACCESS_FOLDER.into(), |object| object.file.clone());
    let subscription = Subscription {
        scheduling: Scheduling::Replication,
        placing: Placing::default(),
        subscribers: vec![Subscriber {
            cluster_affinity: Some(projection.clusters),
            ..Subscriber::default()
        }],
        // A taint keeps work away from a cluster, and nobody's right to look at it.
        tolerations: vec![Toleration {
            key: String::new(),
            operator: Some("Exists".to_owned()),
            value: String::new(),
            effect: None,
            toleration_seconds: None,
        }],
        feeds: vec![Feed::Path {
            path: format!("{ACCESS_FOLDER}**"),
            exclude: Vec::new(),
        }],
        // The role of a binding cannot be changed in place, and a binding that is made anew loses nothing.
        apply: ApplyPolicy {
            replace: Replace::WhenImmutable,
            ..ApplyPolicy::default()
        },
        drift: None,
        line: first.map_or(0, |object| object.line),
        file,
        key: key.clone(),
    };
    Unit {
        subscription: Arc::new(subscription),
        base: Arc::new(Base::new(projection.objects.into_iter().filter_map(manifest).collect())),
        blocked: held.iter().map(|finding| finding.clone().unit(&key)).collect(),
    }
}

fn manifest(object: Projected) -> Option<Arc<ManifestObject>> {
    let text = |pointer: &str| object.value.pointer(pointer).and_then(|value| value.as_str());
    let (api_version, kind) = (text("/apiVersion")?.to_owned(), text("/kind")?);
    let namespace = text("/metadata/namespace").unwrap_or_default();
    let key = ObjectKey::new(&api_version, kind, namespace, text("/metadata/name")?);
    Some(Arc::new(ManifestObject {
        key,
        api_version,
        digest: Digest::of_value(&object.value),
        value: Arc::new(object.value),
        file: object.file,
        line: object.line,
        original: None,
        chart: None,
    }))
}
