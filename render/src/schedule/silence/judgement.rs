//! Who of the silent clusters may be moved away from now.

use std::collections::{BTreeMap, BTreeSet};

use super::{Scene, after, has_a_share, is_within, least_patience, may_move, patiences, seconds};
use crate::finding::Finding;
use crate::limits::LOOK_AGAIN_SECONDS;
use crate::name::ClusterName;
use crate::schedule::Presence;
use crate::time::rfc3339;

/// What the policy allows.
#[derive(Debug, Default)]
pub(super) struct Judgement<'a> {
    /// Clusters that units may be moved away from.
    pub(super) allowed: BTreeSet<&'a ClusterName>,
    /// What it does not allow.
    pub(super) findings: Vec<Finding>,
}

impl<'a> Scene<'a> {
    /// Clusters that are silent for as long as the least patient unit bears, since when.
    pub(super) fn silent(&self) -> BTreeMap<&'a ClusterName, i64> {
        let least = least_patience(self.fleet).unwrap_or(i64::MAX);
        let all = self.silences().into_iter();
        all.filter(|(since, _)| self.now.saturating_sub(*since) >= least)
            .map(|(since, name)| (name, since))
            .collect()
    }

    /// When another cluster is silent or heard of for long enough, or what was not allowed may be by then.
    pub(super) fn next(&self, judgement: &Judgement<'_>) -> Option<i64> {
        let afters = patiences(self.fleet, self.policy);
        let silences = self.silences();
        let due = silences
            .iter()
            .flat_map(|(since, _)| afters.iter().map(|after| since.saturating_add(*after)));
        let lost = self.previous.values().flat_map(|unit| &unit.lost);
        let returning =
            lost.filter(|(_, lost)| !lost.returned)
                .filter_map(|(name, _)| match self.presence.get(name)? {
                    Presence::HeardSince(since) => Some(since.saturating_add(seconds(self.policy.return_seconds))),
                    Presence::SilentSince(_) => None,
                });
        // Neither who is heard of again plans anything nor the budget: it is looked again while an alarm stands.
        let again = (!judgement.findings.is_empty()).then(|| self.now.saturating_add(LOOK_AGAIN_SECONDS));
        let later = due.chain(returning).chain(again);
        later.filter(|at| *at > self.now).min()
    }

    /// Every silent cluster of the fleet, the longest silence first.
    fn silences(&self) -> Vec<(i64, &'a ClusterName)> {
        let silent = self.presence.iter().filter_map(|(name, presence)| match presence {
            Presence::SilentSince(since) => Some((*since, name)),
            Presence::HeardSince(_) => None,
        });
        let mut silent: Vec<_> = silent
            .filter(|(_, name)| self.fleet.clusters.contains_key(*name))
            .collect();
        silent.sort_unstable();
        silent
    }

    fn heard(&self) -> usize {
        let is_heard = |(name, presence): &(&ClusterName, &Presence)| {
            matches!(presence, Presence::HeardSince(_)) && self.fleet.clusters.contains_key(*name)
        };
        self.presence.iter().filter(is_heard).count()
    }

    /// Whether any unit would be moved away from a cluster.
    fn is_wanted(&self, cluster: &ClusterName, since: i64) -> bool {
        self.fleet.units.values().any(|unit| {
            let subscription = &unit.subscription;
            let previous = self.previous.get(&subscription.key);
            may_move(subscription)
                && after(self.policy, subscription).is_some_and(|after| self.now.saturating_sub(since) >= after)
                && has_a_share(subscription, previous, cluster)
        })
    }
}

impl<'a> Judgement<'a> {
    /// Judges the clusters that are silent for long enough, of all that are silent.
    pub(super) fn of(scene: &Scene<'a>, silent: &BTreeMap<&'a ClusterName, i64>) -> Self {
        if silent.is_empty() {
            return Self::default();
        }
        // What one unit lost in this very silence, others may lose too.
        let mut allowed = BTreeSet::new();
        let mut spent = BTreeSet::new();
        let lost = scene.previous.values().flat_map(|unit| &unit.lost);
        for (name, lost) in lost.filter(|(_, lost)| !lost.keeps) {
            let is_this_one = |since: i64| since == lost.since && !lost.returned;
            if let Some((name, _)) = silent.get_key_value(name).filter(|(_, since)| is_this_one(**since)) {
                allowed.insert(*name);
            }
            if is_within(lost, scene.policy, scene.now) {
                spent.insert(name);
            }
        }
        let mut open = scene.silences();
        open.retain(|(_, name)| !allowed.contains(name));
        let judged = open.iter().copied().filter(|(_, name)| silent.contains_key(*name));
        let heard = scene.heard();
        let clusters_max = usize::try_from(scene.policy.clusters_max).unwrap_or(usize::MAX);
        let mut left = clusters_max.saturating_sub(spent.len());
        let (mut many, mut findings): (&[_], _) = (&[], Vec::new());
        for (since, name) in judged.filter(|(since, name)| scene.is_wanted(name, *since)) {
            let crowd = crowd(&open, since, seconds(scene.policy.after_seconds));
            if crowd.len() > clusters_max || crowd.len() > heard {
                many = if crowd.len() > many.len() { crowd } else { many };
            } else if left > 0 {
                left -= 1;
                allowed.insert(name);
            } else {
                findings.push(waits(scene, name, since));
            }
        }
        if !many.is_empty() {
            findings.push(many_silent(many, heard, scene.policy.after_seconds));
        }
        Self { allowed, findings }
    }
}

/// Those that fell silent so close to a moment that it may be for one reason.
fn crowd<'s, 'a>(silences: &'s [(i64, &'a ClusterName)], since: i64, seconds: i64) -> &'s [(i64, &'a ClusterName)] {
    let begin = silences.partition_point(|(other, _)| since.saturating_sub(*other) >= seconds.max(1));
    let end = silences.partition_point(|(other, _)| other.saturating_sub(since) < seconds.max(1));
    &silences[begin..end]
}

fn many_silent(crowd: &[(i64, &ClusterName)], heard: usize, after_seconds: u64) -> Finding {
    let names: BTreeSet<&ClusterName> = crowd.iter().map(|(_, name)| *name).collect();
    let message = format!(
        "{} of {} clusters fell silent within {after_seconds} s: the hub itself seems cut off, and nothing is moved away from them",
        crowd.len(),
        heard + crowd.len()
    );
    Finding::warning("ManyClustersSilent", message)
        .field(FIELD)
        .hint(
            "look at how the hub is reached; where clusters are gone for good, remove their files or raise the budget",
        )
        .clusters(names)
}

fn waits(scene: &Scene<'_>, cluster: &ClusterName, since: i64) -> Finding {
    let policy = scene.policy;
    let message = format!(
        "cluster {cluster} is silent since {}, and as many were moved away from within {} s as the budget allows ({})",
        rfc3339(since),
        policy.per_seconds,
        policy.clusters_max
    );
    Finding::warning("FailoverWaits", message)
        .field(FIELD)
        .hint("it is moved away from once the budget has room again")
        .clusters([cluster])
}

const FIELD: &str = "spec.scheduling.failover.budget";
