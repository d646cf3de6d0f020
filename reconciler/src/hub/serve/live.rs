//! Cells of a cluster that are of the moment in which somebody asks. An object that had them would be another one with
//! every ping, and every watch would tell of it.

use std::collections::BTreeMap;

use render::ClusterName;
use render::time::rfc3339;
use serde_json::{Value, json};

use super::resource::Resource;
use crate::hub::source::Sought;
use crate::wire::StandingTunnel;
use crate::words::age;

/// What they are made from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Live {
    pub(super) cluster: ClusterName,
    /// Since when it is away, in seconds since 1970.
    pub(super) away_since: Option<i64>,
    /// The version of its applier, as it reported; empty where it did not.
    pub(super) agent: String,
    /// The file that declares it.
    pub(super) file: String,
    pub(super) keys: Vec<KeySince>,
}

/// A key in a cluster's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeySince {
    pub(super) key: String,
    /// When the commit was made that brought it, in seconds since 1970; `None` where Git does not say.
    pub(super) since: Option<i64>,
}

impl Live {
    /// What is looked for in its file.
    pub(super) fn sought(&self) -> impl Iterator<Item = Sought> + '_ {
        self.keys.iter().map(|known| Sought {
            path: self.file.clone(),
            text: known.key.clone(),
        })
    }

    /// Takes over when its keys came to its file.
    pub(super) fn date_keys(&mut self, found: &BTreeMap<Sought, i64>) {
        let since: Vec<_> = self.sought().map(|sought| found.get(&sought).copied()).collect();
        for (known, since) in self.keys.iter_mut().zip(since) {
            known.since = since;
        }
    }

    /// Its keys as its status has them.
    pub(super) fn keys_value(&self) -> Value {
        let one = |known: &KeySince| match known.since {
            Some(since) => json!({ "key": known.key, "introduced": rfc3339(since) }),
            None => json!({ "key": known.key }),
        };
        Value::Array(self.keys.iter().map(one).collect())
    }

    /// Puts the cells where the columns have them; `tunnel` is the cluster's, where this hub has it.
    pub(super) fn fill(&self, cells: &mut [Value], tunnel: Option<&StandingTunnel>, now: i64) {
        let columns = Resource::ManagedClusters.columns().iter();
        for (cell, column) in cells.iter_mut().zip(columns) {
            let text = match column.name {
                "Away" => self.away_since.map(|since| age(Some(since), now)),
                "RTT" => tunnel.and_then(|tunnel| Some(format!("{:.1}ms", tunnel.rtt_ms?))),
                "Agent" => self.agent(tunnel),
                "Key-Age" => self.key_age(tunnel, now),
                _ => continue,
            };
            *cell = json!(text.unwrap_or_else(|| "-".to_owned()));
        }
    }

    /// The agent's version, with a star where it is not this hub's.
    fn agent(&self, tunnel: Option<&StandingTunnel>) -> Option<String> {
        let version = tunnel.map_or(self.agent.as_str(), |tunnel| tunnel.version.as_str());
        let star = if version == env!("CARGO_PKG_VERSION") { "" } else { "*" };
        (!version.is_empty()).then(|| format!("{version}{star}"))
    }

    /// Of the key that the agent proved; of the file's only one where nobody did here.
    fn key_age(&self, tunnel: Option<&StandingTunnel>, now: i64) -> Option<String> {
        let used = match (tunnel, self.keys.as_slice()) {
            (None, []) => return None,
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(tunnel), keys) => keys.iter().find(|known| known.key == tunnel.key),
        };
        Some(age(used.and_then(|known| known.since), now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunnel(version: &str, key: &str, rtt_ms: Option<f64>) -> StandingTunnel {
        StandingTunnel {
            since: 0,
            version: version.to_owned(),
            key: key.to_owned(),
            has_hub_keys: false,
            streams: 0,
            rtt_ms,
        }
    }

    #[track_caller]
    fn check(live: &Live, tunnel: Option<&StandingTunnel>, expected: [&str; 4]) {
        let columns = Resource::ManagedClusters.columns();
        let mut cells = vec![Value::Null; columns.len()];
        live.fill(&mut cells, tunnel, 1_000_000);
        let found: Vec<_> = cells.iter().filter_map(Value::as_str).collect();
        assert_eq!(found, expected);
        let left = cells.iter().filter(|cell| cell.is_null()).count();
        assert_eq!(left + expected.len(), columns.len(), "no other cell is touched");
    }

    #[test]
    fn cells_of_the_moment_say_since_when_it_is_away_its_round_trip_its_version_and_its_keys_age() {
        let key = |key: &str, since| KeySince {
            key: key.to_owned(),
            since,
        };
        let own = env!("CARGO_PKG_VERSION");
        let mut live = Live {
            cluster: ClusterName::parse("oslo").expect("a valid name"),
            away_since: None,
            agent: String::new(),
            file: String::new(),
            keys: Vec::new(),
        };
        check(&live, None, ["-", "-", "-", "-"]);
        live.keys = vec![key("A", Some(1_000_000 - 86_400 * 30))];
        live.away_since = Some(1_000_000 - 300);
        live.agent = "0.0.9".to_owned();
        check(&live, None, ["5m", "-", "0.0.9*", "30d"]);
        live.away_since = None;
        live.keys.push(key("B", Some(1_000_000 - 60)));
        check(&live, None, ["-", "-", "0.0.9*", "<unknown>"]);
        check(&live, Some(&tunnel(own, "B", Some(1.26))), ["-", "1.3ms", own, "60s"]);
        check(&live, Some(&tunnel(own, "C", None)), ["-", "-", own, "<unknown>"]);
        live.keys = vec![key("A", None)];
        check(&live, Some(&tunnel(own, "A", None)), ["-", "-", own, "<unknown>"]);
    }
}
