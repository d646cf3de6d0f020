//! What goes to stdout: text without a control character that came with the data.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

pub(super) use crate::words::counted;
use crate::words::steers;

/// Whether an answer was lost: the process fails then, whatever its command says.
static LOST: AtomicBool = AtomicBool::new(false);

/// Prints data. False when nobody reads any more, which is no error of ours, and when it could not be written,
/// which is told and makes the process fail.
pub(super) fn print(text: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let Err(error) = &written
        && error.kind() != std::io::ErrorKind::BrokenPipe
        && !LOST.swap(true, Ordering::Relaxed)
    {
        tell(&format!("error: failed to write to stdout: {error}\n"));
    }
    written.is_ok()
}

/// Whether something that was printed could not be written.
pub(super) fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Says something beside the data, on stderr. Nobody who reads it is no error either.
pub(super) fn tell(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _told = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Says why something failed: what happened in one line, and what to do in the next.
pub(super) fn fail(error: &dyn std::error::Error) {
    let (said, hint) = crate::fault::told(error);
    let hint = hint.map_or_else(String::new, |hint| format!("hint: {}\n", visible(&hint)));
    tell(&format!("error: {}\n{hint}", visible(&said)));
}

/// A text in one line, with everything that would steer a terminal written out.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
    }
    out
}

/// JSON for people. Control characters that JSON lets stand are escaped as well.
pub(super) fn json(value: &Value) -> String {
    let text = format!("{value:#}\n");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            out.push_str(&format!("\\u{:04x}", u32::from(c)))
        } else {
            out.push(c)
        }
    }
    out
}

/// Adds to a text: writing to a String cannot fail.
pub(super) fn write(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _written = std::fmt::Write::write_fmt(text, arguments);
}

/// Rows in columns, as kubectl sets them: three blanks between, nothing behind the last.
pub(super) struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    /// Columns wide enough for these rows.
    pub(super) fn fitting(rows: &[Vec<String>]) -> Self {
        let count = rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        Self {
            widths: (0..count).map(|column| width(column).unwrap_or_default()).collect(),
        }
    }

    /// One row as a line.
    pub(super) fn line(&self, row: &[String]) -> String {
        let mut line = String::new();
        for (index, cell) in row.iter().enumerate() {
            line.push_str(cell);
            let width = self.widths.get(index).copied().unwrap_or_default();
            let blanks = width.saturating_sub(cell.chars().count()) + 3;
            line.extend(std::iter::repeat_n(' ', blanks));
        }
        let mut line = line.trim_end().to_owned();
        line.push('\n');
        line
    }
}

/// Rows in columns that fit them.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let columns = Columns::fitting(rows);
    rows.iter().map(|row| columns.line(row)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_cannot_steer_a_terminal() {
        let nasty = "a\u{1b}[31m\u{9b}2J\u{7f}\r\nb\u{202e}";
        assert_eq!(visible(nasty), "a\\u{1b}[31m\\u{9b}2J\\u{7f}\\r\\nb\\u{202e}");
        let text = json(&json!({ "message": nasty }));
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        let read: Value = serde_json::from_str(&text).expect("it is still JSON");
        assert_eq!(read["message"], nasty, "that says the same");
        let yaml = render::yaml::write(&json!({ "message": nasty }));
        assert!(!yaml.chars().any(|c| c.is_control() && c != '\n'), "{yaml:?}");
    }

    #[test]
    fn columns_line_up_and_end_without_blanks() {
        let rows = [["NAME", "READY"], ["a-long-name", "True"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(columns(&rows), "NAME          READY\na-long-name   True\n");
    }
}
