//! The two rungs that only the cluster itself can speak for, from what it reported.

use render::model::DriftMode;
use render::release::Waiting;
use render::{ClusterName, Finding, ObjectKey, UnitKey};
use serde::Serialize;

use super::condition::Condition;
use super::index::Observation;
use super::ladder::{FROZEN, OFFLINE, Rung};
use crate::wire::{Counts, Health, ObjectResult, ObjectState, Report, UnitReport, UnitState};

/// The API server refused objects; the applier tries again.
pub(super) const APPLY_FAILED: &str = "ApplyFailed";

/// Fields that somebody else changed are left so.
pub(super) const DRIFTED: &str = "Drifted";

/// The applier as a whole cannot work.
pub(super) const TROUBLE: &str = "ApplierInTrouble";

/// Something that the unit needs is not healthy yet. Waiting is no failure: nothing is counted as one.
pub(super) const DEPENDENCY: &str = "DependencyNotReady";

/// Other clusters get more of the unit, and are not healthy with it yet.
const MOVING: &str = "Moving";

/// Something that the unit needs failed, and that is where somebody has to look.
pub(super) const BLOCKED: &str = "DependencyFailed";

/// The cluster did not believe what it was told.
pub(super) const REFUSED: &str = "EnvelopeRefused";

/// What drift mode Freeze means.
pub(super) const FREEZE: &str = "drift mode is Freeze: nothing of it is changed, also not what Git changes";

/// An object that is not as it should be, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorstObject {
    /// Where.
    pub cluster: ClusterName,
    /// What became of it.
    #[serde(flatten)]
    pub result: ObjectResult,
}

/// The objects of a report that are not as they should be.
pub(super) fn worst(cluster: &ClusterName, report: &UnitReport) -> Vec<WorstObject> {
    let bad = |result: &&ObjectResult| result.state != ObjectState::Applied || result.health != Health::Current;
    let named = |result: &ObjectResult| WorstObject {
        cluster: cluster.clone(),
        result: result.clone(),
    };
    report.worst.iter().filter(bad).map(named).collect()
}

/// What a unit's release to a cluster waits for.
pub(super) fn waiting(kind: &'static str, waiting: &Waiting) -> Condition {
    let reason = if waiting.why.is_move() { MOVING } else { DEPENDENCY };
    Condition::unknown(kind, reason, waiting.to_string())
}

/// A finding in one line, place first.
pub(super) fn place(finding: &Finding) -> String {
    match (finding.file.as_str(), finding.line) {
        ("", _) => finding.message.clone(),
        (file, 0) => format!("{file}: {}", finding.message),
        (file, line) => format!("{file}:{line}: {}", finding.message),
    }
}

/// What others changed and is left so: told, and no reason not to be ready.
pub(super) fn drifted(report: &UnitReport) -> Option<Condition> {
    let counts = report.counts;
    let fight = report.drift.iter().find(|object| !object.message.is_empty());
    let first = fight.or_else(|| report.drift.first())?;
    let reason = if fight.is_some() { "Fight" } else { "FieldsDiffer" };
    let mut message = format!("{} of {} objects differ", counts.drifted, counts.objects);
    let words = match first.fields.first() {
        _ if fight.is_some() => first.message.clone(),
        Some(field) => format!("in {}", field.path),
        None => String::new(),
    };
    if !words.is_empty() {
        message = format!("{message}; {} {words}", label(&first.object));
    }
    Some(Condition::yes(DRIFTED, reason, message))
}

/// Some objects could not be applied. Which of them counts most: somebody else's field is a person's
/// matter, and more than what is tried again.
pub(super) fn failed(kind: &'static str, report: &UnitReport) -> Condition {
    let of = |state: ObjectState| report.worst.iter().find(|result| result.state == state);
    let first = of(ObjectState::Conflict)
        .or_else(|| of(ObjectState::Unsupported))
        .or_else(|| of(ObjectState::Failed));
    let reason = match first.map(|result| result.state) {
        Some(ObjectState::Conflict) => "FieldConflict",
        Some(ObjectState::Unsupported) => "KindNotDelivered",
        _ => APPLY_FAILED,
    };
    let counts = report.counts;
    let mut message = format!("{} of {} objects could not be applied", counts.failed, counts.objects);
    if let Some(result) = first {
        message = format!("{message}; {}: {}", object(result), result.message);
    }
    Condition::no(kind, reason, message)
}

/// `Kind namespace/name`.
fn object(result: &ObjectResult) -> String {
    label(&result.object)
}

pub(super) fn label(key: &ObjectKey) -> String {
    if key.namespace.is_empty() {
        format!("{} {}", key.kind, key.name)
    } else {
        format!("{} {}/{}", key.kind, key.namespace, key.name)
    }
}

impl Observation<'_> {
    pub(super) fn applied(&self, unit: &UnitKey, cluster: &ClusterName) -> Condition {
        let kind = Rung::Applied.as_str();
        let connected = self.is_connected(cluster);
        let report = self.report(cluster);
        if let Some(report) = report.filter(|report| connected && !report.trouble.is_empty()) {
            return Condition::no(kind, TROUBLE, report.trouble.clone());
        }
        // What it holds of older times may say the same of this unit: it is not led by this hub all the same.
        if let Some((_, refusal)) = report.and_then(|report| report.refused.as_ref()) {
            return Condition::no(kind, REFUSED, refusal.to_string());
        }
        let Some(result) = self.result_of_released(unit, cluster) else {
            return not_reported(kind, connected, report);
        };
        let counts = result.counts;
        match result.state {
            UnitState::Applied if self.is_frozen(unit, cluster) => frozen(kind, result),
            UnitState::Applied => Condition::yes(kind, "Applied", applied(counts)),
            UnitState::Failed => failed(kind, result),
            _ if !connected => not_reported(kind, connected, report),
            UnitState::Waiting if !result.message.is_empty() => {
                let is_blocked = result.worst.iter().any(|object| object.state == ObjectState::Blocked);
                let reason = if is_blocked { BLOCKED } else { DEPENDENCY };
                Condition::unknown(kind, reason, result.message.clone())
            }
            UnitState::Waiting => Condition::unknown(kind, "Waiting", "its content has not arrived yet"),
            UnitState::Removing => {
                Condition::unknown(kind, "Removing", "it was being removed when the cluster said so")
            }
            UnitState::Unknown => {
                let message = "its agent is newer, and says of it what this hub does not know; hint: upgrade the hub";
                Condition::unknown(kind, "UnknownState", message)
            }
            UnitState::Applying => {
                let message = format!("{} of {} objects are applied", counts.applied, counts.objects);
                Condition::unknown(kind, "Applying", message)
            }
        }
    }

    pub(super) fn healthy(&self, unit: &UnitKey, cluster: &ClusterName) -> Condition {
        let kind = Rung::Healthy.as_str();
        if !self.is_connected(cluster) {
            return not_reported(kind, false, self.report(cluster));
        }
        let Some(result) = self.result_of_released(unit, cluster) else {
            return not_reported(kind, true, self.report(cluster));
        };
        let counts = result.counts;
        let message = format!("{} of {} objects are as they should be", counts.current, counts.objects);
        match result.health {
            Health::Current => Condition::yes(kind, "HealthCheckSucceeded", message),
            Health::InProgress => Condition::unknown(kind, "Progressing", message),
            Health::Unknown => Condition::unknown(kind, "NotLookedAtYet", message),
            Health::Terminating => Condition::unknown(kind, "Terminating", message),
            Health::Failed => {
                let bad = result.worst.iter().find(|result| result.health == Health::Failed);
                let named = bad.map(|result| format!("; {}: {}", object(result), result.message));
                Condition::no(kind, "HealthCheckFailed", message + &named.unwrap_or_default())
            }
        }
    }

    /// Whether the cluster is told to change nothing of a unit.
    pub(super) fn is_frozen(&self, unit: &UnitKey, cluster: &ClusterName) -> bool {
        let told = self.released(unit, cluster);
        told.is_some_and(|(placement, _)| placement.drift == DriftMode::Freeze)
    }

    /// Whether the cluster said what it holds, and that is nothing of a unit.
    pub(super) fn has_nothing(&self, unit: &UnitKey, cluster: &ClusterName) -> bool {
        let report = self.report(cluster).filter(|report| report.held_read);
        report.is_some_and(|report| {
            let held = report.held.as_ref();
            !held.is_some_and(|held| held.units.contains_key(unit)) && !report.units.contains_key(unit)
        })
    }

    /// What the cluster said of exactly the content that it is told to have. An older content's result
    /// says nothing about the newer one.
    fn result_of_released(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<&UnitReport> {
        let (placement, variant) = self.released(unit, cluster)?;
        let held = self.report(cluster)?.held.as_ref()?;
        if self.state.released.as_ref()?.lineage != held.lineage {
            return None;
        }
        let held = held.units.get(unit)?;
        let same = held.digest == variant.digest && held.replicas == placement.replicas;
        self.unit_report(unit, cluster)
            .filter(|result| same && result.digest == Some(variant.digest))
    }
}

/// How many objects of a unit are applied, and how many are left out.
fn applied(counts: Counts) -> String {
    match counts.suspended {
        0 => format!("{} objects are applied", counts.objects),
        left => format!("{} objects are applied, {left} are left as they are", counts.applied),
    }
}

/// Whether a frozen unit is as Git says. Where it is, nothing waits.
fn frozen(kind: &'static str, report: &UnitReport) -> Condition {
    let counts = report.counts;
    if counts.behind == 0 && counts.drifted == 0 {
        let message = format!("{} objects are as Git says, and are left as they are", counts.objects);
        return Condition::yes(kind, "Applied", message);
    }
    let other = counts.behind.max(counts.drifted);
    let message = format!("{other} of {} objects are not as Git says; {FREEZE}", counts.objects);
    Condition::unknown(kind, FROZEN, message)
}

/// Of what is suspended, what is not as Git says: `, 1 of them not as Git says`.
pub(super) fn behind(report: &UnitReport) -> String {
    match report.counts.behind {
        0 => String::new(),
        behind => format!(", {behind} of them not as Git says"),
    }
}

/// Nothing is known of what is asked, since the cluster is there and said nothing, or is away.
pub(super) fn not_reported(kind: &'static str, connected: bool, report: Option<&Report>) -> Condition {
    if connected {
        return Condition::unknown(kind, "NotReportedYet", "the cluster has not said yet what came of it");
    }
    let message = match report {
        None => "the cluster was not connected yet".to_owned(),
        // A cluster without an agent is never heard to be away: its applier at the hub says why.
        Some(report) if !report.trouble.is_empty() => format!("the cluster is not connected: {}", report.trouble),
        Some(_) => "the cluster is not connected and keeps what it has".to_owned(),
    };
    Condition::unknown(kind, OFFLINE, message)
}
/// How far the removal of a unit that left the delivery is: what stays says why.
pub(super) fn removing(kind: &'static str, report: &UnitReport) -> Condition {
    let kept = report.worst.iter().find(|result| result.state == ObjectState::Kept);
    let (going, left) = (report.counts.removing, report.counts.objects);
    if let Some(stuck) = report.worst.iter().find(|result| result.state == ObjectState::Stuck) {
        let (object, why) = (object(stuck), &stuck.message);
        let message = format!(
            "{} of {left} objects do not go, such as {object}: {why}",
            report.counts.stuck.max(1)
        );
        return Condition::no(kind, "RemovalStuck", message);
    }
    match kept {
        // What stays is nobody's work any more: it is said, and nothing waits for it.
        Some(kept) if going == 0 => {
            let (object, why) = (&kept.object, &kept.message);
            Condition::yes(kind, "Kept", format!("{left} objects stay, such as {object}: {why}"))
        }
        Some(kept) if going < left => {
            let (object, why) = (&kept.object, &kept.message);
            let message = format!("{} of {left} objects stay, such as {object}: {why}", left - going);
            Condition::unknown(kind, "Kept", message)
        }
        _ if going == 1 => Condition::unknown(kind, "Removing", "1 object is being removed"),
        _ => Condition::unknown(kind, "Removing", format!("{going} objects are being removed")),
    }
}
