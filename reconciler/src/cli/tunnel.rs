//! `flotilla tunnel ping`: the whole way from the hub to a cluster's API server, tried.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::{GROUP, JSON, ServerOptions, encoded, failed};
use super::{exit, output, wait_for};

/// Look at tunnels.
#[derive(Debug, Args)]
pub(super) struct Tunnel {
    #[command(subcommand)]
    command: TunnelCommand,
}

#[derive(Debug, Subcommand)]
enum TunnelCommand {
    /// Ask a cluster's agent through its tunnel, and time it.
    Ping(Ping),
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP_PING)]
struct Ping {
    /// The cluster.
    cluster: String,
    /// How often it is asked.
    #[arg(short = 'c', long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=10))]
    count: u8,
    #[command(flatten)]
    server: ServerOptions,
}

/// Pings.
pub(super) fn run(arguments: &Tunnel) -> anyhow::Result<ExitCode> {
    let TunnelCommand::Ping(ping) = &arguments.command;
    wait_for(async {
        let path = format!(
            "{GROUP}/managedclusters/{}/tunnel?ping={}",
            encoded(&ping.cluster),
            ping.count
        );
        match ping.server.value(&path, JSON).await {
            Ok(answer) => {
                let (text, is_well) = told(&ping.cluster, &answer);
                output::print(&text);
                if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            }
            Err(error) => failed(&error),
        }
    })
}

/// What an answer says, and whether all of it is well.
fn told(cluster: &str, answer: &Value) -> (String, bool) {
    let (mut text, mut round_trips, mut is_well) = (String::new(), Vec::new(), true);
    let tries = answer["pings"].as_array().map_or(&[][..], Vec::as_slice);
    if tries.is_empty() {
        let why = answer["seen"]["lastEnd"]["why"].as_str();
        let why = why.map(|why| format!(": {}", output::visible(why))).unwrap_or_default();
        return (format!("{cluster} has no tunnel to this hub{why}\n"), false);
    }
    for (at, tried) in tries.iter().enumerate() {
        if let Some(rtt) = tried["rttMs"].as_f64() {
            round_trips.push(rtt);
        }
        let said = match (tried["answerMs"].as_f64(), &tried["answer"]["apiServer"]) {
            (Some(answered), Value::String(version)) => {
                let round_trip = tried["rttMs"].as_f64().unwrap_or_default();
                format!("{round_trip:.1} ms to the agent, {answered:.1} ms with its API server's answer ({version})")
            }
            _ => {
                is_well = false;
                tried["error"].as_str().unwrap_or("no answer").to_owned()
            }
        };
        output::write(
            &mut text,
            format_args!("{} {}: {}\n", cluster, at + 1, output::visible(&said)),
        );
    }
    if !round_trips.is_empty() {
        let (least, most) = round_trips.iter().fold((f64::MAX, 0.0_f64), |(least, most), rtt| {
            (least.min(*rtt), most.max(*rtt))
        });
        let mean = round_trips.iter().sum::<f64>() / round_trips.len() as f64;
        output::write(
            &mut text,
            format_args!("round trip min/avg/max {least:.1}/{mean:.1}/{most:.1} ms\n"),
        );
    }
    (text, is_well)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pings_are_timed_to_the_agent_and_to_its_api_server() {
        let pings = json!([
            { "rttMs": 1.0, "answerMs": 5.25, "answer": { "version": "0.1.0", "apiServer": "v1.36.3" } },
            { "rttMs": 3.0, "answerMs": 9.0, "answer": { "version": "0.1.0", "apiServer": "v1.36.3" } },
        ]);
        let (text, is_well) = told("oslo", &json!({ "pings": pings }));
        assert!(is_well);
        let expected = "oslo 1: 1.0 ms to the agent, 5.2 ms with its API server's answer (v1.36.3)
oslo 2: 3.0 ms to the agent, 9.0 ms with its API server's answer (v1.36.3)
round trip min/avg/max 1.0/2.0/3.0 ms
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_cluster_without_a_tunnel_and_an_api_server_that_is_silent_fail_with_their_reasons() {
        let away = json!({ "pings": [], "seen": { "lastEnd": { "at": 1, "why": "nothing was heard for 25 s" } } });
        assert_eq!(
            told("oslo", &away),
            (
                "oslo has no tunnel to this hub: nothing was heard for 25 s\n".to_owned(),
                false
            )
        );
        let silent = json!({ "pings": [{ "rttMs": 2.0, "answerMs": 3.0, "answer": { "error": "refused" }, "error": "its API server does not answer: refused" }] });
        let (text, is_well) = told("oslo", &silent);
        assert!(
            !is_well && text.contains("refused") && text.contains("2.0/2.0/2.0"),
            "{text}"
        );
    }
}
