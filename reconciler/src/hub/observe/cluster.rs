//! A cluster: whether it is there, what it holds, and how its units fare.

use std::sync::Arc;

use render::ClusterName;
use render::capacity::Resources;
use render::model::SyncMode;
use serde::Serialize;

use super::condition::{Condition, summary};
use super::evidence::{REFUSED, TROUBLE, not_reported};
use super::index::Observation;
use super::ladder::{OFFLINE, SUSPENDED};
use crate::hub::knocks::{Knock, Why};
use crate::key_sets::KeysKnown;
use crate::wire::{Facts, NodeFacts, Report, enforcing};

/// The condition that others ask to be this cluster.
pub const CALLERS: &str = "OtherCallers";

/// The condition that it goes by the mode that its file has here; absent while it does.
const MODE: &str = "SyncModeTaken";

/// A cluster.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// `Ready`, `Reconciling` or `Stalled` while they are true, then what they are made of, then `Suspended` while it is.
    pub conditions: Vec<Condition>,
    /// Whether it is there.
    pub session: Session,
    /// Since when it is away, in seconds since 1970, where this hub saw it go.
    pub away_since: Option<i64>,
    /// The sequence it took last.
    pub held_sequence: Option<u64>,
    /// The sequence and reason of a newer envelope that it refused.
    pub refused: Option<(u64, String)>,
    /// As its API server says.
    pub kubernetes_version: Option<String>,
    /// What it is, as it said last.
    pub facts: Option<Arc<Facts>>,
    /// How its nodes fare, as it said last.
    pub node_facts: Option<Arc<NodeFacts>>,
    /// What its nodes have: how many there are, and how much of it pods may take.
    pub nodes: Option<(u64, Resources)>,
    /// Since when its agent knows its hubs' keys, as it said last.
    pub hub_keys_known: KeysKnown,
    /// When it said something last, in seconds since 1970.
    pub observed_at: Option<i64>,
    /// Units it has or has to leave, and how many of them are ready.
    pub units: (usize, usize),
}

/// Whether a cluster is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Session {
    /// Its tunnel stands, or its applier at the hub runs.
    Connected,
    /// It said something before, and is away.
    Disconnected,
    /// Nothing was heard of it since this hub runs.
    NeverSeen,
}

impl Session {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Connected, Self::Disconnected, Self::NeverSeen];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "Connected",
            Self::Disconnected => "Disconnected",
            Self::NeverSeen => "NeverSeen",
        }
    }
}

impl Observation<'_> {
    /// Whether a cluster is there.
    pub fn session(&self, cluster: &ClusterName) -> Session {
        match (self.is_connected(cluster), self.report(cluster)) {
            (true, _) => Session::Connected,
            (false, Some(_)) => Session::Disconnected,
            (false, None) => Session::NeverSeen,
        }
    }

    /// Since when a cluster is away. One that another hub hears of is not.
    fn away_since(&self, cluster: &ClusterName) -> Option<i64> {
        let known = self.state.clusters.get(cluster)?;
        known.away_since.filter(|_| !self.is_connected(cluster))
    }

    /// What a cluster that is away enforces by itself, as far as it said, and since when it is away.
    fn enforced_alone(&self, cluster: &ClusterName) -> Option<(u64, i64)> {
        let known = self.state.clusters.get(cluster)?;
        let held = known.report.as_ref()?.held.as_ref()?;
        Some((held.sequence, self.away_since(cluster)?))
    }

    /// The lowest sequence that a cluster enforces by itself, and since when the one is away that is so for the longest time.
    pub(in crate::hub) fn oldest_alone(&self) -> Option<(u64, i64)> {
        let alone = self
            .state
            .clusters
            .keys()
            .filter_map(|cluster| self.enforced_alone(cluster));
        alone.reduce(|one, other| (one.0.min(other.0), one.1.min(other.1)))
    }

    /// How many objects a cluster still has that its delivery lacks, where it said so after it was told.
    pub(in crate::hub) fn objects_left(&self, cluster: &ClusterName) -> Option<usize> {
        let report = self.report(cluster).filter(|_| self.is_connected(cluster))?;
        let held = report.held.as_ref()?;
        let told = self.state.envelope(cluster)?;
        let taken = held.list == told.list && held.lineage == told.lineage;
        taken.then(|| report.units.values().map(|unit| unit.counts.objects).sum())
    }

    /// How a cluster fares.
    pub fn cluster(&self, cluster: &ClusterName) -> ClusterView {
        let (session, report) = (self.session(cluster), self.report(cluster));
        let (units, all, ready) = self.units_ready(cluster);
        let (delivered, applier) = (self.delivered(cluster, report), applier(session, report));
        // Away is not broken: `Connected` is False then, and `Ready` is not known.
        let (connected, presence) = match session {
            Session::Connected => {
                let message = match report.and_then(|report| report.without_hub_since) {
                    Some(since) => format!(
                        "the cluster is connected; it went on by itself from {}, until it came back",
                        render::time::rfc3339(since)
                    ),
                    None => "the cluster is connected".to_owned(),
                };
                let connected = Condition::yes("Connected", "SessionStands", message);
                (connected.clone(), connected)
            }
            away => {
                let mut message = not_reported("Connected", false, report).message;
                if let Some((sequence, since)) = self.enforced_alone(cluster) {
                    message = format!("{message}; it goes on {}", enforcing(Some(sequence), since));
                }
                (
                    Condition::no("Connected", away.as_str(), message.clone()),
                    Condition::unknown("Connected", OFFLINE, message),
                )
            }
        };
        let parts = [&presence, &delivered, &applier, &units];
        let mut conditions = summary(parts.into_iter(), |condition| condition.reason == REFUSED);
        conditions.extend([connected, delivered, applier, units]);
        let suspension = self.cluster_suspension(cluster);
        conditions.extend(suspension.map(|held| Condition::yes(SUSPENDED, SUSPENDED, format!("by {}", held.label()))));
        conditions.extend(self.other_mode(cluster, report));
        conditions.extend(self.callers(cluster));
        ClusterView {
            conditions,
            session,
            away_since: self.away_since(cluster),
            held_sequence: report.and_then(|report| Some(report.held.as_ref()?.sequence)),
            refused: report
                .and_then(|report| report.refused.as_ref())
                .map(|(sequence, refusal)| (*sequence, refusal.to_string())),
            kubernetes_version: report.and_then(|report| report.kubernetes_version.clone()),
            facts: report.and_then(|report| report.facts.clone()),
            node_facts: report.and_then(|report| report.nodes.clone()),
            nodes: self.state.nodes(cluster),
            hub_keys_known: report.map(|report| report.hub_keys_known.clone()).unwrap_or_default(),
            observed_at: self
                .state
                .clusters
                .get(cluster)
                .filter(|known| known.report.is_some())
                .map(|known| known.reported_at),
            units: (all, ready),
        }
    }

    /// That it goes by another mode than its file has here, as another hub told it.
    fn other_mode(&self, cluster: &ClusterName, report: Option<&Report>) -> Option<Condition> {
        let held = report.filter(|_| self.is_connected(cluster))?.held.as_ref()?;
        let (source, here) = (held.mode_source.as_ref()?, &self.state.fleet.as_ref()?.revision);
        let mode = self.state.mode(cluster);
        if held.mode == mode || source == here {
            return None;
        }
        let message = format!(
            "it goes by {:?}, as commit {source} says, and by commit {here}, the newest one here, it is {mode:?}; this hub has \
             not seen the other commit yet, or not fetched so much history, which it does within minutes; where this stays, \
             the commit is in no history here, and a commit with the trailer Accept-Rewrite: {source} lets this mode \
             through{}",
            held.mode,
            if held.mode == SyncMode::Push {
                "; until then the agent stands by, and this hub does not apply"
            } else {
                ""
            }
        );
        Some(Condition::no(MODE, "OtherHubIsAhead", message))
    }

    /// Who else asks to be this cluster, while somebody does.
    fn callers(&self, cluster: &ClusterName) -> Option<Condition> {
        let is_this = |knock: &&Knock| match &knock.why {
            Why::RegisteredAs { name } => name == cluster || knock.cluster == *cluster,
            _ => knock.cluster == *cluster,
        };
        let mut knocks: Vec<_> = self.state.knocks.iter().filter(is_this).collect();
        // Who proved a key says more than who did not.
        knocks.sort_by_key(|knock| (knock.key.is_none(), knock.first));
        let first = knocks.first()?;
        let message = match knocks.len() - 1 {
            0 => first.message(),
            more => format!("{}; and {more} more", first.message()),
        };
        Some(Condition::yes(CALLERS, first.why.as_str(), message))
    }

    /// Whether the cluster holds what it is told. Lists are compared: an unchanged one is not sent again, so
    /// that a lower sequence may be as new.
    fn delivered(&self, cluster: &ClusterName, report: Option<&Report>) -> Condition {
        let kind = "Delivered";
        if let Some((sequence, refusal)) = report.and_then(|report| report.refused.as_ref()) {
            return Condition::no(kind, REFUSED, format!("sequence {sequence}: {refusal}"));
        }
        if self.is_recovering() {
            return Condition::unknown(kind, "Recovering", "nothing is delivered while the hub recovers");
        }
        let Some(envelope) = self.state.envelope(cluster) else {
            return Condition::unknown(kind, "NotReleasedYet", "nothing was released yet");
        };
        match report.and_then(|report| report.held.as_ref()) {
            Some(held) if held.list == envelope.list && held.lineage == envelope.lineage => Condition::yes(
                kind,
                "Held",
                format!("it holds what sequence {} says", envelope.sequence),
            ),
            _ if !self.is_connected(cluster) => not_reported(kind, false, report),
            Some(held) => {
                let message = format!("it holds sequence {} and is told {}", held.sequence, envelope.sequence);
                Condition::unknown(kind, "NotTakenYet", message)
            }
            None => Condition::unknown(
                kind,
                "NotTakenYet",
                format!("it is told sequence {}", envelope.sequence),
            ),
        }
    }

    fn units_ready(&self, cluster: &ClusterName) -> (Condition, usize, usize) {
        let units = self.clusters.get(cluster).into_iter().flatten();
        let ready: Vec<_> = units
            .filter_map(|unit| Some((*unit, self.placement(unit, cluster).summary.into_iter().next()?)))
            .collect();
        let (all, count) = (ready.len(), ready.iter().filter(|(_, ready)| ready.is_true()).count());
        let kind = "UnitsReady";
        let open = ready.iter().filter(|(_, ready)| !ready.is_true());
        let condition = match open.min_by_key(|(_, ready)| (!ready.is_false(), ready.reason == OFFLINE)) {
            None => Condition::yes(kind, "UnitsReady", format!("{count} of {all} units are ready")),
            Some((unit, ready)) => Condition {
                kind,
                message: format!("{count} of {all} units are ready; {unit}: {}", ready.message),
                ..ready.clone()
            },
        };
        (condition, all, count)
    }
}

fn applier(session: Session, report: Option<&Report>) -> Condition {
    let kind = "ApplierWorks";
    match report {
        _ if session != Session::Connected => not_reported(kind, false, report),
        None => not_reported(kind, true, None),
        Some(report) if !report.trouble.is_empty() => Condition::no(kind, TROUBLE, report.trouble.clone()),
        Some(_) => Condition::yes(kind, "Works", "its applier works"),
    }
}
