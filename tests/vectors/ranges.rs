//! Where a cluster's pods and Services have their addresses.

use reconciler::apply::facts::cidr::Sources;
use serde_json::{Value, json};

use super::fleet::text;

/// Asks a pod of the control plane, with the flags in its command and in its arguments alike.
pub(super) fn found(input: &Value) -> Value {
    let answers = ["command", "args"].map(|field| {
        let container = json!({ "name": input["pod"], field: input["flags"] });
        let pods = [json!({ "spec": { "containers": [container] } })];
        let sources = Sources {
            pods: &pods,
            ..Sources::default()
        };
        match text(&input["wanted"]).as_str() {
            "pod" => sources.pods(),
            _ => sources.services(),
        }
    });
    assert_eq!(answers[0], answers[1], "a flag may stand in either");
    json!({ "cidr": answers[0].join(",") })
}
