//! What differs, as text for people.

use std::collections::BTreeSet;

use render::plan::UnplacedChange;
use render::suppose::{ClusterShift, Simulation, UnitShift};
use render::{ByObject, ObjectKey};

use crate::cli::output::{counted, visible, write};
use crate::cli::plan::{in_sight, object_name, unplaced_words};

pub(super) fn text(simulation: &Simulation) -> String {
    let clusters: BTreeSet<_> = simulation
        .units
        .iter()
        .flat_map(|unit| unit.clusters.iter().map(|shift| &shift.cluster))
        .collect();
    let mut text = match simulation.units.len() {
        0 if simulation.is_nothing() => "Nothing differs.\n".to_owned(),
        0 => "No unit differs, but more would be wrong.\n".to_owned(),
        1 => format!("1 unit differs, on {}.\n", counted(clusters.len(), "cluster")),
        units => format!("{units} units differ, on {}.\n", counted(clusters.len(), "cluster")),
    };
    for unit in &simulation.units {
        write_unit(&mut text, unit);
    }
    for (index, finding) in simulation.findings.iter().enumerate() {
        let blank = if index == 0 { "\n" } else { "" };
        write(&mut text, format_args!("{blank}{}\n", in_sight(finding)));
    }
    text
}

fn write_unit(text: &mut String, unit: &UnitShift) {
    write(text, format_args!("\n{}\n", unit.unit));
    for shift in &unit.clusters {
        let sign = match (&shift.from, &shift.to) {
            (None, _) => '+',
            (_, None) => '-',
            (Some(_), Some(_)) => '~',
        };
        write(text, format_args!("  {sign} on {}{}\n", shift.cluster, words(shift)));
        for (object, from, to) in numbers(shift) {
            write(text, format_args!("      {}: {from} -> {to}\n", object_name(object)));
        }
        for reason in &shift.reasons {
            write(text, format_args!("        {}\n", visible(reason)));
        }
    }
    for (object, UnplacedChange { from, to }) in &unit.unplaced {
        let (from, to) = (unplaced_words(*from), unplaced_words(*to));
        write(
            text,
            format_args!("  ~ unplaced of {}: {from} -> {to}\n", object_name(object)),
        );
    }
}

fn words(shift: &ClusterShift) -> &'static str {
    if shift.other_overrides {
        " (by other overrides)"
    } else {
        ""
    }
}

/// The objects whose numbers differ.
fn numbers(shift: &ClusterShift) -> Vec<(&ObjectKey, String, String)> {
    let all = [&shift.from, &shift.to]
        .into_iter()
        .flatten()
        .flat_map(|replicas| replicas.keys());
    let number = |side: &Option<ByObject>, object| {
        let replicas = side.as_ref().and_then(|replicas| replicas.get(object));
        replicas.map_or_else(|| "none".to_owned(), u64::to_string)
    };
    let objects: BTreeSet<&ObjectKey> = all.collect();
    let both = |object| (object, number(&shift.from, object), number(&shift.to, object));
    objects
        .into_iter()
        .map(both)
        .filter(|(_, from, to)| from != to)
        .collect()
}
