//! One question about objects that are to leave a cluster, and its answer: what goes or stays behind with each.

use render::ObjectKey;
use serde::{Deserialize, Serialize};

/// The question. Nothing is changed for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependantsQuestion {
    /// Which objects; at most as many as one question may have.
    pub objects: Vec<ObjectKey>,
}

/// The answer. Names and kinds, and never what an object says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dependants {
    /// What is known of each that is there and ours, in the order in which they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectDependants>,
    /// What was not looked at, or not to its end, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What goes or stays behind with an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectDependants {
    /// Which, as `group/Kind/namespace/name`.
    pub object: String,
    /// What has to be done before it is gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// What names it in `ownerReferences`, or names what does: it goes with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goes: Vec<Counted>,
    /// What names it there, and has another owner that stays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<Counted>,
    /// What is in a Namespace that nobody of the fleet manages: it goes with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strangers: Vec<Counted>,
    /// The objects of the kind that a CustomResourceDefinition defines: they go with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_resources: Option<Counted>,
    /// The volumes of the claims among all these, and what becomes of their data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<ClaimVolume>,
}

/// Objects of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counted {
    /// `Kind`, or `Kind.group`.
    pub kind: String,
    /// How many.
    pub count: usize,
    /// The first few by name, with their namespace where that is another one.
    pub names: Vec<String>,
}

/// A claim and the volume that it is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimVolume {
    /// The claim, `namespace/name`.
    pub claim: String,
    /// Its volume; empty where it is bound to none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub volume: String,
    /// `Delete`, `Retain` or `Recycle`; empty where it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reclaim_policy: String,
}

impl ObjectDependants {
    /// Whether there is anything to say of it.
    pub fn is_empty(&self) -> bool {
        let Self {
            object: _,
            finalizers,
            goes,
            stays,
            strangers,
            custom_resources,
            volumes,
        } = self;
        let lists = [goes, stays, strangers];
        finalizers.is_empty()
            && lists.iter().all(|list| list.is_empty())
            && custom_resources.is_none()
            && volumes.is_empty()
    }
}
