//! The fleet as a whole: where its three refs stand, and what is wrong.

use render::{Revision, Severity};
use serde::Serialize;

use super::cluster::Session;
use super::condition::{Condition, Status, summary};
use super::evidence::place;
use super::index::{Observation, convert};
use super::ladder::OFFLINE;
use crate::hub::engine::Head;
use crate::hub::remote::FailureKind;

/// Reasons that stay until a person changes something.
const STALLED: [&str; 6] = [
    "HistoryRewritten",
    "BranchMissing",
    "ErrorsFound",
    "UnitsNotReady",
    "NoHubCluster",
    "ForeignObjects",
];

/// The fleet as a whole.
#[derive(Clone, Debug)]
pub struct FleetView {
    /// `Ready`, `Reconciling` or `Stalled` while they are true, then what they are made of.
    pub conditions: Vec<Condition>,
    /// Where the source branch stands.
    pub source: Option<Revision>,
    /// The newest revision that was planned; before the first plan of a process, what is published was made from
    /// it. Only its descendants are followed.
    pub accepted: Option<Revision>,
    /// The commit of `rendered`, which is not of the source's history.
    pub rendered: Option<Revision>,
    /// The commit of `released`, likewise.
    pub released: Option<Revision>,
    /// Its sequence.
    pub sequence: Option<u64>,
    /// Clusters by whether they are there.
    pub clusters: Vec<(Session, usize)>,
    /// Units by their `Ready`.
    pub units: UnitCounts,
    /// Findings by severity.
    pub findings: FindingCounts,
}

/// Units by their `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitCounts {
    /// All of them.
    pub total: usize,
    /// `Ready` is true.
    pub ready: usize,
    /// It is false.
    pub not_ready: usize,
    /// It is not known, since something is under way or a cluster is away.
    pub unknown: usize,
}

/// Findings by severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct FindingCounts {
    /// What they name keeps its last good content.
    pub errors: usize,
    /// Nothing is held back.
    pub warnings: usize,
    /// Worth knowing.
    pub infos: usize,
}

impl Observation<'_> {
    /// The fleet as a whole.
    pub fn fleet(&self) -> FleetView {
        let (units, units_ready) = self.all_units();
        let clusters = self.sessions();
        let mut parts = self.fleet.clone();
        parts.push(self.planned());
        parts.push(self.valid());
        parts.push(self.approved_by_people());
        parts.push(connected(&clusters));
        parts.push(units_ready);
        parts.extend(self.state.objects.clone().map(convert));
        let is_held = |reason: &str| STALLED.contains(&reason) || FailureKind::is_lasting_reason(reason);
        let mut conditions = summary(parts.iter(), |part| is_held(&part.reason));
        conditions.extend(parts);
        FleetView {
            conditions,
            source: self.source_revision().cloned(),
            accepted: self.state.accepted_or_published(),
            rendered: self.state.rendered.as_ref().map(|commit| commit.commit.clone()),
            released: self.state.released.as_ref().map(|commit| commit.commit.clone()),
            sequence: self.sequence(),
            clusters,
            units,
            findings: self.finding_counts(),
        }
    }

    /// The sequence of `released`.
    pub fn sequence(&self) -> Option<u64> {
        self.state.released.as_ref()?.published.record.as_ref()?.sequence
    }

    /// Whether the source branch can be read and followed.
    pub fn is_source_followed(&self) -> bool {
        self.source.is_true()
    }

    /// Findings by severity.
    pub fn finding_counts(&self) -> FindingCounts {
        let mut counts = FindingCounts::default();
        for finding in &self.state.findings {
            let part = match finding.severity {
                Severity::Error => &mut counts.errors,
                Severity::Warning => &mut counts.warnings,
                Severity::Info => &mut counts.infos,
            };
            *part += 1;
        }
        counts
    }

    fn source_revision(&self) -> Option<&Revision> {
        match self.state.source.as_ref()? {
            Head::At { revision, .. } => Some(revision),
            Head::BranchMissing { .. } | Head::Unreadable { .. } => None,
        }
    }

    /// Registered clusters by whether they are there; every session has its entry.
    fn sessions(&self) -> Vec<(Session, usize)> {
        let registered = self.state.fleet.as_ref().map(|fleet| fleet.clusters.keys());
        let sessions: Vec<_> = registered
            .into_iter()
            .flatten()
            .map(|name| self.session(name))
            .collect();
        let count = |session: Session| (session, sessions.iter().filter(|other| **other == session).count());
        Session::ALL.map(count).to_vec()
    }

    fn all_units(&self) -> (UnitCounts, Condition) {
        let mut counts = UnitCounts::default();
        let mut first: Option<(String, Condition)> = None;
        for unit in self.units() {
            let ready = self.unit(unit).conditions.into_iter().next();
            let status = ready.as_ref().map_or(Status::Unknown, |ready| ready.status);
            counts.total += 1;
            *match status {
                Status::True => &mut counts.ready,
                Status::False => &mut counts.not_ready,
                Status::Unknown => &mut counts.unknown,
            } += 1;
            let worse = first
                .as_ref()
                .is_none_or(|(_, first)| !first.is_false() && status == Status::False);
            if let Some(ready) = ready.filter(|ready| worse && !ready.is_true()) {
                first = Some((unit.to_string(), ready));
            }
        }
        let kind = "UnitsReady";
        let message = format!("{} of {} units are ready", counts.ready, counts.total);
        let condition = match first {
            None => Condition::yes(kind, "UnitsReady", message),
            Some((unit, ready)) if ready.is_false() => {
                Condition::no(kind, "UnitsNotReady", format!("{message}; {unit}: {}", ready.message))
            }
            Some((unit, ready)) => {
                Condition::unknown(kind, &ready.reason, format!("{message}; {unit}: {}", ready.message))
            }
        };
        (counts, condition)
    }

    /// Whether the head of source was planned.
    fn planned(&self) -> Condition {
        let kind = "Planned";
        match (self.source_revision(), &self.state.accepted) {
            (_, None) => Condition::unknown(kind, "NotPlannedYet", "no revision was planned yet"),
            (Some(source), Some(accepted)) if source != accepted && self.is_source_followed() => {
                Condition::unknown(kind, "Planning", format!("{source} is being planned"))
            }
            (_, Some(accepted)) if self.state.deciding => {
                Condition::unknown(kind, "Writing", format!("what {accepted} changes is being written"))
            }
            (_, Some(accepted)) => {
                Condition::yes(kind, "Planned", format!("{accepted} is the newest that was planned"))
            }
        }
    }

    /// Whether a decision waits for a person. Which units it would change stands in its commit alone.
    fn approved_by_people(&self) -> Condition {
        let mut approved = self.awaited().unwrap_or_else(|| self.approved());
        if !self.state.kept_proposals.is_empty() {
            let kept: Vec<_> = self.state.kept_proposals.iter().map(|name| short_ref(name)).collect();
            approved.message.push_str(&format!(
                "; people put commits on {}, which the hub leaves to them: merge or delete it",
                kept.join(" and ")
            ));
        }
        approved
    }

    /// That a decision waits for a merge, and how a person merges it.
    pub(super) fn awaited(&self) -> Option<Condition> {
        let proposed = self.state.proposed.as_ref()?;
        let source = proposed.source.as_ref();
        let since = source.map(|source| format!(", made from {}", super::short_revision(&self.state.branch, source)));
        let message = format!(
            "{}{} waits for a person to merge it into {}: {}",
            short_ref(&proposed.branch),
            since.unwrap_or_default(),
            short_ref(&self.state.rendered_ref),
            self.merge_command()?,
        );
        Some(Condition::unknown("Approved", "MergeAwaited", message))
    }

    /// What a person types in a clone to merge the decision that waits.
    pub fn merge_command(&self) -> Option<String> {
        let branch = short_ref(&self.state.proposed.as_ref()?.branch);
        let rendered = short_ref(&self.state.rendered_ref);
        Some(format!("git fetch && git push origin origin/{branch}:{rendered}"))
    }

    fn valid(&self) -> Condition {
        let kind = "Valid";
        let errors = self.finding_counts().errors;
        match self.state.findings.iter().find(|finding| finding.is_error()) {
            None => Condition::yes(kind, "NoErrors", "the repository has no Error"),
            Some(first) if errors == 1 => Condition::no(kind, "ErrorsFound", place(first)),
            Some(first) => Condition::no(
                kind,
                "ErrorsFound",
                format!("{errors} Errors, such as {}", place(first)),
            ),
        }
    }
}

/// A branch as people type it.
pub(super) fn short_ref(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

fn connected(clusters: &[(Session, usize)]) -> Condition {
    let kind = "ClustersConnected";
    let total: usize = clusters.iter().map(|(_, count)| count).sum();
    let there = clusters
        .iter()
        .find(|(session, _)| *session == Session::Connected)
        .map_or(0, |(_, count)| *count);
    let message = format!("{there} of {total} clusters are connected");
    if there == total {
        Condition::yes(kind, "Connected", message)
    } else {
        Condition::unknown(kind, OFFLINE, message)
    }
}
