//! Localization and Globalization: what differs from the Base, and where.

use std::fmt;
use std::sync::Arc;

use crate::model::Cluster;
use crate::name::ObjectKey;
use crate::selector::LabelSelector;

/// A Localization or Globalization.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// Which of the two, with its scope.
    pub kind: OverrideKind,
    /// `metadata.namespace`; empty for a Globalization.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// 0 to 1000, 500 by default; later (higher) wins.
    pub priority: i32,
    /// The one object it changes.
    pub feed: OverrideFeed,
    /// In list order.
    pub steps: Vec<OverrideStep>,
    /// File and line of the declaration.
    pub file: Arc<str>,
    /// See `file`.
    pub line: u32,
}

/// Which clusters an override meets.
#[derive(Clone, Debug, PartialEq)]
pub enum OverrideKind {
    /// The clusters whose namespace is the override's namespace.
    Localization,
    /// Every cluster that matches; all of them without a selector.
    Globalization {
        /// `spec.clusterAffinity`.
        cluster_affinity: Option<LabelSelector>,
    },
}

/// The object an override changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideFeed {
    /// `apiVersion`, whole; only the group decides.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty matches any.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// One step of an override.
#[derive(Clone, PartialEq)]
pub struct OverrideStep {
    /// `name`, for messages; may be empty.
    pub name: String,
    /// How `value` is meant.
    pub step_type: OverrideStepType,
    /// Whether it changes the HelmChart object rather than its values; for [`OverrideStepType::Helm`].
    pub override_chart: bool,
    /// YAML or JSON text, as written. Blank: the step does nothing.
    pub value: String,
    /// Line of the step, from 1.
    pub line: u32,
}

/// Without its value, which may be a Secret's.
impl fmt::Debug for OverrideStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverrideStep")
            .field("name", &self.name)
            .field("step_type", &self.step_type)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// How a step's value is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideStepType {
    /// Helm values: maps merge, everything else is replaced, null removes.
    Helm,
    /// RFC 6902.
    JsonPatch,
    /// RFC 7386.
    MergePatch,
    /// RFC 6902 on the text inside one string field.
    FieldJsonPatch {
        /// JSON pointer of the field.
        field_path: String,
        /// What the text is.
        format: FieldFormat,
    },
    /// RFC 7386 on the text inside one string field.
    FieldMergePatch {
        /// JSON pointer of the field.
        field_path: String,
        /// What the text is.
        format: FieldFormat,
    },
}

/// What the text inside a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldFormat {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

impl OverrideStepType {
    /// Its name in YAML.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Helm => "Helm",
            Self::JsonPatch => "JSONPatch",
            Self::MergePatch => "MergePatch",
            Self::FieldJsonPatch { .. } => "FieldJSONPatch",
            Self::FieldMergePatch { .. } => "FieldMergePatch",
        }
    }

    /// The field whose text it changes, and what that text is; `None` where it changes the object itself.
    pub fn field(&self) -> Option<(&str, FieldFormat)> {
        match self {
            Self::Helm | Self::JsonPatch | Self::MergePatch => None,
            Self::FieldJsonPatch { field_path, format } | Self::FieldMergePatch { field_path, format } => {
                Some((field_path, *format))
            }
        }
    }
}

impl FieldFormat {
    /// Its name in YAML.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yaml => "YAML",
            Self::Json => "JSON",
        }
    }
}

impl Override {
    /// `Localization namespace/name` or `Globalization name`, for messages and reasons.
    pub fn label(&self) -> String {
        match self.kind {
            OverrideKind::Localization => format!("Localization {}/{}", self.namespace, self.name),
            OverrideKind::Globalization { .. } => format!("Globalization {}", self.name),
        }
    }

    /// What orders overrides: Globalizations before Localizations, then priority, namespace and name. The
    /// later wins.
    pub fn order_key(&self) -> (bool, i32, &str, &str) {
        let localization = self.kind == OverrideKind::Localization;
        (localization, self.priority, &self.namespace, &self.name)
    }

    /// Whether it applies to this cluster.
    pub fn meets(&self, cluster: &Cluster) -> bool {
        match &self.kind {
            OverrideKind::Localization => self.namespace == cluster.namespace,
            OverrideKind::Globalization { cluster_affinity } => cluster_affinity
                .as_ref()
                .is_none_or(|selector| selector.matches(&cluster.labels)),
        }
    }
}

impl OverrideFeed {
    /// Whether this is the object it changes. Any version of its group is, and without a namespace any
    /// namespace is.
    pub fn selects(&self, key: &ObjectKey) -> bool {
        key.is_named(&self.api_version, &self.kind, &self.namespace, &self.name)
    }
}
