//! Which kinds are served. In: the table of built-in kinds, and definitions of custom resources. Out: a
//! [`Kind`] for a path, and the discovery documents.

mod builtin;
mod custom;
mod discovery;

use std::sync::Arc;

use serde_json::Value;

use crate::schema::Shape;

pub(crate) use builtin::builtin_kinds;
pub(crate) use custom::from_definition;
pub(crate) use discovery::{aggregated, group_list, group_of, legacy_core, resource_list};

/// A kind as one version of its group serves it.
#[derive(Debug)]
pub(crate) struct Kind {
    pub group: Box<str>,
    pub version: Box<str>,
    pub kind: Box<str>,
    pub plural: Box<str>,
    pub singular: Box<str>,
    pub namespaced: bool,
    pub short_names: Vec<Box<str>>,
    pub categories: Vec<Box<str>>,
    pub verbs: Vec<Box<str>>,
    pub subresources: Vec<Box<str>>,
    pub shape: Shape,
    /// The name of the built-in type; none for custom resources.
    pub type_name: Option<&'static str>,
    /// Where its objects are kept: the same for all versions.
    pub shelf: Arc<str>,
    /// What a definition says beyond that.
    pub custom: Option<Custom>,
}

/// What only custom resources have.
#[derive(Debug)]
pub(crate) struct Custom {
    /// Name and JSON path and the like of the columns that tables show.
    pub columns: Vec<Value>,
    /// Paths of the scale subresource.
    pub scale: Option<Value>,
}

impl Kind {
    /// `apps/v1`, or `v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|subresource| &**subresource == name)
    }

    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        &*self.group == group && &*self.kind == kind
    }

    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|able| &**able == verb)
    }
}
