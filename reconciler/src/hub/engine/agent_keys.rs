//! Agents that replace their keys: what all of them wish is gathered for a while, and becomes one proposal that people
//! merge. One more takes the old keys out, once the new ones are in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::rekey::KeyChange;
use render::{ClusterName, Revision};
use tunnel::PublicKey;

use super::{State, Write};
use crate::limits::KEY_WISHES_GATHERED_SECONDS;

/// What the agent of one cluster wishes. It proved to hold both keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyWish {
    /// The key that is to go.
    pub old: PublicKey,
    /// The key that is to take its place.
    pub next: PublicKey,
    /// Whether it was let in with that one.
    pub is_in_use: bool,
}

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
    /// The newest wish of each cluster. They live as long as this hub, since each agent says its wish in each tunnel.
    wishes: BTreeMap<ClusterName, KeyWish>,
    /// The commit of source that they were last compared with; `None` where one is new.
    compared: Option<Revision>,
    /// When the first of those came that are not proposed.
    since: Option<i64>,
    /// What was proposed last; `None` before anything was.
    done: Option<KeysDone>,
    branch: Option<String>,
    by_hand: BTreeMap<ClusterName, String>,
}

impl AgentKeys {
    pub(super) fn wished(&mut self, cluster: ClusterName, wish: KeyWish) {
        let before = self.wishes.insert(cluster.clone(), wish);
        // An agent that is on its way back by its old key has been in by the next one all the same.
        let was_in_use = before.is_some_and(|before| before.next == wish.next && before.is_in_use);
        if let Some(wish) = self.wishes.get_mut(&cluster) {
            wish.is_in_use |= was_in_use;
            if before != Some(*wish) {
                self.compared = None;
            }
        }
    }

    pub(super) fn proposed(&mut self, done: KeysDone, branch: Option<String>, by_hand: BTreeMap<ClusterName, String>) {
        (self.done, self.branch, self.by_hand, self.since) = (Some(done), branch, by_hand, None);
    }

    /// The branch that has a cluster's change.
    pub fn branch(&self, cluster: &ClusterName) -> Option<&str> {
        let is_in_it = |done: &KeysDone| done.changes.contains_key(cluster) && !self.by_hand.contains_key(cluster);
        let branch = self.branch.as_deref()?;
        self.done.as_ref().is_some_and(is_in_it).then_some(branch)
    }

    /// Why only a person can change a cluster's file, and how.
    pub fn by_hand(&self, cluster: &ClusterName) -> Option<&str> {
        self.by_hand.get(cluster).map(String::as_str)
    }
}

impl State {
    /// The changes of keys that wait for a person.
    pub fn key_changes(&self) -> BTreeMap<ClusterName, KeyChange> {
        let Some(fleet) = &self.fleet else {
            return BTreeMap::new();
        };
        let wishes = &self.agent_keys.wishes;
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
        for (cluster, wish) in wishes {
            owners.entry(wish.next.to_string()).or_default().insert(cluster);
        }
        let change = |(name, wish): (&ClusterName, &KeyWish)| {
            let (old, next) = (wish.old.to_string(), wish.next.to_string());
            let is_own = owners.get(&next).is_none_or(|owners| owners.len() == 1);
            let cluster = fleet.clusters.get(name).filter(|_| is_own)?;
            let change = KeyChange::due(cluster, (&old, &next), wish.is_in_use)?;
            Some((name.clone(), change))
        };
        wishes.iter().filter_map(change).collect()
    }
}

/// The branch is due when it says other than what is wished. What is new is gathered first.
pub(super) fn due(state: &mut State, now: i64) -> Option<Write> {
    // A hub that was just started knows no wishes, and withdraws nothing.
    if !state.joins.is_proposing || state.agent_keys.wishes.is_empty() {
        return None;
    }
    let fleet = Arc::clone(state.fleet.as_ref()?);
    // Every report leads here.
    let gathered = state
        .agent_keys
        .since
        .map(|since| since.saturating_add(KEY_WISHES_GATHERED_SECONDS));
    let is_looked_at = state.agent_keys.compared.as_ref() == Some(&fleet.revision);
    if is_looked_at && gathered.is_none_or(|gathered| now < gathered) {
        return None;
    }
    state.agent_keys.compared = Some(fleet.revision.clone());
    let wanted = KeysDone {
        source: fleet.revision.clone(),
        changes: state.key_changes(),
    };
    let done = state.agent_keys.done.as_ref();
    let is_done = |(cluster, change)| done.is_some_and(|done| done.changes.get(cluster) == Some(change));
    if wanted.changes.iter().all(is_done) {
        let is_same = done == Some(&wanted) || done.is_none();
        state.agent_keys.since = None;
        if is_same {
            return None;
        }
    } else {
        let since = *state.agent_keys.since.get_or_insert(now);
        if now < since.saturating_add(KEY_WISHES_GATHERED_SECONDS) {
            return None;
        }
    }
    // Compared again once it is written, or was not.
    state.agent_keys.compared = None;
    Some(Write::AgentKeys { fleet, done: wanted })
}

/// When what was gathered is to be proposed.
pub(super) fn next_time(state: &State) -> Option<i64> {
    let since = state.agent_keys.since?;
    let at = since.saturating_add(KEY_WISHES_GATHERED_SECONDS);
    (at > state.now).then_some(at)
}
