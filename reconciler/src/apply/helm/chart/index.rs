//! An `index.yaml`: only what it says of one chart is read into memory, since the rest may be tens of MiB.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::version;
use crate::limits::CHART_ENTRY_BYTES_MAX;

/// A version of a chart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where its archive is.
    pub(super) url: String,
    /// The SHA-256 of the archive, where the index says it.
    pub(super) digest: Option<String>,
}

#[derive(Deserialize)]
struct Form<'a> {
    #[serde(borrow)]
    entries: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

/// The entry of the version that is meant; why there is none.
pub(super) fn choose(index: &[u8], chart: &str, wanted: &str) -> Result<Entry, String> {
    let text = std::str::from_utf8(index).map_err(|_| "the repository's index is no text".to_owned())?;
    let versions = versions(text, chart)?;
    let name = |version: &Value| version["version"].as_str().unwrap_or_default().to_owned();
    let names: Vec<_> = versions.iter().map(name).collect();
    let place = version::choose(wanted, names.iter().map(String::as_str))
        .map_err(|why| format!("chart {chart} of the repository {why}"))?;
    let chosen = &versions[place];
    let url = chosen["urls"][0]
        .as_str()
        .ok_or_else(|| format!("the index names no address for {chart} {}", names[place]))?;
    Ok(Entry {
        url: url.to_owned(),
        digest: chosen["digest"]
            .as_str()
            .filter(|digest| !digest.is_empty())
            .map(str::to_owned),
    })
}

fn versions(text: &str, chart: &str) -> Result<Vec<Value>, String> {
    let absent = || format!("the repository has no chart {chart}");
    let value = if text.trim_start().starts_with('{') {
        let index: Form<'_> =
            serde_json::from_str(text).map_err(|error| format!("the index is not understood: {error}"))?;
        let entry = index.entries.get(chart).ok_or_else(absent)?;
        small(entry.get())?;
        serde_json::from_str(entry.get()).map_err(|error| format!("the index is not understood: {error}"))?
    } else {
        let entry = cut(text, chart).ok_or_else(absent)?;
        small(&entry)?;
        let documents =
            render::yaml::read(&entry).map_err(|error| format!("the index is not understood: {}", error.message))?;
        let document = documents.into_iter().next().ok_or_else(absent)?;
        document.value[chart].clone()
    };
    match value {
        Value::Array(versions) if !versions.is_empty() => Ok(versions),
        _ => Err(absent()),
    }
}

fn small(entry: &str) -> Result<(), String> {
    if entry.len() <= CHART_ENTRY_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "the index says more than {CHART_ENTRY_BYTES_MAX} bytes of this chart"
    ))
}

/// The lines of an index that are about one chart, with their key. Helm and every chart museum write an index
/// in block style, where indentation tells.
fn cut(text: &str, chart: &str) -> Option<String> {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let mut lines = text
        .lines()
        .skip_while(|line| line.trim_end() != "entries:")
        .skip(1)
        .filter(|line| !is_blank(line));
    let mut line = lines.next()?;
    let depth = indent(line);
    let is_key = |line: &str| indent(line) == depth && !line[depth..].starts_with('-');
    if depth == 0 {
        return None;
    }
    loop {
        let key = line
            .trim_end()
            .strip_suffix(':')
            .map(|key| key.trim_start().trim_matches(['"', '\'']));
        if is_key(line) && key == Some(chart) {
            let mut found = vec![format!("{chart}:")];
            let own = lines.take_while(|line| indent(line) > depth || indent(line) == depth && !is_key(line));
            found.extend(own.map(|line| line[depth..].to_owned()));
            return Some(found.join("\n"));
        }
        line = lines.next()?;
        if indent(line) < depth {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "apiVersion: v1
entries:
  alpine:
  - version: 0.1.0
    urls:
    - https://a.example/alpine-0.1.0.tgz
  redis:
    # indented as some write it
    - version: 1.0.0
      description: |
        redis:
        - version: 9.9.9
      urls: [redis-1.0.0.tgz]
      digest: ab12
    - version: 1.1.0
      urls:
      - charts/redis-1.1.0.tgz
  zoo:
  - version: 3.0.0
    urls: [zoo.tgz]
generated: \"2026-01-01T00:00:00Z\"
";

    fn entry(url: &str, digest: Option<&str>) -> Entry {
        Entry {
            url: url.to_owned(),
            digest: digest.map(str::to_owned),
        }
    }

    #[test]
    fn one_chart_is_read_out_of_many() {
        let choose = |chart: &str, version: &str| choose(YAML.as_bytes(), chart, version);
        assert_eq!(choose("redis", "1.0.0"), Ok(entry("redis-1.0.0.tgz", Some("ab12"))));
        assert_eq!(choose("redis", ""), Ok(entry("charts/redis-1.1.0.tgz", None)));
        assert_eq!(
            choose("alpine", ""),
            Ok(entry("https://a.example/alpine-0.1.0.tgz", None))
        );
        assert_eq!(choose("zoo", ""), Ok(entry("zoo.tgz", None)));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let why = |chart: &str, version: &str| choose(YAML.as_bytes(), chart, version).expect_err("there is none");
        assert_eq!(why("mysql", ""), "the repository has no chart mysql");
        assert_eq!(
            why("redis", "1.0.1"),
            "chart redis of the repository has no version 1.0.1"
        );
        assert!(choose(b"<html>", "redis", "").is_err());
        assert!(choose(b"", "redis", "").is_err());
        assert!(choose(b"entries: {}", "redis", "").is_err());
        assert!(choose(&[0xff], "redis", "").is_err());
    }

    #[test]
    fn an_index_in_json_says_the_same() {
        let json = br#"{"entries": {"redis": [{"version": "1.0.0", "urls": ["r.tgz"], "digest": "ab"}], "a": [1]}}"#;
        assert_eq!(choose(json, "redis", "1.0.0"), Ok(entry("r.tgz", Some("ab"))));
        assert!(choose(json, "a", "").is_err());
    }
}
