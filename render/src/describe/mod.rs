//! Description: what one variant of a unit is, object by object, and the bytes it travels as.
//! Next room: [`crate::plan`].
//!
//! In: objects after overrides. Out: a [`Description`] with its digest, its bytes, and its objects with a
//! placement's replicas put in. Which cluster gets it is deliberately not here.

mod object;
mod replicas;
mod trim;
mod wire;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chart::ChartFiles;
use crate::digest::Digest;
use crate::model::ApplyPolicy;
use crate::name::ObjectKey;

pub use object::{is_chart, key_of};
pub use trim::trim;
pub use wire::InvalidDescription;

pub(crate) use object::is_encrypted;
pub(crate) use replicas::set_replicas;
pub(crate) use trim::{SERVER_POINTERS, strip_server_fields};

/// One variant of a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Sorted by key, each key once.
    pub objects: Vec<DescribedObject>,
    /// How they are applied.
    pub apply: ApplyPolicy,
    /// Over the objects' content and `apply`; provenance is no part of it.
    pub digest: Digest,
    /// Length of the bytes it travels as.
    pub bytes: usize,
}

/// One object after overrides.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedObject {
    /// Which object.
    pub key: ObjectKey,
    /// What it says.
    pub content: Content,
    /// Which override set which field; sorted by field, the last writer of each.
    pub provenance: Vec<Provenance>,
}

/// What an object says, as it travels and is digested.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", untagged)]
pub enum Content {
    /// A HelmChart whose chart stands in the repository, with the chart's files. First, since a plain document is read
    /// out of anything that has an object.
    Chart {
        /// The whole HelmChart.
        object: Arc<Value>,
        /// The chart.
        files: Arc<ChartFiles>,
    },
    /// A document in plain text.
    Plain {
        /// The whole object.
        object: Arc<Value>,
    },
    /// An encrypted document: its original text, and overrides to apply after decryption.
    Encrypted {
        /// Which object it is: whoever carries it cannot read it.
        key: ObjectKey,
        /// The document as it stands in source.
        original: Arc<str>,
        /// Steps in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        overrides: Vec<CarriedStep>,
    },
}

/// An override step on an encrypted document, carried along.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedStep {
    /// `JSONPatch`, `MergePatch`, `FieldJSONPatch` or `FieldMergePatch`.
    #[serde(rename = "type")]
    pub step_type: String,
    /// The patch, parsed.
    pub value: Value,
    /// Field path of a Field patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// `YAML` or `JSON`, of a Field patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_format: Option<String>,
}

/// Which override set a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// JSON pointer in the object.
    pub field: String,
    /// The override's label.
    pub by: String,
    /// Its file and line, `path:line`.
    pub at: String,
}

impl Content {
    /// The whole object, where it can be read.
    pub fn object(&self) -> Option<&Arc<Value>> {
        match self {
            Self::Chart { object, .. } | Self::Plain { object } => Some(object),
            Self::Encrypted { .. } => None,
        }
    }
}

/// Without what it says, which may be a Secret.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chart { files, .. } => f.debug_struct("Chart").field("files", files).finish_non_exhaustive(),
            Self::Plain { .. } => f.debug_struct("Plain").finish_non_exhaustive(),
            Self::Encrypted { key, .. } => f.debug_struct("Encrypted").field("key", key).finish_non_exhaustive(),
        }
    }
}

/// Without its value, which may be a Secret's.
impl fmt::Debug for CarriedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CarriedStep")
            .field("step_type", &self.step_type)
            .field("field_path", &self.field_path)
            .finish_non_exhaustive()
    }
}
