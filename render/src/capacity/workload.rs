//! What of an object are replicas of pods.

use serde_json::Value;

use super::requirements::PodRequirements;
use crate::name::ObjectKey;
use crate::shared::Shared;

/// Where an object says how many replicas it has, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaPath {
    /// JSON pointer of the number.
    pub replicas: String,
    /// JSON pointer of the pod template; `None` where it has none that can be read.
    pub template: Option<String>,
}

/// An object with replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// How many it asks for.
    pub replicas: u64,
    /// What each of them asks for.
    pub requirements: Shared<PodRequirements>,
}

/// An object whose replicas cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// The number is none.
    #[error("{0} is not a whole number from 0 to 2147483647")]
    Replicas(String),
    /// The pod template has a field that cannot be read.
    #[error("{0} cannot be read")]
    Template(String),
}

/// Where the built-in kinds have it: Deployment, StatefulSet and ReplicaSet, in `apps` and in the group they came
/// from, ReplicationController, and Job, whose parallelism is divided.
pub fn replica_path(key: &ObjectKey) -> Option<ReplicaPath> {
    let replicas = match (key.group.as_str(), key.kind.as_str()) {
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet")
        | ("extensions", "Deployment" | "ReplicaSet")
        | ("", "ReplicationController") => "/spec/replicas",
        ("batch", "Job") => "/spec/parallelism",
        _ => return None,
    };
    Some(ReplicaPath {
        replicas: replicas.to_owned(),
        template: Some("/spec/template".to_owned()),
    })
}

impl Workload {
    /// Reads an object. Without a number it asks for one.
    pub fn read(object: &Value, path: &ReplicaPath) -> Result<Self, WorkloadError> {
        let replicas = match object.pointer(&path.replicas) {
            None | Some(Value::Null) => 1,
            Some(number) => number
                .as_u64()
                .filter(|replicas| i32::try_from(*replicas).is_ok())
                .ok_or_else(|| WorkloadError::Replicas(path.replicas.clone()))?,
        };
        let template = path.template.as_ref().and_then(|pointer| object.pointer(pointer));
        let requirements = match template {
            Some(template) => PodRequirements::read(template).map_err(|field| {
                WorkloadError::Template(format!("{}{field}", path.template.as_deref().unwrap_or_default()))
            })?,
            None => PodRequirements::default(),
        };
        Ok(Self {
            replicas,
            requirements: requirements.into(),
        })
    }
}
