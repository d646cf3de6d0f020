//! Objects that a chart is predicted to bring, and that another unit delivers too or is predicted to bring.
//!
//! A prediction counts only where there is one: a chart that nobody could predict keeps nobody from anything.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::{clusters, label, manifest, place};
use super::holdings::Same;
use super::scene::{Place, Scene};
use crate::chart::Previews;
use crate::finding::Finding;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::plan::Plan;

/// An object that a chart is predicted to bring to a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Predicted {
    pub(super) object: ObjectKey,
    /// The HelmChart.
    pub(super) chart: ObjectKey,
    /// The template that it is from.
    pub(super) template: String,
}

/// What every place with charts is predicted to get.
pub(super) type ByPlace = BTreeMap<Place, Vec<Predicted>>;

/// Reads the predictions for all that a plan places.
pub(super) fn of_plan(plan: &Plan, previews: &Previews) -> ByPlace {
    let mut found = ByPlace::new();
    if previews.known.is_empty() {
        return found;
    }
    for (unit, placement) in &plan.units {
        for cluster in placement.clusters.keys() {
            let entry = placement.entry(cluster);
            let Some(content) = entry.and_then(|(_, variant)| plan.contents.get(&variant.digest)) else {
                continue;
            };
            let objects = previews.objects(content, cluster).into_iter();
            // Helm makes what is in a chart's crds/ only where it is not there, and takes it from nobody.
            let own = objects.filter(|(_, object)| !object.template.contains("/crds/"));
            let predicted = own.map(|(chart, object)| Predicted {
                object: object.key,
                chart,
                template: object.template,
            });
            let predicted: Vec<_> = predicted.collect();
            if !predicted.is_empty() {
                found.insert((unit.clone(), cluster.clone()), predicted);
            }
        }
    }
    found
}

/// A unit that brings an object, and the chart that it is predicted from where no manifest says it.
type Claimant<'a> = (&'a UnitKey, Option<&'a Predicted>);

/// What a unit is held for, and the one that has it or wants it too.
struct Contested {
    object: ObjectKey,
    objects: usize,
    clusters: BTreeSet<ClusterName>,
    chart: Option<Predicted>,
    rival_chart: Option<Predicted>,
    is_had: bool,
}

/// Holds whoever would take an object that another unit has, where one of them is a prediction.
pub(super) fn check(scene: &mut Scene<'_>) {
    let mut contested: BTreeMap<(UnitKey, UnitKey), Contested> = BTreeMap::new();
    for (cluster, object, claimants) in claims(scene) {
        let owners = owners(scene, &cluster, &object, &claimants);
        let all = owners.len() == claimants.len();
        for (unit, chart) in &claimants {
            if owners.contains(unit) && !all {
                continue;
            }
            let others = || claimants.iter().filter(|(other, _)| other != unit);
            let owner = others().find(|(other, _)| owners.contains(other));
            let Some((rival, rival_chart)) = owner.or_else(|| others().next()) else {
                continue;
            };
            let found = contested
                .entry((unit.clone(), rival.clone()))
                .or_insert_with(|| Contested {
                    object: object.clone(),
                    objects: 0,
                    clusters: BTreeSet::new(),
                    chart: chart.clone(),
                    rival_chart: rival_chart.clone(),
                    is_had: owners.contains(rival),
                });
            found.objects += usize::from(found.clusters.is_empty() || found.clusters.contains(&cluster));
            found.clusters.insert(cluster.clone());
        }
    }
    for ((unit, rival), contested) in contested {
        let places = contested.clusters.iter();
        let held: Vec<bool> = places
            .map(|cluster| scene.hold((unit.clone(), cluster.clone())))
            .collect();
        // Each is said once: what is held already has its reason.
        if held.contains(&true) {
            let finding = finding(scene, &unit, &rival, &contested);
            scene.say(finding);
        }
    }
}

type OwnedClaimant = (UnitKey, Option<Predicted>);

/// Objects with more than one claimant on a cluster, at least one of them by a prediction.
fn claims(scene: &Scene<'_>) -> Vec<(ClusterName, ObjectKey, Vec<OwnedClaimant>)> {
    let mut wanted: BTreeMap<(Same<'_>, &ClusterName), Vec<Claimant<'_>>> = BTreeMap::new();
    for ((unit, cluster), predicted) in &scene.predicted {
        if scene.is_held(unit, cluster) {
            continue;
        }
        for one in predicted {
            let claimants = wanted.entry((Same(&one.object), cluster)).or_default();
            // One unit with two charts of one object is that unit's own matter, and Helm's.
            if claimants.iter().all(|(known, _)| *known != unit) {
                claimants.push((unit, Some(one)));
            }
        }
    }
    let declared = declared(scene, &wanted.keys().map(|(object, _)| *object).collect());
    let mut found = Vec::new();
    for ((object, cluster), mut claimants) in wanted {
        for unit in declared.get(&object).into_iter().flatten() {
            let delivers = scene.after(unit, cluster).is_some_and(|held| held.contains(object.0));
            if delivers && claimants.iter().all(|(known, _)| known != unit) {
                claimants.push((unit, None));
            }
        }
        if claimants.len() > 1 {
            claimants.sort_by_key(|(unit, _)| *unit);
            let owned = claimants
                .into_iter()
                .map(|(unit, chart)| (unit.clone(), chart.cloned()));
            found.push((cluster.clone(), object.0.clone(), owned.collect()));
        }
    }
    found
}

/// The units with one of these objects in a manifest.
fn declared<'a>(scene: &'a Scene<'_>, wanted: &BTreeSet<Same<'_>>) -> BTreeMap<Same<'a>, BTreeSet<&'a UnitKey>> {
    let mut declared: BTreeMap<Same<'a>, BTreeSet<&UnitKey>> = BTreeMap::new();
    for (unit, held) in scene.all_planned() {
        for key in held.keys().filter(|key| wanted.contains(&Same(key))) {
            declared.entry(Same(key)).or_default().insert(unit);
        }
    }
    declared
}

/// Those that have the object: what is published says so, or it is predicted for just what is published. Where nobody
/// is known to, whoever had the chart before.
fn owners(
    scene: &Scene<'_>,
    cluster: &ClusterName,
    object: &ObjectKey,
    claimants: &[OwnedClaimant],
) -> BTreeSet<UnitKey> {
    let had =
        |unit: &UnitKey, object: &ObjectKey| scene.before(unit, cluster).is_some_and(|held| held.contains(object));
    let has = |(unit, chart): &&OwnedClaimant| match chart {
        None => had(unit, object),
        Some(_) => scene.is_unchanged(unit, cluster),
    };
    let names = |(unit, _): &OwnedClaimant| unit.clone();
    let owners: BTreeSet<UnitKey> = claimants.iter().filter(has).map(names).collect();
    if !owners.is_empty() {
        return owners;
    }
    let had_chart = |(unit, chart): &&OwnedClaimant| chart.as_ref().is_some_and(|chart| had(unit, &chart.chart));
    claimants.iter().filter(had_chart).map(names).collect()
}

fn finding(scene: &Scene<'_>, unit: &UnitKey, rival: &UnitKey, contested: &Contested) -> Finding {
    let source = |unit: &UnitKey, chart: &Option<Predicted>| match chart {
        None => (manifest(scene, unit, &contested.object), String::new()),
        Some(chart) => {
            let words = format!(", predicted from chart {}: {}", chart.chart.name, chart.template);
            (manifest(scene, unit, &chart.chart), words)
        }
    };
    let (own, own_words) = source(unit, &contested.chart);
    let (other, other_words) = source(rival, &contested.rival_chart);
    let more = match contested.objects {
        0 | 1 => String::new(),
        count => format!(" and {} more objects", count - 1),
    };
    let outcome = match contested.is_had {
        true => format!("{rival} has it, and {unit} keeps what it had"),
        false => "both keep what they had".to_owned(),
    };
    let message = format!(
        "{}{more} would be delivered to {} by {unit} ({}{own_words}) and by {rival} ({}{other_words}): {outcome}",
        label(&contested.object),
        clusters(&contested.clusters),
        place(&own),
        place(&other),
    );
    let mut finding = Finding::error("ObjectClaimedTwice", message)
        .at(own.0, own.1)
        .hint("take it out of one of the two, by the chart's values or in the feed")
        .unit(unit);
    if let Some(first) = contested.clusters.first() {
        finding = finding.cluster(first);
    }
    finding
}
