//! Kind Description: each variant of a unit by digest, and which objects it is about. Never what they say.

use std::collections::{BTreeMap, BTreeSet};

use render::published::{UnitPlacement, Variant};
use render::{UnitKey, VariantName};
use serde_json::{Map, Value, json};

use super::super::object::{Object, SUBSCRIPTION_LABEL};
use super::or_dash;
use crate::hub::observe::{Observation, short_revision, shown_revision};

pub(super) fn objects(observation: &Observation<'_>) -> Vec<Object> {
    let state = observation.state;
    let published = state
        .rendered
        .as_ref()
        .or(state.released.as_ref())
        .map(|commit| &commit.published.units);
    let variants = published.into_iter().flatten();
    variants
        .flat_map(|(key, unit)| {
            unit.variants
                .iter()
                .map(move |(name, variant)| (key, unit, name, variant))
        })
        .map(|(key, unit, name, variant)| object(observation, key, unit, (name, variant)))
        .collect()
}

fn object(
    observation: &Observation<'_>,
    key: &UnitKey,
    unit: &UnitPlacement,
    (name, variant): (&VariantName, &Variant),
) -> Object {
    let branch = &observation.state.branch;
    let clusters = unit
        .clusters
        .values()
        .filter(|placement| placement.variant == *name)
        .count();
    let mut labels = BTreeMap::new();
    if key.name().len() <= 63 {
        labels.insert(SUBSCRIPTION_LABEL.to_owned(), key.name().to_owned());
    }
    let mut spec = json!({
        "subscription": key.name(),
        "variant": name,
        "digest": variant.digest,
        "revision": shown_revision(branch, &variant.revision),
        "overrides": variant.overrides,
    });
    if let Some(objects) = object_keys(observation, key, name) {
        spec["objects"] = objects;
    }
    Object {
        namespace: key.namespace().to_owned(),
        name: format!("{}.{name}", key.name()),
        labels,
        live: None,
        made_by: BTreeSet::from([variant.revision.clone()]),
        created: None,
        declared_in: String::new(),
        spec,
        status: Map::from_iter([("clusters".to_owned(), json!(clusters))]),
        conditions: Vec::new(),
        cells: vec![
            json!(format!("sha256:{}", variant.digest.short(12))),
            json!(short_revision(branch, &variant.revision)),
            json!(clusters),
            or_dash(Some(variant.overrides.join(", "))),
        ],
    }
}

/// The keys of a variant's objects, which no override changes. An older content that is held may be about
/// other objects than the Base is now, so it has none.
fn object_keys(observation: &Observation<'_>, key: &UnitKey, name: &VariantName) -> Option<Value> {
    let fleet = observation.state.fleet.as_ref()?;
    let unit = fleet.units.get(key)?;
    let held = *name != name.plain() || observation.is_held(key);
    (!held).then(|| unit.base.objects.iter().map(|object| json!(object.key)).collect())
}
