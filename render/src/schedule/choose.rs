//! Which of the clusters that match are taken.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::{Placing, SchedulingPolicy, Subscriber};
use crate::name::ClusterName;

/// A cluster that matches.
pub(super) struct Matching<'a> {
    pub(super) name: &'a ClusterName,
    pub(super) labels: &'a BTreeMap<String, String>,
    /// Positions of the subscribers that match it.
    pub(super) subscribers: &'a [usize],
}

/// What is taken, and why the others are not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen<'a> {
    pub(super) taken: BTreeSet<&'a ClusterName>,
    pub(super) left_out: BTreeMap<&'a ClusterName, LeftOut>,
}

/// Why a cluster that matches is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// By which rule.
    pub by: ChoiceRule,
    /// A sentence for people.
    pub why: String,
}

/// What takes some of the clusters that match, and leaves the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ChoiceRule {
    /// `clusters.max`.
    ClustersMax,
    /// A cluster without the label of `clusters.spread`.
    SpreadLabel,
    /// `clusters.spread[].maxGroups`.
    SpreadGroups,
    /// `subGroupStrategy` of the subscribers that match it.
    SubGroup,
    /// `failover` of the Fleet: it was lost, or is silent.
    Failover,
    /// `schedulingPolicy: clusternet`, while no replicas are added.
    Newcomer,
}

impl<'a> Chosen<'a> {
    fn leave(&mut self, matching: &Matching<'a>, by: ChoiceRule, why: String) {
        self.left_out.insert(matching.name, LeftOut { by, why });
    }
}

/// Too few clusters to place anything: the last placement stays.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooFew {
    /// The field that asks for more.
    pub(super) field: String,
    pub(super) message: String,
}

/// Takes clusters out of those that match, which come from best to worst.
pub(super) fn choose<'a>(
    placing: &Placing,
    subscribers: &[Subscriber],
    ranked: &[Matching<'a>],
) -> Result<Chosen<'a>, TooFew> {
    let mut chosen = Chosen::default();
    let mut open: Vec<&Matching<'a>> = ranked.iter().collect();
    if placing.by_sub_group {
        open = by_sub_group(placing, subscribers, &open, &mut chosen)?;
    }
    let max = placing
        .clusters
        .max
        .map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
    let taken = match placing.clusters.spread.first() {
        None => {
            for (index, matching) in open.iter().enumerate().skip(max) {
                let why = format!("{max} better clusters are enough (it is number {})", index + 1);
                chosen.leave(matching, ChoiceRule::ClustersMax, why);
            }
            open.truncate(max);
            open
        }
        Some(constraint) => {
            let key = &constraint.topology_key;
            let (with, without): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|matching| matching.labels.contains_key(key));
            for matching in without {
                let why = format!("it has no label {key}, over which the unit is spread");
                chosen.leave(matching, ChoiceRule::SpreadLabel, why);
            }
            if with.is_empty() {
                return Err(TooFew {
                    field: "clusters.spread[0].topologyKey".to_owned(),
                    message: format!("clusters that match: {}, and none has the label {key}", ranked.len()),
                });
            }
            let groups = grouped(key, &with);
            let fewest = constraint.min_groups.unwrap_or_default();
            if (groups.len() as u64) < fewest {
                return Err(TooFew {
                    field: "clusters.spread[0].minGroups".to_owned(),
                    message: format!(
                        "values of {key} among the clusters that match: {}, and {fewest} are asked for",
                        groups.len()
                    ),
                });
            }
            let most = constraint
                .max_groups
                .map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
            for (group, members) in groups.iter().skip(most) {
                for matching in members {
                    let why = format!("{most} better values of {key} are enough, and {group} is none of them");
                    chosen.leave(matching, ChoiceRule::SpreadGroups, why);
                }
            }
            in_turns(
                groups.into_iter().take(most).map(|(_, members)| members).collect(),
                max,
                &mut chosen,
            )
        }
    };
    let fewest = placing.clusters.min.unwrap_or_default();
    if (taken.len() as u64) < fewest {
        return Err(TooFew {
            field: "clusters.min".to_owned(),
            message: format!("clusters that match: {}, and {fewest} are asked for", taken.len()),
        });
    }
    chosen.taken = taken.into_iter().map(|matching| matching.name).collect();
    Ok(chosen)
}

/// Each subscriber's best. A cluster that two of them match is taken by the first, once.
fn by_sub_group<'m, 'a>(
    placing: &Placing,
    subscribers: &[Subscriber],
    open: &[&'m Matching<'a>],
    chosen: &mut Chosen<'a>,
) -> Result<Vec<&'m Matching<'a>>, TooFew> {
    let is_compatible = placing.policy == SchedulingPolicy::Clusternet;
    let mut taken: BTreeSet<&ClusterName> = BTreeSet::new();
    for (index, subscriber) in subscribers.iter().enumerate() {
        let group = subscriber.sub_group.unwrap_or_default();
        let most = group.max_clusters.unwrap_or(group.min_clusters);
        let own = open.iter().filter(|matching| matching.subscribers.contains(&index));
        let own: Vec<_> = own.filter(|matching| !taken.contains(matching.name)).collect();
        // Clusternet's minimum is a most, and fewer are as good.
        if (own.len() as u64) < group.min_clusters && !is_compatible {
            return Err(TooFew {
                field: format!("subscribers[{index}].subGroupStrategy.minClusters"),
                message: format!(
                    "clusters that match subscriber {}: {}, and {} are asked for",
                    index + 1,
                    own.len(),
                    group.min_clusters
                ),
            });
        }
        taken.extend(
            own.iter()
                .take(usize::try_from(most).unwrap_or(usize::MAX))
                .map(|matching| matching.name),
        );
    }
    for matching in open.iter().filter(|matching| !taken.contains(matching.name)) {
        let why = "its subgroup has taken its clusters".to_owned();
        chosen.leave(matching, ChoiceRule::SubGroup, why);
    }
    Ok(open
        .iter()
        .copied()
        .filter(|matching| taken.contains(matching.name))
        .collect())
}

/// Groups in the order of their best cluster, each with its clusters from best to worst.
fn grouped<'m, 'a>(key: &str, open: &[&'m Matching<'a>]) -> Vec<(&'m str, Vec<&'m Matching<'a>>)> {
    let mut groups: Vec<(&str, Vec<&Matching<'a>>)> = Vec::new();
    for matching in open {
        let Some(value) = matching.labels.get(key) else {
            continue;
        };
        match groups.iter_mut().find(|(group, _)| *group == value) {
            Some((_, members)) => members.push(matching),
            None => groups.push((value, vec![matching])),
        }
    }
    groups
}

/// One of each group in turn, until there are enough.
fn in_turns<'m, 'a>(groups: Vec<Vec<&'m Matching<'a>>>, max: usize, chosen: &mut Chosen<'a>) -> Vec<&'m Matching<'a>> {
    let mut taken = Vec::new();
    let longest = groups.iter().map(Vec::len).max().unwrap_or_default();
    for turn in 0..longest {
        for matching in groups.iter().filter_map(|members| members.get(turn)) {
            if taken.len() < max {
                taken.push(*matching);
            } else {
                let why = format!("{max} better clusters are enough");
                chosen.leave(matching, ChoiceRule::ClustersMax, why);
            }
        }
    }
    taken
}
