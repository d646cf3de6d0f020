//! Messages of other versions: what an older program leaves out, and what a newer one adds.

use std::io::Cursor;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Envelope, Health, ObjectState, PeerWord, Pong, Refusal, Report, UnitState, read_message, write_message};

/// What a program of this version reads.
async fn read<T: DeserializeOwned + Send + 'static>(message: &Value) -> T {
    let mut bytes = Vec::new();
    write_message(&mut bytes, message).await.expect("it is written");
    let read = read_message::<_, T>(&mut Cursor::new(bytes)).await;
    read.unwrap_or_else(|error| panic!("{error}: {message:#}"))
        .expect("it is there")
}

/// Adds to each object of a message what no version knows yet.
fn newer(mut message: Value) -> Value {
    fn add(value: &mut Value, is_map: bool) {
        match value {
            Value::Object(fields) => {
                for (field, value) in fields.iter_mut() {
                    // Keys of these are names, and a name is known or not.
                    let is_map =
                        ["units", "replicas", "capacity", "orphaned", "hubKeysKnown"].contains(&field.as_str());
                    add(value, is_map);
                }
                if !is_map {
                    fields.insert("fromTheFuture".to_owned(), json!({ "a": [1, "b"] }));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| add(item, false)),
            _ => {}
        }
    }
    add(&mut message, false);
    message
}

/// A newer form of a message is read as the same.
async fn check<T: DeserializeOwned + Send + 'static + Serialize>(message: Value) -> T {
    let plain: T = read(&message).await;
    let told: T = read(&newer(message)).await;
    let (plain, told) = [plain, told]
        .map(|read| serde_json::to_value(read).expect("it is written"))
        .into();
    assert_eq!(plain, told, "what is added changes nothing");
    serde_json::from_value(plain).expect("it reads back")
}

fn hex(digit: char, count: usize) -> String {
    digit.to_string().repeat(count)
}

fn held() -> Value {
    json!({
        "lineage": hex('a', 40), "sequence": 7, "list": format!("sha256:{}", hex('b', 64)), "released": hex('c', 40),
        "units": { "shop/web": { "digest": format!("sha256:{}", hex('d', 64)), "revision": hex('e', 40) } },
    })
}

#[tokio::test]
async fn a_report_of_the_first_version_is_read_and_what_a_newer_one_adds_is_ignored() {
    let report: Report = check(json!({ "version": 1, "cluster": "oslo" })).await;
    assert!(!report.held_read, "what was not said is not known");
    assert!(report.units.is_empty() && report.facts.is_none() && report.nodes.is_none() && report.capacity.is_none());
    assert!(report.hub_keys_known.is_empty(), "an older agent does not say it");
    let unit = json!({
        "state": "Applied", "health": "Current", "counts": { "objects": 3, "applied": 3 },
        "worst": [{ "object": "apps/Deployment/shop/web", "state": "Failed", "health": "Failed" }],
    });
    let report: Report = check(json!({
        "version": 1, "cluster": "oslo", "heldRead": true, "held": held(), "units": { "shop/web": unit },
        "kubernetesVersion": "v1.36.3", "facts": { "platform": "linux/amd64" },
        "nodes": { "statistics": { "readyNodes": 2 }, "capacity": { "cpu": 4000 } },
        "hubKeysKnown": { format!("ed25519:{}=", "A".repeat(43)): 1000, "a form of tomorrow": 5 },
    }))
    .await;
    let known: Vec<_> = report.hub_keys_known.iter().map(|(_, since)| since).collect();
    assert_eq!(known, [1_000], "what is no key is left out");
    let held = report.held.expect("it says what it holds");
    assert_eq!((held.sequence, held.units.len()), (7, 1));
    assert_eq!(report.units.values().map(|unit| unit.counts.objects).sum::<usize>(), 3);
    let facts = report.facts.expect("it says what it is");
    assert_eq!((facts.platform.as_str(), facts.readyz), ("linux/amd64", None));
    assert_eq!(report.nodes.map(|nodes| nodes.statistics.ready_nodes), Some(2));
}

#[tokio::test]
async fn a_word_of_a_newer_agent_that_is_not_known_is_unknown_and_the_rest_of_its_report_is_read() {
    let unit = |state: &str, health: &str| {
        json!({
            "state": state, "health": health, "counts": { "objects": 2 },
            "worst": [{ "object": "apps/Deployment/shop/web", "state": "Hibernating", "health": "Dreaming", "message": "z" }],
        })
    };
    let report: Report = check(json!({
        "version": 1, "cluster": "oslo", "heldRead": true, "held": held(), "kubernetesVersion": "v1.36.3",
        "refused": [8, { "reason": "moonPhase", "phase": "waning" }],
        "units": { "shop/web": unit("Hibernating", "Dreaming"), "shop/api": unit("Applied", "Current") },
    }))
    .await;
    let said: Vec<_> = report.units.values().map(|unit| (unit.state, unit.health)).collect();
    let known = (UnitState::Applied, Health::Current);
    assert_eq!(
        said,
        [known, (UnitState::Unknown, Health::Unknown)],
        "in the order of their names"
    );
    for worst in report.units.values().flat_map(|unit| &unit.worst) {
        assert_eq!(
            (worst.state, worst.health, worst.message.as_str()),
            (ObjectState::Unknown, Health::Unknown, "z")
        );
    }
    assert_eq!(report.refused, Some((8, Refusal::Unknown)));
    let worse = [
        Health::Current,
        Health::InProgress,
        Health::Unknown,
        Health::Terminating,
        Health::Failed,
    ];
    assert!(
        worse.is_sorted(),
        "a word that is not known hides nothing that is worse"
    );
    assert_eq!(report.kubernetes_version.as_deref(), Some("v1.36.3"));
}

#[tokio::test]
async fn an_envelope_of_the_first_version_is_read_and_what_a_newer_one_adds_is_ignored() {
    let mut envelope = held();
    envelope["version"] = json!(1);
    envelope["cluster"] = json!("oslo");
    let envelope: Envelope = check(envelope).await;
    assert_eq!((envelope.cluster.as_str(), envelope.sequence), ("oslo", 7));
    assert_eq!((envelope.orphan, envelope.mode), (false, Default::default()));
    let unit = envelope.units.values().next().expect("it has one");
    assert!(unit.gates.is_empty() && unit.replicas.is_empty());
}

#[tokio::test]
async fn words_between_hubs_and_answers_of_agents_are_read_in_their_first_form_and_a_newer_one() {
    let cluster: PeerWord = check(json!({ "kind": "cluster", "cluster": "oslo", "since": 5 })).await;
    let PeerWord::Cluster { key, report, .. } = cluster else {
        unreachable!("it is about a cluster");
    };
    assert!(key.is_empty() && report.is_none());
    let _begun: PeerWord = check(json!({ "kind": "begin", "epoch": 5 })).await;
    let pong: Pong = check(json!({ "version": "0.1.0" })).await;
    assert_eq!(pong.error, None);
}
