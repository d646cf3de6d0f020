//! What is remembered of proposals of keys: which changes were proposed, and which of them a person closed. A closed one
//! does not come back by itself.
//!
//! It is the message of a commit at a ref of its own, so that hubs over one state know the same, and a hub that restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use render::rekey::KeyChange;
use render::{ClusterName, Fleet};

use crate::limits::KEY_CLOSINGS_OF_CLUSTER_MAX;

/// Cluster → its change.
type Changes = BTreeMap<ClusterName, KeyChange>;

/// What is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyNote {
    /// The changes on the branch.
    pub open: Changes,
    /// Those that a person closed.
    pub closed: BTreeMap<ClusterName, Vec<KeyChange>>,
}

/// What is known of who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeysAsked {
    /// Cluster → who asks for its change, for people.
    pub askers: BTreeMap<ClusterName, String>,
    /// Clusters whose agents wish something, whatever is due.
    pub heard: BTreeSet<ClusterName>,
    /// Another hub is away that may have heard others: what is proposed for them stays.
    pub is_partial: bool,
}

/// What becomes of what is wished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorted {
    /// What is to be proposed.
    pub proposed: Changes,
    /// What is wished and was closed.
    pub closed: Changes,
    /// What is remembered from now on, without what is open.
    pub note: KeyNote,
}

impl KeyNote {
    /// Reads it back. A line that is none of its own says nothing.
    pub fn parse(text: &str) -> Self {
        let mut note = Self::default();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let [kind, cluster, what, key] = words.as_slice() else {
                continue;
            };
            let Ok(cluster) = ClusterName::parse((*cluster).to_owned()) else {
                continue;
            };
            let change = match *what {
                "add" => KeyChange::Add((*key).to_owned()),
                "remove" => KeyChange::Remove((*key).to_owned()),
                _ => continue,
            };
            match *kind {
                "open:" => drop(note.open.insert(cluster, change)),
                "closed:" => note.close(cluster, change),
                _ => {}
            }
        }
        note
    }

    /// As it stands in the commit.
    pub fn to_text(&self) -> String {
        let mut text = "Keys of agents: what is proposed, and what a person closed\n\n".to_owned();
        let closed = self.closed.iter();
        let closed =
            closed.flat_map(|(cluster, changes)| changes.iter().map(move |change| ("closed", cluster, change)));
        let open = self.open.iter().map(|(cluster, change)| ("open", cluster, change));
        for (kind, cluster, change) in open.chain(closed) {
            let (what, key) = match change {
                KeyChange::Add(key) => ("add", key),
                KeyChange::Remove(key) => ("remove", key),
            };
            // Writing to a String does not fail.
            let _written = writeln!(text, "{kind}: {cluster} {what} {key}");
        }
        text
    }

    /// A person closed a change.
    fn close(&mut self, cluster: ClusterName, change: KeyChange) {
        let changes = self.closed.entry(cluster).or_default();
        if !changes.contains(&change) {
            changes.push(change);
        }
        if changes.len() > KEY_CLOSINGS_OF_CLUSTER_MAX {
            changes.remove(0);
        }
    }

    /// What becomes of what is wished, where the branch stands, or is gone: then a person closed it, since a hub that takes
    /// it back says so here first. What another hub may have heard, which is away, stays.
    pub fn sorted(&self, wished: &Changes, asked: &KeysAsked, fleet: &Fleet, is_there: bool) -> Sorted {
        let mut note = Self {
            open: Changes::new(),
            closed: self.closed.clone(),
        };
        let mut proposed = wished.clone();
        for (cluster, change) in &self.open {
            if !is_there {
                note.close(cluster.clone(), change.clone());
            } else if asked.is_partial && !asked.heard.contains(cluster) && is_open(fleet, cluster, change) {
                proposed.insert(cluster.clone(), change.clone());
            }
        }
        for (cluster, changes) in &mut note.closed {
            changes.retain(|change| is_open(fleet, cluster, change));
        }
        note.closed.retain(|_, changes| !changes.is_empty());
        let is_closed = |cluster: &ClusterName, change: &KeyChange| {
            let closed = note.closed.get(cluster);
            closed.is_some_and(|closed| closed.contains(change))
        };
        let (closed, proposed) = proposed
            .into_iter()
            .partition(|(cluster, change)| is_closed(cluster, change));
        Sorted { proposed, closed, note }
    }
}

/// Whether a change is still one: neither merged, nor of a cluster that is gone.
fn is_open(fleet: &Fleet, cluster: &ClusterName, change: &KeyChange) -> bool {
    fleet.clusters.get(cluster).is_some_and(|cluster| {
        let has = |key: &String| cluster.public_keys.contains(key);
        match change {
            KeyChange::Add(key) => !has(key),
            KeyChange::Remove(key) => has(key) && cluster.public_keys.len() > 1,
        }
    })
}

#[cfg(test)]
mod tests {
    use render::load::load;
    use render::{Previous, SourceTree};

    use super::*;

    fn name(text: &str) -> ClusterName {
        ClusterName::parse(text).expect("a valid name")
    }

    /// Clusters, each with its keys.
    fn fleet(clusters: &[(&str, &str)]) -> Fleet {
        let mut fleet = {
            let files = clusters.iter().map(|(cluster, _)| {
                let file = format!(
                    "{{apiVersion: fleet.flotilla.dev/v1alpha1, kind: ManagedCluster, metadata: {{name: {cluster}}}}}"
                );
                (format!("clusters/{cluster}.yaml"), file.into_bytes())
            });
            let revision = "1".repeat(40).parse().expect("forty hex digits");
            load(&SourceTree::from_files(revision, files), &Previous::default()).0
        };
        for (cluster, keys) in clusters {
            let declared = fleet.clusters.get_mut(&name(cluster)).expect("it is declared");
            declared.public_keys = keys.split(' ').map(str::to_owned).collect();
        }
        fleet
    }

    fn adds(changes: &[(&str, &str)]) -> Changes {
        let add = |(cluster, key): &(&str, &str)| (name(cluster), KeyChange::Add((*key).to_owned()));
        changes.iter().map(add).collect()
    }

    fn heard(names: &[&str], is_partial: bool) -> KeysAsked {
        KeysAsked {
            heard: names.iter().copied().map(name).collect::<BTreeSet<_>>(),
            is_partial,
            ..KeysAsked::default()
        }
    }

    fn open(changes: &[(&str, &str)]) -> KeyNote {
        KeyNote {
            open: adds(changes),
            ..KeyNote::default()
        }
    }

    #[test]
    fn what_is_remembered_reads_back_and_what_is_none_of_it_says_nothing() {
        let mut note = open(&[("oslo", "k2")]);
        note.close(name("rome"), KeyChange::Remove("k1".to_owned()));
        note.close(name("rome"), KeyChange::Add("k3".to_owned()));
        assert_eq!(KeyNote::parse(&note.to_text()), note);
        assert_eq!(
            KeyNote::parse("open: oslo\nclosed: .. add k\nopen: oslo drop k\n"),
            KeyNote::default()
        );
        for number in 0..100 {
            note.close(name("oslo"), KeyChange::Add(format!("k{number}")));
        }
        assert_eq!(note.closed[&name("oslo")].len(), KEY_CLOSINGS_OF_CLUSTER_MAX);
    }

    #[test]
    fn a_closed_proposal_does_not_come_back_for_the_same_key() {
        let fleet = fleet(&[("oslo", "k1"), ("rome", "r1")]);
        let wished = adds(&[("oslo", "k2"), ("rome", "r2")]);
        let all = heard(&["oslo", "rome"], false);
        let first = KeyNote::default().sorted(&wished, &all, &fleet, false);
        assert_eq!((&first.proposed, first.closed.is_empty()), (&wished, true));
        // The branch is gone, and with it what was on it; what was not on it is proposed.
        let closed = open(&[("oslo", "k2")]).sorted(&wished, &all, &fleet, false);
        assert_eq!(
            (closed.proposed, closed.closed),
            (adds(&[("rome", "r2")]), adds(&[("oslo", "k2")]))
        );
        let again = closed.note.sorted(&wished, &all, &fleet, true);
        assert_eq!(again.closed, adds(&[("oslo", "k2")]), "however often it is asked");
        let other = closed.note.sorted(&adds(&[("oslo", "k3")]), &all, &fleet, true);
        assert_eq!(
            other.proposed,
            adds(&[("oslo", "k3")]),
            "another key is another question"
        );
    }

    #[test]
    fn what_was_merged_or_is_of_no_cluster_is_remembered_no_more() {
        let note = open(&[("oslo", "k2"), ("rome", "r2")]);
        let merged = note.sorted(&Changes::new(), &heard(&[], false), &fleet(&[("oslo", "k1 k2")]), false);
        assert_eq!(merged.note, KeyNote::default());
    }

    #[test]
    fn what_a_hub_that_is_away_may_have_heard_stays_on_the_branch() {
        let fleet = fleet(&[("oslo", "k1"), ("rome", "r1"), ("bern", "b1 b2")]);
        let note = open(&[("oslo", "k2"), ("rome", "r2"), ("bern", "b2")]);
        let wished = adds(&[("oslo", "k2")]);
        let partial = note.sorted(&wished, &heard(&["oslo"], true), &fleet, true);
        assert_eq!(
            partial.proposed,
            adds(&[("oslo", "k2"), ("rome", "r2")]),
            "but for what is merged"
        );
        // Whoever is heard says what counts; and with all hubs there, nobody else asks.
        let heard_of = note.sorted(&wished, &heard(&["oslo", "rome"], true), &fleet, true);
        assert_eq!(heard_of.proposed, wished);
        let whole = note.sorted(&wished, &heard(&["oslo"], false), &fleet, true);
        assert_eq!(whole.proposed, wished);
    }
}
