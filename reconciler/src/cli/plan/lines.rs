//! A unit's changes as lines, each with its sign: what text and Markdown have in common.

use render::ObjectKey;
use render::model::DriftMode;
use render::plan::{Change, FieldChange, Fixed, ObjectChange, PredictedChange, Share, UnplacedChange};
use render::published::Unplaced;

use super::compare::{Group, Held, UnitChange};
use super::summary::counted;
use crate::cli::output::visible;

/// Clusters named one by one in a line; the rest is counted.
const CLUSTERS_SHOWN_MAX: usize = 8;

/// Characters of a value in a line.
const VALUE_CHARS_MAX: usize = 80;

/// What a line says of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Added,
    Removed,
    Changed,
}

/// A line, with how deep it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) sign: Sign,
    pub(super) depth: usize,
    pub(super) what: What,
}

/// What a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Clusters that change alike, or an object.
    Words(String),
    /// A field.
    Field {
        name: String,
        from: Option<String>,
        to: Option<String>,
    },
}

impl Sign {
    pub(super) fn char(self) -> char {
        match self {
            Self::Added => '+',
            Self::Removed => '-',
            Self::Changed => '~',
        }
    }
}

/// The lines of a unit: clusters of which the same is to be said are told together.
pub(super) fn lines(unit: &UnitChange) -> Vec<Line> {
    let mut told: Vec<(Vec<Line>, Vec<&str>)> = Vec::new();
    for group in &unit.groups {
        let body = group_lines(group);
        let names = group.clusters.iter().map(|cluster| cluster.as_str());
        match told.iter_mut().find(|(known, _)| *known == body) {
            Some((_, clusters)) => clusters.extend(names),
            None => told.push((body, names.collect())),
        }
    }
    // What is removed is read first, and what is only predicted last.
    told.sort_by_key(|(body, _)| body.first().is_none_or(|line| line.sign != Sign::Removed));
    told.into_iter()
        .flat_map(|(mut body, mut clusters)| {
            clusters.sort_unstable();
            if let Some(What::Words(words)) = body.first_mut().map(|line| &mut line.what) {
                *words = format!("on {}{words}", named(&clusters));
            }
            body
        })
        .chain(unit.unplaced.iter().map(unplaced_line))
        .chain(unit.predicted.iter().flat_map(predicted_lines))
        .collect()
}

/// How many replicas of an object find no place.
fn unplaced_line((object, change): (&ObjectKey, &UnplacedChange)) -> Line {
    Line {
        sign: Sign::Changed,
        depth: 0,
        what: What::Field {
            name: format!("unplaced of {}", visible(&format!("{} {}", object.kind, object.name))),
            from: Some(unplaced_words(change.from)),
            to: Some(unplaced_words(change.to)),
        },
    }
}

/// `4 of 30`, or `none`.
pub(in crate::cli) fn unplaced_words(unplaced: Option<Unplaced>) -> String {
    match unplaced {
        None => "none".to_owned(),
        Some(Unplaced { replicas, of }) => format!("{replicas} of {of}"),
    }
}

/// What changes inside a release, each object marked as predicted.
fn predicted_lines(change: &PredictedChange) -> Vec<Line> {
    let clusters: Vec<&str> = change.clusters.iter().map(|cluster| cluster.as_str()).collect();
    let outcome = match (change.not_predicted.as_str(), change.objects.is_empty()) {
        ("", false) => "is predicted to change".to_owned(),
        ("", true) => "is predicted to change nothing inside".to_owned(),
        (why, _) => format!("is not predicted: {why}"),
    };
    let mut lines = vec![Line {
        sign: Sign::Changed,
        depth: 0,
        what: What::Words(visible(&format!(
            "on {}: chart {} {outcome}",
            named(&clusters),
            change.chart.name
        ))),
    }];
    for ObjectChange { object, change } in &change.objects {
        let mut told = object_lines(object, change);
        if let Some(What::Words(words)) = told.first_mut().map(|line| &mut line.what) {
            words.push_str(" (predicted)");
        }
        lines.extend(told);
    }
    lines
}

/// What keeps clusters of a unit from these changes for a while, in a line each.
pub(super) fn held(unit: &UnitChange) -> Vec<String> {
    let all: usize = unit.groups.iter().map(|group| group.clusters.len()).sum();
    let line = |held: &Held| {
        let clusters: Vec<&str> = held.clusters.iter().map(|cluster| cluster.as_str()).collect();
        let place = match clusters.len() == all {
            true => String::new(),
            false => format!(" on {}", named(&clusters)),
        };
        format!("held{place} by {}", visible(&held.by))
    };
    unit.held.iter().map(line).collect()
}

/// `a, b and 3 more`.
pub(super) fn named(clusters: &[&str]) -> String {
    let more = clusters.len().saturating_sub(CLUSTERS_SHOWN_MAX);
    let shown = clusters[..clusters.len() - more].join(", ");
    if more > 0 {
        format!("{shown} and {more} more")
    } else {
        shown
    }
}

/// A group's lines; the first lacks the clusters' names.
fn group_lines(group: &Group) -> Vec<Line> {
    let (sign, variant) = match (&group.from, &group.to) {
        (Some(from), Some(to)) if from.variant != to.variant => {
            (Sign::Changed, format!("{} -> {}", from.variant, to.variant))
        }
        (Some(_), Some(to)) => (Sign::Changed, to.variant.to_string()),
        (None, Some(to)) => (Sign::Added, to.variant.to_string()),
        (Some(from), None) => (Sign::Removed, from.variant.to_string()),
        (None, None) => (Sign::Changed, String::new()),
    };
    let mut about = Vec::new();
    if !matches!(variant.as_str(), "" | "default") {
        about.push(format!("variant {variant}"));
    }
    match group.drift {
        DriftMode::Correct => {}
        DriftMode::Report => about.push("drift mode Report".to_owned()),
        DriftMode::Freeze => about.push("drift mode Freeze: nothing is changed there".to_owned()),
    }
    let about = match about.is_empty() {
        true => String::new(),
        false => format!(" ({})", about.join(", ")),
    };
    let mut lines = vec![Line {
        sign,
        depth: 0,
        what: What::Words(about),
    }];
    for ObjectChange { object, change } in &group.objects {
        lines.extend(object_lines(object, change));
        let fixed = group.immutable.iter().filter(|fixed| fixed.object == *object);
        lines.extend(fixed.map(fixed_line));
    }
    lines.extend(replica_lines(group));
    lines.extend(applying_lines(group));
    lines
}

/// What changes about how the objects are applied and kept.
fn applying_lines(group: &Group) -> Vec<Line> {
    let (Some(from), Some(to)) = (&group.from, &group.to) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    if from.drift != to.drift {
        lines.push(Line {
            sign: Sign::Changed,
            depth: 1,
            what: What::Field {
                name: "drift.mode".to_owned(),
                from: Some(format!("{:?}", from.drift)),
                to: Some(format!("{:?}", to.drift)),
            },
        });
    }
    if from.digest != to.digest && group.objects.is_empty() {
        lines.push(Line {
            sign: Sign::Changed,
            depth: 1,
            what: What::Words("how its objects are applied and kept".to_owned()),
        });
    }
    lines
}

fn object_lines(object: &ObjectKey, change: &Change) -> Vec<Line> {
    let name = object_name(object);
    let (sign, name) = match change {
        Change::Added => (Sign::Added, name),
        Change::Removed => (Sign::Removed, name),
        Change::Kept(by) => (Sign::Changed, format!("{name} (left in the cluster: {by})")),
        Change::MovedTo(unit) => (Sign::Changed, format!("{name} (moves to {unit})")),
        Change::MovedFrom { unit, .. } => (Sign::Changed, format!("{name} (comes from {unit})")),
        Change::EncryptedChanged => (Sign::Changed, format!("{name} (encrypted)")),
        Change::Changed(_) => (Sign::Changed, name),
    };
    let mut lines = vec![Line {
        sign,
        depth: 1,
        what: What::Words(name),
    }];
    if let Change::Changed(fields) | Change::MovedFrom { fields, .. } = change {
        lines.extend(fields.iter().map(field_line));
    }
    lines
}

/// What becomes of an object that differs in a field which cannot change.
fn fixed_line(fixed: &Fixed) -> Line {
    let outcome = match fixed.objection.as_str() {
        "" => "will be recreated",
        _ => "the API server will refuse it",
    };
    Line {
        sign: Sign::Changed,
        depth: 2,
        what: What::Words(visible(&format!(
            "{outcome}, since {} cannot change",
            fixed.fields.join(", ")
        ))),
    }
}

/// `Kind namespace/name`.
pub(in crate::cli) fn object_name(object: &ObjectKey) -> String {
    let namespace = if object.namespace.is_empty() {
        String::new()
    } else {
        format!("{}/", object.namespace)
    };
    visible(&format!("{} {namespace}{}", object.kind, object.name))
}

fn field_line(change: &FieldChange) -> Line {
    let sign = match (&change.from, &change.to) {
        (None, _) => Sign::Added,
        (_, None) => Sign::Removed,
        _ => Sign::Changed,
    };
    Line {
        sign,
        depth: 2,
        what: What::Field {
            name: visible(&change.field),
            from: change.from.as_ref().map(value),
            to: change.to.as_ref().map(value),
        },
    }
}

fn replica_lines(group: &Group) -> Vec<Line> {
    let of = |share: &Option<Share>| share.as_ref().map(|share| share.replicas.clone()).unwrap_or_default();
    let (from, to) = (of(&group.from), of(&group.to));
    // An object that was whole before says its replicas itself.
    let is_told = |object: &ObjectKey| {
        let of_object = |change: &&ObjectChange| change.object == *object;
        let change = group.objects.iter().find(of_object).map(|change| &change.change);
        !from.contains_key(object) && matches!(change, Some(Change::Changed(_) | Change::MovedFrom { .. }))
    };
    let changed = to
        .iter()
        .filter(|(object, count)| from.get(object) != Some(*count) && !is_told(object));
    changed
        .map(|(object, count)| Line {
            sign: Sign::Changed,
            depth: 1,
            what: What::Field {
                name: format!("replicas of {}", visible(&format!("{} {}", object.kind, object.name))),
                from: Some(from.get(object).map_or_else(|| "none".to_owned(), ToString::to_string)),
                to: Some(count.to_string()),
            },
        })
        .collect()
}

/// A value in one line. JSON escapes some of the characters that steer a terminal, and not all.
fn value(value: &serde_json::Value) -> String {
    let text = visible(&value.to_string());
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// What a unit loses, in words; empty where it loses nothing.
pub(super) fn losses(unit: &UnitChange) -> String {
    // What moves or stays is no loss; a unit without objects still leaves.
    let is_removed = |change: &ObjectChange| change.change == Change::Removed;
    let removed = |group: &&Group| group.to.is_none() && group.objects.iter().all(is_removed);
    let mut clusters: Vec<_> = unit
        .groups
        .iter()
        .filter(removed)
        .flat_map(|group| group.clusters.iter().map(|cluster| cluster.as_str()))
        .collect();
    clusters.sort_unstable();
    let mut objects: Vec<_> = unit
        .groups
        .iter()
        .filter(|group| !removed(group))
        .flat_map(|group| &group.objects)
        .filter(|change| is_removed(change))
        .map(|change| object_name(&change.object))
        .collect();
    objects.sort();
    objects.dedup();
    let mut parts = Vec::new();
    if !clusters.is_empty() {
        let all = if unit.removed { "all of it" } else { "the unit" };
        parts.push(format!("{all} from {}", named(&clusters)));
    }
    match objects.as_slice() {
        [] => {}
        [one] => parts.push(one.clone()),
        [first, ..] => parts.push(format!(
            "{}, such as {first}",
            counted(objects.len(), "object", "objects")
        )),
    }
    parts.join("; ")
}
