//! A journal in Secrets of the cluster: what is damaged, cannot be read, or is somebody else's by now.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use reconciler::agent::{Absence, JournalError, Kept, SecretError, SecretJournal, Store};
use reconciler::apply::{self, ApplierOptions, ApplyReport, Tenure};
use reconciler::key_sets::{KeySet, KeysKnown, Vouched};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::applier::{cluster, config_map, delivery, unit_key};
use crate::{ApiServer, Fault, Requests};

const NAME: &str = "flotilla-journal";

/// A process that holds the lease, as long as it lasts.
struct Holder {
    journal: SecretJournal,
    secrets: Api<Secret>,
    stop: CancellationToken,
    _applier: AbortOnDropHandle<Result<(), apply::ApplyError>>,
}

impl Holder {
    async fn start(server: &ApiServer, name: &str) -> Self {
        let (tenure, stop) = (Tenure::default(), CancellationToken::new());
        let options = ApplierOptions {
            tenure: tenure.clone(),
            ..ApplierOptions::new(cluster(), name.to_owned())
        };
        let (_, desired) = watch::channel(None);
        let (report, _) = watch::channel(ApplyReport::default());
        let applier = tokio::spawn(apply::run(server.client(), options, desired, report, stop.clone()));
        tenure.held().await;
        Self {
            journal: SecretJournal::new(server.client(), "flotilla-system", NAME, cluster(), tenure),
            secrets: Api::namespaced(server.client(), "flotilla-system"),
            stop,
            _applier: AbortOnDropHandle::new(applier),
        }
    }

    /// The names of the journal's Secrets.
    async fn names(&self) -> Vec<String> {
        let list = self
            .secrets
            .list(&ListParams::default())
            .await
            .expect("they are listed");
        let names = list.items.into_iter().filter_map(|secret| secret.metadata.name);
        names.filter(|name| name.starts_with(NAME)).collect()
    }

    /// Somebody changes the head.
    async fn patch(&self, patch: serde_json::Value) {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.secrets.patch(NAME, &params, &patch).await.expect("it is patched");
    }

    async fn delete(&self, name: &str) {
        self.secrets
            .delete(name, &DeleteParams::default())
            .await
            .expect("it is deleted");
    }
}

/// What a hub said of its keys.
fn told_keys() -> Vec<Vouched> {
    let key = |byte| tunnel::PublicKey::from_bytes([byte; 32]).to_string();
    vec![KeySet::try_from(vec![key(1), key(2)]).expect("they are keys").into()]
}

/// What an agent has that took this.
fn kept(sequence: u64, values: &[&str]) -> Kept {
    let units = values.iter().enumerate().map(|(number, value)| {
        let object = config_map(&format!("c{number}"), value);
        (unit_key(&format!("shop/u{number}")), vec![object])
    });
    let (envelope, contents) = delivery(sequence, &units.collect());
    Kept {
        held: Some(envelope.held()),
        contents: contents.into_iter().map(|content| (content.digest, content)).collect(),
        absence: Some(Absence {
            since: 1_000,
            lasted: 5,
        }),
        hub_keys: told_keys(),
        hub_keys_known: KeysKnown::default().now_that(&[tunnel::PublicKey::from_bytes([1; 32])], 900),
    }
}

#[track_caller]
fn assert_same(found: &Kept, expected: &Kept) {
    assert_eq!(found.held, expected.held);
    assert_eq!(found.absence, expected.absence);
    assert_eq!(found.hub_keys, expected.hub_keys);
    assert_eq!(found.hub_keys_known, expected.hub_keys_known);
    let digests = |kept: &Kept| kept.contents.keys().copied().collect::<Vec<_>>();
    assert_eq!(digests(found), digests(expected));
}

/// A value of this many bytes that hardly compresses.
fn noise(bytes: usize) -> String {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let printable = u8::try_from((state >> 33) % 90).expect("it is below 90");
        char::from(b' ' + printable)
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

#[tokio::test(start_paused = true)]
async fn a_journal_in_the_cluster_is_read_back_and_grows_no_further_than_it_is() {
    let server = ApiServer::default();
    let holder = Holder::start(&server, "a").await;
    let large = noise(3 << 20);
    // An older agent keeps no note of since when it knows its hubs' keys.
    for (sequence, value, noted) in [(1, "one", true), (2, &*large, false), (3, "three", true)] {
        let mut kept = kept(sequence, &["same", value]);
        if !noted {
            kept.hub_keys_known = KeysKnown::default();
        }
        holder.journal.write(kept.clone()).await.expect("it is written");
        let other = Holder::start_reading(&server);
        assert_same(&other.read().await.expect("it is read"), &kept);
    }
    let secrets = holder
        .secrets
        .list(&ListParams::default())
        .await
        .expect("they are listed");
    assert_eq!(
        secrets.items.len(),
        4,
        "a head, an index, and two contents: {:?}",
        holder.names().await
    );
    for secret in secrets.items {
        let labels = secret.metadata.labels.unwrap_or_default();
        assert_eq!(labels["app.kubernetes.io/managed-by"], "flotilla");
        assert_eq!(labels["fleet.flotilla.dev/journal"], NAME);
        assert_eq!(secret.metadata.owner_references, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_damaged_part_is_named_and_never_an_empty_journal() {
    let server = ApiServer::default();
    let holder = Holder::start(&server, "a").await;
    let before = holder.names().await;
    assert_eq!(before, Vec::<String>::new());
    let whole = kept(1, &["one"]);
    holder.journal.write(whole.clone()).await.expect("it is written");
    let parts: Vec<_> = holder.names().await.into_iter().filter(|name| name != NAME).collect();
    assert_eq!(parts.len(), 2);
    let mut outcomes = BTreeMap::new();
    for part in &parts {
        holder.delete(part).await;
        match Holder::start_reading(&server).read().await {
            Ok(found) => {
                assert_eq!(found.held, whole.held, "the envelope is whole");
                assert!(found.contents.is_empty(), "its content is gone, and is asked for again");
                outcomes.insert("content", part);
            }
            Err(JournalError::Secrets(SecretError::Damaged { secret, .. })) => {
                assert_eq!(secret, format!("flotilla-system/{part}"));
                outcomes.insert("index", part);
            }
            Err(other) => panic!("{other}"),
        }
        // The next write finds out that they are gone, and the one after it makes them again.
        for _ in 0..2 {
            holder.journal.write(whole.clone()).await.expect("it is written");
        }
        assert_same(
            &Holder::start_reading(&server).read().await.expect("it is read"),
            &whole,
        );
    }
    assert_eq!(outcomes.len(), 2, "{outcomes:?}");
    holder.patch(json!({"data": {"head.json": "ew=="}})).await;
    let error = Holder::start_reading(&server).read().await.expect_err("it is damaged");
    let words = error.to_string();
    assert!(
        words.contains("Secret flotilla-system/flotilla-journal is damaged"),
        "{words}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_part_that_somebody_put_other_bytes_into_is_made_anew() {
    let server = ApiServer::default();
    let holder = Holder::start(&server, "a").await;
    let whole = kept(1, &["one"]);
    holder.journal.write(whole.clone()).await.expect("it is written");
    for name in holder.names().await {
        if name == NAME {
            continue;
        }
        let mut secret = holder.secrets.get(&name).await.expect("it is there");
        holder.delete(&name).await;
        secret.metadata.resource_version = None;
        secret.metadata.uid = None;
        secret.data = Some([("part".to_owned(), k8s_openapi::ByteString(b"other".to_vec()))].into());
        holder
            .secrets
            .create(&PostParams::default(), &secret)
            .await
            .expect("it is made");
    }
    let read = Holder::start_reading(&server).read().await;
    assert!(
        matches!(read, Err(JournalError::Secrets(SecretError::Damaged { .. }))),
        "{read:?}"
    );
    // Somebody who begins anew, as its hint says.
    holder.delete(NAME).await;
    drop(holder);
    let holder = Holder::start(&server, "a").await;
    assert!(holder.journal.read().await.expect("there is none").held.is_none());
    holder.journal.write(whole.clone()).await.expect("it is written");
    assert_same(
        &Holder::start_reading(&server).read().await.expect("it is read"),
        &whole,
    );
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_the_api_server_does_not_give_is_not_empty() {
    let server = ApiServer::default();
    let holder = Holder::start(&server, "a").await;
    holder.journal.write(kept(1, &["one"])).await.expect("it is written");
    for fault in [
        Fault::Unreachable,
        Fault::ServerError { code: 503 },
        Fault::Unauthorized,
    ] {
        server.faults().set(fault, Requests::default());
        let read = Holder::start_reading(&server).read().await;
        assert!(
            matches!(read, Err(JournalError::Secrets(SecretError::Read { .. }))),
            "{read:?}"
        );
        server.faults().clear_all();
    }
}

#[tokio::test(start_paused = true)]
async fn only_who_holds_the_lease_writes_and_who_takes_over_knows_what_was_taken_last() {
    let server = ApiServer::default();
    let first = Holder::start(&server, "a").await;
    first.journal.write(kept(1, &["one"])).await.expect("it is written");
    let waiting = Holder::start_reading(&server);
    assert_same(&waiting.read().await.expect("it is read"), &kept(1, &["one"]));
    let refused = waiting.write(kept(9, &["nine"])).await;
    assert!(
        matches!(refused, Err(JournalError::Secrets(SecretError::LeaseLost))),
        "{refused:?}"
    );
    first.journal.write(kept(2, &["two"])).await.expect("it is written");
    first.stop.cancel();
    let second = Holder::start(&server, "b").await;
    let newer = second.journal.read_newer().await.expect("it is read");
    assert_same(&newer.expect("it is news"), &kept(2, &["two"]));
    assert!(second.journal.read_newer().await.expect("it is read").is_none());
    second.journal.write(kept(3, &["three"])).await.expect("it is written");
    let late = first.journal.write(kept(2, &["late"])).await;
    assert!(late.is_err(), "whoever lost the lease writes nothing");
    assert_same(&waiting.read().await.expect("it is read"), &kept(3, &["three"]));
}

#[tokio::test(start_paused = true)]
async fn a_write_over_what_another_wrote_is_refused() {
    let server = ApiServer::default();
    let holder = Holder::start(&server, "a").await;
    holder.journal.write(kept(1, &["one"])).await.expect("it is written");
    holder
        .patch(json!({"metadata": {"annotations": {"somebody": "else"}}}))
        .await;
    let overtaken = holder.journal.write(kept(2, &["two"])).await;
    assert!(
        matches!(overtaken, Err(JournalError::Secrets(SecretError::Overtaken { .. }))),
        "{overtaken:?}"
    );
    holder.journal.read_newer().await.expect("it is read");
    holder
        .journal
        .write(kept(2, &["two"]))
        .await
        .expect("and then it is written");
}

impl Holder {
    /// A process that does not hold the lease.
    fn start_reading(server: &ApiServer) -> Arc<dyn Store> {
        let journal = SecretJournal::new(server.client(), "flotilla-system", NAME, cluster(), Tenure::default());
        Arc::new(journal)
    }
}
