//! The best of the clusters that match, where a Subscription does not want all.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Cluster, SchedulingPolicy, Subscription, TaintEffect};
use crate::name::ClusterName;
use crate::published::UnitPlacement;
use crate::schedule::begin::{Begin, made_by};
use crate::schedule::candidates::Search;
use crate::schedule::choose::{ChoiceRule, LeftOut, Matching, TooFew, choose};
use crate::schedule::score::{self, Score};
use crate::schedule::taints;

/// Takes the best of the clusters that match, where the Subscription does not want all.
///
/// A cluster that was lost may come back with what found no place elsewhere, when another one was taken in its place. While
/// the unit `asks_the_same`, both stay: a return alone takes nothing away.
pub(super) fn narrow<'a>(
    subscription: &Subscription,
    begin: Begin<'_>,
    asks_the_same: bool,
    search: &mut Search<'a>,
) -> Result<(), TooFew> {
    let placing = &subscription.placing;
    if !placing.is_a_choice() {
        return Ok(());
    }
    let scores = scores_of(subscription, begin.favoured(), search);
    let ranked = score::ranked(&subscription.key, &scores);
    let matching = ranked.iter().filter_map(|name| {
        let chosen = search.chosen.get(name)?;
        Some(Matching {
            name,
            labels: &chosen.cluster.labels,
            subscribers: &chosen.subscribers,
        })
    });
    let matching: Vec<_> = matching.collect();
    let chosen = choose(placing, &subscription.subscribers, &matching)?;
    let mut left_out = chosen.left_out;
    let mut taken: BTreeSet<ClusterName> = chosen.taken.into_iter().cloned().collect();
    if let Begin::AsItIs(Some(previous)) = begin
        && asks_the_same
        && taken.iter().all(|name| previous.clusters.contains_key(name))
    {
        let stays = |name: &ClusterName, why: &LeftOut| {
            previous.clusters.contains_key(name) && why.by != ChoiceRule::SpreadLabel
        };
        let staying = left_out.extract_if(.., |name, why| stays(name, why));
        taken.extend(staying.map(|(name, _)| name.clone()));
    }
    let left_out = left_out.into_iter().map(|(name, why)| (name.clone(), why));
    search.left_out.extend(left_out);
    for (place, name) in ranked.iter().enumerate() {
        if let Some(chosen) = search.chosen.get_mut(name) {
            chosen.rank = place;
            chosen.reasons.push(score_text(begin, name, &scores[name]));
        }
    }
    search.chosen.retain(|name, _| taken.contains(*name));
    Ok(())
}

/// What speaks for each of the clusters that match.
pub(super) fn scores_of<'a>(
    subscription: &Subscription,
    previous: Option<&UnitPlacement>,
    search: &Search<'a>,
) -> BTreeMap<&'a ClusterName, Score> {
    let chosen = search.chosen.iter();
    let mut scores = chosen
        .map(|(name, chosen)| (*name, score_of(subscription, previous, chosen.cluster)))
        .collect();
    if subscription.placing.policy == SchedulingPolicy::Clusternet {
        score::as_clusternet(&mut scores);
    }
    scores
}

/// What speaks for a cluster.
fn score_of(subscription: &Subscription, previous: Option<&UnitPlacement>, cluster: &Cluster) -> Score {
    let placed = previous.is_some_and(|unit| unit.clusters.contains_key(&cluster.name));
    let avoided = cluster.taints.iter().filter(|taint| {
        taint.effect == TaintEffect::PreferNoSchedule && !taints::tolerates(&subscription.tolerations, taint)
    });
    Score {
        placed: if placed { score::PLACED } else { 0 },
        preferred: score::preferred(&subscription.placing.clusters.preferred, &cluster.labels),
        taint: score::TAINTED * i64::try_from(avoided.count()).unwrap_or(i64::MAX / 1_000),
    }
}

fn score_text(begin: Begin<'_>, cluster: &ClusterName, score: &Score) -> String {
    let mut parts = Vec::new();
    if score.placed > 0 {
        let before = match begin {
            Begin::AsItWas(before) => made_by(before, cluster),
            Begin::AsItIs(_) | Begin::Anew | Begin::WithoutPending(_) => None,
        };
        parts.push(before.map_or_else(
            || "it has the unit".to_owned(),
            |revision| format!("it had the unit at {revision}"),
        ));
    }
    parts.push(format!("preferred {}", score.preferred));
    if score.taint != 0 {
        parts.push(format!("taints {}", score.taint));
    }
    format!("among the best: {}", parts.join(", "))
}
