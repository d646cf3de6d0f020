//! Kind Suspension.

use super::super::declaration::{Declaration, DeclarationKey};
use super::super::fields::Fields;
use super::metadata::Metadata;
use super::{OwnKind, Place, Reading, selector};
use crate::model::{ObjectName, SuspendedClusters, Suspension};
use crate::name::{ClusterName, UnitKey};
use crate::time;

pub(super) fn read(top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Reading {
    let spec = match top.object("spec") {
        Some(fields) => read_spec(fields),
        None => {
            top.require("spec");
            Spec::default()
        }
    };
    let key = DeclarationKey::new(OwnKind::Suspension, "", &metadata.name);
    let suspension = Suspension {
        name: metadata.name.clone(),
        unit: spec.unit,
        clusters: spec.clusters,
        objects: spec.objects,
        reason: spec.reason,
        until: spec.until,
        file: place.file.clone(),
        line: place.line,
    };
    Reading {
        key: (!metadata.name.is_empty()).then_some(key),
        declaration: Some(Declaration::Suspension(suspension.into())),
    }
}

#[derive(Default)]
struct Spec {
    unit: Option<UnitKey>,
    clusters: Option<SuspendedClusters>,
    objects: Vec<ObjectName>,
    reason: String,
    until: Option<i64>,
}

fn read_spec(mut fields: Fields<'_>) -> Spec {
    let subscription = fields.object("subscription");
    let named = subscription.is_some();
    let unit = subscription.and_then(unit);
    let names = fields.texts("clusters");
    let affinity = fields.object("clusterAffinity").map(selector::read);
    let objects = fields.objects("objects");
    if !named && names.is_none() && affinity.is_none() && objects.is_none() {
        let message = "names nothing: subscription, clusters, clusterAffinity or objects says what is suspended";
        let hint = "clusterAffinity: {} suspends the whole fleet";
        fields.error("", "FieldMissing", message, hint);
    }
    let clusters = (names.is_some() || affinity.is_some()).then(|| SuspendedClusters {
        names: cluster_names(&fields, names.unwrap_or_default()),
        selector: affinity,
    });
    if objects.as_ref().is_some_and(Vec::is_empty) {
        // Taken for all of the unit, it would hold more than anybody meant.
        fields.error(
            "objects",
            "FieldInvalid",
            "names no object",
            "without the field, the unit as a whole is suspended",
        );
    }
    let objects = objects.into_iter().flatten().filter_map(object).collect();
    let reason = fields.text("reason").unwrap_or_default().to_owned();
    let until = until(&mut fields);
    fields.finish();
    Spec {
        unit,
        clusters,
        objects,
        reason,
        until,
    }
}

pub(super) fn unit(mut fields: Fields<'_>) -> Option<UnitKey> {
    let namespace = fields.required_text("namespace").map(str::to_owned);
    let name = fields.required_text("name").map(str::to_owned);
    let unit = UnitKey::new(namespace?, name?);
    let unit = unit.map_err(|error| fields.error("", "FieldInvalid", error.to_string(), ""));
    fields.finish();
    unit.ok()
}

fn object(mut fields: Fields<'_>) -> Option<ObjectName> {
    let api_version = fields.required_text("apiVersion").map(str::to_owned);
    let kind = fields.required_text("kind").map(str::to_owned);
    let namespace = fields.text("namespace").unwrap_or_default().to_owned();
    let name = fields.required_text("name").map(str::to_owned);
    fields.finish();
    Some(ObjectName {
        api_version: api_version?,
        kind: kind?,
        namespace,
        name: name?,
    })
}

pub(super) fn cluster_names(fields: &Fields<'_>, names: Vec<String>) -> Vec<ClusterName> {
    let mut parsed = Vec::with_capacity(names.len());
    for (index, name) in names.into_iter().enumerate() {
        match ClusterName::parse(name) {
            Ok(name) => parsed.push(name),
            Err(error) => fields.error(&format!("clusters[{index}]"), "FieldInvalid", error.to_string(), ""),
        }
    }
    parsed
}

fn until(fields: &mut Fields<'_>) -> Option<i64> {
    let text = fields.text("until").filter(|text| !text.is_empty())?;
    let seconds = time::seconds(text);
    if seconds.is_none() {
        let message = format!("{text:?} is no time");
        fields.error("until", "FieldInvalid", message, "write it as 2026-12-01T09:00:00Z");
    }
    seconds
}
