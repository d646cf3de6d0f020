//! What an agent asks of its API server, counted by the API server itself.

use std::collections::BTreeMap;
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

/// A request as it is told from others; the resource version that a watch begins with is no part of it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::bench) struct Asked {
    verb: String,
    path: String,
}

/// The requests of a log by their ids, renewals of the lease aside: those go on whether or not anything changes.
pub(in crate::bench) fn of(log: &str) -> BTreeMap<String, Asked> {
    let events = log.lines().filter(|line| line.contains("\"auditID\""));
    let requests = events.filter_map(|line| {
        let event: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| event[name].as_str().map(str::to_owned);
        let path = text("requestURI")?.split('?').next()?.to_owned();
        let asked = Asked {
            verb: text("verb")?,
            path,
        };
        // A watch has two stages and is one request.
        (event["objectRef"]["resource"] != "leases").then_some((text("auditID")?, asked))
    });
    requests.collect()
}

/// How many of a log's requests write.
pub(in crate::bench) fn writes(log: &str) -> usize {
    let is_write = |asked: &&Asked| !["get", "list", "watch"].contains(&asked.verb.as_str());
    of(log).values().filter(is_write).count()
}
