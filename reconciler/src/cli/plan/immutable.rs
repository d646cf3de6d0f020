//! What the API server will refuse, since a field of the object cannot change: a Warning where the object is declared.

use std::collections::{BTreeMap, BTreeSet};

use render::plan::Fixed;
use render::{ClusterName, Finding, Fleet, UnitKey};

use super::compare::{Group, UnitChange};
use super::lines::object_name;

/// One for each object and clusters that differ alike.
pub(super) fn findings(units: &[UnitChange], fleet: &Fleet) -> Vec<Finding> {
    let mut refused: BTreeMap<(&UnitKey, &Fixed), BTreeSet<&ClusterName>> = BTreeMap::new();
    for unit in units {
        for Group {
            clusters, immutable, ..
        } in &unit.groups
        {
            for fixed in immutable.iter().filter(|fixed| !fixed.objection.is_empty()) {
                refused.entry((&unit.unit, fixed)).or_default().extend(clusters);
            }
        }
    }
    let refused = refused.into_iter();
    refused
        .map(|((unit, fixed), clusters)| finding(unit, fixed, clusters, fleet))
        .collect()
}

fn finding(unit: &UnitKey, fixed: &Fixed, clusters: BTreeSet<&ClusterName>, fleet: &Fleet) -> Finding {
    let verb = if fixed.fields.len() == 1 { "differs" } else { "differ" };
    let message = format!(
        "{} of {} {verb} and cannot change: the API server will refuse it, and the object stays as it is",
        fixed.fields.join(", "),
        object_name(&fixed.object)
    );
    let finding = Finding::warning("ImmutableField", message).hint(fixed.objection.trim_start_matches("hint: "));
    let declared = fleet.units.get(unit);
    let manifest = declared.and_then(|unit| unit.base.objects.iter().find(|object| object.key == fixed.object));
    let finding = match manifest {
        Some(object) => finding.at(object.file.as_ref(), object.line),
        None => finding,
    };
    finding.unit(unit).clusters(clusters)
}
