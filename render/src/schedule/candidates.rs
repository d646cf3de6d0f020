//! Which clusters a unit's subscribers choose, and which of them its taints leave.

use std::collections::BTreeMap;

use crate::fleet::Fleet;
use crate::model::{Cluster, Subscriber, Subscription, Taint};
use crate::name::ClusterName;
use crate::published::UnitPlacement;
use crate::schedule::choose::LeftOut;
use crate::schedule::taints::{self, Verdict};
use crate::selector::{LabelSelector, Operator, Requirement};

/// A cluster that a unit goes to.
pub(super) struct Chosen<'a> {
    pub(super) cluster: &'a Cluster,
    /// Positions of the subscribers that match it, in order.
    pub(super) subscribers: Vec<usize>,
    pub(super) reasons: Vec<String>,
    /// Its place among those that match, where not all are taken; the best first.
    pub(super) rank: usize,
}

/// What the search found.
#[derive(Default)]
pub(super) struct Search<'a> {
    pub(super) chosen: BTreeMap<&'a ClusterName, Chosen<'a>>,
    /// Clusters that match, and the taint that stands against each.
    pub(super) tainted: Vec<(&'a ClusterName, &'a Taint)>,
    /// Clusters that match and are not taken: why.
    pub(super) left_out: BTreeMap<ClusterName, LeftOut>,
}

/// Searches the fleet for clusters that any subscriber matches and no taint excludes.
pub(super) fn search<'a>(
    fleet: &'a Fleet,
    subscription: &Subscription,
    previous: Option<&UnitPlacement>,
) -> Search<'a> {
    let mut search = Search::default();
    for (name, cluster) in &fleet.clusters {
        let subscribers = matching(subscription, cluster);
        if subscribers.is_empty() {
            continue;
        }
        let placed = previous.is_some_and(|unit| unit.clusters.contains_key(name));
        let taint = match admit(subscription, cluster, placed) {
            Ok(taint) => taint,
            Err(taint) => {
                search.tainted.push((name, taint));
                continue;
            }
        };
        let mut reasons: Vec<String> = subscribers
            .iter()
            .map(|index| subscriber_text(*index, &subscription.subscribers[*index]))
            .collect();
        reasons.extend(taint);
        search.chosen.insert(
            name,
            Chosen {
                cluster,
                subscribers,
                reasons,
                rank: 0,
            },
        );
    }
    search
}

fn matching(subscription: &Subscription, cluster: &Cluster) -> Vec<usize> {
    let selects = |subscriber: &Subscriber| {
        let affinity = subscriber.cluster_affinity.as_ref();
        affinity.is_some_and(|selector| selector.matches(&cluster.labels))
    };
    let matches = |(index, subscriber)| selects(subscriber).then_some(index);
    subscription
        .subscribers
        .iter()
        .enumerate()
        .filter_map(matches)
        .collect()
}

/// What the taints say, as a reason to add; the taint that excludes the cluster, where one does.
fn admit<'a>(subscription: &Subscription, cluster: &'a Cluster, placed: bool) -> Result<Option<String>, &'a Taint> {
    match taints::verdict(&cluster.taints, &subscription.tolerations) {
        Verdict::Free => Ok(None),
        Verdict::Avoid(taint) => Ok(Some(format!(
            "taint {} is not tolerated, which only asks to prefer other clusters",
            taints::text(taint)
        ))),
        Verdict::KeepOut(taint) if placed => Ok(Some(format!(
            "stays in spite of taint {}, which only keeps new placements out",
            taints::text(taint)
        ))),
        Verdict::KeepOut(taint) | Verdict::Evict(taint) => Err(taint),
    }
}

fn subscriber_text(index: usize, subscriber: &Subscriber) -> String {
    let selector = subscriber.cluster_affinity.as_ref().map(selector_text);
    format!("matches subscriber {} ({})", index + 1, selector.unwrap_or_default())
}

pub(super) fn selector_text(selector: &LabelSelector) -> String {
    if selector.is_empty() {
        return "every cluster".to_owned();
    }
    let labels = selector
        .match_labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().map(requirement_text);
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}

pub(super) fn requirement_text(requirement: &Requirement) -> String {
    let Requirement { key, operator, values } = requirement;
    match operator {
        Operator::In => format!("{key} in ({})", values.join(",")),
        Operator::NotIn => format!("{key} notin ({})", values.join(",")),
        Operator::Exists => key.clone(),
        Operator::DoesNotExist => format!("!{key}"),
    }
}
