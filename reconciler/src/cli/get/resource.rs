//! The kinds that the hub has, by any of their names.

use serde_json::Value;

/// A kind as the hub has it.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) namespaced: bool,
    /// Every name, lower case.
    names: Vec<String>,
}

impl Resource {
    /// Whether a person means it by a word: `sub`, `Subscription`, `subscriptions.fleet.flotilla.dev`.
    pub(super) fn is_called(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        let word = word.split('.').next().unwrap_or_default();
        self.names.iter().any(|name| name == word)
    }
}

/// The kinds of a discovery document, without what is part of another.
pub(super) fn all(list: &Value) -> Vec<Resource> {
    let entries = list["resources"].as_array().into_iter().flatten();
    entries
        .filter(|entry| !entry["name"].as_str().unwrap_or_default().contains('/'))
        .map(read)
        .collect()
}

fn read(entry: &Value) -> Resource {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
    let short = entry["shortNames"].as_array().into_iter().flatten();
    let names = [&entry["name"], &entry["singularName"], &entry["kind"]];
    Resource {
        plural: text(&entry["name"]),
        singular: text(&entry["singularName"]),
        namespaced: entry["namespaced"].as_bool().unwrap_or_default(),
        names: names.into_iter().chain(short).map(text).collect(),
    }
}
