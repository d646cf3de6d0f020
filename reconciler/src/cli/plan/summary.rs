//! How much a plan changes: the line that a reviewer reads first.

use std::collections::BTreeSet;

use render::plan::Change;
use render::{Finding, Severity};
use serde::Serialize;

use super::compare::UnitChange;

/// How much a plan changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// Units that change, new ones included and removed ones not.
    pub(super) units: usize,
    /// Clusters on which anything changes.
    pub(super) clusters: usize,
    /// Units that leave every cluster they change on.
    pub(super) removed_units: usize,
    /// Objects that leave a cluster, counted once per cluster.
    pub(super) removed_objects: usize,
    /// Objects that leave a unit and stay in the cluster, counted once per cluster.
    pub(super) kept_objects: usize,
    /// Objects that another unit has from now on, counted once per cluster.
    pub(super) moved_objects: usize,
    /// Findings that hold something back.
    pub(super) errors: usize,
    /// Findings that do not.
    pub(super) warnings: usize,
}

impl Summary {
    pub(super) fn of(units: &[UnitChange], findings: &[Finding]) -> Self {
        let groups = || units.iter().flat_map(|unit| &unit.groups);
        let clusters: BTreeSet<_> = groups().flat_map(|group| &group.clusters).collect();
        let removed = units.iter().filter(|unit| unit.removed).count();
        let count = |is_it: fn(&Change) -> bool| -> usize {
            let of_group = |group: &super::compare::Group| {
                let objects = group.objects.iter();
                objects.filter(|object| is_it(&object.change)).count() * group.clusters.len()
            };
            groups().map(of_group).sum()
        };
        let of = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        Self {
            units: units.len() - removed,
            clusters: clusters.len(),
            removed_units: removed,
            removed_objects: count(|change| *change == Change::Removed),
            kept_objects: count(|change| matches!(change, Change::Kept(_))),
            moved_objects: count(|change| matches!(change, Change::MovedTo(_))),
            errors: of(Severity::Error),
            warnings: of(Severity::Warning),
        }
    }

    /// In one line.
    pub(super) fn line(&self) -> String {
        let mut parts = Vec::new();
        let clusters = counted(self.clusters, "cluster", "clusters");
        match (self.units, self.removed_units) {
            (0, 0) => parts.push("nothing changes".to_owned()),
            (0, removed) => parts.push(format!(
                "{} removed, on {clusters}",
                counted(removed, "unit is", "units are")
            )),
            (units, removed) => {
                parts.push(format!(
                    "{} on {clusters}",
                    counted(units, "unit changes", "units change")
                ));
                if removed > 0 {
                    parts.push(format!("{} removed", counted(removed, "unit is", "units are")));
                }
            }
        }
        if self.removed_objects > 0 {
            parts.push(format!(
                "{} removed",
                counted(self.removed_objects, "object is", "objects are")
            ));
        }
        for (count, word) in [
            (self.kept_objects, "left in the cluster"),
            (self.moved_objects, "moved"),
        ] {
            if count > 0 {
                parts.push(format!("{} {word}", counted(count, "object is", "objects are")));
            }
        }
        let line = parts.join(", ");
        let mut found = Vec::new();
        if self.errors > 0 {
            found.push(counted(self.errors, "error", "errors"));
        }
        if self.warnings > 0 {
            found.push(counted(self.warnings, "warning", "warnings"));
        }
        let found = if found.is_empty() {
            String::new()
        } else {
            format!("; {}", found.join(", "))
        };
        let mut chars = line.chars();
        let first = chars.next().map(|first| first.to_ascii_uppercase());
        format!("{}{}{found}.", first.into_iter().collect::<String>(), chars.as_str())
    }
}

/// `1 unit`, `2 units`.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
