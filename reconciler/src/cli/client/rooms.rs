//! What room clusters have, as a hub tells it, or as a record of its answer has it.

use anyhow::bail;
use render::schedule::{Reports, doubt};
use serde_json::Value;

use super::GROUP;

/// Where the hub tells it.
pub(in crate::cli) fn path() -> String {
    format!("{GROUP}/rooms")
}

/// What stands in an answer or a record. A cluster whose word cannot be is one that nobody relies on.
pub(in crate::cli) fn reports(answer: Value) -> anyhow::Result<Reports> {
    if !answer["clusters"].is_object() {
        bail!("it has no field clusters");
    }
    let mut reports: Reports = serde_json::from_value(answer)?;
    for report in reports.clusters.values_mut() {
        report.doubt = doubt(&report.capacity).or(report.doubt.take());
    }
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_word_of_another_version_is_not_relied_on() {
        let capacity = json!({ "version": 99, "nodes": [] });
        let read = reports(json!({ "clusters": { "a": { "capacity": capacity, "at": 1 } } })).expect("it is a record");
        let doubts: Vec<_> = read.clusters.into_values().filter_map(|report| report.doubt).collect();
        assert_eq!(
            doubts,
            ["what it says of its room cannot be: capacity of version 99 cannot be read"]
        );
    }
}
