//! What becomes of objects that leave a unit, with all units in view: a change of one unit alone cannot tell a removal
//! from a move.
//!
//! An object that another unit gets on the same cluster moves. One whose unit leaves its objects behind, or that an
//! annotation keeps, stays in the cluster. Everything else that leaves is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::diff::{Change, ObjectChange, content_change};
use super::{Share, changes};
use crate::by_object::ByObject;
use crate::describe::{Content, Description};
use crate::guard::Same;
use crate::immutable::{fields, objection};
use crate::keep::kept_by;
use crate::model::{DeletionPolicy, DriftMode, Replace};
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::published::Orphaned;

/// Clusters of a unit that change alike, with what they have and get.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Whose.
    pub unit: UnitKey,
    /// Which, sorted by name; not empty.
    pub clusters: Vec<ClusterName>,
    /// What they have.
    pub from: Option<Share>,
    /// What they get.
    pub to: Option<Share>,
    /// The content that they have.
    pub before: Option<Arc<Description>>,
    /// The content that they get.
    pub after: Option<Arc<Description>>,
    /// What changes, sorted by object. Before [`settle`], as the two contents say.
    pub objects: Vec<ObjectChange>,
}

/// An object that differs in fields which cannot change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fixed {
    /// Which.
    pub object: ObjectKey,
    /// The fields, as API servers write them; not empty.
    pub fields: Vec<String>,
    /// Why the API server will refuse it, with a hint; empty: it will be deleted and made anew.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub objection: String,
}

impl Part {
    /// Clusters with what changes between two contents.
    pub fn new(
        unit: UnitKey,
        clusters: Vec<ClusterName>,
        (from, before): (Option<Share>, Option<Arc<Description>>),
        (to, after): (Option<Share>, Option<Arc<Description>>),
    ) -> Self {
        let (had, gets) = (
            undivided(before.as_ref(), from.as_ref(), to.as_ref()),
            undivided(after.as_ref(), to.as_ref(), from.as_ref()),
        );
        Self {
            objects: changes(had.as_deref(), gets.as_deref()),
            unit,
            clusters,
            from,
            to,
            before,
            after,
        }
    }

    /// What is done about drift there: as it gets it, or had it where it gets nothing.
    pub fn drift(&self) -> DriftMode {
        let share = self.to.as_ref().or(self.from.as_ref());
        share.map(|share| share.drift).unwrap_or_default()
    }
}

/// A content with its share of what is divided on this side alone: the other side has such an object whole, and its
/// replicas are compared with this share.
fn undivided(
    content: Option<&Arc<Description>>,
    here: Option<&Share>,
    there: Option<&Share>,
) -> Option<Arc<Description>> {
    let content = content?;
    let (Some(here), Some(there)) = (here, there) else {
        return Some(Arc::clone(content));
    };
    let replicas = here.replicas.iter();
    let alone = replicas.filter(|(object, _)| !there.replicas.contains_key(object));
    let alone: ByObject = alone.map(|(object, count)| (object.clone(), *count)).collect();
    if alone.is_empty() {
        return Some(Arc::clone(content));
    }
    let mut told = (**content).clone();
    for (object, content) in told.objects.iter_mut().zip(content.with_replicas(&alone)) {
        object.content = content;
    }
    Some(Arc::new(told))
}

/// Where each contested object was, or goes: (object, cluster) → unit.
type Ends<'a> = BTreeMap<(Same<'a>, &'a ClusterName), (&'a Part, &'a ObjectKey)>;

/// What leaves and leaves its objects behind, as the newest word in Git says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staying {
    /// Clusters whose file is gone.
    pub clusters: BTreeSet<ClusterName>,
    /// Units, and where they leave.
    pub units: Orphaned,
}

/// Tells moves and what stays from removals. A part of which some clusters differ in that becomes several.
pub fn settle(parts: &[Part], staying: &Staying) -> Vec<Part> {
    let removed = keys(parts, &Change::Removed);
    let contested: BTreeSet<Same<'_>> = keys(parts, &Change::Added).intersection(&removed).copied().collect();
    let (leaving, coming) = (
        ends(parts, &contested, &Change::Removed),
        ends(parts, &contested, &Change::Added),
    );
    let mut settled = Vec::new();
    for part in parts {
        let mut split: Vec<(Vec<ObjectChange>, Vec<ClusterName>)> = Vec::new();
        for cluster in &part.clusters {
            let told = |change: &ObjectChange| ObjectChange {
                object: change.object.clone(),
                change: outcome(part, cluster, change, (&leaving, &coming), staying),
            };
            let told: Vec<_> = part.objects.iter().map(told).collect();
            match split.iter_mut().find(|(known, _)| *known == told) {
                Some((_, clusters)) => clusters.push(cluster.clone()),
                None => split.push((told, vec![cluster.clone()])),
            }
        }
        settled.extend(split.into_iter().map(|(objects, clusters)| Part {
            objects,
            clusters,
            ..part.clone()
        }));
    }
    settled
}

/// The objects of a part that differ in fields which cannot change, sorted. None where nothing is changed at all.
pub fn fixed(part: &Part) -> Vec<Fixed> {
    if part.drift() == DriftMode::Freeze {
        return Vec::new();
    }
    let replace = part.after.as_ref().map(|after| after.apply.replace).unwrap_or_default();
    let changed = part
        .objects
        .iter()
        .filter(|change| matches!(change.change, Change::Changed(_)));
    changed
        .filter_map(|change| fixed_object(part, &change.object, replace))
        .collect()
}

fn fixed_object(part: &Part, object: &ObjectKey, replace: Replace) -> Option<Fixed> {
    let from = content(part.before.as_deref(), object)?.object()?;
    let to = content(part.after.as_deref(), object)?.object()?;
    let fields = fields(object, from, to);
    (!fields.is_empty()).then(|| Fixed {
        object: object.clone(),
        fields,
        objection: objection(object, to, replace, true).unwrap_or_default(),
    })
}

fn keys<'a>(parts: &'a [Part], wanted: &Change) -> BTreeSet<Same<'a>> {
    let changes = parts.iter().flat_map(|part| &part.objects);
    let wanted = changes.filter(|change| change.change == *wanted);
    wanted.map(|change| Same(&change.object)).collect()
}

fn ends<'a>(parts: &'a [Part], contested: &BTreeSet<Same<'_>>, wanted: &Change) -> Ends<'a> {
    let mut ends = Ends::new();
    for part in parts {
        let changes = part.objects.iter().filter(|change| change.change == *wanted);
        for ObjectChange { object, .. } in changes.filter(|change| contested.contains(&Same(&change.object))) {
            let places = part
                .clusters
                .iter()
                .map(|cluster| ((Same(object), cluster), (part, object)));
            ends.extend(places);
        }
    }
    ends
}

fn outcome(
    part: &Part,
    cluster: &ClusterName,
    ObjectChange { object, change }: &ObjectChange,
    (leaving, coming): (&Ends<'_>, &Ends<'_>),
    staying: &Staying,
) -> Change {
    match change {
        Change::Removed => {
            if let Some((heir, _)) = coming.get(&(Same(object), cluster)) {
                return Change::MovedTo(heir.unit.clone());
            }
            if staying.clusters.contains(cluster) {
                return Change::Kept("deletionPolicy: Orphan of the cluster".to_owned());
            }
            let of_unit = staying.units.get(&part.unit).filter(|_| part.to.is_none());
            if of_unit.is_some_and(|clusters| clusters.contains_key(cluster)) {
                return Change::Kept(UNIT_ORPHANS.to_owned());
            }
            match kept(part, object) {
                Some(by) => Change::Kept(by),
                None => Change::Removed,
            }
        }
        Change::Added => match leaving.get(&(Same(object), cluster)) {
            Some((had, key)) => moved(part, object, had, key),
            None => Change::Added,
        },
        other => other.clone(),
    }
}

const UNIT_ORPHANS: &str = "deletionPolicy: Orphan";

/// By what an object stays when it leaves its unit, as the cluster that has it knows; `None` where it is removed. A
/// cluster that once heard `Orphan` goes by that.
fn kept(part: &Part, object: &ObjectKey) -> Option<String> {
    let before = part.before.as_deref()?;
    if part.to.is_none() && before.apply.deletion == DeletionPolicy::Orphan {
        return Some(UNIT_ORPHANS.to_owned());
    }
    let value = content(Some(before), object)?.object()?;
    let annotation = |name: &str| value.get("metadata")?.get("annotations")?.get(name)?.as_str();
    kept_by(annotation).map(|annotation| format!("annotation {annotation}"))
}

fn moved(part: &Part, object: &ObjectKey, had: &Part, key: &ObjectKey) -> Change {
    let contents = (
        content(had.before.as_deref(), key),
        content(part.after.as_deref(), object),
    );
    let change = match contents {
        (Some(from), Some(to)) => content_change(object, from, to),
        _ => None,
    };
    let fields = match change {
        Some(Change::Changed(fields)) => fields,
        _ => Vec::new(),
    };
    Change::MovedFrom {
        unit: had.unit.clone(),
        fields,
    }
}

fn content<'d>(description: Option<&'d Description>, object: &ObjectKey) -> Option<&'d Content> {
    let objects = &description?.objects;
    let at = objects.binary_search_by(|known| known.key.cmp(object)).ok()?;
    Some(&objects[at].content)
}

#[cfg(test)]
mod tests;
