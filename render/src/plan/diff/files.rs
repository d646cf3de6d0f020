//! What changes in the files of a chart: of each the lines between the first and the last that differ.

use std::collections::BTreeSet;

use serde_json::Value;

use super::FieldChange;
use crate::chart::ChartFiles;
use crate::describe::Content;
use crate::limits::CHART_CHANGE_BYTES_MAX;

/// One change per file that differs, sorted by path.
pub(super) fn changes(from: &Content, to: &Content) -> Vec<FieldChange> {
    let (from, to) = (files(from), files(to));
    let paths = |chart: Option<&ChartFiles>| -> BTreeSet<String> {
        let files = chart.into_iter().flat_map(ChartFiles::iter);
        files.map(|(path, _)| path.to_owned()).collect()
    };
    let all = paths(from).into_iter().chain(paths(to)).collect::<BTreeSet<_>>();
    let change = |path: String| {
        let of = |chart: Option<&ChartFiles>| chart.and_then(|chart| chart.file(&path).map(<[u8]>::to_vec));
        let (from, to) = (of(from), of(to));
        if from == to {
            return None;
        }
        let (from, to) = shown(from.as_deref(), to.as_deref());
        Some(FieldChange { field: path, from, to })
    };
    all.into_iter().filter_map(change).collect()
}

fn files(content: &Content) -> Option<&ChartFiles> {
    match content {
        Content::Chart { files, .. } => Some(files),
        Content::Plain { .. } | Content::Encrypted { .. } => None,
    }
}

fn shown(from: Option<&[u8]>, to: Option<&[u8]>) -> (Option<Value>, Option<Value>) {
    let text = |bytes: Option<&[u8]>| {
        bytes
            .map(|bytes| std::str::from_utf8(bytes).map(str::to_owned))
            .transpose()
    };
    let (Ok(old), Ok(new)) = (text(from), text(to)) else {
        let size = |bytes: &[u8]| Value::from(format!("{} bytes", bytes.len()));
        return (from.map(size), to.map(size));
    };
    let lines = |text: &Option<String>| -> Vec<String> {
        let lines = text.iter().flat_map(|text| text.lines());
        lines.map(str::to_owned).collect()
    };
    let (old_lines, new_lines) = (lines(&old), lines(&new));
    let pairs = old_lines.iter().zip(&new_lines);
    let head = pairs.take_while(|(a, b)| a == b).count();
    let pairs = old_lines[head..].iter().rev().zip(new_lines[head..].iter().rev());
    let tail = pairs.take_while(|(a, b)| a == b).count();
    let part = |lines: &[String]| bounded(lines[head..lines.len() - tail].join("\n"));
    (old.map(|_| part(&old_lines)), new.map(|_| part(&new_lines)))
}

fn bounded(mut text: String) -> Value {
    if text.len() > CHART_CHANGE_BYTES_MAX {
        let end = (0..=CHART_CHANGE_BYTES_MAX)
            .rev()
            .find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn chart(files: &[(&str, &[u8])]) -> Content {
        let mut files: std::collections::BTreeMap<Arc<str>, Arc<[u8]>> = files
            .iter()
            .map(|(path, bytes)| (Arc::from(*path), Arc::from(*bytes)))
            .collect();
        files.insert("Chart.yaml".into(), Arc::from(&b"name: web\n"[..]));
        Content::Chart {
            object: Arc::new(json!({})),
            files: Arc::new(ChartFiles::new(files).expect("it is a chart")),
        }
    }

    #[test]
    fn a_changed_file_of_a_chart_is_told_by_the_lines_that_differ() {
        let from = chart(&[("gone.txt", b"x"), ("t.yaml", b"a\nb\nc\nd\n"), ("sub.tgz", &[255, 0])]);
        let to = chart(&[
            ("t.yaml", b"a\nB\nC\nd\n"),
            ("new.txt", b"y\n"),
            ("sub.tgz", &[255, 0, 1]),
        ]);
        let told = serde_json::to_value(changes(&from, &to)).expect("changes are JSON");
        let expected = json!([
            {"field": "gone.txt", "from": "x"},
            {"field": "new.txt", "to": "y"},
            {"field": "sub.tgz", "from": "2 bytes", "to": "3 bytes"},
            {"field": "t.yaml", "from": "b\nc", "to": "B\nC"},
        ]);
        assert_eq!(told, expected);
        assert_eq!(changes(&to, &to), []);
    }
}
