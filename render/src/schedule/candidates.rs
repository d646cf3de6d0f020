//! Which clusters a unit's subscribers choose, and which of them its taints leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fleet::Fleet;
use crate::model::{Cluster, Subscriber, Subscription, Taint};
use crate::name::ClusterName;
use crate::published::{Lost, UnitPlacement};
use crate::schedule::by_name::ByName;
use crate::schedule::choose::LeftOut;
use crate::schedule::known::Known;
use crate::schedule::silence::{Silence, Standing, Still, chooses, may_move, seconds};
use crate::schedule::taints::{self, Verdict};
use crate::selector::{LabelSelector, Operator, Requirement};
use crate::shared::Shared;
use crate::time::rfc3339;

/// A cluster that a unit goes to.
pub(super) struct Chosen<'a> {
    pub(super) cluster: &'a Cluster,
    /// Its place among all clusters of the fleet.
    pub(super) place: usize,
    /// Positions of the subscribers that match it, in order.
    pub(super) subscribers: Arc<[usize]>,
    pub(super) reasons: Shared<Vec<String>>,
    /// Its place among those that match, where not all are taken; the best first.
    pub(super) rank: usize,
    /// Where it gets nothing more, whatever room it has: why.
    pub(super) still: Option<Still>,
    /// When it leaves, since a taint is tolerated for a while only.
    pub(super) leaves_at: Option<i64>,
}

/// A cluster that gives up what it has, as far as others take it.
pub(super) struct Parting<'a> {
    pub(super) chosen: Chosen<'a>,
    /// What is so there, as in "cluster c, which …".
    pub(super) why: String,
    /// Where it is silent.
    pub(super) lost: Option<Lost>,
}

/// What the search looks at.
#[derive(Clone, Copy)]
pub(super) struct Sight<'s, 'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) silence: &'s Silence<'a>,
    pub(super) now: i64,
    pub(super) subscription: &'s Subscription,
    pub(super) previous: Option<&'s UnitPlacement>,
    /// Whether the unit asks for something else than when it was placed.
    pub(super) anew: bool,
}

/// What the search found.
#[derive(Default)]
pub(super) struct Search<'a> {
    pub(super) chosen: ByName<&'a ClusterName, Chosen<'a>>,
    /// Clusters that match and have the unit, and are to lose it to the others.
    pub(super) parting: BTreeMap<&'a ClusterName, Parting<'a>>,
    /// Clusters that match and are given nothing new by now.
    pub(super) shunned: BTreeMap<&'a ClusterName, Chosen<'a>>,
    /// Clusters that match, and the taint that stands against each.
    pub(super) tainted: Vec<(&'a ClusterName, &'a Taint)>,
    /// Clusters that match and are not taken: why.
    pub(super) left_out: BTreeMap<ClusterName, LeftOut>,
}

/// Searches the fleet for clusters that any subscriber matches and no taint excludes.
pub(super) fn search<'a>(sight: Sight<'_, 'a>) -> Search<'a> {
    let mut search = Search::default();
    let mut matches: Known<Vec<usize>, _> = Known::default();
    let selectors = selectors(sight.subscription);
    let mut matching = Vec::new();
    for (place, (name, cluster)) in sight.fleet.clusters.iter().enumerate() {
        let selected = selectors
            .iter()
            .filter(|(_, selector)| selector.matches(&cluster.labels));
        matching.clear();
        matching.extend(selected.map(|(index, _)| *index));
        if matching.is_empty() {
            continue;
        }
        let (subscribers, reasons) = matches.answer(matching.as_slice(), |subscribers| {
            let text = |index: &usize| subscriber_text(*index, &sight.subscription.subscribers[*index]);
            let reasons: Shared<Vec<String>> = subscribers.iter().map(text).collect();
            (Arc::from(subscribers), reasons)
        });
        let chosen = Chosen {
            cluster,
            place,
            subscribers,
            reasons,
            rank: 0,
            still: None,
            leaves_at: None,
        };
        search.take(sight, name, chosen);
    }
    search.never_empty();
    search
}

impl<'a> Search<'a> {
    fn take(&mut self, sight: Sight<'_, 'a>, name: &'a ClusterName, mut chosen: Chosen<'a>) {
        let placed = sight.previous.and_then(|unit| unit.clusters.get(name));
        let mut parts = None;
        match taints::verdict(&chosen.cluster.taints, &sight.subscription.tolerations) {
            Verdict::Free => {}
            Verdict::Avoid(taint) => chosen.reasons.push(format!(
                "taint {} is not tolerated, which only asks to prefer other clusters",
                taints::text(taint)
            )),
            Verdict::KeepOut(taint) if placed.is_some() => chosen.reasons.push(format!(
                "stays in spite of taint {}, which only keeps new placements out",
                taints::text(taint)
            )),
            Verdict::Leave(taint, after) if placed.is_some() => {
                let first = sight.now.saturating_add(seconds(after));
                let at = placed.and_then(|placement| placement.leaves_at).unwrap_or(first);
                let text = taints::text(taint);
                if at > sight.now {
                    let why = format!(
                        "it leaves at {}, since taint {text} is tolerated for {after} s",
                        rfc3339(at)
                    );
                    chosen.reasons.push(why.clone());
                    chosen.leaves_at = Some(at);
                    chosen.still = Some(Still { why, since: None });
                } else {
                    chosen.leaves_at = Some(at);
                    parts = Some((taint, format!("has taint {text}, which was tolerated for {after} s")));
                }
            }
            Verdict::Evict(taint) if placed.is_some() => {
                parts = Some((taint, format!("has taint {}", taints::text(taint))));
            }
            Verdict::KeepOut(taint) | Verdict::Leave(taint, _) | Verdict::Evict(taint) => {
                self.tainted.push((name, taint));
                return;
            }
        }
        if let Some((taint, why)) = parts {
            self.tainted.push((name, taint));
            // What every matching cluster has whole needs nobody to take it over.
            if may_move(sight.subscription) {
                let lost = None;
                self.parting.insert(name, Parting { chosen, why, lost });
            }
            return;
        }
        match sight
            .silence
            .standing(sight.subscription, sight.previous, name, sight.anew)
        {
            Standing::Here => {}
            Standing::Lost(lost) => {
                let why = format!("is silent since {}", rfc3339(lost.since));
                let lost = Some(lost);
                self.parting.insert(name, Parting { chosen, why, lost });
                return;
            }
            Standing::Still(still) => {
                let is_lost = sight.previous.is_some_and(|unit| unit.loss(name).is_some());
                let is_new = placed.is_none() && (is_lost || chooses(sight.subscription));
                chosen.still = Some(still);
                if is_new {
                    self.shunned.insert(name, chosen);
                    return;
                }
            }
        }
        self.chosen.insert(name, chosen);
    }

    /// Where nobody else is left, those that were lost keep what they have, and a first placement goes to whoever
    /// matches: a search that fails takes nothing away.
    fn never_empty(&mut self) {
        if self.chosen.is_empty() {
            self.lose_nobody();
        }
        if self.chosen.is_empty() && self.tainted.is_empty() {
            let waiting = std::mem::take(&mut self.shunned).into_iter();
            let as_they_are = waiting.map(|(name, chosen)| (name, Chosen { still: None, ..chosen }));
            self.chosen.extend(as_they_are);
        }
    }
}

impl Search<'_> {
    /// Leaves those that are lost what they have.
    pub(super) fn lose_nobody(&mut self) {
        let lost = self.parting.extract_if(.., |_, parting| parting.lost.is_some());
        self.chosen.extend(lost.map(|(name, parting)| (name, parting.stays())));
    }
}

impl<'a> Parting<'a> {
    /// The cluster, which keeps what it has after all.
    pub(super) fn stays(self) -> Chosen<'a> {
        let why = format!("it {}, and no other cluster takes over what it has", self.why);
        let mut chosen = self.chosen;
        chosen.reasons.push(format!("stays: {why}"));
        let since = self.lost.map(|lost| lost.since);
        Chosen {
            still: Some(Still { why, since }),
            ..chosen
        }
    }
}

/// The subscribers that select anything, with their positions.
fn selectors(subscription: &Subscription) -> Vec<(usize, &LabelSelector)> {
    let subscribers = subscription.subscribers.iter().enumerate();
    subscribers
        .filter_map(|(index, subscriber)| Some((index, subscriber.cluster_affinity.as_ref()?)))
        .collect()
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
