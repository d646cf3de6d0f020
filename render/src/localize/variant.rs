//! A Base after one set of overrides.

use std::sync::Arc;

use crate::describe::Description;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Base;
use crate::localize::object;
use crate::model::Override;
use crate::name::VariantName;
use crate::schedule::Divided;

/// The name of the variant that these overrides make: `default` without any, else 8 hex digits over
/// their labels in order. Names and never content, so that a changed override reads as a change.
pub fn variant_name(overrides: &[&Arc<Override>]) -> VariantName {
    if overrides.is_empty() {
        return VariantName::default_variant();
    }
    let labels: Vec<String> = overrides.iter().map(|meets| meets.label()).collect();
    let digest = Digest::of_bytes(labels.join("\n").as_bytes());
    VariantName::parse(digest.short(8)).unwrap_or_else(|_| VariantName::default_variant())
}

/// Describes a Base after these overrides, which are in the order in which they apply. `divided` says that
/// scheduling divides the unit's replicas, which no override may then set.
///
/// # Errors
///
/// One finding per object that an override does not fit, each an Error at the step's file and line.
/// Whoever asked adds unit and clusters.
pub fn localize(base: &Base, overrides: &[&Arc<Override>], divided: &Divided) -> Result<Description, Vec<Finding>> {
    debug_assert!(
        overrides.is_sorted_by_key(|meets| meets.order_key()),
        "overrides come in the order in which they apply"
    );
    let mut objects = Vec::with_capacity(base.objects.len());
    let mut findings = Vec::new();
    for object in &base.objects {
        let selects = |meets: &&&Arc<Override>| meets.feed.selects(&object.key);
        let chosen: Vec<&Override> = overrides.iter().filter(selects).map(|meets| meets.as_ref()).collect();
        match object::localize(object, &chosen, divided) {
            Ok(described) => objects.push(described),
            Err(finding) => findings.push(*finding),
        }
    }
    if findings.is_empty() {
        Description::new(objects).map_err(|error| vec![Finding::error("DuplicateObject", error.to_string())])
    } else {
        Err(findings)
    }
}
