//! `flotilla status`: the fleet on one screen.

use std::process::ExitCode;

use serde_json::Value;

use super::client::{ClientError, GROUP, JSON, ServerOptions, failed};
use super::conditions::{condition, conditions};
use super::describe::key_change;
use super::{exit, output, wait_for};

/// Lines of each part; the rest is counted.
const LINES_MAX: usize = 12;

/// Which hub is asked.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::HELP_STATUS)]
pub(super) struct StatusOptions {
    #[command(flatten)]
    server: ServerOptions,
}

/// Shows the fleet. The code is 0 when all of it is ready, else 1.
pub(super) fn run(options: &StatusOptions) -> anyhow::Result<ExitCode> {
    wait_for(async {
        match Shown::read(&options.server).await {
            Ok(shown) => {
                output::print(&shown.text());
                if shown.is_ready() {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                }
            }
            Err(error) => failed(&error),
        }
    })
}

/// What the hub says.
struct Shown {
    server: String,
    fleet: Value,
    clusters: Vec<Value>,
    units: Vec<Value>,
    findings: Vec<Value>,
}

impl Shown {
    async fn read(server: &ServerOptions) -> Result<Self, ClientError> {
        let list = async |plural: &str| {
            let mut list = server.value(&format!("{GROUP}/{plural}"), JSON).await?;
            Ok::<_, ClientError>(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
        };
        Ok(Self {
            server: server.server().to_string(),
            fleet: server.value(&format!("{GROUP}/fleets/fleet"), JSON).await?,
            clusters: list("managedclusters").await?,
            units: list("subscriptions").await?,
            findings: list("findings").await?,
        })
    }

    fn is_ready(&self) -> bool {
        status(&self.fleet, "Ready") == "True"
    }

    fn text(&self) -> String {
        [
            self.head(),
            self.clusters_part(),
            self.joining_part(),
            self.keys_part(),
            self.knocking_part(),
            self.units_part(),
            self.findings_part(),
        ]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
    }

    fn head(&self) -> String {
        let at = |field: &str| text(&self.fleet, &format!("/status/{field}"));
        let sequence = self.fleet.pointer("/status/sequence").and_then(Value::as_u64);
        let released = match sequence {
            Some(sequence) => format!("{} (sequence {sequence})", at("released")),
            None => at("released"),
        };
        let mut rows = vec![
            vec![
                "Source".to_owned(),
                at("source"),
                // Where it stands is said already.
                Some(message(&self.fleet, "SourceVerified"))
                    .filter(|_| status(&self.fleet, "SourceVerified") != "True")
                    .unwrap_or_default(),
            ],
            vec!["Rendered".to_owned(), at("rendered"), message(&self.fleet, "StateKept")],
            vec!["Released".to_owned(), released],
        ];
        if self.fleet.pointer("/status/proposed").is_some() {
            rows.insert(
                1,
                vec![
                    "Proposed".to_owned(),
                    at("proposedSource"),
                    message(&self.fleet, "Approved"),
                ],
            );
        } else if self.fleet.pointer("/status/keptProposals").is_some() {
            rows.insert(
                1,
                vec!["Proposed".to_owned(), "-".to_owned(), message(&self.fleet, "Approved")],
            );
        }
        let objects = message(&self.fleet, "ObjectsWritten");
        if !objects.is_empty() {
            rows.push(vec!["Objects".to_owned(), objects]);
        }
        rows.push(vec!["Hub".to_owned(), output::visible(&self.server)]);
        let ready = format!("{}: {}", ready_word(&self.fleet), message(&self.fleet, "Ready"));
        format!("Fleet      {ready}\n{}", output::columns(&rows))
    }

    fn clusters_part(&self) -> String {
        let row = |cluster: &Value| {
            let version = text(cluster, "/status/k8sVersion");
            vec![
                name(cluster),
                ready_word(cluster).to_owned(),
                text(cluster, "/status/session"),
                version,
                message(cluster, "Ready"),
            ]
        };
        let connected = self
            .clusters
            .iter()
            .filter(|cluster| text(cluster, "/status/session") == "Connected")
            .count();
        let title = format!("Clusters: {connected} of {} connected", self.clusters.len());
        part(
            &title,
            &["NAME", "STATE", "SESSION", "VERSION", "MESSAGE"],
            &self.clusters,
            row,
        )
    }

    /// Which clusters wait for a person to register them; nothing where none does.
    fn joining_part(&self) -> String {
        let waiting = self.fleet.pointer("/status/joining").and_then(Value::as_array);
        let waiting: Vec<_> = waiting.into_iter().flatten().collect();
        let line = |one: &&Value| {
            let cluster = text(one, "/cluster");
            match text(one, "/branch").as_str() {
                "-" if one.get("message").is_some() => format!("  {cluster}: {}\n", text(one, "/message")),
                "-" => {
                    let file = one.pointer("/file").and_then(Value::as_str).unwrap_or_default();
                    let file: String = file
                        .lines()
                        .map(|line| format!("    {}\n", output::visible(line)))
                        .collect();
                    format!("  {cluster}: push this as clusters/{cluster}.yaml\n{file}")
                }
                branch => format!("  {cluster}: merge branch {branch} to register it\n"),
            }
        };
        let lines: String = waiting.iter().take(LINES_MAX).map(line).collect();
        match waiting.len() {
            0 => String::new(),
            all => format!("Joining: {}\n{lines}{}", output::counted(all, "cluster"), rest(all)),
        }
    }

    /// Which clusters' keys wait for a person to change them; nothing where none does.
    fn keys_part(&self) -> String {
        let part = |field| {
            self.fleet
                .pointer(field)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let waiting: Vec<_> = part("/status/keyContests").chain(part("/status/keyChanges")).collect();
        let line = |one: &&Value| {
            let change = key_change(one).unwrap_or_else(|| text(one, "/message"));
            format!("  {}: {}\n", text(one, "/cluster"), output::visible(&change))
        };
        let lines: String = waiting.iter().take(LINES_MAX).map(line).collect();
        match waiting.len() {
            0 => String::new(),
            all => format!("Keys: {}\n{lines}{}", output::counted(all, "change"), rest(all)),
        }
    }

    /// Who asks to be let in and is not; nothing where nobody does.
    fn knocking_part(&self) -> String {
        let callers = self.fleet.pointer("/status/knocking").and_then(Value::as_array);
        let callers: Vec<_> = callers.into_iter().flatten().collect();
        let line = |caller: &&Value| {
            let count = caller.pointer("/count").and_then(Value::as_u64).unwrap_or_default();
            let (message, last) = (text(caller, "/message"), text(caller, "/last"));
            format!(
                "  {message} ({}, last at {last})\n",
                output::counted(count as usize, "time")
            )
        };
        let lines: String = callers.iter().take(LINES_MAX).map(line).collect();
        match callers.len() {
            0 => String::new(),
            all => format!("Knocking: {}\n{lines}{}", output::counted(all, "caller"), rest(all)),
        }
    }

    fn units_part(&self) -> String {
        let row = |unit: &Value| {
            let count = |field: &str| {
                unit.pointer(&format!("/status/clusters/{field}"))
                    .and_then(Value::as_u64)
                    .unwrap_or_default()
            };
            let clusters = format!("{}/{}", count("ready"), count("total"));
            let name = format!("{}/{}", text(unit, "/metadata/namespace"), name(unit));
            vec![
                name,
                ready_word(unit).to_owned(),
                clusters,
                waits_for(unit),
                message(unit, said(unit)),
            ]
        };
        let ready = self.units.iter().filter(|unit| status(unit, "Ready") == "True").count();
        let title = format!("Units: {ready} of {} ready", self.units.len());
        part(
            &title,
            &["NAME", "STATE", "CLUSTERS", "WAITS-FOR", "MESSAGE"],
            &self.units,
            row,
        )
    }

    fn findings_part(&self) -> String {
        let severity = |word: &str| {
            self.findings
                .iter()
                .filter(|finding| text(finding, "/spec/severity") == word)
                .count()
        };
        let title = format!(
            "Findings: {}, {}",
            output::counted(severity("Error"), "error"),
            output::counted(severity("Warning"), "warning")
        );
        let mut findings: Vec<_> = self.findings.iter().collect();
        findings.sort_by_key(|finding| rank(&text(finding, "/spec/severity")));
        let line = |finding: &&Value| {
            let place = text(finding, "/metadata/annotations/fleet.flotilla.dev~1declared-in");
            let severity = text(finding, "/spec/severity").to_lowercase();
            let hint = Some(text(finding, "/spec/hint")).filter(|hint| hint != "-");
            let hint = hint.map(|hint| format!("    hint: {hint}\n")).unwrap_or_default();
            format!("  {place}: {severity}: {}\n{hint}", text(finding, "/spec/message"))
        };
        let lines: String = findings.iter().take(LINES_MAX).map(line).collect();
        format!("{title}\n{lines}{}", rest(findings.len()))
    }
}

/// A title with the objects that need looking at first.
fn part(title: &str, header: &[&str], objects: &[Value], row: impl Fn(&Value) -> Vec<String>) -> String {
    let mut objects: Vec<_> = objects.iter().collect();
    objects.sort_by_key(|object| rank(status(object, "Ready")));
    let header = header.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<_> = std::iter::once(header)
        .chain(objects.iter().take(LINES_MAX).map(|object| row(object)))
        .collect();
    if objects.is_empty() {
        return format!("{title}\n");
    }
    let lines: String = output::columns(&rows)
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect();
    format!("{title}\n{lines}{}", rest(objects.len()))
}

fn rest(all: usize) -> String {
    match all.saturating_sub(LINES_MAX) {
        0 => String::new(),
        rest => format!("  and {rest} more\n"),
    }
}

/// What is worse comes first.
fn rank(word: &str) -> u8 {
    match word {
        "False" | "Error" => 0,
        "Unknown" | "Warning" => 1,
        _ => 2,
    }
}

/// The lowest rung of a unit's ladder that is not reached. Whether source can be followed is the fleet's.
fn waits_for(unit: &Value) -> String {
    let summary = ["Ready", "Reconciling", "Stalled", "SourceVerified"];
    let open = conditions(unit).find(|condition| {
        let kind = condition["type"].as_str().unwrap_or_default();
        condition["status"] != "True" && !summary.contains(&kind)
    });
    open.map_or_else(|| "-".to_owned(), |condition| text(condition, "/type"))
}

fn status<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind)
        .and_then(|condition| condition["status"].as_str())
        .unwrap_or("Unknown")
}

/// A condition's message, whole: its end says what to do.
fn message(object: &Value, kind: &str) -> String {
    condition(object, kind)
        .map(|condition| text(condition, "/message"))
        .unwrap_or_default()
}

/// The condition whose message counts: a unit that is ready and suspended says by what, and one that is ready where
/// others changed it says where.
fn said(unit: &Value) -> &'static str {
    let holds = |kind: &str| status(unit, kind) == "True";
    match holds("Ready") {
        true if holds("Suspended") => "Suspended",
        true if holds("Drifted") => "Drifted",
        _ => "Ready",
    }
}

/// Ready, or what it is instead: under way, held by a Suspension, or in need of somebody.
fn ready_word(object: &Value) -> &'static str {
    match status(object, "Ready") {
        "True" | "Unknown" if status(object, "Suspended") == "True" => "Suspended",
        "True" => "Ready",
        "False" => "NotReady",
        _ if condition(object, "Reconciling").is_some() => "Reconciling",
        _ => "Unknown",
    }
}

fn name(object: &Value) -> String {
    text(object, "/metadata/name")
}

/// A field's text, or a dash.
fn text(value: &Value, pointer: &str) -> String {
    let text = value
        .pointer(pointer)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty());
    text.map_or_else(|| "-".to_owned(), output::visible)
}
