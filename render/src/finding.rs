//! What is wrong in a fleet repository, and where: the user's mistakes as data.

use serde::{Deserialize, Serialize};

use crate::name::{ClusterName, UnitKey};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Worth knowing; nothing is held back.
    Info,
    /// Probably a mistake; nothing is held back.
    Warning,
    /// Whatever the finding names keeps its last good content.
    Error,
}

/// One mistake or notice, with the place to look at.
///
/// Ordered by file, line, field and message, so that a list of findings is the same whatever order files
/// were read in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Path from the root of the repository; empty when no single file is at fault.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Line in that file, from 1; 0 when unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
    /// Field path such as `spec.feeds[0].name`; empty when the whole document is meant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// How bad it is.
    pub severity: Severity,
    /// A stable CamelCase word for tools: `UnknownField`, `FeedMatchesNothing`.
    pub reason: String,
    /// What is wrong, lower case, no full stop, never with a secret value.
    pub message: String,
    /// What to do about it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The unit that is held by it, where one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitKey>,
    /// The cluster it is about, or the first of them; `None` where it is about all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterName>,
    /// The other clusters it is about, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_on: Vec<ClusterName>,
}

fn is_zero(line: &u32) -> bool {
    *line == 0
}

impl Finding {
    /// A finding without a place; the `at`, `field`, `hint`, `unit` and `cluster` methods add to it.
    pub fn new(severity: Severity, reason: &str, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if let Some((end, _)) = message.char_indices().nth(crate::limits::MESSAGE_CHARS_MAX) {
            message.truncate(end);
        }
        Self {
            file: String::new(),
            line: 0,
            field: String::new(),
            severity,
            reason: reason.to_owned(),
            message,
            hint: String::new(),
            unit: None,
            cluster: None,
            also_on: Vec::new(),
        }
    }

    /// An error: what it names keeps its last good content.
    pub fn error(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, reason, message)
    }

    /// A warning: nothing is held back.
    pub fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, reason, message)
    }

    /// A notice.
    pub fn info(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, reason, message)
    }

    /// Sets file and line (0: unknown).
    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: u32) -> Self {
        self.file = file.into();
        self.line = line;
        self
    }

    /// Sets the field path.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Sets the unit that is held by it.
    #[must_use]
    pub fn unit(mut self, unit: &UnitKey) -> Self {
        self.unit = Some(unit.clone());
        self
    }

    /// Sets the cluster it is about.
    #[must_use]
    pub fn cluster(mut self, cluster: &ClusterName) -> Self {
        self.cluster = Some(cluster.clone());
        self
    }

    /// Sets the clusters it is about, which are sorted; without any, it is about all.
    #[must_use]
    pub fn clusters<'a>(mut self, clusters: impl IntoIterator<Item = &'a ClusterName>) -> Self {
        let mut clusters = clusters.into_iter().cloned();
        self.cluster = clusters.next();
        self.also_on = clusters.collect();
        self
    }

    /// Whether it is about a cluster.
    pub fn concerns(&self, cluster: &ClusterName) -> bool {
        let is_it = |first: &ClusterName| first == cluster || self.also_on.binary_search(cluster).is_ok();
        self.cluster.as_ref().is_none_or(is_it)
    }

    /// Whether it holds something back.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}", self.file)?;
            if self.line > 0 {
                write!(f, ":{}", self.line)?;
            }
            write!(f, ": ")?;
        }
        let severity = match self.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}: ")?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}", self.message)?;
        if let Some(cluster) = &self.cluster {
            write!(f, " (cluster {cluster})")?;
        }
        if !self.hint.is_empty() {
            write!(f, "\n  hint: {}", self.hint)?;
        }
        Ok(())
    }
}
