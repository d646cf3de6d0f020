//! What an agent asks of its API server, counted by the API server itself.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Context as _;
use serde_json::Value;

use crate::{Options, scratch};

/// The user that agents are, so that their requests can be told from everybody else's.
pub(in crate::bench) const AGENT: &str = "flotilla-agent";

/// Nobody else's requests are written down, so that writing costs next to nothing.
const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [{"level": "Metadata", "users": ["flotilla-agent"]}, {"level": "None"}]
}"#;

/// Options of API servers that write the agent's requests to their logs.
pub(in crate::bench) fn audited(mut options: Options) -> anyhow::Result<Options> {
    let policy = scratch::folder("audit").join("policy.json");
    fs::write(&policy, POLICY).context("failed to write the audit policy")?;
    options.apiserver_flags = vec![
        format!("--audit-policy-file={}", policy.display()),
        "--audit-log-path=-".to_owned(),
    ];
    Ok(options)
}

/// The requests of a log, renewals of the lease aside: those go on whether or not anything changes.
pub(in crate::bench) fn count(log: &str) -> usize {
    count_such(log, |_| true)
}

/// Those of them that write.
pub(in crate::bench) fn writes(log: &str) -> usize {
    count_such(log, |verb| !["get", "list", "watch"].contains(&verb))
}

fn count_such(log: &str, such: impl Fn(&str) -> bool) -> usize {
    let events = log.lines().filter(|line| line.contains("\"auditID\""));
    let requests = events.filter_map(|line| {
        let event: Value = serde_json::from_str(line).ok()?;
        let is_renewal = event["objectRef"]["resource"] == "leases";
        let is_such = such(event["verb"].as_str().unwrap_or_default());
        // A watch has two stages and is one request.
        (!is_renewal && is_such).then(|| event["auditID"].to_string())
    });
    requests.collect::<BTreeSet<_>>().len()
}
