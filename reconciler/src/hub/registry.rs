//! Who may connect: the registered clusters' keys, as the accepted revision says.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use render::Fleet;
use tunnel::{KeyLookup, PublicKey};

/// Cluster → the keys it may prove.
#[derive(Debug, Default)]
pub(super) struct Registry {
    keys: RwLock<BTreeMap<String, Vec<PublicKey>>>,
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
    }
}

impl KeyLookup for Registry {
    fn keys_of(&self, cluster: &str) -> Vec<PublicKey> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(cluster).cloned().unwrap_or_default()
    }
}
