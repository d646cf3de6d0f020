//! Who may connect: the registered clusters' keys, as the accepted revision says, without those that the hub's own deny
//! list has; and who asked and may not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use render::published::Departure;
use render::{ClusterName, Digest, Fleet};
use tokio::sync::watch;
use tunnel::backoff::spread_of;
use tunnel::{KeyLookup, PublicKey, Stranger, TokenProof};

use super::clock::seconds;
use super::deny::Denied;
use super::knocks::{Knock, Table, Why};
use super::tokens::{TokenError, TokenFile, Tokens, Worth};
use crate::key_wish::{KeyStand, ProvenWish};

/// Cluster → the keys it may prove.
type Keys = BTreeMap<String, Vec<PublicKey>>;

/// Who may connect, and who asked.
#[derive(Debug, Default)]
pub(super) struct Registry {
    known: watch::Sender<Known>,
    knocks: Mutex<Table>,
    tokens: Mutex<Tokens>,
    token_file: OnceLock<TokenFile>,
    /// When the file of tokens was changed that was read last.
    tokens_read: Mutex<Option<Timestamp>>,
    /// Whether registrations are proposed as branches.
    is_proposing: AtomicBool,
}

/// Tells when who may connect is not what it was.
pub(super) struct Changes(watch::Receiver<Known>);

impl Changes {
    /// Cancel-safe.
    pub(super) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // The registry is gone only when the hub is.
            std::future::pending::<()>().await;
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    /// `None` before the first revision.
    keys: Option<Keys>,
    /// Those whose file is gone, and who are known by their old keys alone.
    departed: BTreeSet<String>,
    /// Those that the hub applies to itself, without an agent.
    direct: BTreeSet<String>,
    denied: Denied,
}

impl Known {
    /// The keys in a cluster's file.
    fn registered(&self, cluster: &str) -> &[PublicKey] {
        let keys = self.keys.as_ref().and_then(|keys| keys.get(cluster));
        keys.map_or(&[], Vec::as_slice)
    }

    /// Whether there is a file of this name, with whatever keys.
    fn has_file(&self, cluster: &str) -> bool {
        let is_known = self.keys.as_ref().is_some_and(|keys| keys.contains_key(cluster));
        is_known && !self.departed.contains(cluster)
    }

    /// Those of them that count.
    fn counting(&self, cluster: &str) -> Vec<PublicKey> {
        let keys = self.registered(cluster).iter();
        keys.filter(|key| !self.denied.has(cluster, key)).copied().collect()
    }

    /// Why a caller that proved `key`, or none, is not let in.
    fn why_not(&self, cluster: &str, key: Option<&PublicKey>) -> Why {
        let is_denied = match key {
            Some(key) => self.denied.has(cluster, key),
            None => self.denied.has_cluster(cluster),
        };
        if is_denied {
            return Why::Denied;
        }
        let keys = self.keys.iter().flatten();
        let owner = keys
            .filter(|(_, keys)| key.is_some_and(|key| keys.contains(key)))
            .find_map(|(name, _)| ClusterName::parse(name.clone()).ok());
        match owner {
            Some(name) => Why::RegisteredAs { name },
            None if self.has_file(cluster) => Why::OtherKey,
            // Nobody has the name, whoever had it before.
            None => Why::NotRegistered,
        }
    }
}

impl Registry {
    /// Takes over what a revision says, and the keys of clusters whose file is gone and that are to be cleaned up. A key
    /// that does not parse is none: load has told of it.
    pub(super) fn replace(&self, fleet: &Fleet, departed: &BTreeMap<ClusterName, Departure>) {
        let keys_of = |cluster: &render::model::Cluster| {
            let keys = cluster
                .public_keys
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect();
            (cluster.name.to_string(), keys)
        };
        let mut keys: Keys = fleet.clusters.values().map(keys_of).collect();
        let declared = fleet.clusters.values();
        let declared = declared.filter(|cluster| cluster.kubeconfig_context.is_some());
        let mut direct: BTreeSet<_> = declared.map(|cluster| cluster.name.to_string()).collect();
        let gone = departed.iter().filter(|(name, _)| !fleet.clusters.contains_key(*name));
        let gone: BTreeMap<_, _> = gone.map(|(name, departed)| (name.to_string(), departed)).collect();
        for (name, departed) in &gone {
            let own = departed.public_keys.iter().filter_map(|text| text.parse().ok());
            keys.insert(name.clone(), own.collect());
            if departed.kubeconfig_context.is_some() {
                direct.insert(name.clone());
            }
        }
        self.known.send_modify(|known| {
            known.keys = Some(keys);
            known.departed = gone.into_keys().collect();
            known.direct = direct;
        });
    }

    /// Takes over a deny list; whether it is another one than before.
    pub(super) fn deny(&self, denied: Denied) -> bool {
        self.known.send_if_modified(|known| {
            let changed = known.denied != denied;
            known.denied = denied;
            changed
        })
    }

    /// Whether the deny list is what ends a session.
    pub(super) fn is_denied(&self, cluster: &ClusterName, key: &PublicKey) -> bool {
        self.known.borrow().denied.has(cluster.as_str(), key)
    }

    /// Waits for the first revision. An agent that is refused comes back a minute later, so nobody is
    /// judged before it is known who there is.
    pub(super) async fn known(&self) {
        self.wait(|known| known.keys.is_some()).await;
    }

    /// Whether nobody may come as this cluster: it is denied, or has no key that counts, and no other way leads to it. Before
    /// the first revision no more is known than who is denied by name.
    pub(super) fn is_shut_out(&self, cluster: &ClusterName) -> bool {
        let known = self.known.borrow();
        let name = cluster.as_str();
        let is_denied = known.denied.has_cluster(name);
        let has_no_key = known.keys.is_some() && known.counting(name).is_empty();
        (is_denied || has_no_key) && !known.direct.contains(name)
    }

    /// Whether a cluster of this name is registered.
    pub(super) fn has(&self, cluster: &ClusterName) -> bool {
        !self.known.borrow().registered(cluster.as_str()).is_empty()
    }

    /// Waits until a cluster may not prove `key` any more: its file is gone, or names the key no more, or the deny list has
    /// it.
    pub(super) async fn revoked(&self, cluster: &ClusterName, key: &PublicKey) {
        self.wait(|known| !known.counting(cluster.as_str()).contains(key)).await;
    }

    /// Whether who proved a key, or a cluster without an agent, may be spoken for by another hub: it is registered so, and
    /// not denied.
    pub(super) fn counts(&self, cluster: &ClusterName, key: Option<&PublicKey>) -> bool {
        let known = self.known.borrow();
        match key {
            Some(key) => known.counting(cluster.as_str()).contains(key),
            None => {
                let is_declared = known
                    .keys
                    .as_ref()
                    .is_some_and(|keys| keys.contains_key(cluster.as_str()));
                let has_agent = !known.registered(cluster.as_str()).is_empty();
                is_declared && !has_agent && !known.denied.has_cluster(cluster.as_str())
            }
        }
    }

    /// Waits, each time anew, for another answer of [`Self::counts`] to be possible.
    pub(super) fn changes(&self) -> Changes {
        Changes(self.known.subscribe())
    }

    /// Whether the deny list has a key, whosoever it is.
    pub(super) fn has_denied(&self, key: &PublicKey) -> bool {
        self.known.borrow().denied.has_key(key)
    }

    /// Those of some keys that the deny list has.
    pub(super) fn denied_of(&self, keys: &BTreeSet<PublicKey>) -> BTreeSet<PublicKey> {
        denied_of(&self.known.borrow().denied, keys)
    }

    /// Waits until those are others than these.
    pub(super) async fn denied_other(&self, keys: &BTreeSet<PublicKey>, than: &BTreeSet<PublicKey>) {
        self.wait(|known| denied_of(&known.denied, keys) != *than).await;
    }

    /// Waits until the deny list has a key.
    pub(super) async fn denied(&self, key: &PublicKey) {
        self.wait(|known| known.denied.has_key(key)).await;
    }

    /// Which of an agent's two keys counts, once that is other than it was `told`.
    pub(super) async fn stand(&self, cluster: &ClusterName, wish: &ProvenWish, told: Option<KeyStand>) -> KeyStand {
        let mut stand = KeyStand::default();
        self.wait(|known| {
            let counting = known.counting(cluster.as_str());
            stand = KeyStand {
                old: counting.contains(&wish.old),
                next: counting.contains(&wish.next),
            };
            told != Some(stand)
        })
        .await;
        stand
    }

    async fn wait(&self, until: impl FnMut(&Known) -> bool) {
        // The sender is this registry's own, so it is there as long as somebody waits.
        let mut known = self.known.subscribe();
        let _found = known.wait_for(until).await;
    }

    fn knocks(&self) -> MutexGuard<'_, Table> {
        self.knocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where tokens are kept.
    pub(super) fn keep_tokens(&self, file: TokenFile) {
        // Told once, at the start.
        let _kept = self.token_file.set(file);
    }

    /// Reads tokens that were made since they were read last; whether there are any. A token that somebody was just given
    /// has to count for the first dial, since the next one is a minute later. A file that was not changed is not read
    /// again, so that guesses read nothing.
    fn read_new_tokens(&self) -> bool {
        let Some(file) = self.token_file.get() else {
            return false;
        };
        let changed = file.changed();
        let mut read = self.tokens_read.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.is_none() || *read == changed {
            return false;
        }
        *read = changed;
        // Whoever looks at the file now and then tells why it cannot be read.
        let Ok(mut tokens) = file.read() else { return false };
        let mut mine = self.tokens();
        tokens.take_used(&mine);
        *mine = tokens;
        true
    }

    /// Says whether registrations are proposed as branches; else a person writes the files.
    pub(super) fn propose(&self, is_proposing: bool) {
        self.is_proposing.store(is_proposing, Ordering::Relaxed);
    }

    /// Brings what was used here into the file of tokens, and takes over what is in it. What it says counts: of two hubs
    /// one was first there.
    pub(super) fn sync_tokens(&self, file: &TokenFile) -> Result<BTreeMap<ClusterName, PublicKey>, TokenError> {
        let used = self.tokens().clone();
        let known = self.known.borrow().keys.clone();
        // Before the fleet is known nothing can be called merged.
        let is_registered = |cluster: &ClusterName, key: &PublicKey| {
            let keys = known.as_ref().and_then(|keys| keys.get(cluster.as_str()));
            keys.is_some_and(|keys| keys.contains(key))
        };
        let tokens = file.change(|tokens| {
            tokens.take_used(&used);
            tokens.clean(seconds(), is_registered);
            tokens.clone()
        })?;
        let wanted = tokens.wanted();
        let mut mine = self.tokens();
        // What was used while the file was written is in the next one.
        let newer = std::mem::replace(&mut *mine, tokens);
        mine.take_used(&newer);
        Ok(wanted)
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges a token, and says what its agent is told.
    fn spend(&self, cluster: &ClusterName, key: &PublicKey, token: &TokenProof) -> (Why, Option<String>) {
        let is_of = |hash: &Digest| token.is_of(hash.as_bytes());
        let spend = || self.tokens().spend(cluster, key, is_of, seconds());
        let worth = match spend() {
            Worth::Nothing if self.read_new_tokens() => spend(),
            worth => worth,
        };
        match worth {
            Worth::First | Worth::Again => {
                let told = match self.is_proposing.load(Ordering::Relaxed) {
                    true => format!("proposed as branch flotilla/register-{cluster}; merge it"),
                    false => {
                        "the hub may not write to the repository: flotilla status shows the file to push".to_owned()
                    }
                };
                (Why::Proposed, Some(told))
            }
            // Whoever guesses hears what is heard of a name that is taken.
            Worth::Nothing => (Why::TokenRefused, None),
        }
    }

    /// Notes a second agent with one identity.
    pub(super) fn duplicate(&self, cluster: &ClusterName, key: PublicKey) {
        let why = Why::DuplicateAgent;
        self.knocks().knock(cluster.clone(), Some(key), why, seconds());
    }

    /// Notes that a caller was let in.
    pub(super) fn let_in(&self, cluster: &ClusterName, key: &PublicKey) {
        self.knocks().let_in(cluster, key);
    }

    /// Who asked and is not let in, where that is other than it was when this was asked last.
    pub(super) fn news(&self) -> Option<Vec<Knock>> {
        self.knocks().news(seconds())
    }
}

fn denied_of(denied: &Denied, keys: &BTreeSet<PublicKey>) -> BTreeSet<PublicKey> {
    keys.iter().copied().filter(|key| denied.has_key(key)).collect()
}

impl KeyLookup for Registry {
    fn keys_of(&self, cluster: &str) -> Vec<PublicKey> {
        self.known.borrow().counting(cluster)
    }

    fn spread(&self) -> Duration {
        spread_of(self.known.borrow().keys.as_ref().map_or(0, BTreeMap::len))
    }

    fn stranger(&self, stranger: &Stranger<'_>) -> Option<String> {
        // What is no name is nobody that a person could register; the log has it.
        let cluster = ClusterName::parse(stranger.cluster.to_owned()).ok()?;
        let why = self.known.borrow().why_not(stranger.cluster, stranger.key.as_ref());
        let (why, told) = match (why, stranger.key, &stranger.token) {
            // A token is for a cluster that is not there yet.
            (Why::NotRegistered, Some(key), Some(token)) => self.spend(&cluster, &key, token),
            // It proved to hold the key, so that it may know whose that is.
            (Why::RegisteredAs { name }, ..) => {
                let told = format!("this key is registered as cluster {name}");
                (Why::RegisteredAs { name }, Some(told))
            }
            (why, ..) => (why, None),
        };
        self.knocks().knock(cluster, stranger.key, why, seconds());
        told
    }
}

#[cfg(test)]
mod tests;
