//! A `flotilla agent` in a process of its own that finds in its journal what it should apply: its hub is away.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flotilla_tests::{Flotilla, ports, scratch};
use reconciler::agent::{Journal, Kept, Store as _};
use reconciler::wire::{EnvelopeUnit, Held, list_digest};
use render::describe::{Content, DescribedObject, Description, key_of};
use render::{Revision, UnitKey};
use serde_json::json;

use super::delivery::{Units, unit_key};

/// What an agent is started with.
pub(super) struct Journalled {
    folder: PathBuf,
    cluster: String,
    hub: String,
    hub_key: String,
    kubeconfig: PathBuf,
}

impl Journalled {
    /// An agent that was never started, of a cluster of this name.
    pub(super) fn new(cluster: &str, kubeconfig: &Path) -> Self {
        let folder = scratch::folder("journalled");
        let path = |name: &str| folder.join(name).display().to_string();
        Flotilla::run(&["agent", "join", "--cluster", cluster, "--key", &path("agent.key")]).expect_ok();
        let hub_key = Flotilla::run(&["hub", "key", "--key", &path("hub.key")]).expect_ok();
        Self {
            cluster: cluster.to_owned(),
            hub: format!("127.0.0.1:{}", ports::free()),
            hub_key: hub_key.trim().to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            folder,
        }
    }

    /// Takes a delivery, while the agent is not running.
    pub(super) fn take(&self, sequence: u64, units: Units<'_>) {
        let journal = Journal::open(self.folder.join("journal"), "journalled").expect("a journal opens");
        let mut held: BTreeMap<UnitKey, EnvelopeUnit> = BTreeMap::new();
        let mut contents = BTreeMap::new();
        for (key, objects) in units {
            let objects = objects.iter().map(|object| DescribedObject {
                key: key_of(object).expect("the object has a name"),
                content: Content::Plain {
                    object: object.clone().into(),
                },
                provenance: Vec::new(),
            });
            let content = Description::new(objects.collect()).expect("each key stands once");
            let unit = json!({"digest": content.digest, "revision": revision("c")});
            held.insert(
                unit_key(key),
                serde_json::from_value(unit).expect("the rest has defaults"),
            );
            contents.insert(content.digest, Arc::new(content));
        }
        let held = Held {
            lineage: revision("a"),
            sequence,
            list: list_digest(&held, false),
            orphan: false,
            orphaned: Default::default(),
            mode: Default::default(),
            mode_source: None,
            released: revision("b"),
            units: held,
        };
        let kept = Kept {
            held: Some(held),
            contents,
            ..Kept::default()
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            journal.read().await.expect("it reads back");
            journal.write(kept).await.expect("it is written");
        });
    }

    /// Starts it.
    pub(super) fn start(&self) -> Flotilla {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let arguments = [
            ["--cluster", &self.cluster].map(str::to_owned),
            ["--hub", &self.hub].map(str::to_owned),
            ["--hub-key", &self.hub_key].map(str::to_owned),
            ["--key".to_owned(), path("agent.key")],
            ["--journal".to_owned(), path("journal")],
            ["--kubeconfig".to_owned(), self.kubeconfig.display().to_string()],
        ];
        Flotilla::agent(&arguments.concat())
    }
}

fn revision(digit: &str) -> Revision {
    Revision::parse(digit.repeat(40)).expect("a valid revision")
}
