use render::load::load;
use render::{Previous, SourceTree};
use tunnel::frame::Nonce;
use tunnel::identity::Proof;
use tunnel::{SecretKey, Token};

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

/// What is known of oslo once its file is gone, and a fleet without it.
fn without_oslo(key: &PublicKey) -> (Fleet, BTreeMap<ClusterName, Departure>) {
    let departure = Departure {
        public_keys: vec![key.to_string()],
        kubeconfig_context: None,
        deletion_policy: render::model::DeletionPolicy::Delete,
        source: "1".repeat(40).parse().expect("forty hex digits"),
        since: 0,
        units: Vec::new(),
    };
    let oslo = ClusterName::parse("oslo").expect("a valid cluster");
    let mut empty = fleet(&[]);
    empty.clusters.clear();
    (empty, BTreeMap::from([(oslo, departure)]))
}

#[tokio::test]
async fn a_cluster_whose_file_is_gone_may_prove_its_old_key_until_its_file_comes_back() {
    let (registry, old, new) = (Registry::default(), key(), key());
    let oslo = ClusterName::parse("oslo").expect("a valid cluster");
    let (empty, departed) = without_oslo(&old);
    registry.replace(&empty, &departed);
    assert!(
        !is_over(registry.revoked(&oslo, &old)).await,
        "it is known, to be cleaned up"
    );
    registry.replace(&fleet(&[&new]), &departed);
    assert!(is_over(registry.revoked(&oslo, &old)).await, "its file counts alone");
}

#[tokio::test]
async fn a_denied_key_or_name_is_out_whatever_the_file_says() {
    let (registry, one, other) = (Registry::default(), key(), key());
    let oslo = ClusterName::parse("oslo").expect("a valid cluster");
    registry.replace(&fleet(&[&one, &other]), &BTreeMap::new());
    assert!(registry.deny(Denied::parse(&one.to_string()).expect("a list")));
    assert!(is_over(registry.revoked(&oslo, &one)).await, "its key is denied");
    assert!(!is_over(registry.revoked(&oslo, &other)).await, "the other one counts");
    assert_eq!(registry.keys_of("oslo"), [other]);
    registry.deny(Denied::parse("oslo").expect("a list"));
    assert!(is_over(registry.revoked(&oslo, &other)).await, "its name is denied");
    assert!(registry.deny(Denied::default()));
    assert_eq!(registry.keys_of("oslo"), [one, other], "and all is as before");
}

#[test]
fn a_cluster_is_shut_out_where_no_key_counts_and_no_other_way_leads_to_it() {
    let (registry, own, other) = (Registry::default(), key(), key());
    let oslo = ClusterName::parse("oslo").expect("a valid cluster");
    let deny = |list: &str| registry.deny(Denied::parse(list).expect("a list"));
    assert!(!registry.is_shut_out(&oslo), "nothing is known yet");
    deny("oslo");
    assert!(
        registry.is_shut_out(&oslo),
        "nobody may come by this name, whoever has it"
    );
    deny("");
    registry.replace(&fleet(&[&own, &other]), &BTreeMap::new());
    assert!(!registry.is_shut_out(&oslo));
    deny(&own.to_string());
    assert!(!registry.is_shut_out(&oslo), "its other key counts");
    deny(&format!("{own}\n{other}"));
    assert!(registry.is_shut_out(&oslo), "both are denied");
    deny("");
    registry.replace(&fleet(&[]), &BTreeMap::new());
    assert!(registry.is_shut_out(&oslo), "its file names no key any more");
    let (empty, departed) = without_oslo(&own);
    registry.replace(&empty, &BTreeMap::new());
    assert!(registry.is_shut_out(&oslo), "its file is gone");
    registry.replace(&empty, &departed);
    assert!(!registry.is_shut_out(&oslo), "it may come to be cleaned up");
    // One that the hub applies to itself needs no key, and is asked by no agent's tunnel.
    let mut direct = fleet(&[]);
    let declared = direct.clusters.values_mut();
    declared.for_each(|cluster| cluster.kubeconfig_context = Some("oslo".to_owned()));
    registry.replace(&direct, &BTreeMap::new());
    assert!(!registry.is_shut_out(&oslo));
    let context = Some("oslo".to_owned());
    let departed = departed.into_iter().map(|(name, departure)| {
        let departure = Departure {
            public_keys: Vec::new(),
            kubeconfig_context: context.clone(),
            ..departure
        };
        (name, departure)
    });
    registry.replace(&empty, &departed.collect());
    assert!(!registry.is_shut_out(&oslo), "nor to be cleaned up");
}

#[test]
fn a_stranger_is_told_apart_by_what_it_proved() {
    let (registry, own, new) = (Registry::default(), key(), key());
    registry.replace(&fleet(&[&own]), &BTreeMap::new());
    let knock = |cluster: &str, key: Option<PublicKey>| {
        let stranger = Stranger {
            cluster,
            key,
            token: None,
        };
        let told = registry.stranger(&stranger);
        let all = registry.news().expect("somebody knocked");
        let this = all
            .into_iter()
            .find(|knock| knock.cluster.as_str() == cluster && knock.key == key);
        (this.expect("it is listed").why, told)
    };
    assert_eq!(knock("rome", Some(new)), (Why::NotRegistered, None));
    assert_eq!(
        knock("oslo", Some(new)),
        (Why::OtherKey, None),
        "installed anew, or somebody else"
    );
    assert_eq!(knock("oslo", None), (Why::OtherKey, None));
    let (why, told) = knock("roma", Some(own));
    let name = ClusterName::parse("oslo").expect("a valid cluster");
    assert_eq!(why, Why::RegisteredAs { name }, "it was renamed");
    assert!(told.is_some_and(|told| told.contains("oslo")));
    registry.deny(Denied::parse("rome").expect("a list"));
    assert_eq!(knock("rome", Some(new)), (Why::Denied, None));
    registry.replace(&fleet(&[]), &BTreeMap::new());
    assert_eq!(
        knock("oslo", Some(new)),
        (Why::OtherKey, None),
        "there is a file, to which its key can be added"
    );
}

/// What an agent that has a token is told.
fn asks(registry: &Registry, cluster: &ClusterName, key: PublicKey, token: &str) -> Option<String> {
    let cluster = cluster.as_str();
    let proof = Proof {
        hub_nonce: Nonce([1; 32]),
        agent_nonce: Nonce([2; 32]),
        cluster,
        epoch: 7,
        exporter: None,
        server_id: "",
        endpoints: &[],
    };
    let token = Some(TokenProof::new(&Token(token.to_owned()), &proof, &key));
    let key = Some(key);
    registry.stranger(&Stranger { cluster, key, token })
}

#[test]
fn a_token_counts_for_a_name_whose_file_is_gone_and_for_none_that_has_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = TokenFile::new(folder.path().join("tokens"));
    let (registry, old, new) = (Registry::default(), key(), key());
    let oslo = ClusterName::parse("oslo").expect("a valid cluster");
    registry.propose(true);
    registry.keep_tokens(file.clone());
    let token = file.create(oslo.clone(), 3_600, seconds()).expect("it is made");
    // A file without keys, as of a cluster that the hub reaches by itself: a token adds none.
    registry.replace(&fleet(&[]), &BTreeMap::new());
    assert_eq!(asks(&registry, &oslo, new, &token), None);
    let (empty, departed) = without_oslo(&old);
    registry.replace(&empty, &departed);
    let told = asks(&registry, &oslo, new, &token).expect("it was not used up");
    assert!(told.contains("branch flotilla/register-oslo"), "{told}");
    assert_eq!(registry.keys_of("oslo"), [old], "which still lets nobody in");
    let wanted = registry.sync_tokens(&file).expect("readable");
    assert_eq!(wanted, BTreeMap::from([(oslo, new)]));
}

#[test]
fn a_token_gives_the_right_to_ask_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = TokenFile::new(folder.path().join("tokens"));
    let (registry, own, new) = (Registry::default(), key(), key());
    registry.replace(&fleet(&[&own]), &BTreeMap::new());
    registry.propose(true);
    let [rome, oslo] = ["rome", "oslo"].map(|name| ClusterName::parse(name).expect("a valid cluster"));
    registry.keep_tokens(file.clone());
    registry.sync_tokens(&file).expect("readable");
    // It counts from the moment on in which it was made.
    let token = file.create(rome.clone(), 3_600, seconds()).expect("it is made");
    let ask = |cluster: &ClusterName, key: PublicKey, token: &str| {
        let told = asks(&registry, cluster, key, token);
        assert!(
            !registry.keys_of(cluster.as_str()).contains(&new),
            "nobody is let in by a token"
        );
        told
    };
    assert_eq!(
        ask(&oslo, new, &token),
        None,
        "another cluster's things are not to be had with it"
    );
    // Whoever guesses learns nothing of which clusters there are.
    assert_eq!(ask(&rome, new, "a guess"), ask(&oslo, new, "a guess"));
    assert_eq!(ask(&rome, new, "a guess"), None);
    assert!(ask(&rome, new, &token).is_some_and(|told| told.contains("branch flotilla/register-rome")));
    assert!(ask(&rome, own, &token).is_some(), "the key is another cluster's");
    let wanted = registry.sync_tokens(&file).expect("readable");
    assert_eq!(wanted, BTreeMap::from([(rome.clone(), new)]));
    // The hub restarts, and nothing is asked for twice.
    let restarted = Registry::default();
    restarted.replace(&fleet(&[&own]), &BTreeMap::new());
    assert_eq!(restarted.sync_tokens(&file).expect("readable"), wanted);
    let reasons: Vec<_> = registry
        .news()
        .expect("they knocked")
        .into_iter()
        .map(|knock| knock.why)
        .collect();
    assert!(reasons.contains(&Why::Proposed), "{reasons:?}");
}
