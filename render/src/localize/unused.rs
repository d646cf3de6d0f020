//! Overrides that do nothing, which people take for a mistake of the program.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::model::{Override, OverrideKind};
use crate::name::ObjectKey;

/// A Warning for every override that meets no cluster, or whose object no unit delivers.
///
/// While a unit is blocked its Base may be incomplete, so nothing is said of objects then.
pub fn unused(fleet: &Fleet) -> Vec<Finding> {
    let objects = delivered(fleet);
    let complete = fleet.units.values().all(|unit| unit.blocked.is_empty());
    let finding = |item: &Override| {
        if !fleet.clusters.values().any(|cluster| item.meets(cluster)) {
            Some(meets_no_cluster(item))
        } else if complete && !is_delivered(&objects, item) {
            Some(changes_nothing(item))
        } else {
            None
        }
    };
    fleet.overrides.iter().filter_map(|item| finding(item)).collect()
}

type ByName<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a ObjectKey>>;

fn delivered(fleet: &Fleet) -> ByName<'_> {
    let mut by_name = ByName::new();
    for key in fleet
        .units
        .values()
        .flat_map(|unit| &unit.base.objects)
        .map(|object| &object.key)
    {
        by_name.entry((&key.kind, &key.name)).or_default().push(key);
    }
    by_name
}

fn is_delivered(objects: &ByName<'_>, item: &Override) -> bool {
    let named = objects.get(&(item.feed.kind.as_str(), item.feed.name.as_str()));
    named.into_iter().flatten().any(|key| item.feed.selects(key))
}

fn meets_no_cluster(item: &Override) -> Finding {
    let (field, why, hint) = match item.kind {
        OverrideKind::Localization => (
            "metadata.namespace",
            "no cluster has this namespace",
            "a Localization stands in its cluster's namespace, which is the cluster's name unless its file says otherwise",
        ),
        OverrideKind::Globalization { .. } => ("spec.clusterAffinity", "no cluster matches", ""),
    };
    Finding::warning(
        "OverrideMeetsNoCluster",
        format!("{} does nothing: {why}", item.label()),
    )
    .at(item.file.as_ref(), item.line)
    .field(field)
    .hint(hint)
}

fn changes_nothing(item: &Override) -> Finding {
    let message = format!("{} does nothing: no Subscription delivers its object", item.label());
    Finding::warning("OverrideMatchesNothing", message)
        .at(item.file.as_ref(), item.line)
        .field("spec.feed")
        .hint("compare group, kind, namespace and name with the manifest")
}
