//! Why a cluster is chosen or not, subscriber by subscriber and taint by taint.

use serde::Serialize;

use crate::model::{Cluster, Subscriber, Subscription};
use crate::schedule::candidates::{requirement_text, selector_text};
use crate::schedule::taints::{self, Verdict};
use crate::selector::LabelSelector;

/// What a Subscription's subscribers and tolerations make of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// One per subscriber, in order.
    pub subscribers: Vec<SubscriberMatch>,
    /// What the strictest taint that is not tolerated means; `None` where nothing stands against it.
    pub taint: Option<TaintMatch>,
}

/// One subscriber and one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriberMatch {
    /// Its position in the Subscription, from 1.
    pub position: usize,
    /// What it asks for, as `kubectl -l` has it.
    pub selector: String,
    /// Whether the cluster's labels are so.
    pub matches: bool,
    /// What it asks for and the cluster's labels lack, each with what they say instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<String>,
}

/// A taint that is not tolerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaintMatch {
    /// `key=value:Effect`.
    pub taint: String,
    /// Whether the cluster may not have the unit for it.
    pub excludes: bool,
}

impl Why {
    /// Whether any subscriber matches.
    pub fn matches(&self) -> bool {
        self.subscribers.iter().any(|subscriber| subscriber.matches)
    }
}

/// Why a cluster is chosen or not. `placed` says whether the unit is there already, which some taints leave.
pub fn why(subscription: &Subscription, cluster: &Cluster, placed: bool) -> Why {
    let subscribers = subscription.subscribers.iter().enumerate();
    let taint = |taint, excludes| {
        Some(TaintMatch {
            taint: taints::text(taint),
            excludes,
        })
    };
    Why {
        subscribers: subscribers
            .map(|(index, subscriber)| matched(index, subscriber, cluster))
            .collect(),
        taint: match taints::verdict(&cluster.taints, &subscription.tolerations) {
            Verdict::Free => None,
            Verdict::Avoid(avoided) => taint(avoided, false),
            Verdict::KeepOut(kept_out) | Verdict::Leave(kept_out, _) => taint(kept_out, !placed),
            Verdict::Evict(evicting) => taint(evicting, true),
        },
    }
}

fn matched(index: usize, subscriber: &Subscriber, cluster: &Cluster) -> SubscriberMatch {
    let (selector, unmet) = match &subscriber.cluster_affinity {
        None => (
            String::new(),
            vec!["clusterAffinity is null, which selects no cluster".to_owned()],
        ),
        Some(selector) => (selector_text(selector), unmet(selector, cluster)),
    };
    SubscriberMatch {
        position: index + 1,
        selector,
        matches: unmet.is_empty(),
        unmet,
    }
}

fn unmet(selector: &LabelSelector, cluster: &Cluster) -> Vec<String> {
    let found = |key: &str| match cluster.labels.get(key) {
        Some(value) => format!("it has {key}={value}"),
        None => format!("it has no label {key}"),
    };
    let labels = selector.match_labels.iter();
    let labels = labels.filter(|(key, value)| cluster.labels.get(*key) != Some(*value));
    let expressions = selector.match_expressions.iter();
    let expressions = expressions.filter(|requirement| !requirement.matches(&cluster.labels));
    labels
        .map(|(key, value)| format!("{key}={value}: {}", found(key)))
        .chain(expressions.map(|requirement| format!("{}: {}", requirement_text(requirement), found(&requirement.key))))
        .collect()
}
