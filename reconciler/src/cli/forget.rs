//! `flotilla forget`: the commit that gives up a cluster whose file is gone.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use render::ClusterName;
use serde_json::Value;

use super::client::{GROUP, JSON, ServerOptions, failed};
use super::clone::{Change, CloneOptions};
use super::conditions::condition;
use super::{output, wait_for};
use crate::hub::FORGET_CLUSTER;

/// Commit that a cluster whose file is gone is remembered no more: what is left there stays, whatever its file said, and
/// its agent is a stranger from then on.
#[derive(Debug, Args)]
pub(super) struct Forget {
    /// The cluster.
    cluster: ClusterName,
    #[command(flatten)]
    clone: CloneOptions,
    #[command(flatten)]
    server: ServerOptions,
}

pub(super) fn run(arguments: &Forget) -> anyhow::Result<ExitCode> {
    let clone = arguments.clone.open()?;
    let cluster = &arguments.cluster;
    let list = match wait_for(arguments.server.value(&format!("{GROUP}/managedclusters"), JSON))? {
        Ok(list) => list,
        Err(error) => {
            let code = failed(&error);
            output::tell(&format!(
                "hint: without a hub, the commit is git commit --allow-empty -m 'Forget cluster {cluster}' --trailer '{FORGET_CLUSTER}: {cluster}'\n"
            ));
            return Ok(code);
        }
    };
    let left = left(&list, cluster)?;
    output::tell(&format!("Cluster {cluster} is {}\n", output::visible(&left)));
    let change = Change {
        edits: Vec::new(),
        subject: format!("Forget cluster {cluster}"),
        body: String::new(),
        trailers: vec![(FORGET_CLUSTER, cluster.to_string())],
    };
    arguments.clone.commit(&clone, &change)
}

/// What the hub says of a cluster that left.
fn left(list: &Value, cluster: &ClusterName) -> anyhow::Result<String> {
    let clusters = list["items"].as_array().into_iter().flatten();
    let mut named = clusters.filter(|found| found["metadata"]["name"] == cluster.as_str());
    let Some(found) = named.next() else {
        bail!("the hub remembers no cluster {cluster}; hint: flotilla get clusters shows those that it knows");
    };
    let ready = condition(found, "Ready");
    let text = |field: &str| ready.and_then(|ready| ready[field].as_str()).unwrap_or_default();
    if text("reason") != "Leaving" {
        bail!(
            "cluster {cluster} is registered; hint: remove its file first, and spec.deletionPolicy in it says what becomes of its objects"
        );
    }
    Ok(text("message").to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_cluster_whose_file_is_gone_can_be_forgotten() {
        let cluster = |name: &str, reason: &str| {
            let message = "registered no more since then";
            json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "reason": reason, "message": message}]}})
        };
        let list = json!({"items": [cluster("oslo", "Leaving"), cluster("bergen", "Ready")]});
        let ask = |name: &str| left(&list, &ClusterName::parse(name).expect("a valid cluster"));
        assert_eq!(ask("oslo").ok().as_deref(), Some("registered no more since then"));
        let registered = ask("bergen").map_err(|error| error.to_string());
        assert!(registered.is_err_and(|words| words.contains("remove its file first")));
        let unknown = ask("paris").map_err(|error| error.to_string());
        assert!(unknown.is_err_and(|words| words.contains("remembers no cluster paris")));
    }
}
