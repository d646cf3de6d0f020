//! A plan as Markdown, for a comment on a pull request: one fold per unit, and never more than fits.

use std::fmt::Write as _;

use super::compare::{Shown, UnitChange};
use super::dependants;
use super::in_sight;
use super::lines::{Line, Sign, What, held, lines, losses};
use super::summary::counted;

/// Bytes of the whole: GitHub takes 65,536 characters in a comment, GitLab a million.
pub(super) const BYTES_MAX: usize = 60_000;

/// Bytes of the findings, so that they leave room for the changes.
const FINDINGS_BYTES_MAX: usize = 20_000;

/// Bytes of what is said of dependants.
const DEPENDANTS_BYTES_MAX: usize = 10_000;

pub(super) fn markdown(shown: &Shown) -> String {
    let from = shown
        .from
        .as_ref()
        .map_or_else(|| "nothing".to_owned(), |from| format!("`{from}`"));
    let mut text = format!(
        "### Fleet plan\n\n**{}**\n\nFrom {from} to `{}`.\n",
        shown.summary.line(),
        shown.to
    );
    write_findings(&mut text, shown);
    write_losses(&mut text, shown);
    write_dependants(&mut text, shown);
    let mut left = 0;
    for unit in &shown.units {
        let fold = fold(unit);
        // Room for the line that counts the rest.
        if left > 0 || text.len() + fold.len() > BYTES_MAX - 200 {
            left += 1;
            continue;
        }
        text.push_str(&fold);
    }
    if left > 0 {
        let rest = counted(left, "more unit does", "more units do");
        // Writing to a String cannot fail.
        let _written = write!(text, "\n_{rest} not fit here; `flotilla plan` shows everything._\n");
    }
    text
}

fn write_findings(text: &mut String, shown: &Shown) {
    if shown.findings.is_empty() {
        return;
    }
    let told = shown.findings.iter().map(|finding| in_sight(finding).to_string());
    let mut lines = String::new();
    let mut left = 0;
    for line in told {
        if left > 0 || lines.len() + line.len() > FINDINGS_BYTES_MAX {
            left += 1;
        } else {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    if left > 0 {
        let _written = writeln!(lines, "and {left} more");
    }
    let _written = write!(text, "\n#### Findings\n\n{}", fenced("text", &lines));
}

fn write_losses(text: &mut String, shown: &Shown) {
    let losing = shown.units.iter().map(|unit| (unit, losses(unit)));
    let mut lines = String::new();
    let mut left = 0;
    for (unit, lost) in losing.filter(|(_, lost)| !lost.is_empty()) {
        if lines.len() > FINDINGS_BYTES_MAX {
            left += 1;
        } else {
            let _written = writeln!(lines, "- {}: {lost}", unit.unit);
        }
    }
    if left > 0 {
        let _written = writeln!(lines, "and {left} more units");
    }
    if !lines.is_empty() {
        let _written = write!(text, "\n#### Removed\n\n{}", fenced("diff", &lines));
    }
}

fn write_dependants(text: &mut String, shown: &Shown) {
    let mut lines = String::new();
    let mut left = 0;
    for (depth, line) in dependants::lines(&shown.dependants) {
        if lines.len() > DEPENDANTS_BYTES_MAX {
            left += 1;
        } else {
            let _written = writeln!(lines, "{:indent$}{line}", "", indent = depth * 2);
        }
    }
    if left > 0 {
        let _written = writeln!(lines, "and {left} more lines");
    }
    if !lines.is_empty() {
        let _written = write!(text, "\n#### Dependants\n\n{}", fenced("text", &lines));
    }
}

fn fold(unit: &UnitChange) -> String {
    let clusters: usize = unit.groups.iter().map(|group| group.clusters.len()).sum();
    let what = if unit.removed { "removed from" } else { "changes on" };
    let mut body = String::new();
    for line in held(unit) {
        let _written = writeln!(body, "# {line}");
    }
    for line in lines(unit) {
        write_line(&mut body, &line);
    }
    format!(
        "\n<details><summary><b>{}</b> {what} {}</summary>\n\n{}\n</details>\n",
        unit.unit,
        counted(clusters, "cluster", "clusters"),
        fenced("diff", &body)
    )
}

/// A line of a `diff` block, in which the first character of a line colours it: a field's old and new value
/// are two lines.
fn write_line(body: &mut String, line: &Line) {
    let indent = line.depth * 4;
    let mut add = |mark: char, words: &str| {
        let _written = writeln!(body, "{mark} {:indent$}{words}", "");
    };
    match &line.what {
        What::Words(words) => add(
            match line.sign {
                Sign::Changed => '!',
                sign => sign.char(),
            },
            words,
        ),
        What::Field { name, from, to } => {
            if let Some(from) = from {
                add('-', &format!("{name}: {from}"));
            }
            if let Some(to) = to {
                add('+', &format!("{name}: {to}"));
            }
        }
    }
}

/// A block whose fence no line of it can close.
fn fenced(language: &str, body: &str) -> String {
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{body}{fence}\n")
}
