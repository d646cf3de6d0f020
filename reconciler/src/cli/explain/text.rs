//! An explanation as text. Clusters of which the same is to be said are told together.

use serde_json::Value;

use super::room;
use crate::cli::output::{visible, write};

/// Clusters named one by one; the rest is counted.
const CLUSTERS_SHOWN_MAX: usize = 8;

/// Objects of a cluster that are told one by one.
const OBJECTS_SHOWN_MAX: usize = 5;

/// Objects of a chart that are told one by one.
const CHART_OBJECTS_SHOWN_MAX: usize = 20;

/// Fields of a step that are told one by one; the whole list is `-o json`'s.
const FIELDS_SHOWN_MAX: usize = 8;

/// Digits of a commit, as elsewhere.
const REVISION_DIGITS: usize = 12;

/// The whole.
pub(super) fn text(explanation: &Value) -> String {
    let mut text = head(explanation);
    write_holds(&mut text, explanation);
    write_clusters(&mut text, explanation);
    room::write_inventory(&mut text, explanation);
    write_variants(&mut text, explanation);
    write_charts(&mut text, explanation);
    text
}

fn head(explanation: &Value) -> String {
    let mut parts = Vec::new();
    let field = |name: &str| explanation[name].as_str().filter(|text| !text.is_empty()).map(visible);
    if let Some(place) = field("declaredIn") {
        parts.push(format!("declared in {place}"));
    }
    parts.extend(field("scheduling"));
    if let Some(objects) = explanation["objects"].as_u64() {
        parts.push(format!("{objects} object{}", if objects == 1 { "" } else { "s" }));
    }
    parts.extend(field("revision").map(|revision| format!("at {revision}")));
    let mut head = format!("{}  {}\n", field("unit").unwrap_or_default(), parts.join(", "));
    let ready = list(explanation, "conditions").find(|condition| condition["type"] == "Ready");
    if let Some(ready) = ready {
        write(
            &mut head,
            format_args!("Ready: {}, {}\n", of(ready, "status"), of(ready, "message")),
        );
    }
    head
}

/// What stands in the way of the unit as a whole.
fn write_holds(text: &mut String, explanation: &Value) {
    let holds: Vec<_> = list(explanation, "holds")
        .filter_map(Value::as_str)
        .map(visible)
        .collect();
    let findings: Vec<_> = list(explanation, "findings").collect();
    if holds.is_empty() && findings.is_empty() {
        return;
    }
    text.push_str("\nHeld back, or worth a look\n");
    for hold in holds {
        write(text, format_args!("  {hold}\n"));
    }
    for finding in findings {
        let place = match (finding["file"].as_str(), finding["line"].as_u64()) {
            (None, _) => String::new(),
            (Some(file), None) => format!("{}: ", visible(file)),
            (Some(file), Some(line)) => format!("{}:{line}: ", visible(file)),
        };
        let severity = of(finding, "severity").to_lowercase();
        write(text, format_args!("  {place}{severity}: {}\n", of(finding, "message")));
        if finding["hint"].as_str().is_some_and(|hint| !hint.is_empty()) {
            write(text, format_args!("    hint: {}\n", of(finding, "hint")));
        }
    }
}

fn write_clusters(text: &mut String, explanation: &Value) {
    let clusters: Vec<_> = list(explanation, "clusters").collect();
    let having = clusters.iter().filter(|cluster| has_it(cluster)).count();
    let count = |standing: Standing| {
        clusters
            .iter()
            .filter(|cluster| Standing::of(cluster) == standing)
            .count()
    };
    let standings = [
        (count(Standing::Held), "held as they were"),
        (count(Standing::Leaving), "still leaving"),
        (count(Standing::Blocked), "not placed yet"),
    ];
    let said: String = standings
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!(", {count} {words}"))
        .collect();
    write(
        text,
        format_args!("\nClusters: {having} of {} have it{said}\n", clusters.len()),
    );
    room::write_unplaced(text, explanation);
    let by_room = room::is_by_room(explanation);
    // In the order in which a body was first seen, so that the order of names is kept.
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for cluster in clusters {
        let (body, name) = (cluster_body(cluster, by_room), of(cluster, "cluster"));
        match groups.iter_mut().find(|(known, _)| *known == body) {
            Some((_, names)) => names.push(name),
            None => groups.push((body, vec![name])),
        }
    }
    for (body, names) in groups {
        write(text, format_args!("  {}: {body}", named(&names)));
    }
}

fn has_it(cluster: &Value) -> bool {
    matches!(cluster["decision"].as_str(), Some("Chosen" | "Kept")) || Standing::of(cluster) == Standing::Held
}

/// What keeps a cluster from having what the newest revision says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Free,
    Held,
    Leaving,
    Blocked,
}

impl Standing {
    fn of(cluster: &Value) -> Self {
        match cluster["decision"].as_str().unwrap_or_default() {
            "Held" => Self::Held,
            "Blocked" => Self::Blocked,
            _ if cluster["leaving"] != true => Self::Free,
            // What is to leave stays for as long as a Suspension holds it.
            _ if cluster["suspendedBy"].is_string() => Self::Held,
            _ => Self::Leaving,
        }
    }
}

/// The decision, why, with what room, and how far it has come.
fn cluster_body(cluster: &Value, by_room: bool) -> String {
    let word = match cluster["decision"].as_str().unwrap_or_default() {
        "Chosen" => "chosen",
        "Kept" => "kept, though nothing places it there now",
        "Held" => "held as it was",
        "Tainted" => "not chosen, tainted",
        "LeftOut" if cluster["rule"] == "Failover" => "not chosen, lost",
        "LeftOut" => "not chosen, others are better",
        "NotMatched" => "not chosen",
        "Blocked" => "not placed yet",
        "Leaving" => "leaving",
        other => other,
    };
    let variant = cluster["variant"]
        .as_str()
        .map(|variant| format!(", variant {}", visible(variant)));
    let drift = match cluster["drift"].as_str().filter(|_| has_it(cluster)) {
        None => String::new(),
        Some(mode) => format!(", drift mode {}", visible(mode)),
    };
    let mut body = format!("{word}{}{drift}\n", variant.unwrap_or_default());
    for reason in list(cluster, "reasons").filter_map(Value::as_str) {
        write(&mut body, format_args!("    {}\n", visible(reason)));
    }
    if !has_it(cluster) {
        for subscriber in list(cluster, "subscribers").filter(|subscriber| subscriber["matches"] == false) {
            let unmet: Vec<_> = list(subscriber, "unmet")
                .filter_map(Value::as_str)
                .map(visible)
                .collect();
            let position = &subscriber["position"];
            write(
                &mut body,
                format_args!("    subscriber {position} asks for {}\n", unmet.join("; ")),
            );
        }
    }
    room::write_cluster(&mut body, cluster, by_room);
    let suspended = match (cluster["suspended"].as_str(), cluster["suspendedBy"].as_str()) {
        (Some(said), _) => Some(visible(said)),
        (None, by) => by.map(|by| format!("by {}", visible(by))),
    };
    if let Some(suspended) = suspended.filter(|_| has_it(cluster)) {
        write(&mut body, format_args!("    suspended: {suspended}\n"));
    }
    write_progress(&mut body, cluster);
    body
}

/// Where it stands on the ladder, and what it waits for there.
fn write_progress(body: &mut String, cluster: &Value) {
    let rungs: Vec<_> = list(cluster, "ladder").collect();
    if rungs.is_empty() {
        return;
    }
    if cluster["session"]
        .as_str()
        .is_some_and(|session| session != "Connected")
    {
        write(
            body,
            format_args!("    the cluster is silent ({})\n", of(cluster, "session")),
        );
    }
    let reached = rungs.iter().take_while(|rung| rung["status"] == "True").count();
    let names: Vec<_> = rungs.iter().map(|rung| of(rung, "type")).collect();
    match rungs.get(reached) {
        None => write(
            body,
            format_args!("    stands at the top: {}\n", names.last().map_or("", String::as_str)),
        ),
        Some(open) => {
            let steps = match reached {
                0 => "nothing is reached".to_owned(),
                _ => format!("reached {}", names[..reached].join(" > ")),
            };
            let (name, status, reason) = (of(open, "type"), of(open, "status"), of(open, "reason"));
            write(
                body,
                format_args!(
                    "    {steps}\n    waits for {name}: {status} ({reason}), {}\n",
                    of(open, "message")
                ),
            );
        }
    }
    let worst: Vec<_> = list(cluster, "worstObjects").collect();
    for object in worst.iter().take(OBJECTS_SHOWN_MAX) {
        let message = object["message"].as_str().filter(|message| !message.is_empty());
        let message = message
            .map(|message| format!(": {}", visible(message)))
            .unwrap_or_default();
        let (name, state) = (object_name(&of(object, "object")), of(object, "state"));
        // How an object is that could not be applied says nothing of the one that was wanted.
        let health = match state.as_str() {
            "Applied" => format!(", {}", of(object, "health")),
            _ => String::new(),
        };
        write(body, format_args!("    {name} is {state}{health}{message}\n"));
    }
    let more = worst.len().saturating_sub(OBJECTS_SHOWN_MAX);
    if more > 0 {
        write(body, format_args!("    and {more} more objects\n"));
    }
}

/// `ConfigMap shop/web` from a key's four parts; a text that is no key stays.
pub(super) fn object_name(key: &str) -> String {
    match key.splitn(4, '/').collect::<Vec<_>>()[..] {
        [_, kind, "", name] => format!("{kind} {name}"),
        [_, kind, namespace, name] => format!("{kind} {namespace}/{name}"),
        _ => key.to_owned(),
    }
}

fn write_variants(text: &mut String, explanation: &Value) {
    for variant in list(explanation, "variants") {
        let names: Vec<_> = list(variant, "clusters")
            .filter_map(Value::as_str)
            .map(visible)
            .collect();
        let overrides: Vec<_> = list(variant, "overrides")
            .filter_map(Value::as_str)
            .map(visible)
            .collect();
        let has_steps = list(variant, "steps").next().is_some();
        let standing = match variant["standing"].as_str() {
            Some("Held") => ", held as it was",
            Some("Blocked") => ", not made yet",
            _ => "",
        };
        write(
            text,
            format_args!("\nVariant {} on {}{standing}\n", of(variant, "variant"), named(&names)),
        );
        match (variant["madeFrom"].as_str(), overrides.is_empty()) {
            (None, true) => text.push_str("  no override meets them: as the feeds say\n"),
            (None, false) => {}
            (Some(from), true) => write(text, format_args!("  made from {}, without overrides\n", short(from))),
            (Some(from), false) => {
                let overrides = overrides.join(", ");
                write(text, format_args!("  made from {} with {overrides}\n", short(from)));
            }
        }
        if has_steps && variant["madeFrom"].is_string() {
            text.push_str("  what overrides would make of it now:\n");
        }
        let mut position = 0;
        let mut by = String::new();
        for step in list(variant, "steps") {
            if of(step, "by") != by {
                (position, by) = (position + 1, of(step, "by"));
                write(
                    text,
                    format_args!("  {position}. {by}, priority {}\n", step["priority"]),
                );
            }
            write_step(text, step);
        }
    }
}

/// What charts are predicted to bring.
fn write_charts(text: &mut String, explanation: &Value) {
    for chart in list(explanation, "charts") {
        let names: Vec<_> = list(chart, "clusters").filter_map(Value::as_str).map(visible).collect();
        let name = object_name(&of(chart, "chart"));
        let objects: Vec<_> = list(chart, "objects").collect();
        let (clusters, why) = (named(&names), of(chart, "notPredicted"));
        if !why.is_empty() {
            write(text, format_args!("\n{name} on {clusters} is not predicted: {why}\n"));
            continue;
        }
        write(text, format_args!("\n{name} on {clusters} is predicted to bring\n"));
        for object in objects.iter().take(CHART_OBJECTS_SHOWN_MAX) {
            let (object, template) = (object_name(&of(object, "object")), of(object, "template"));
            write(text, format_args!("  {object}, from {template}\n"));
        }
        let more = objects.len().saturating_sub(CHART_OBJECTS_SHOWN_MAX);
        if more > 0 {
            write(text, format_args!("  and {more} more objects\n"));
        }
    }
}

fn write_step(text: &mut String, step: &Value) {
    let name = step["name"]
        .as_str()
        .map(|name| format!(" ({})", visible(name)))
        .unwrap_or_default();
    let (kind, object, at) = (of(step, "type"), of(step, "object"), of(step, "at"));
    write(
        text,
        format_args!("     step {}{name} {kind} on {object}, {at}\n", step["step"]),
    );
    if let Some(problem) = step["problem"]["message"].as_str() {
        write(text, format_args!("       does not fit: {}\n", visible(problem)));
        return;
    }
    let fields: Vec<_> = list(step, "fields").filter_map(Value::as_str).map(visible).collect();
    if fields.is_empty() {
        text.push_str("       changes nothing: it was so already\n");
    }
    for field in fields.iter().take(FIELDS_SHOWN_MAX) {
        write(text, format_args!("       changes {field}\n"));
    }
    let told = step["more"].as_u64().unwrap_or_default();
    let more = told + fields.len().saturating_sub(FIELDS_SHOWN_MAX) as u64;
    if more > 0 {
        write(text, format_args!("       and {more} more fields\n"));
    }
}

/// A commit by its first digits.
fn short(revision: &str) -> String {
    visible(revision).chars().take(REVISION_DIGITS).collect()
}

pub(super) fn named(names: &[String]) -> String {
    let more = names.len().saturating_sub(CLUSTERS_SHOWN_MAX);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 {
        format!("{shown} and {more} more")
    } else {
        shown
    }
}

pub(super) fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value[field].as_array().into_iter().flatten()
}

pub(super) fn of(value: &Value, field: &str) -> String {
    value[field].as_str().map(visible).unwrap_or_default()
}
