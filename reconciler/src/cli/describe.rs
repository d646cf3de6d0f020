//! `flotilla describe cluster`: one cluster and its tunnel, in words.

use std::process::ExitCode;

use clap::Args;
use render::time::rfc3339;
use serde_json::Value;

use super::client::{GROUP, JSON, ServerOptions, encoded, failed};
use super::{exit, output, wait_for};
use crate::words::age;

/// What to describe.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_ASKING)]
pub(super) struct Describe {
    /// `cluster` (`managedcluster`, `mcls`).
    #[arg(value_parser = kind)]
    kind: String,
    /// Its name.
    name: String,
    #[command(flatten)]
    server: ServerOptions,
}

fn kind(text: &str) -> Result<String, String> {
    match text {
        "cluster" | "clusters" | "managedcluster" | "managedclusters" | "mcls" => Ok(text.to_owned()),
        _ => Err("clusters alone are described; `flotilla explain` is for Subscriptions, `flotilla get -o yaml` for the rest".to_owned()),
    }
}

/// Describes.
pub(super) fn run(arguments: &Describe) -> anyhow::Result<ExitCode> {
    wait_for(async {
        let name = encoded(&arguments.name);
        let list = format!("{GROUP}/managedclusters?fieldSelector=metadata.name%3D{name}");
        let tunnel = format!("{GROUP}/managedclusters/{name}/tunnel");
        // The tunnel first: it knows whether there is such a cluster.
        let tunnel = match arguments.server.value(&tunnel, JSON).await {
            Ok(tunnel) => tunnel,
            Err(error) => return failed(&error),
        };
        match arguments.server.value(&list, JSON).await {
            Ok(list) => {
                let now = jiff::Timestamp::now().as_second();
                output::print(&told(&arguments.name, &list["items"][0], &tunnel, now));
                ExitCode::SUCCESS
            }
            Err(error) => failed(&error),
        }
    })
}

fn told(name: &str, cluster: &Value, tunnel: &Value, now: i64) -> String {
    let mut text = String::new();
    let mut put = |label: &str, value: &str| {
        output::write(
            &mut text,
            format_args!("{:<15}{}\n", format!("{label}:"), output::visible(value)),
        );
    };
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let moment = |value: &Value| {
        value
            .as_i64()
            .map(|at| format!("{} ago ({})", age(Some(at), now), rfc3339(at)))
    };
    let (status, seen) = (&cluster["status"], &tunnel["seen"]);
    put("Name", name);
    if let Some(session) = word(&status["session"]) {
        put("Session", &session);
    }
    if let Some(version) = word(&status["k8sVersion"]) {
        put("Kubernetes", &version);
    }
    if let Some(mode) = word(&cluster["spec"]["syncMode"]) {
        put("Sync mode", &mode);
    }
    let standing = &seen["tunnel"];
    match moment(&standing["since"]) {
        Some(since) => put("Connected", &since),
        None => match moment(&seen["lastEnd"]["at"]) {
            Some(at) => put("Away since", &at),
            None => put("Tunnel", "none since this hub started"),
        },
    }
    if let Some(why) = word(&seen["lastEnd"]["why"]) {
        let when = moment(&seen["lastEnd"]["at"]).unwrap_or_default();
        put("Last end", &format!("{why}, {when}"));
    }
    if let Some(why) = word(&seen["lastRefusal"]["why"]) {
        let (times, when) = (
            &seen["lastRefusal"]["times"],
            moment(&seen["lastRefusal"]["at"]).unwrap_or_default(),
        );
        let from = word(&seen["lastRefusal"]["from"])
            .map(|from| format!(", from {from}"))
            .unwrap_or_default();
        put("Refused", &format!("{times} times, last {when}{from}: {why}"));
    }
    if let Some(version) = word(&standing["version"]) {
        let hub = word(&tunnel["hub"]).unwrap_or_default();
        let skew = if version == hub {
            String::new()
        } else {
            format!(" (the hub has {hub})")
        };
        put("Agent", &format!("{version}{skew}"));
    }
    if let Some(key) = word(&standing["key"]) {
        put("Key", &key);
    }
    if let Some(change) = key_change(&status["keyChange"]) {
        put("Key change", &change);
    }
    if let Some(has_keys) = standing["hasHubKeys"].as_bool() {
        let said = match has_keys {
            true => "the agent keeps all of this hub's",
            false => "the agent has not said that it keeps this hub's",
        };
        put("Hub keys", said);
    }
    if let Some(rtt) = standing["rttMs"].as_f64() {
        put("Round trip", &format!("{rtt:.1} ms"));
    }
    if let Some(streams) = standing["streams"].as_u64() {
        put("Streams", &streams.to_string());
    }
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let said = |field: &str| condition[field].as_str().unwrap_or_default();
        put(
            said("type"),
            &format!("{} {}: {}", said("status"), said("reason"), said("message")),
        );
    }
    text
}

/// What waits for a person who merges another key.
pub(super) fn key_change(change: &Value) -> Option<String> {
    let text = |field: &str| change[field].as_str();
    let what = match (text("add"), text("remove")) {
        (Some(key), _) => format!("{key} is to be added"),
        (None, Some(key)) => format!("{key} is to be taken out"),
        (None, None) => return None,
    };
    Some(match (text("branch"), text("message")) {
        (_, Some(message)) => format!("{what}: {message}"),
        (Some(branch), None) => format!("{what}: merge branch {branch}"),
        (None, None) => format!("{what}: it is proposed in a moment, or by hand where the hub may not write to source"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_that_is_away_says_since_when_and_why() {
        let cluster = json!({
            "spec": { "syncMode": "Dual" },
            "status": { "session": "Disconnected", "conditions": [
                { "type": "Ready", "status": "Unknown", "reason": "Away", "message": "no word" },
            ] },
        });
        let seen = json!({
            "tunnel": null,
            "lastEnd": { "at": 1_000, "why": "nothing was heard for 25 s" },
            "lastRefusal": { "at": 1_060, "times": 3, "why": "agent did not prove to hold a key", "from": "10.0.0.1:4" },
        });
        let text = told("oslo", &cluster, &json!({ "hub": "0.1.0", "seen": seen }), 1_120);
        for words in [
            "Away since:    2m ago",
            "Last end:      nothing was heard for 25 s",
            "Refused:       3 times, last 60s ago",
            "from 10.0.0.1:4",
            "Ready:         Unknown Away: no word",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }

    #[test]
    fn a_key_that_waits_says_what_a_person_does() {
        let waits = |change: Value| key_change(&change);
        assert_eq!(
            waits(json!({ "add": "ed25519:B", "branch": "flotilla/keys" })).as_deref(),
            Some("ed25519:B is to be added: merge branch flotilla/keys")
        );
        let by_hand = waits(json!({ "remove": "ed25519:A", "message": "a.yaml:1 cannot be edited" }));
        assert_eq!(
            by_hand.as_deref(),
            Some("ed25519:A is to be taken out: a.yaml:1 cannot be edited")
        );
        assert_eq!(waits(Value::Null), None);
    }

    #[test]
    fn a_cluster_that_is_there_says_by_which_tunnel() {
        let tunnel = json!({ "since": 1_000, "version": "0.2.0", "key": "ed25519:AA", "streams": 2, "rttMs": 1.5 });
        let text = told(
            "oslo",
            &json!({}),
            &json!({ "hub": "0.1.0", "seen": { "tunnel": tunnel } }),
            1_120,
        );
        for words in [
            "Connected:     2m ago",
            "Agent:         0.2.0 (the hub has 0.1.0)",
            "Round trip:    1.5 ms",
            "Streams:       2",
            "ed25519:AA",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
}
