//! Two units that would deliver one object to one cluster.

use std::collections::{BTreeMap, BTreeSet};

use super::scene::Scene;
use crate::finding::Finding;
use crate::name::{ClusterName, ObjectKey, UnitKey};

/// The unit that is held, and the one that has the object or wants it too.
type Rivals = (UnitKey, UnitKey);

/// What two units both want.
struct Contested {
    object: ObjectKey,
    objects: BTreeSet<ObjectKey>,
    clusters: BTreeSet<ClusterName>,
    /// Whether the other one has it.
    is_had: bool,
}

/// Holds whoever would take an object that another unit has, and everybody where nobody has it: who is meant, only a
/// person knows.
pub(super) fn check(scene: &mut Scene<'_>) {
    let mut contested: BTreeMap<Rivals, Contested> = BTreeMap::new();
    for (object, units) in scene.shared.clone() {
        let clusters: BTreeSet<ClusterName> = units.iter().flat_map(|unit| scene.clusters(unit)).collect();
        for cluster in clusters {
            let has = |unit: &UnitKey, held: Option<&super::holdings::Held<'_>>| {
                held.is_some_and(|held| held.contains(&object)).then(|| unit.clone())
            };
            let claimants = units.iter().filter_map(|unit| has(unit, scene.after(unit, &cluster)));
            let claimants: Vec<UnitKey> = claimants.collect();
            if claimants.len() < 2 {
                continue;
            }
            let owners = claimants
                .iter()
                .filter_map(|unit| has(unit, scene.before(unit, &cluster)));
            let owners: Vec<UnitKey> = owners.collect();
            let others = claimants
                .iter()
                .filter(|unit| owners.len() == claimants.len() || !owners.contains(unit));
            let others: Vec<UnitKey> = others.cloned().collect();
            for unit in others {
                let rival = owners.iter().chain(&claimants).find(|other| **other != unit);
                let place = (unit.clone(), cluster.clone());
                let is_said = scene.is_awaiting(&place);
                let (Some(rival), true, false) = (rival.cloned(), scene.hold(place), is_said) else {
                    continue;
                };
                let is_had = owners.contains(&rival);
                let found = contested.entry((unit, rival)).or_insert_with(|| Contested {
                    object: object.clone(),
                    objects: BTreeSet::new(),
                    clusters: BTreeSet::new(),
                    is_had,
                });
                found.objects.insert(object.clone());
                found.clusters.insert(cluster.clone());
            }
        }
    }
    for ((unit, rival), contested) in contested {
        let finding = finding(scene, &unit, &rival, &contested);
        scene.say(finding);
    }
}

fn finding(scene: &Scene<'_>, unit: &UnitKey, rival: &UnitKey, contested: &Contested) -> Finding {
    let object = &contested.object;
    let (mut own, mut other) = (manifest(scene, unit, object), manifest(scene, rival, object));
    if own == other {
        (own, other) = (subscription(scene, unit), subscription(scene, rival));
    }
    let more = match contested.objects.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more objects", count - 1),
    };
    let outcome = match contested.is_had {
        true => format!("{rival} has it, and {unit} keeps what it had"),
        false => "both keep what they had".to_owned(),
    };
    let message = format!(
        "{}{more} would be delivered to {} by {unit} ({}) and by {rival} ({}): {outcome}",
        label(object),
        clusters(&contested.clusters),
        place(&own),
        place(&other),
    );
    Finding::error("ObjectClaimedTwice", message)
        .at(own.0, own.1)
        .hint("take it out of one of the two; to move it, do both in one commit")
        .unit(unit)
        .clusters(&contested.clusters)
}

/// `Kind namespace/name`.
pub(super) fn label(object: &ObjectKey) -> String {
    match object.namespace.as_str() {
        "" => format!("{} {}", object.kind, object.name),
        namespace => format!("{} {namespace}/{}", object.kind, object.name),
    }
}

/// `cluster a`, `cluster a and 2 others`.
pub(super) fn clusters(clusters: &BTreeSet<ClusterName>) -> String {
    let first = clusters.first().map(ToString::to_string).unwrap_or_default();
    match clusters.len() {
        0 | 1 => format!("cluster {first}"),
        2 => format!("cluster {first} and 1 other"),
        count => format!("cluster {first} and {} others", count - 1),
    }
}

pub(super) type FilePlace = (String, u32);

pub(super) fn place((file, line): &FilePlace) -> String {
    match (file.as_str(), line) {
        ("", _) => "whose Subscription is gone".to_owned(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    }
}

/// Where a unit has an object from: its manifest, or where that is not known any more its Subscription.
pub(super) fn manifest(scene: &Scene<'_>, unit: &UnitKey, object: &ObjectKey) -> FilePlace {
    let declared = scene.fleet.units.get(unit);
    let wanted = super::holdings::Same(object);
    let found = declared.and_then(|unit| {
        let mut objects = unit.base.objects.iter();
        objects.find(|object| super::holdings::Same(&object.key) == wanted)
    });
    match found {
        Some(object) => (object.file.to_string(), object.line),
        None => subscription(scene, unit),
    }
}

pub(super) fn subscription(scene: &Scene<'_>, unit: &UnitKey) -> FilePlace {
    let declared = scene.fleet.units.get(unit).map(|unit| &unit.subscription);
    declared.map_or_else(FilePlace::default, |subscription| {
        (subscription.file.to_string(), subscription.line)
    })
}
