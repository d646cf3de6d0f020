//! Encrypted documents: decrypted at the applier, or their unit is left as it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::wire::{ObjectState, UnitReport, UnitState};
use serde_json::{Value, json};

use super::delivery::*;
use crate::sops::Keeper;

const CANARY: &str = "canary-of-the-applier-7193";

fn document(value: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: safe, namespace: shop}}\nstringData: {{word: {value}}}\n")
}

/// The Secret with age keys, as a person makes it.
#[track_caller]
fn give_keys(cluster: &ControlPlane, name: &str, keepers: &[&Keeper]) {
    let keys = keepers.iter().enumerate();
    let data: serde_json::Map<String, Value> = keys
        .map(|(index, keeper)| (format!("{index}.agekey"), json!(keeper.identity)))
        .collect();
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": "flotilla-system"}, "stringData": data});
    cluster.apply(&secret.to_string());
}

#[track_caller]
fn until_word(cluster: &ControlPlane, value: &str) {
    eventually(wait::LONG, "the Secret has its word", || {
        let found = cluster.get("shop", "secret/safe")?;
        let same = found["data"]["word"] == STANDARD.encode(value);
        same.then_some(()).ok_or_else(|| "another word".to_owned())
    });
}

#[track_caller]
fn assert_silent(report: &UnitReport) {
    for spelling in [CANARY.to_owned(), STANDARD.encode(CANARY)] {
        let said = format!("{report:?}{}", serde_json::to_string(report).unwrap());
        assert!(!said.contains(&spelling), "{said}");
    }
}

#[test]
fn a_missing_key_blocks_its_unit_alone_until_it_appears_and_rotation_is_followed() {
    let cluster = cluster("sealed");
    let (first, second) = (Keeper::new("first"), Keeper::new("second"));
    let mut applier = Applier::start(&cluster, "sealed");
    // The unit had something before, which it keeps while its documents do not open.
    let before = || {
        vec![
            namespace("shop"),
            config_map("shop", "old", "1"),
            config_map("shop", "settings", "1"),
        ]
    };
    let other = |value| ("shop/other", vec![config_map("default", "other", value)]);
    applier.deliver(&[("shop/web", before()), other("1")]);
    applier.until_unit("shop/web", UnitState::Applied);

    let labelled = json!({"metadata": {"labels": {"tier": "front"}}});
    let after = |sealed_document: &str| {
        vec![
            namespace("shop"),
            config_map("shop", "settings", "2"),
            sealed(sealed_document, &labelled),
        ]
    };
    let sealed_document = first.encrypt(&document(CANARY));
    applier.deliver(&[("shop/web", after(&sealed_document)), other("2")]);
    let report = applier.until_unit("shop/web", UnitState::Failed);
    let refused = result(&report, "safe");
    assert_eq!(refused.state, ObjectState::Failed);
    assert!(refused.message.contains(&first.recipient), "{}", refused.message);
    assert!(
        refused.message.contains("there is no Secret flotilla-system/sops-age"),
        "{}",
        refused.message
    );
    assert_eq!(result(&report, "settings").state, ObjectState::Blocked);
    assert_silent(&report);
    applier.until_unit("shop/other", UnitState::Applied);
    assert_eq!(cluster.get("shop", "configmap/settings").unwrap()["data"]["value"], "1");
    applier.until("what the unit has is kept, and why", |report| {
        format!("{report:?}").contains("unit shop/web keeps what it has until its documents open")
    });
    assert!(cluster.has("shop", "configmap/old"), "what the unit has stays");

    give_keys(&cluster, "sops-age", &[&second]);
    applier.until("the wrong key is told", |report| {
        format!("{report:?}").contains("none of the 1 age keys at hand opens it")
    });
    give_keys(&cluster, "sops-age", &[&first]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert_silent(&report);
    until_word(&cluster, CANARY);
    let live = cluster.get("shop", "secret/safe").unwrap();
    assert_eq!(
        live["metadata"]["labels"]["tier"], "front",
        "overrides are put in after decryption"
    );
    eventually(wait::LONG, "what the unit lost is removed", || {
        (!cluster.has("shop", "configmap/old"))
            .then_some(())
            .ok_or_else(|| "it is there".to_owned())
    });

    // Rotation: both keys for a while, then the new one alone.
    give_keys(&cluster, "sops-age", &[&first, &second]);
    let rotated = first.encrypt_for(
        &[&second.recipient],
        &document("second-word"),
        &["--encrypted-regex", "^stringData$"],
    );
    applier.deliver(&[("shop/web", after(&rotated)), other("2")]);
    until_word(&cluster, "second-word");
    applier.until_unit("shop/web", UnitState::Applied);
    let inventory = cluster
        .kubectl(&[
            "get",
            "configmaps,secrets,leases",
            "-n",
            "flotilla-system",
            "-o",
            "yaml",
        ])
        .expect_ok();
    assert!(
        !inventory.contains(CANARY) && !inventory.contains("second-word"),
        "{inventory}"
    );
    applier.stop();
}

#[test]
fn a_tampered_document_is_refused_and_what_is_there_stays() {
    let cluster = cluster("tampered");
    let keeper = Keeper::new("tampered");
    let whole = keeper.encrypt(&document(CANARY));
    give_namespace(&cluster);
    let mut applier = Applier::start(&cluster, "tampered");
    give_keys(&cluster, "sops-age", &[&keeper]);
    applier.deliver(&[("shop/web", vec![namespace("shop"), sealed(&whole, &Value::Null)])]);
    applier.until_unit("shop/web", UnitState::Applied);
    let version = metadata(&cluster, "shop", "secret/safe", "resourceVersion");
    let tampered = whole.replace("kind: Secret\n", "kind: Secret\nimmutable: true\n");
    applier.deliver(&[("shop/web", vec![namespace("shop"), sealed(&tampered, &Value::Null)])]);
    let report = applier.until_unit("shop/web", UnitState::Failed);
    assert!(
        result(&report, "safe")
            .message
            .contains("it was changed after it was encrypted"),
        "{report:#?}"
    );
    // An override that would not be a Secret any more, and an API server that refuses: neither tells a value.
    let wrong = json!({"stringData": {"word": {"a": "b"}}});
    applier.deliver(&[("shop/web", vec![namespace("shop"), sealed(&whole, &wrong)])]);
    let report = applier.until_unit("shop/web", UnitState::Failed);
    assert!(!result(&report, "safe").message.is_empty());
    assert_silent(&report);
    assert_eq!(metadata(&cluster, "shop", "secret/safe", "resourceVersion"), version);
    applier.stop();
}

#[test]
fn an_unchanged_encrypted_document_is_not_decrypted_again() {
    let cluster = cluster("sealed-quiet");
    let keeper = Keeper::new("quiet");
    give_namespace(&cluster);
    let mut applier = Applier::start(&cluster, "quiet");
    give_keys(&cluster, "sops-age", &[&keeper]);
    let unit = || {
        vec![
            namespace("shop"),
            sealed(&keeper.encrypt(&document(CANARY)), &Value::Null),
        ]
    };
    let delivered = unit();
    applier.deliver(&[("shop/web", delivered.clone())]);
    applier.until_unit("shop/web", UnitState::Applied);
    let version = metadata(&cluster, "shop", "secret/safe", "resourceVersion");
    // Without the key nothing is amiss, as long as nothing is to be sent.
    cluster
        .kubectl(&["delete", "secret", "sops-age", "-n", "flotilla-system"])
        .expect_ok();
    applier.stop();
    let mut applier = Applier::start(&cluster, "quiet-again");
    applier.deliver(&[("shop/web", delivered)]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(metadata(&cluster, "shop", "secret/safe", "resourceVersion"), version);
    // A change by hand needs it.
    cluster.kubectl(&["delete", "secret", "safe", "-n", "shop"]).expect_ok();
    applier.until("the key is missed", |report| {
        format!("{report:?}").contains("there is no Secret flotilla-system/sops-age")
    });
    give_keys(&cluster, "sops-age", &[&keeper]);
    until_word(&cluster, CANARY);
    applier.stop();
}

/// The applier's own namespace, before it starts: it makes what it does not find, and two who make one are in each other's way.
#[track_caller]
fn give_namespace(cluster: &ControlPlane) {
    cluster.apply(&namespace("flotilla-system").to_string());
}
