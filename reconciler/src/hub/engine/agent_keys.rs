//! Agents that replace their keys: what all of them wish, here and at other hubs, is gathered for a while, and becomes one
//! proposal that people merge. One more takes the old keys out, once the new ones are in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::rekey::KeyChange;
use render::{ClusterName, Fleet, Revision};
use tunnel::PublicKey;

use super::key_wish::{KeyWish, Said};
use super::{State, Write};
use crate::hub::publish::KeysAsked;
use crate::limits::{KEY_WISHES_GATHERED_SECONDS, KEY_WISHES_OF_CLUSTER_MAX};

/// What a proposal was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysDone {
    /// The commit of source that was looked at.
    pub source: Revision,
    /// All changes in it.
    pub changes: BTreeMap<ClusterName, KeyChange>,
}

/// Who wishes another key, and what became of it.
#[derive(Clone, Debug, Default)]
pub struct AgentKeys {
    /// The newest wishes of each cluster that this hub heard. They live as long as it, since each agent says its wish in
    /// each tunnel.
    own: Wishes,
    /// Other hub → what it heard.
    others: BTreeMap<String, Wishes>,
    /// The commit of source that they were last compared with; `None` where one is new.
    compared: Option<Revision>,
    /// When time alone makes one of several wishes count.
    settled_at: Option<i64>,
    /// When the first of those came that are not proposed.
    since: Option<i64>,
    /// What was proposed last; `None` before anything was.
    done: Option<KeysDone>,
    branch: Option<String>,
    by_hand: BTreeMap<ClusterName, String>,
    closed: BTreeSet<ClusterName>,
    /// Clusters that the deny list took a wish from, until what is proposed says so.
    shut_out: BTreeSet<ClusterName>,
}

type Wishes = BTreeMap<ClusterName, Vec<KeyWish>>;

/// What is due for one cluster.
#[derive(Clone, Debug)]
enum Due {
    One(KeyChange, KeyWish),
    /// Its agents wish different keys, so that nobody knows which is the agent's: until when at least.
    Contested(Vec<KeyWish>, i64),
}

impl AgentKeys {
    /// An agent said its wish here, for the first time or again.
    pub(super) fn wished(&mut self, cluster: ClusterName, wish: KeyWish, now: i64) {
        if note(self.own.entry(cluster).or_default(), wish, now) {
            self.compared = None;
        }
    }

    /// Another hub told all wishes that it heard. They go on to count while it is away.
    pub(super) fn peer_told(&mut self, peer: &str, wishes: Vec<(ClusterName, KeyWish)>, now: i64) {
        let mut told = Wishes::new();
        for (cluster, wish) in wishes {
            // Of a clock that is ahead.
            let last = wish.last.min(now);
            note(told.entry(cluster).or_default(), KeyWish { last, ..wish }, now);
        }
        let before = self.others.entry(peer.to_owned()).or_default();
        if said(before, now) != said(&told, now) {
            self.compared = None;
        }
        *before = told;
    }

    /// The deny list has these. An old key that is used no more is to go all the more.
    pub(super) fn denied(&mut self, keys: &BTreeSet<PublicKey>) {
        for wishes in std::iter::once(&mut self.own).chain(self.others.values_mut()) {
            for (cluster, of_cluster) in wishes.iter_mut() {
                let before = of_cluster.len();
                of_cluster.retain(|wish| !keys.contains(&wish.next) && !keys.contains(&wish.used()));
                if of_cluster.len() < before {
                    self.shut_out.insert(cluster.clone());
                }
            }
            wishes.retain(|_, of_cluster| !of_cluster.is_empty());
        }
        self.compared = None;
    }

    /// What this hub heard itself.
    pub(in crate::hub) fn own(&self) -> impl Iterator<Item = (&ClusterName, &KeyWish)> {
        let wishes = self.own.iter();
        wishes.flat_map(|(cluster, wishes)| wishes.iter().map(move |wish| (cluster, wish)))
    }

    /// All keys that are wished, and those that are used by who wishes them.
    pub(in crate::hub) fn keys(&self) -> BTreeSet<PublicKey> {
        let wishes = self.all().flat_map(|(_, wishes)| wishes);
        wishes.flat_map(|wish| [wish.used(), wish.next]).collect()
    }

    fn all(&self) -> impl Iterator<Item = (&ClusterName, &Vec<KeyWish>)> {
        self.own.iter().chain(self.others.values().flatten())
    }

    /// Of each cluster, what was heard anywhere: one for each next key.
    fn merged(&self, now: i64) -> Wishes {
        let mut merged = Wishes::new();
        for (cluster, wishes) in self.all() {
            let merged = merged.entry(cluster.clone()).or_default();
            wishes.iter().for_each(|wish| {
                note(merged, wish.clone(), now);
            });
        }
        merged
    }

    pub(super) fn proposed(
        &mut self,
        done: KeysDone,
        branch: Option<String>,
        (by_hand, closed): (BTreeMap<ClusterName, String>, BTreeSet<ClusterName>),
    ) {
        // A write that had begun before proposed their keys all the same.
        self.shut_out.retain(|cluster| done.changes.contains_key(cluster));
        (self.done, self.branch, self.since) = (Some(done), branch, None);
        (self.by_hand, self.closed) = (by_hand, closed);
    }

    /// When what is new has been gathered for long enough; `None` where nothing is.
    fn gathered_at(&self) -> Option<i64> {
        let since = self.since?;
        Some(since.saturating_add(KEY_WISHES_GATHERED_SECONDS))
    }

    /// The branch is gone: it is looked whether a person closed it.
    pub(super) fn removed(&mut self) {
        (self.branch, self.done, self.compared) = (None, None, None);
    }

    /// Whether this hub knows of a branch.
    pub(in crate::hub) fn has_branch(&self) -> bool {
        self.branch.is_some()
    }

    /// The branch that has a cluster's change.
    pub fn branch(&self, cluster: &ClusterName) -> Option<&str> {
        let is_in_it = |done: &KeysDone| done.changes.contains_key(cluster) && !self.by_hand.contains_key(cluster);
        let branch = self.branch.as_deref().filter(|_| !self.closed.contains(cluster))?;
        self.done.as_ref().is_some_and(is_in_it).then_some(branch)
    }

    /// Why only a person can change a cluster's file, and how.
    pub fn by_hand(&self, cluster: &ClusterName) -> Option<&str> {
        let closed = self.closed.contains(cluster).then_some(
            "its proposal was closed, and does not come back for this key: end the agent that asks, give it another key, \
             or change the file",
        );
        closed.or_else(|| self.by_hand.get(cluster).map(String::as_str))
    }
}

/// What a person would read of wishes, and which of them were said lately.
fn said(wishes: &Wishes, now: i64) -> BTreeMap<&ClusterName, Vec<Said>> {
    let said = |wishes: &[KeyWish]| wishes.iter().map(|wish| wish.said(now)).collect();
    wishes.iter().map(|(cluster, wishes)| (cluster, said(wishes))).collect()
}

/// Notes a wish beside others of its cluster; whether a person would read something else, or it counts again.
fn note(wishes: &mut Vec<KeyWish>, wish: KeyWish, now: i64) -> bool {
    match wishes.iter_mut().find(|known| known.next == wish.next) {
        Some(known) => {
            let newest = if wish.last >= known.last {
                wish.clone()
            } else {
                known.clone()
            };
            let merged = KeyWish {
                // An agent that is on its way back by its old key has been in by the next one all the same.
                is_in_use: known.is_in_use || wish.is_in_use,
                since: known.since.min(wish.since),
                ..newest
            };
            let is_new = known.said(now) != merged.said(now);
            *known = merged;
            is_new
        }
        None => {
            wishes.push(wish);
            if wishes.len() > KEY_WISHES_OF_CLUSTER_MAX {
                let oldest = wishes.iter().enumerate().min_by_key(|(_, wish)| wish.last);
                if let Some(at) = oldest.map(|(at, _)| at) {
                    wishes.remove(at);
                }
            }
            true
        }
    }
}

/// What is due for a cluster whose agents wish these.
fn due_of(fleet: &Fleet, name: &ClusterName, wishes: &[KeyWish], now: i64) -> Option<Due> {
    let cluster = fleet.clusters.get(name)?;
    let due = |wish: &KeyWish| {
        let keys = (wish.old.to_string(), wish.next.to_string());
        KeyChange::due(cluster, (&keys.0, &keys.1), wish.is_in_use)
    };
    let due: Vec<_> = wishes.iter().filter_map(|wish| Some((due(wish)?, wish))).collect();
    let lately: Vec<_> = due.iter().filter(|(_, wish)| now < wish.forgotten_at()).collect();
    match (due.as_slice(), lately.as_slice()) {
        ([], _) => None,
        ([(change, wish)], _) | (_, [(change, wish)]) => Some(Due::One(change.clone(), (*wish).clone())),
        (all, lately) => {
            let mut ends: Vec<_> = lately.iter().map(|(_, wish)| wish.forgotten_at()).collect();
            ends.sort_unstable();
            // When but one is left. Where all are silent, nobody knows which was the agent's.
            let until = ends.iter().rev().nth(1).copied().unwrap_or(i64::MAX);
            Some(Due::Contested(
                all.iter().map(|(_, wish)| (*wish).clone()).collect(),
                until,
            ))
        }
    }
}

impl State {
    fn keys_due(&self) -> BTreeMap<ClusterName, Due> {
        let Some(fleet) = &self.fleet else {
            return BTreeMap::new();
        };
        let wishes = self.agent_keys.merged(self.now);
        if wishes.is_empty() {
            return BTreeMap::new();
        }
        // A key of two clusters would be refused by all of them.
        let mut owners: BTreeMap<String, BTreeSet<&ClusterName>> = BTreeMap::new();
        for cluster in fleet.clusters.values() {
            for key in &cluster.public_keys {
                owners.entry(key.clone()).or_default().insert(&cluster.name);
            }
        }
        for (cluster, wishes) in &wishes {
            for wish in wishes {
                owners.entry(wish.next.to_string()).or_default().insert(cluster);
            }
        }
        let is_own = |wish: &KeyWish| {
            let owners = owners.get(&wish.next.to_string());
            owners.is_none_or(|owners| owners.len() == 1)
        };
        let due = wishes.iter().filter_map(|(name, wishes)| {
            let own: Vec<_> = wishes.iter().filter(|wish| is_own(wish)).cloned().collect();
            Some((name.clone(), due_of(fleet, name, &own, self.now)?))
        });
        due.collect()
    }

    /// The changes of keys that wait for a person, and the clusters whose agents wish different keys: none of those is
    /// proposed.
    pub fn keys_waiting(&self) -> (BTreeMap<ClusterName, KeyChange>, BTreeMap<ClusterName, Vec<KeyWish>>) {
        let (mut changes, mut contests) = (BTreeMap::new(), BTreeMap::new());
        for (name, due) in self.keys_due() {
            match due {
                Due::One(change, _) => drop(changes.insert(name, change)),
                Due::Contested(wishes, _) => drop(contests.insert(name, wishes)),
            }
        }
        (changes, contests)
    }

    /// The changes of keys that wait for a person.
    pub fn key_changes(&self) -> BTreeMap<ClusterName, KeyChange> {
        self.keys_waiting().0
    }
}

/// The branch is due when it says other than what is wished. What is new is gathered first.
pub(super) fn due(state: &mut State, now: i64) -> Option<Write> {
    // A hub that was just started knows no wishes, and withdraws nothing; nor does one that has not heard of the others.
    let is_none = state.agent_keys.all().next().is_none() && state.agent_keys.shut_out.is_empty();
    if !state.joins.is_proposing || is_none || !state.peers.have_told() {
        return None;
    }
    let fleet = Arc::clone(state.fleet.as_ref()?);
    // Every report leads here.
    let is_gathering = |keys: &AgentKeys| keys.gathered_at().is_some_and(|at| now < at);
    let is_gathered = state.agent_keys.since.is_some() && !is_gathering(&state.agent_keys);
    let is_settled = state.agent_keys.settled_at.is_none_or(|at| now < at);
    let is_looked_at = state.agent_keys.compared.as_ref() == Some(&fleet.revision) && is_settled;
    if is_looked_at && !is_gathered {
        return None;
    }
    state.agent_keys.compared = Some(fleet.revision.clone());
    let mut wanted = KeysDone {
        source: fleet.revision.clone(),
        changes: BTreeMap::new(),
    };
    let mut asked = KeysAsked {
        askers: BTreeMap::new(),
        heard: {
            let heard = state.agent_keys.all().map(|(cluster, _)| cluster);
            heard.chain(&state.agent_keys.shut_out).cloned().collect()
        },
        is_partial: !state.peers.are_there(|_| true),
    };
    state.agent_keys.settled_at = None;
    for (name, due) in state.keys_due() {
        match due {
            Due::One(change, wish) => {
                asked.askers.insert(name.clone(), wish.asker());
                wanted.changes.insert(name, change);
            }
            Due::Contested(_, until) => {
                let at = state.agent_keys.settled_at.get_or_insert(until);
                *at = until.min(*at);
            }
        }
    }
    let done = state.agent_keys.done.as_ref();
    let is_done = |(cluster, change)| done.is_some_and(|done| done.changes.get(cluster) == Some(change));
    if wanted.changes.iter().all(is_done) {
        let is_same = done == Some(&wanted) || done.is_none();
        state.agent_keys.since = None;
        if is_same {
            return None;
        }
    } else {
        state.agent_keys.since.get_or_insert(now);
        if is_gathering(&state.agent_keys) {
            return None;
        }
    }
    // Compared again once it is written, or was not.
    state.agent_keys.compared = None;
    Some(Write::AgentKeys {
        fleet,
        done: wanted,
        asked,
    })
}

/// When what was gathered is to be proposed, or one of several wishes counts.
pub(super) fn next_time(state: &State) -> Option<i64> {
    let keys = &state.agent_keys;
    let settled = keys.settled_at.filter(|at| *at < i64::MAX);
    [keys.gathered_at(), settled]
        .into_iter()
        .flatten()
        .filter(|at| *at > state.now)
        .min()
}
