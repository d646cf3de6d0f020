//! Objects that leave a unit for another one which does not get them yet.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::{clusters, label, subscription};
use super::holdings::{Held, Same};
use super::scene::{Place, Scene};
use crate::finding::Finding;
use crate::name::{ClusterName, ObjectKey, UnitKey};

/// An object that would be with neither unit.
struct Moving {
    object: ObjectKey,
    count: usize,
    clusters: BTreeSet<ClusterName>,
}

/// Holds every place that would lose an object to a unit which is held, suspended or in trouble: it would be removed,
/// and made anew with another UID when that unit goes on.
pub(super) fn check(scene: &mut Scene<'_>) {
    let mut found: BTreeMap<(UnitKey, UnitKey), Moving> = BTreeMap::new();
    let (mut held, mut awaited): (Vec<Place>, Vec<Place>) = (Vec::new(), Vec::new());
    let bases = troubled_bases(scene);
    let shared: BTreeMap<Same<'_>, &Vec<UnitKey>> = scene
        .shared
        .iter()
        .map(|(object, units)| (Same(object), units))
        .collect();
    for (unit, cluster) in scene.changes.keys() {
        if scene.is_held(unit, cluster) {
            continue;
        }
        let (Some(before), after) = (scene.before(unit, cluster), scene.after(unit, cluster)) else {
            continue;
        };
        let is_kept = |object: &ObjectKey| after.is_some_and(|after| after.contains(object));
        for object in before.keys().filter(|object| !is_kept(object)) {
            let heirs = shared.get(&Same(object)).into_iter().flat_map(|units| units.iter());
            let troubled = bases.get(&Same(object)).into_iter().flatten().copied();
            let mut heirs = heirs.chain(troubled).filter(|other| *other != unit);
            let Some(heir) = heirs.find(|heir| waits(scene, heir, cluster, object, &bases)) else {
                continue;
            };
            let moving = found.entry((unit.clone(), heir.clone())).or_insert_with(|| Moving {
                object: object.clone(),
                count: 0,
                clusters: BTreeSet::new(),
            });
            moving.count += usize::from(moving.clusters.is_empty() || moving.clusters.contains(cluster));
            moving.clusters.insert(cluster.clone());
            held.push((unit.clone(), cluster.clone()));
            awaited.push((heir.clone(), cluster.clone()));
        }
    }
    let findings: Vec<_> = found
        .iter()
        .map(|((unit, heir), moving)| finding(scene, unit, heir, moving))
        .collect();
    for place in held {
        scene.hold(place);
    }
    for place in awaited {
        scene.awaits(place);
    }
    findings.into_iter().for_each(|finding| scene.say(finding));
}

type Bases<'a> = BTreeMap<Same<'a>, Vec<&'a UnitKey>>;

/// What units in trouble declare, as far as it is known: an object may be on its way to them.
fn troubled_bases<'a>(scene: &'a Scene<'_>) -> Bases<'a> {
    let mut bases = Bases::new();
    for key in &scene.troubled {
        let declared = scene.fleet.units.get(key);
        for object in declared.into_iter().flat_map(|unit| &unit.base.objects) {
            bases.entry(Same(&object.key)).or_default().push(key);
        }
    }
    bases
}

/// Whether a unit is to have an object on a cluster and does not get it now.
fn waits(scene: &Scene<'_>, heir: &UnitKey, cluster: &ClusterName, object: &ObjectKey, bases: &Bases<'_>) -> bool {
    let has = |held: Option<&Held<'_>>| held.is_some_and(|held| held.contains(object));
    let gets = has(scene.after(heir, cluster));
    let is_suspended = scene.is_suspended(heir, cluster) && !has(scene.before(heir, cluster));
    if has(scene.planned(heir, cluster)) && (!gets || is_suspended) {
        return true;
    }
    let is_declared = bases.get(&Same(object)).is_some_and(|units| units.contains(&heir));
    is_declared && !gets
}

fn finding(scene: &Scene<'_>, unit: &UnitKey, heir: &UnitKey, moving: &Moving) -> Finding {
    let more = match moving.count {
        0 | 1 => String::new(),
        count => format!(" and {} more objects", count - 1),
    };
    let message = format!(
        "{}{more} would leave {unit} on {} for {heir}, which is held there: {unit} keeps what it had until {heir} goes on",
        label(&moving.object),
        clusters(&moving.clusters),
    );
    let mut place = subscription(scene, unit);
    if place.0.is_empty() {
        place = subscription(scene, heir);
    }
    Finding::error("ObjectMoveHeld", message)
        .at(place.0, place.1)
        .hint(format!("correct or resume {heir}"))
        .unit(unit)
        .clusters(&moving.clusters)
}
