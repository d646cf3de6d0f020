//! A plan as text, for people who review it on a terminal.

use std::fmt::Write as _;

use super::compare::Shown;
use super::dependants;
use super::lines::{Line, Sign, What, held, lines, losses};

/// How deep the lines of a unit stand, and how much deeper each level.
const INDENT: [usize; 3] = [2, 6, 10];

/// Select Graphic Rendition, where it is on.
struct Paint(bool);

impl Paint {
    fn sign(&self, sign: Sign, text: &str) -> String {
        let code = match sign {
            Sign::Added => "32",
            Sign::Removed => "31",
            Sign::Changed => "33",
        };
        self.with(code, text)
    }

    fn with(&self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

pub(super) fn text(shown: &Shown, colour: bool) -> String {
    let paint = Paint(colour);
    let mut text = format!("{}\n", paint.with("1", &shown.summary.line()));
    let from = shown
        .from
        .as_ref()
        .map_or_else(|| "nothing".to_owned(), |from| format!("sha1:{from}"));
    // Writing to a String cannot fail.
    let _written = writeln!(text, "Plan from {from} to sha1:{}", shown.to);
    let losing: Vec<_> = shown.units.iter().map(|unit| (unit, losses(unit))).collect();
    let mut losing = losing.into_iter().filter(|(_, lost)| !lost.is_empty()).peekable();
    if losing.peek().is_some() {
        let _written = writeln!(text, "\n{}", paint.with("1;31", "Removed"));
        for (unit, lost) in losing {
            let line = format!("- {}: {lost}", unit.unit);
            let _written = writeln!(text, "  {}", paint.sign(Sign::Removed, &line));
        }
    }
    if !shown.dependants.is_empty() {
        let _written = writeln!(text, "\n{}", paint.with("1", "Dependants"));
        for (depth, line) in dependants::lines(&shown.dependants) {
            let _written = writeln!(text, "{:indent$}{line}", "", indent = INDENT[depth.min(2)]);
        }
    }
    for unit in &shown.units {
        let _written = writeln!(text, "\n{}", paint.with("1", &unit.unit.to_string()));
        for line in held(unit) {
            let _written = writeln!(text, "  {}", paint.with("36", &line));
        }
        for line in lines(unit) {
            write_line(&mut text, &line, &paint);
        }
    }
    text
}

fn write_line(text: &mut String, line: &Line, paint: &Paint) {
    let sign = line.sign.char();
    let words = match &line.what {
        What::Words(words) => words.clone(),
        What::Field { name, from, to } => match (from, to) {
            (Some(from), Some(to)) => format!("{name}: {from} -> {to}"),
            (Some(only), None) | (None, Some(only)) => format!("{name}: {only}"),
            (None, None) => name.clone(),
        },
    };
    let indent = INDENT.get(line.depth).copied().unwrap_or(INDENT[2]);
    let painted = paint.sign(line.sign, &format!("{sign} {words}"));
    let _written = writeln!(text, "{:indent$}{painted}", "");
}
