//! `flotilla describe cluster`: one cluster and its tunnel, in words.

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
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
    match moment(&standing["since"], now) {
        Some(since) => put("Connected", &since),
        None => match away(status, seen, now) {
            Some(since) => put("Away since", &since),
            None => put("Tunnel", "none since this hub started"),
        },
    }
    if let Some(why) = word(&seen["lastEnd"]["why"]) {
        let when = moment(&seen["lastEnd"]["at"], now).unwrap_or_default();
        put("Last end", &format!("{why}, {when}"));
    }
    if let Some(refusal) = refusal(&seen["lastRefusal"], now) {
        put("Refused", &refusal);
    }
    if let Some(version) = word(&standing["version"]).or_else(|| word(&status["agentVersion"])) {
        put("Agent", &skewed(&version, &tunnel["hub"]));
    }
    keys(&status["keys"], &standing["key"], now).for_each(|(label, key)| put(label, &key));
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
    hub_keys(&status["hubKeys"], now).for_each(|key| put("Hub key", &key));
    if let Some(rtt) = standing["rttMs"].as_f64() {
        put("Round trip", &format!("{rtt:.1} ms"));
    }
    if let Some(streams) = standing["streams"].as_u64() {
        put("Streams", &streams.to_string());
    }
    for other in tunnel["elsewhere"].as_array().into_iter().flatten() {
        put("Other hub", &elsewhere(other, now));
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

fn word(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// How long ago that was, and when.
fn moment(value: &Value, now: i64) -> Option<String> {
    let at = value.as_i64()?;
    Some(format!("{} ago ({})", age(Some(at), now), rfc3339(at)))
}

/// Since when a cluster is away: as its status says, which knows of other hubs, else since its last tunnel here.
fn away(status: &Value, seen: &Value, now: i64) -> Option<String> {
    let said = status["awaySince"]
        .as_str()
        .and_then(|text| text.parse::<Timestamp>().ok());
    match said {
        Some(at) => moment(&Value::from(at.as_second()), now),
        None => moment(&seen["lastEnd"]["at"], now),
    }
}

fn refusal(refused: &Value, now: i64) -> Option<String> {
    let why = refused["why"].as_str()?;
    let (times, when) = (&refused["times"], moment(&refused["at"], now).unwrap_or_default());
    let from = word(&refused["from"])
        .map(|from| format!(", from {from}"))
        .unwrap_or_default();
    Some(format!("{times} times, last {when}{from}: {why}"))
}

fn skewed(version: &str, hub: &Value) -> String {
    match hub.as_str() {
        Some(hub) if hub != version => format!("{version} (the hub has {hub})"),
        _ => version.to_owned(),
    }
}

/// The key that the agent proved and the others in the cluster's file, each with its age.
fn keys<'a>(known: &'a Value, used: &'a Value, now: i64) -> impl Iterator<Item = (&'static str, String)> + 'a {
    let known = || known.as_array().into_iter().flatten();
    let aged = move |key: &str| {
        let since = known().find(|known| known["key"] == key)?["introduced"].as_str();
        let since = since.and_then(|text| text.parse::<Timestamp>().ok());
        Some(match since {
            Some(at) => format!(
                "{key}, in the cluster's file for {} ({at})",
                age(Some(at.as_second()), now)
            ),
            None => format!("{key}, in the cluster's file for a time that is unknown"),
        })
    };
    let used = used.as_str();
    let first = used.map(|key| ("Key", aged(key).unwrap_or_else(|| key.to_owned())));
    let label = if used.is_some() { "Other key" } else { "Key" };
    let others = known().filter_map(|known| known["key"].as_str());
    let others = others.filter(move |key| used != Some(*key));
    first
        .into_iter()
        .chain(others.filter_map(move |key| Some((label, aged(key)?))))
}

/// The keys of hubs that the agent believes, each with how long it has done so.
fn hub_keys(known: &Value, now: i64) -> impl Iterator<Item = String> + '_ {
    known.as_array().into_iter().flatten().filter_map(move |known| {
        let (key, since) = (known["key"].as_str()?, known["known"].as_str()?);
        let at: Timestamp = since.parse().ok()?;
        let age = age(Some(at.as_second()), now);
        Some(format!("{key}, known to the agent for {age} ({at})"))
    })
}

/// What another hub says of the cluster's tunnel.
fn elsewhere(other: &Value, now: i64) -> String {
    let peer = other["peer"].as_str().unwrap_or_default();
    if let Some(error) = other["error"].as_str() {
        return format!("{peer} does not say: {error}");
    }
    let (seen, standing) = (&other["seen"], &other["seen"]["tunnel"]);
    let mut said = Vec::new();
    match moment(&standing["since"], now) {
        Some(since) => said.push(format!("connected {since}")),
        None => said.push("has no tunnel of it".to_owned()),
    }
    if let Some(version) = standing["version"].as_str() {
        said.push(format!("agent {}", skewed(version, &other["hub"])));
    }
    if let Some(rtt) = standing["rttMs"].as_f64() {
        said.push(format!("round trip {rtt:.1} ms"));
    }
    if let Some(why) = seen["lastEnd"]["why"].as_str() {
        let when = moment(&seen["lastEnd"]["at"], now).unwrap_or_default();
        said.push(format!("last end: {why}, {when}"));
    }
    said.extend(refusal(&seen["lastRefusal"], now).map(|refusal| format!("refused {refusal}")));
    format!("{peer}: {}", said.join("; "))
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
    fn the_key_in_use_says_its_age_and_what_is_not_known_is_said_so() {
        let known = json!([
            { "key": "ed25519:A", "introduced": "1970-01-01T00:10:00Z" },
            { "key": "ed25519:B" },
        ]);
        let found = |used: Value| keys(&known, &used, 1_200).collect::<Vec<_>>();
        let (aged, unknown) = (
            "ed25519:A, in the cluster's file for 10m (1970-01-01T00:10:00Z)",
            "ed25519:B, in the cluster's file for a time that is unknown",
        );
        assert_eq!(
            found(json!("ed25519:A")),
            [("Key", aged.to_owned()), ("Other key", unknown.to_owned())]
        );
        assert_eq!(
            found(json!("ed25519:B")),
            [("Key", unknown.to_owned()), ("Other key", aged.to_owned())]
        );
        assert_eq!(
            found(Value::Null),
            [("Key", aged.to_owned()), ("Key", unknown.to_owned())],
            "nobody proved one here"
        );
        assert_eq!(found(json!("ed25519:C"))[0], ("Key", "ed25519:C".to_owned()));
    }

    #[test]
    fn a_hubs_key_says_since_when_the_agent_knows_it() {
        let of = |status: Value| told("oslo", &json!({ "status": status }), &json!({}), 1_200);
        let known = json!([
            { "key": "ed25519:A", "known": "1970-01-01T00:10:00Z" },
            { "key": "ed25519:B", "known": "1970-01-01T00:20:00Z" },
        ]);
        let text = of(json!({ "hubKeys": known }));
        for words in [
            "Hub key:       ed25519:A, known to the agent for 10m (1970-01-01T00:10:00Z)\n",
            "Hub key:       ed25519:B, known to the agent for 0s (1970-01-01T00:20:00Z)\n",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
        let older = of(json!({}));
        assert!(!older.contains("Hub key"), "an older agent does not say it: {older}");
    }

    #[test]
    fn what_other_hubs_say_is_told_with_their_tunnel_and_their_last_error() {
        let there = json!({ "peer": "wss://b:1", "hub": "0.2.0", "seen": {
            "tunnel": { "since": 1_000, "version": "0.1.0", "rttMs": 2.0 },
        } });
        let away = json!({ "peer": "wss://c:1", "hub": "0.2.0", "seen": {
            "tunnel": null,
            "lastEnd": { "at": 1_000, "why": "nothing was heard for 25 s" },
            "lastRefusal": { "at": 1_060, "times": 3, "why": "another key" },
        } });
        let silent = json!({ "peer": "wss://d:1", "error": "it gave no answer within 3 s" });
        let tunnel = json!({ "hub": "0.1.0", "seen": {}, "elsewhere": [there, away, silent] });
        let text = told("oslo", &json!({}), &tunnel, 1_120);
        for words in [
            "Other hub:     wss://b:1: connected 2m ago (1970-01-01T00:16:40Z); agent 0.1.0 (the hub has 0.2.0); round trip 2.0 ms\n",
            "wss://c:1: has no tunnel of it; last end: nothing was heard for 25 s, 2m ago",
            "refused 3 times, last 60s ago (1970-01-01T00:17:40Z): another key\n",
            "Other hub:     wss://d:1 does not say: it gave no answer within 3 s\n",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
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
