//! An agent whose hub is away for good: what it finds in its journal is all that it knows.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reconciler::agent::{Absence, Journal, JournalPlace, Kept, Store};
use render::describe::Description;
use render::model::ApplyPolicy;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tunnel::SecretKey;

use super::applier::{cluster, config_map, delivery, unit_key};
use crate::fleet::{Agent, HubPlace, SimulatedCluster};
use crate::{Fault, Requests};

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Two units, of which the first may be enforced without a hub for an hour.
fn kept(absence: Absence) -> Kept {
    let objects = |name: &str| vec![config_map(name, "1")];
    let units = [("shop/bounded", "bounded"), ("shop/unbounded", "unbounded")];
    let units = units.map(|(unit, name)| (unit_key(unit), objects(name))).into();
    let (envelope, contents) = delivery(4, &units);
    let mut held = envelope.held();
    let bounded = held.units.get_mut(&unit_key("shop/bounded")).expect("it was delivered");
    let mut kept = Kept {
        absence: Some(absence),
        ..Kept::default()
    };
    for content in contents {
        let is_bounded = content.digest == bounded.digest;
        let policy = ApplyPolicy {
            enforce_for_seconds: is_bounded.then_some(3_600),
            ..ApplyPolicy::default()
        };
        let content = Arc::new(Description::clone(&content).under(policy));
        if is_bounded {
            bounded.digest = content.digest;
        }
        kept.contents.insert(content.digest, content);
    }
    kept.held = Some(held);
    kept
}

/// The journal of the agent that ran last.
async fn journal(folder: &Path) -> Journal {
    let opened = tokio::time::timeout(LIMIT, async {
        loop {
            if let Ok(journal) = Journal::open(folder, "test") {
                return journal;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    opened.await.expect("the agent before it ended")
}

/// Whether the inventory says that what knows no bound was applied: at the end of a pass, over both units.
async fn notes_unbounded(cluster: &SimulatedCluster) -> bool {
    let shard = cluster.config_map("flotilla-system", "flotilla-inventory-00").await;
    let text = shard
        .and_then(|mut data| data.remove("inventory.json"))
        .unwrap_or_default();
    let inventory: Value = serde_json::from_str(&text).unwrap_or_default();
    let entries = inventory["units"]["shop/unbounded"].as_object();
    entries.is_some_and(|entries| entries.values().any(|entry| entry["applied"].is_string()))
}

/// Runs an agent without a hub until it has decided about both units; whether what is bounded is there.
async fn applies_what_is_bounded(folder: &Path) -> bool {
    let key = || Arc::new(SecretKey::generate().expect("random bytes"));
    let cluster = SimulatedCluster::new(cluster(), key());
    let nobody = HubPlace {
        address: "127.0.0.1:1".parse().expect("an address"),
        key: key().public(),
    };
    let agent = Agent::start(&cluster, &nobody, folder.to_owned(), &CancellationToken::new());
    let noted = tokio::time::timeout(LIMIT, async {
        while !notes_unbounded(&cluster).await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    noted.await.expect("what knows no bound is applied");
    agent.stop().await;
    cluster.config_map("default", "bounded").await.is_some()
}

#[tokio::test]
async fn a_restart_does_not_lengthen_the_time_for_which_a_unit_is_enforced_without_a_hub() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("journal");
    let now = Timestamp::now().as_second();
    for (absence, expected) in [
        ((now - 60, 0), true),
        ((now - 7_200, 0), false),
        // The clock was set back, and two hours were counted.
        ((now + 86_400, 7_200), false),
    ] {
        let (since, lasted) = absence;
        let noted = Absence { since, lasted };
        journal(&folder).await.write(kept(noted)).await.expect("it is written");
        for _ in 0..2 {
            assert_eq!(applies_what_is_bounded(&folder).await, expected, "{noted:?}");
            let now = Timestamp::now().as_second();
            let journal = journal(&folder).await;
            let left = Store::read(&journal).await.expect("it reads back").absence;
            let left = left.expect("it is noted");
            let counted = left.lasted.max(now - left.since);
            assert!(counted >= lasted.max(now - since), "{left:?} is no less than {noted:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_may_not_read_its_journal_in_the_cluster_ends_and_says_what_it_needs() {
    let key = || Arc::new(SecretKey::generate().expect("random bytes"));
    let cluster = SimulatedCluster::new(cluster(), key());
    let nobody = HubPlace {
        address: "127.0.0.1:1".parse().expect("an address"),
        key: key().public(),
    };
    let secrets = Requests {
        resource: Some("secrets".to_owned()),
        ..Requests::default()
    };
    cluster.server().faults().set(Fault::Forbidden, secrets);
    let agent = Agent::start(&cluster, &nobody, JournalPlace::in_cluster(), &CancellationToken::new());
    let ended = tokio::time::timeout(LIMIT, agent.ended()).await;
    let error = ended.expect("it ends").expect("it says why");
    let words = reconciler::fault::line(&error);
    assert!(
        words.contains("Secret flotilla-system/flotilla-journal") && words.contains("Role needs get, list"),
        "{words}"
    );
}
