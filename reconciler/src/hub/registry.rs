//! Who may connect: the registered clusters' keys, as the accepted revision says.

use std::collections::BTreeMap;

use render::published::Departure;
use render::{ClusterName, Fleet};
use tokio::sync::watch;
use tunnel::{KeyLookup, PublicKey};

/// Cluster → the keys it may prove.
#[derive(Debug, Default)]
pub(super) struct Registry {
    /// `None` before the first revision.
    keys: watch::Sender<Option<BTreeMap<String, Vec<PublicKey>>>>,
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
        let mut keys: BTreeMap<String, Vec<PublicKey>> = fleet.clusters.values().map(keys_of).collect();
        for (name, departed) in departed {
            let own = departed.public_keys.iter().filter_map(|text| text.parse().ok());
            keys.entry(name.to_string()).or_insert_with(|| own.collect());
        }
        self.keys.send_replace(Some(keys));
    }

    /// Waits for the first revision. An agent that is refused comes back a minute later, so nobody is
    /// judged before it is known who there is.
    pub(super) async fn known(&self) {
        self.wait(Option::is_some).await;
    }

    /// Waits until a cluster may not prove `key` any more: its file is gone, or names the key no more.
    pub(super) async fn revoked(&self, cluster: &ClusterName, key: &PublicKey) {
        self.wait(|keys| !keys_of(keys.as_ref(), cluster.as_str()).contains(key))
            .await;
    }

    async fn wait(&self, until: impl FnMut(&Option<BTreeMap<String, Vec<PublicKey>>>) -> bool) {
        // The sender is this registry's own, so it is there as long as somebody waits.
        let mut keys = self.keys.subscribe();
        let _found = keys.wait_for(until).await;
    }
}

impl KeyLookup for Registry {
    fn keys_of(&self, cluster: &str) -> Vec<PublicKey> {
        keys_of(self.keys.borrow().as_ref(), cluster).to_vec()
    }
}

fn keys_of<'a>(keys: Option<&'a BTreeMap<String, Vec<PublicKey>>>, cluster: &str) -> &'a [PublicKey] {
    keys.and_then(|keys| keys.get(cluster)).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use render::load::load;
    use render::{Previous, SourceTree};
    use tunnel::SecretKey;

    use super::*;

    fn key() -> PublicKey {
        SecretKey::generate().expect("there is randomness").public()
    }

    /// A fleet whose only cluster names these keys.
    fn fleet(keys: &[&PublicKey]) -> Fleet {
        let keys: Vec<_> = keys.iter().map(|key| format!("'{key}'")).collect();
        let file = format!(
            "{{apiVersion: fleet.flotilla.dev/v1alpha1, kind: ManagedCluster, metadata: {{name: oslo}}, \
             spec: {{publicKeys: [{}]}}}}",
            keys.join(", ")
        );
        let revision = "1".repeat(40).parse().expect("forty hex digits");
        let tree = SourceTree::from_files(revision, [("clusters/oslo.yaml".to_owned(), file.into_bytes())]);
        load(&tree, &Previous::default()).0
    }

    /// Whether it is over without anything else having to happen.
    async fn is_over(wait: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = wait => true,
            () = tokio::task::yield_now() => false,
        }
    }

    #[tokio::test]
    async fn nobody_is_judged_before_the_first_revision_is_known() {
        let registry = Registry::default();
        assert!(!is_over(registry.known()).await, "nothing is known yet");
        registry.replace(&fleet(&[]), &BTreeMap::new());
        registry.replace(&fleet(&[]), &BTreeMap::new());
        registry.known().await;
    }

    #[tokio::test]
    async fn a_key_is_revoked_when_its_file_names_it_no_more_or_is_gone() {
        let (registry, old, new) = (Registry::default(), key(), key());
        let oslo = ClusterName::parse("oslo").expect("a valid cluster");
        registry.replace(&fleet(&[&old, &new]), &BTreeMap::new());
        assert!(!is_over(registry.revoked(&oslo, &old)).await, "both keys count");
        registry.replace(&fleet(&[&new]), &BTreeMap::new());
        assert!(is_over(registry.revoked(&oslo, &old)).await, "the old key is out");
        assert!(!is_over(registry.revoked(&oslo, &new)).await, "the new key stays");
        let mut empty = fleet(&[]);
        empty.clusters.clear();
        registry.replace(&empty, &BTreeMap::new());
        assert!(is_over(registry.revoked(&oslo, &new)).await, "the cluster is out");
    }

    #[tokio::test]
    async fn a_cluster_whose_file_is_gone_may_prove_its_old_key_until_its_file_comes_back() {
        let (registry, old, new) = (Registry::default(), key(), key());
        let oslo = ClusterName::parse("oslo").expect("a valid cluster");
        let departure = Departure {
            public_keys: vec![old.to_string()],
            kubeconfig_context: None,
            deletion_policy: render::model::DeletionPolicy::Delete,
            source: "1".repeat(40).parse().expect("forty hex digits"),
            since: 0,
            units: Vec::new(),
        };
        let departed = BTreeMap::from([(oslo.clone(), departure)]);
        let mut empty = fleet(&[]);
        empty.clusters.clear();
        registry.replace(&empty, &departed);
        assert!(
            !is_over(registry.revoked(&oslo, &old)).await,
            "it is known, to be cleaned up"
        );
        registry.replace(&fleet(&[&new]), &departed);
        assert!(is_over(registry.revoked(&oslo, &old)).await, "its file counts alone");
    }
}
