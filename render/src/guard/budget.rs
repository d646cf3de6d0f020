//! How much a plan takes away, against what the budgets allow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::{label, subscription};
use super::holdings::{Held, Same};
use super::scene::{Place, Scene};
use super::{Evidence, claims};
use crate::digest::Digest;
use crate::finding::Finding;
use crate::limits::REPLACED_OBJECTS_MIN;
use crate::model::{PruneAllowance, PruneBudget};
use crate::name::{ClusterName, ObjectKey, UnitKey};

/// The reason of the finding of a list that goes beyond a budget.
pub const REASON_BUDGET: &str = "PruneBudgetExceeded";

/// Hex digits of a list's digest in a trailer: nobody makes another list for them.
const DIGEST_DIGITS: usize = 16;

/// An object that would leave a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removal {
    /// Which cluster.
    pub cluster: ClusterName,
    /// Which object.
    pub object: ObjectKey,
    /// The unit that has it.
    pub unit: UnitKey,
}

/// A list of objects that went beyond a budget and was not allowed: it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// The budget, in words.
    pub budget: String,
    /// What would let it go.
    pub allowance: PruneAllowance,
    /// The list, sorted.
    pub removals: Vec<Removal>,
}

/// What leaves a place.
type Leaving = BTreeMap<Place, Vec<ObjectKey>>;

/// Holds what goes beyond a budget, and says so.
pub(super) fn check(scene: &mut Scene<'_>, evidence: &Evidence<'_>) -> Vec<Exceeded> {
    let leaving = leaving(scene);
    if leaving.is_empty() {
        return Vec::new();
    }
    let mut exceeded = Vec::new();
    let mut over: Vec<(Limit<'_>, Vec<&Place>)> = Vec::new();
    for budget in evidence.budgets {
        let places = exceeding(scene, budget, &leaving);
        if !places.is_empty() {
            over.push((Limit::Declared(budget), places));
        }
    }
    for (unit, places) in replaced(scene, &leaving) {
        over.push((Limit::Replaced(unit), places));
    }
    let mut holds: Vec<Place> = Vec::new();
    let mut findings = Vec::new();
    for (limit, places) in over {
        let removals = removals(&places, &leaving);
        let allowance = allowance(&removals);
        if evidence.allowed.contains(&allowance) {
            continue;
        }
        let units: BTreeSet<&UnitKey> = places.iter().map(|(unit, _)| unit).collect();
        findings.extend(
            units
                .into_iter()
                .map(|unit| limit.finding(scene, unit, &removals, &allowance)),
        );
        holds.extend(places.into_iter().cloned());
        exceeded.push(Exceeded {
            budget: limit.words(),
            allowance,
            removals,
        });
    }
    for place in holds {
        scene.hold(place);
    }
    findings.into_iter().for_each(|finding| scene.say(finding));
    exceeded
}

/// What leaves each place and is delivered there by nobody else. What a unit leaves behind by its own word stays.
fn leaving(scene: &Scene<'_>) -> Leaving {
    let shared: BTreeMap<Same<'_>, &Vec<UnitKey>> = scene
        .shared
        .iter()
        .map(|(object, units)| (Same(object), units))
        .collect();
    let mut leaving = Leaving::new();
    for (unit, cluster) in scene.changes.keys() {
        if scene.is_held(unit, cluster) {
            continue;
        }
        let (Some(before), after) = (scene.before(unit, cluster), scene.after(unit, cluster)) else {
            continue;
        };
        if after.is_none() && before.is_orphan() {
            continue;
        }
        let moves = |object: &ObjectKey| {
            let others = shared.get(&Same(object)).into_iter().flat_map(|units| units.iter());
            others
                .filter(|other| *other != unit)
                .any(|other| has(scene.after(other, cluster), object))
        };
        let gone = before.keys().filter(|object| !has(after, object) && !moves(object));
        let gone: Vec<ObjectKey> = gone.cloned().collect();
        if !gone.is_empty() {
            leaving.insert((unit.clone(), cluster.clone()), gone);
        }
    }
    leaving
}

/// The places of a budget's that lose something, where that is more than it allows.
fn exceeding<'l>(scene: &Scene<'_>, budget: &PruneBudget, leaving: &'l Leaving) -> Vec<&'l Place> {
    let concerns = |unit: &UnitKey, cluster: &ClusterName| {
        let labels = scene.fleet.clusters.get(cluster).map(|cluster| &cluster.labels);
        budget.concerns(unit, cluster, labels)
    };
    let concerned = leaving.iter().filter(|((unit, cluster), _)| concerns(unit, cluster));
    let concerned: Vec<_> = concerned.collect();
    let gone: usize = concerned.iter().map(|(_, objects)| objects.len()).sum();
    let there: usize = match budget.percent_max {
        None => 0,
        Some(_) => {
            let places = scene.places().filter(|(unit, cluster, _)| concerns(unit, cluster));
            let sizes = places.filter_map(|(_, _, digest)| scene.content(Some(digest)).map(Held::len));
            sizes.sum()
        }
    };
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    if gone == 0 || !budget.is_exceeded(number(gone), number(there)) {
        return Vec::new();
    }
    concerned.into_iter().map(|(place, _)| place).collect()
}

/// Without any budget: units that stay on a cluster, and lose there all of what they had. That many objects are
/// replaced at once by a mistyped path more often than on purpose.
fn replaced<'l>(scene: &Scene<'_>, leaving: &'l Leaving) -> BTreeMap<&'l UnitKey, Vec<&'l Place>> {
    let mut replaced: BTreeMap<&UnitKey, Vec<&Place>> = BTreeMap::new();
    for (place, objects) in leaving {
        let (unit, cluster) = place;
        let stays = scene.after(unit, cluster).is_some();
        let all = scene
            .before(unit, cluster)
            .is_some_and(|before| before.len() == objects.len());
        if stays && all && objects.len() >= REPLACED_OBJECTS_MIN {
            replaced.entry(unit).or_default().push(place);
        }
    }
    replaced
}

fn removals(places: &[&Place], leaving: &Leaving) -> Vec<Removal> {
    let mut removals = Vec::new();
    for place in places {
        let objects = leaving.get(*place).into_iter().flatten();
        removals.extend(objects.map(|object| Removal {
            cluster: place.1.clone(),
            object: object.clone(),
            unit: place.0.clone(),
        }));
    }
    removals.sort();
    removals
}

/// What names exactly this list.
fn allowance(removals: &[Removal]) -> PruneAllowance {
    let mut text = String::new();
    for removal in removals {
        text.push_str(&format!("{} {} {}\n", removal.cluster, removal.object, removal.unit));
    }
    PruneAllowance {
        count: u64::try_from(removals.len()).unwrap_or(u64::MAX),
        digest: Digest::of_bytes(text.as_bytes()).short(DIGEST_DIGITS),
    }
}

/// What a list is too long for.
enum Limit<'a> {
    Declared(&'a Arc<PruneBudget>),
    /// All of what a unit has, and it stays.
    Replaced(&'a UnitKey),
}

impl Limit<'_> {
    fn words(&self) -> String {
        match self {
            Self::Declared(budget) => format!("PruneBudget {} ({}:{})", budget.name, budget.file, budget.line),
            Self::Replaced(unit) => format!("all that {unit} has"),
        }
    }

    fn finding(&self, scene: &Scene<'_>, unit: &UnitKey, removals: &[Removal], allowance: &PruneAllowance) -> Finding {
        let own: Vec<_> = removals.iter().filter(|removal| removal.unit == *unit).collect();
        let names: BTreeSet<ClusterName> = own.iter().map(|removal| removal.cluster.clone()).collect();
        let such = own.first().map(|removal| label(&removal.object)).unwrap_or_default();
        let gone = match own.len() {
            1 => format!("{such} would go from {}", claims::clusters(&names)),
            count => format!(
                "{count} objects would go from {}, such as {such}",
                claims::clusters(&names)
            ),
        };
        let message = match self {
            Self::Declared(budget) => {
                let all = match removals.len() == own.len() {
                    true => String::new(),
                    false => format!(", {} with those of other units", removals.len()),
                };
                format!("{gone}{all}; {} allows {}", self.words(), budget.allowed())
            }
            Self::Replaced(_) => format!("{gone}: that is all that {unit} has there, and it is to stay"),
        };
        let mut place = subscription(scene, unit);
        if let (true, Self::Declared(budget)) = (place.0.is_empty(), self) {
            place = (budget.file.to_string(), budget.line);
        }
        let hint = format!(
            "if they shall go, flotilla allow-prune commits the word for it: {}: {}",
            PruneAllowance::TRAILER,
            allowance.text()
        );
        Finding::error(REASON_BUDGET, message)
            .at(place.0, place.1)
            .hint(hint)
            .unit(unit)
            .clusters(&names)
    }
}

fn has(held: Option<&Held<'_>>, object: &ObjectKey) -> bool {
    held.is_some_and(|held| held.contains(object))
}
