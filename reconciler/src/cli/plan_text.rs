//! A plan as text, for people who review it.

use std::fmt::Write as _;

use render::Finding;
use render::plan::{Change, FieldChange, Share};

use super::output::visible;
use super::plan::{Group, Shown};

/// Clusters named one by one in a line; the rest is counted.
const CLUSTERS_SHOWN_MAX: usize = 8;

/// Characters of a value in a line.
const VALUE_CHARS_MAX: usize = 80;

/// Prints the changes to stdout and the findings to stderr.
pub(super) fn print(shown: &Shown) {
    super::print(&text(shown));
    if shown.from.is_none() {
        eprintln!("hint: no rendered ref is here to compare with; `git fetch` brings the one the hub wrote");
    }
    for finding in &shown.findings {
        eprintln!("{}", in_sight(finding));
    }
}

/// A finding whose words, which may come from anybody's file, steer no terminal.
fn in_sight(finding: &Finding) -> Finding {
    Finding {
        file: visible(&finding.file),
        field: visible(&finding.field),
        message: visible(&finding.message),
        hint: visible(&finding.hint),
        ..finding.clone()
    }
}

fn text(shown: &Shown) -> String {
    let from = shown
        .from
        .as_ref()
        .map_or_else(|| "nothing".to_owned(), |from| format!("sha1:{from}"));
    let mut text = format!("Plan from {from} to sha1:{}\n", shown.to);
    for unit in &shown.units {
        // Writing to a String cannot fail.
        let _written = writeln!(text, "\n{}", unit.unit);
        for group in &unit.groups {
            write_group(&mut text, group);
        }
    }
    let units = shown.units.len();
    let _written = match units {
        0 => writeln!(text, "\nNothing changes."),
        1 => writeln!(text, "\n1 unit changes."),
        _ => writeln!(text, "\n{units} units change."),
    };
    text
}

fn write_group(text: &mut String, group: &Group) {
    let sign = match (&group.from, &group.to) {
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    };
    let mut clusters: Vec<&str> = group.clusters.iter().map(|cluster| cluster.as_str()).collect();
    let more = clusters.len().saturating_sub(CLUSTERS_SHOWN_MAX);
    clusters.truncate(CLUSTERS_SHOWN_MAX);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let _written = writeln!(text, "  {sign} on {}{more}", clusters.join(", "));
    for change in &group.objects {
        write_object(text, &change.object, &change.change);
    }
    write_replicas(text, group);
}

fn write_object(text: &mut String, object: &render::ObjectKey, change: &Change) {
    let namespace = if object.namespace.is_empty() {
        String::new()
    } else {
        format!("{}/", object.namespace)
    };
    let name = visible(&format!("{} {namespace}{}", object.kind, object.name));
    let _written = match change {
        Change::Added => writeln!(text, "      + {name}"),
        Change::Removed => writeln!(text, "      - {name}"),
        Change::EncryptedChanged => writeln!(text, "      ~ {name} (encrypted)"),
        Change::Changed(_) => writeln!(text, "      ~ {name}"),
    };
    if let Change::Changed(fields) = change {
        for FieldChange { field, from, to } in fields {
            let field = visible(field);
            let _written = match (from, to) {
                (None, Some(to)) => writeln!(text, "          + {field}: {}", value(to)),
                (Some(from), None) => writeln!(text, "          - {field}: {}", value(from)),
                (Some(from), Some(to)) => writeln!(text, "          ~ {field}: {} -> {}", value(from), value(to)),
                (None, None) => Ok(()),
            };
        }
    }
}

fn write_replicas(text: &mut String, group: &Group) {
    let of = |share: &Option<Share>| share.as_ref().map(|share| share.replicas.clone()).unwrap_or_default();
    let (from, to) = (of(&group.from), of(&group.to));
    for (object, count) in &to {
        if from.get(object) != Some(count) {
            let before = from.get(object).map_or_else(|| "none".to_owned(), ToString::to_string);
            let _written = writeln!(
                text,
                "      ~ replicas of {}: {before} -> {count}",
                visible(&format!("{} {}", object.kind, object.name))
            );
        }
    }
}

/// A value in one line. JSON escapes some of the characters that steer a terminal, and not all.
fn value(value: &serde_json::Value) -> String {
    let text = visible(&value.to_string());
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_file_says_steers_the_reviewers_terminal() {
        let nasty = "a\u{1b}[2J\nb\u{9b}\u{202e}";
        let finding = Finding::error("X", nasty).at(nasty, 1).field(nasty).hint(nasty);
        let object = render::ObjectKey::new("v1", nasty, nasty, nasty);
        let change = FieldChange {
            field: nasty.to_owned(),
            from: None,
            to: Some(nasty.into()),
        };
        let mut text = in_sight(&finding).to_string();
        write_object(&mut text, &object, &Change::Changed(vec![change]));
        assert!(
            !text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{text:?}"
        );
        assert_eq!(text.lines().count(), 3, "no line is made up: {text:?}");
    }
}
