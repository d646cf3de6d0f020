//! HealthRule: how the health of a kind is judged in every unit that has it.

use std::sync::Arc;

use super::HealthCheck;

/// Kind HealthRule. Its spec is the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthRule {
    /// `metadata.name`.
    pub name: String,
    /// `spec`.
    pub check: HealthCheck,
    /// File and line of the declaration.
    pub file: Arc<str>,
    /// See `file`.
    pub line: u32,
}
