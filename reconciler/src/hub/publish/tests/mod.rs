//! The state repository, with the real `git` as judge of what was written.

mod agent_keys;
mod followed;
mod open;
mod proposals;
mod read;
mod refs;
mod registration;
mod standing;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use render::chart::ChartFiles;
use render::describe::{Content, DescribedObject, Description};
use render::published::{Placement, RENDER_VERSION, ReleaseRecord, Variant};
use render::{ClusterName, Digest, ObjectKey, Published, Revision, UnitKey, UnitPlacement, VariantName};
use serde_json::json;

use super::{Author, CommitId, Decision, StateRef, StateRefs, StateRepository, message};
use crate::hub::repository::fixture::Fixture;
use crate::hub::source::Source;

/// A state repository beside its source branch `main`, as a hub that may write to the source has it.
struct State {
    fixture: Fixture,
    repository: StateRepository,
}

impl State {
    fn new() -> Self {
        let fixture = Fixture::new();
        fixture.commit("source");
        let repository = open(&fixture);
        Self { fixture, repository }
    }

    /// Commits a fleet and moves a ref to it.
    #[track_caller]
    fn publish(&self, which: StateRef, fleet: &FleetState) -> CommitId {
        let parent = self.repository.head(which).expect("readable");
        let commit = self.write(parent, fleet);
        self.repository
            .advance(which, parent, commit, "test")
            .expect("nobody else moves it");
        commit
    }

    #[track_caller]
    fn write(&self, parent: Option<CommitId>, fleet: &FleetState) -> CommitId {
        self.repository
            .write_commit(parent, &fleet.decision())
            .expect("written")
    }

    fn tree(&self, commit: CommitId) -> String {
        self.fixture.git(&["rev-parse", &format!("{commit}^{{tree}}")])
    }

    fn files(&self, commit: CommitId) -> Vec<String> {
        let listed = self.fixture.git(&["ls-tree", "-r", "--name-only", &commit.to_string()]);
        listed.lines().map(str::to_owned).collect()
    }

    fn fsck(&self) {
        self.fixture.git(&["fsck", "--strict", "--full"]);
    }
}

fn open(fixture: &Fixture) -> StateRepository {
    let source = Source::open(fixture.path(), "main").expect("opens");
    StateRepository::open(fixture.path(), StateRefs::default(), Author::default(), &source).expect("opens")
}

/// A decision in the making.
#[derive(Clone)]
struct FleetState {
    published: Arc<Published>,
    contents: BTreeMap<Digest, Arc<Description>>,
    known_in: Vec<CommitId>,
    message: String,
}

impl FleetState {
    fn new(sequence: u64) -> Self {
        let record = json!({
            "cause": "sourceCommit", "source": source_revision(), "sequence": sequence, "renderVersion": RENDER_VERSION,
        });
        let record: ReleaseRecord = serde_json::from_value(record).expect("a record");
        Self {
            message: message("publish the test fleet", "", &record),
            published: Arc::new(Published {
                record: Some(record),
                units: BTreeMap::new(),
            }),
            contents: BTreeMap::new(),
            known_in: Vec::new(),
        }
    }

    /// Adds a unit that two clusters have in variant `default` and whose objects say `text`.
    fn with(self, unit: &str, text: &str) -> Self {
        self.with_variant(unit, "default", text)
    }

    fn with_variant(self, unit: &str, variant: &str, text: &str) -> Self {
        self.with_content(unit, variant, description(text))
    }

    fn with_content(mut self, unit: &str, variant: &str, description: Description) -> Self {
        let name = VariantName::parse(variant).expect("valid");
        let units = &mut Arc::make_mut(&mut self.published).units;
        let placement = units.entry(unit_key(unit)).or_default();
        add_variant(placement, name, description.digest);
        self.contents.insert(description.digest, Arc::new(description));
        self
    }

    fn without_contents(mut self) -> Self {
        self.contents.clear();
        self
    }

    fn decision(&self) -> Decision<'_> {
        Decision {
            next: &self.published,
            contents: &self.contents,
            known_in: &self.known_in,
            message: &self.message,
            seconds: 1_700_000_000,
        }
    }
}

fn add_variant(placement: &mut UnitPlacement, name: VariantName, digest: Digest) {
    for cluster in ["berlin", "tokyo"] {
        let cluster = ClusterName::parse(format!("{cluster}-{name}")).expect("valid");
        let entry = Placement {
            variant: name.clone(),
            replicas: Default::default(),
            drift: Default::default(),
            revision: source_revision(),
            reasons: vec!["its labels match".to_owned()].into(),
            inputs: Digest::of_bytes(b"inputs"),
            capacity: None,
            leaves_at: None,
        };
        placement.clusters.insert(cluster, entry);
    }
    let variant = Variant {
        digest,
        revision: source_revision(),
        overrides: Vec::new(),
    };
    placement.variants.insert(name, variant);
}

fn unit_key(text: &str) -> UnitKey {
    text.parse().expect("namespace/name")
}

fn source_revision() -> Revision {
    Revision::parse("0123456789abcdef0123456789abcdef01234567").expect("valid")
}

/// A HelmChart whose chart has these files besides Chart.yaml.
fn chart(files: &[(&str, &str)]) -> Description {
    let object = json!({"apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "HelmChart", "metadata": {"name": "web"},
        "spec": {"path": "feeds/charts/web", "targetNamespace": "shop"}});
    let files = files.iter().chain(&[("Chart.yaml", "name: web\n")]);
    let files = files.map(|(path, text)| (Arc::from(*path), Arc::from(text.as_bytes())));
    let content = Content::Chart {
        files: Arc::new(ChartFiles::new(files.collect()).expect("it is a chart")),
        object: Arc::new(object),
    };
    let key = ObjectKey::new("fleet.flotilla.dev/v1alpha1", "HelmChart", "", "web");
    let provenance = Vec::new();
    Description::new(vec![DescribedObject {
        key,
        content,
        provenance,
    }])
    .expect("one key")
}

/// Two objects that say `text`.
fn description(text: &str) -> Description {
    let object = |kind: &str| DescribedObject {
        key: ObjectKey::new("v1", kind, "shop", "web"),
        content: Content::Plain {
            object: Arc::new(json!({
                "apiVersion": "v1", "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "data": {"text": text},
            })),
        },
        provenance: Vec::new(),
    };
    Description::new(vec![object("ConfigMap"), object("Service")]).expect("two keys")
}
