//! Which objects have replicas to divide, and how many the Base asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::capacity::{ReplicaPath, Workload, WorkloadError, replica_path};
use crate::finding::Finding;
use crate::fleet::{ManifestObject, Unit};
use crate::model::{DeclaredReplicas, Dividing, Scheduling, Subscription};
use crate::name::ObjectKey;
use crate::schedule::ledger::Workloads;

/// Which objects of a unit are divided.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Divided {
    how: Option<Dividing>,
    declared: Vec<DeclaredReplicas>,
}

impl Divided {
    /// None is.
    pub fn none() -> Self {
        Self::default()
    }

    /// Those that the Subscription divides.
    pub fn of(subscription: &Subscription) -> Self {
        match subscription.scheduling {
            Scheduling::Replication => Self::none(),
            Scheduling::Dividing(how) => Self {
                how: Some(how),
                declared: subscription.placing.replica_paths.clone(),
            },
        }
    }

    /// What the Subscription declares of kinds that are not built in.
    pub fn declared(&self) -> &[DeclaredReplicas] {
        &self.declared
    }

    /// Where an object says its replicas, if it is divided: Deployment, StatefulSet and ReplicaSet, what the
    /// Subscription declares, and by room also Job and ReplicationController, which Clusternet leaves whole.
    pub fn path(&self, key: &ObjectKey) -> Option<ReplicaPath> {
        let how = self.how?;
        if let Some(declared) = declared_path(&self.declared, key) {
            return Some(declared);
        }
        let is_dynamic = matches!(how, Dividing::Dynamic(_));
        let is_static = matches!(key.kind.as_str(), "Deployment" | "StatefulSet" | "ReplicaSet");
        replica_path(key).filter(|_| is_static || is_dynamic)
    }
}

fn declared_path(declared: &[DeclaredReplicas], key: &ObjectKey) -> Option<ReplicaPath> {
    declared.iter().find(|item| item.is_of(key)).map(|item| ReplicaPath {
        replicas: item.replicas.clone(),
        template: item.template.clone(),
    })
}

/// Where an object of a unit says its replicas, divided or not.
pub fn replica_path_of(subscription: &Subscription, key: &ObjectKey) -> Option<ReplicaPath> {
    declared_path(&subscription.placing.replica_paths, key).or_else(|| replica_path(key))
}

/// Divided object → desired replicas; empty without dividing.
///
/// # Errors
///
/// Findings with the objects' files where a number cannot be read: the unit must then stay as it is.
pub(super) fn desired_of(unit: &Unit, divided: &Divided) -> Result<BTreeMap<ObjectKey, u64>, Vec<Finding>> {
    let mut desired = BTreeMap::new();
    let mut findings = Vec::new();
    for object in &unit.base.objects {
        let Some(path) = divided.path(&object.key) else {
            continue;
        };
        match read(object, &path) {
            Ok(workload) => {
                desired.insert(object.key.clone(), workload.replicas);
            }
            Err(finding) => findings.push(finding.unit(&unit.subscription.key)),
        }
    }
    if findings.is_empty() {
        Ok(desired)
    } else {
        Err(findings)
    }
}

/// What each object of a unit with replicas asks for, before overrides; those that cannot be read are left out.
pub fn workloads_of(unit: &Unit) -> Arc<Workloads> {
    let built_in = unit.base.workloads();
    let declared = &unit.subscription.placing.replica_paths;
    if declared.is_empty() {
        return built_in;
    }
    let mut workloads = built_in.as_ref().clone();
    for object in &unit.base.objects {
        let path = declared_path(declared, &object.key);
        if let Some(workload) = path.and_then(|path| Workload::read(&object.value, &path).ok()) {
            workloads.insert(object.key.clone(), workload);
        }
    }
    Arc::new(workloads)
}

fn read(object: &ManifestObject, path: &ReplicaPath) -> Result<Workload, Box<Finding>> {
    let replicas = path.replicas.trim_start_matches('/').replace('/', ".");
    let refuse = |reason, field: &str, what: &str| {
        let message = format!("the replicas of {} {} {what}", object.key.kind, object.key.name);
        Finding::error(reason, message)
            .at(object.file.as_ref(), object.line)
            .field(field.to_owned())
    };
    if object.is_encrypted() {
        let what = "cannot be divided, since the document is encrypted";
        let hint = "keep the workload in plain text and its secrets in a Secret of their own";
        return Err(Box::new(refuse("EncryptedReplicas", &replicas, what).hint(hint)));
    }
    Workload::read(&object.value, path).map_err(|error| {
        Box::new(match error {
            WorkloadError::Replicas(_) => {
                let what = "are not a whole number from 0 to 2147483647";
                refuse("InvalidReplicas", &replicas, what).hint("write the number without quotes")
            }
            WorkloadError::Template(field) => {
                let field = field.trim_start_matches('/').replace('/', ".");
                refuse(
                    "InvalidTemplate",
                    &field,
                    "cannot be placed by room: its pod template cannot be read",
                )
            }
        })
    })
}
