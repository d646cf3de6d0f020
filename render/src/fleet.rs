//! What [`crate::load`] finds in a revision: clusters, units with their Bases, overrides.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::access::Access;
use crate::capacity::{Workload, replica_path};
use crate::chart::ChartFiles;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::model::{Cluster, FleetSpec, Override, PruneBudget, Subscription, Suspension};
use crate::name::{ClusterName, ObjectKey, Revision, UnitKey};
use crate::schedule::Workloads;

/// A loaded revision.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The commit it was loaded from.
    pub revision: Revision,
    /// `fleet.yaml`, or its defaults.
    pub spec: FleetSpec,
    /// Every cluster that is registered.
    pub clusters: BTreeMap<ClusterName, Cluster>,
    /// Every unit, with its Base.
    pub units: BTreeMap<UnitKey, Unit>,
    /// Every override in the order in which they apply: Globalizations by (priority, namespace/name),
    /// then Localizations likewise. Which clusters and feeds each one meets is [`crate::localize`]'s
    /// matter.
    pub overrides: Vec<Arc<Override>>,
    /// Those of them whose object no manifest declares. Each is an Error, and what it changed is held.
    pub of_nothing: Vec<Arc<Override>>,
    /// Every Suspension, by name, then place. Which of them hold at a time is [`crate::release`]'s matter.
    pub suspensions: Vec<Arc<Suspension>>,
    /// Every PruneBudget, by name, then place. Which of them are in force is [`crate::guard`]'s matter.
    pub prune_budgets: Vec<Arc<PruneBudget>>,
    /// Who may ask which cluster for what, by the files below `access/`. It counts at once, whatever is approved.
    pub access: Arc<Access>,
    /// Paths that could not be read, sorted. The shell looks for what they said before, and loads again.
    pub unreadable: Vec<Arc<str>>,
}

impl Fleet {
    /// Whether what clusters report may decide where anything is: room that is divided by, or silence.
    pub fn looks_at_reports(&self) -> bool {
        let by_room = |unit: &Unit| unit.subscription.scheduling.is_by_room();
        self.spec.scheduling.failover.is_some() || self.units.values().any(by_room)
    }
}

/// A Subscription with what its feeds selected.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The declaration.
    pub subscription: Arc<Subscription>,
    /// What its feeds selected, before overrides.
    pub base: Arc<Base>,
    /// Errors that hold the whole unit, on every cluster. Not empty: the unit keeps what is published.
    /// They stand in load's findings too.
    pub blocked: Vec<Finding>,
}

/// A unit's objects before overrides.
#[derive(Clone, Debug)]
pub struct Base {
    /// In feed order, then by (path, document), each object once.
    pub objects: Vec<Arc<ManifestObject>>,
    /// Over the objects' digests, in order.
    pub digest: Digest,
    workloads: OnceLock<Arc<Workloads>>,
}

/// One object as a manifest declares it.
#[derive(Clone, PartialEq)]
pub struct ManifestObject {
    /// Which object.
    pub key: ObjectKey,
    /// `apiVersion`, whole.
    pub api_version: String,
    /// File it stands in.
    pub file: Arc<str>,
    /// Line of its document's first key, from 1.
    pub line: u32,
    /// The parsed object. For an encrypted document: what can be read of it (kind, name, labels).
    pub value: Arc<Value>,
    /// The document's own text where it is encrypted (SOPS): these bytes travel, never `value`.
    pub original: Option<Arc<str>>,
    /// The chart's files, of a HelmChart whose `spec.path` names a folder of the repository.
    pub chart: Option<Arc<ChartFiles>>,
    /// Over canonical `value`, or over `original` where there is one; over `chart` as well where there is one.
    pub digest: Digest,
}

impl Base {
    /// A Base over these objects, in this order.
    pub fn new(objects: Vec<Arc<ManifestObject>>) -> Self {
        let mut bytes = Vec::with_capacity(objects.len() * 32);
        for object in &objects {
            bytes.extend_from_slice(object.digest.as_bytes());
        }
        Self {
            objects,
            digest: Digest::of_bytes(&bytes),
            workloads: OnceLock::new(),
        }
    }

    /// What its objects of built-in kinds with replicas ask for; those that cannot be read are left out. Read once.
    pub fn workloads(&self) -> Arc<Workloads> {
        let read = |object: &Arc<ManifestObject>| {
            let path = replica_path(&object.key).filter(|_| !object.is_encrypted())?;
            Some((object.key.clone(), Workload::read(&object.value, &path).ok()?))
        };
        let workloads = || Arc::new(self.objects.iter().filter_map(read).collect());
        Arc::clone(self.workloads.get_or_init(workloads))
    }

    /// Whether it is the same in every way that a plan can see. The digest settles the values.
    pub fn is_same(&self, other: &Self) -> bool {
        let placed_alike = |(a, b): (&Arc<ManifestObject>, &Arc<ManifestObject>)| {
            Arc::ptr_eq(a, b) || (a.file == b.file && a.line == b.line)
        };
        self.digest == other.digest && self.objects.iter().zip(&other.objects).all(placed_alike)
    }

    /// A Base without objects.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }
}

/// Without what it says, which may be a Secret.
impl fmt::Debug for ManifestObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManifestObject")
            .field("key", &self.key)
            .field("api_version", &self.api_version)
            .field("file", &self.file)
            .field("line", &self.line)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

impl ManifestObject {
    /// The same HelmChart with its chart's files.
    pub(crate) fn with_chart(&self, chart: Arc<ChartFiles>) -> Self {
        let mut bytes = self.digest.as_bytes().to_vec();
        bytes.extend_from_slice(chart.digest().as_bytes());
        Self {
            digest: Digest::of_bytes(&bytes),
            chart: Some(chart),
            ..self.clone()
        }
    }

    /// Whether the document is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.original.is_some()
    }

    /// `metadata.labels` as text pairs; values that are not strings are left out.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.value.pointer("/metadata/labels").and_then(Value::as_object);
        let pairs = labels.into_iter().flatten();
        pairs
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    }
}
