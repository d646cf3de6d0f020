//! Who may connect: the registered clusters' keys, as the accepted revision says.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use render::Fleet;
use tokio::sync::SetOnce;
use tunnel::{KeyLookup, PublicKey};

/// Cluster → the keys it may prove.
#[derive(Debug, Default)]
pub(super) struct Registry {
    keys: RwLock<BTreeMap<String, Vec<PublicKey>>>,
    known: SetOnce<()>,
}

impl Registry {
    /// Takes over what a revision says. A key that does not parse is none: load has told of it.
    pub(super) fn replace(&self, fleet: &Fleet) {
        let keys_of = |cluster: &render::model::Cluster| {
            let keys = cluster
                .public_keys
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect();
            (cluster.name.to_string(), keys)
        };
        let keys = fleet.clusters.values().map(keys_of).collect();
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        // Only the first time is news.
        let _known_before = self.known.set(());
    }

    /// Waits for the first revision. An agent that is refused comes back a minute later, so nobody is
    /// judged before it is known who there is.
    pub(super) async fn known(&self) {
        self.known.wait().await;
    }
}

impl KeyLookup for Registry {
    fn keys_of(&self, cluster: &str) -> Vec<PublicKey> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(cluster).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use render::model::FleetSpec;

    use super::*;

    #[tokio::test]
    async fn nobody_is_judged_before_the_first_revision_is_known() {
        let registry = Registry::default();
        let first = Fleet {
            revision: "1".repeat(40).parse().expect("forty hex digits"),
            spec: FleetSpec::default(),
            clusters: BTreeMap::new(),
            units: BTreeMap::new(),
            overrides: Vec::new(),
            unreadable: Vec::new(),
        };
        let waiting = registry.known();
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            () = &mut waiting => panic!("nothing is known yet"),
            () = tokio::task::yield_now() => {}
        }
        registry.replace(&first);
        registry.replace(&first);
        waiting.await;
    }
}
