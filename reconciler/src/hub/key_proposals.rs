//! The proposal that replaces keys of agents, as the engine asks for it: files of clusters, each with a key more or less.
//! Blocks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use render::rekey::{KeyChange, edited};
use render::{ClusterName, Fleet};

use super::engine::{Event, KeysAsked, KeysDone};
use super::keeper::Keeper;
use super::publish::StateError;
use crate::fault::line;

impl Keeper {
    /// Makes the branch what is wished, but for what a person closed. A file that only a person can change holds up no
    /// other.
    pub(super) fn replace_keys(
        &self,
        fleet: &Fleet,
        (done, asked): (KeysDone, KeysAsked),
        seconds: i64,
    ) -> Result<Event, StateError> {
        let repository = self.repository();
        let mut found = repository.keys_found()?;
        let sorted = found.note.sorted(&done.changes, &asked, fleet, found.branch.is_some());
        let mut changes: Vec<_> = sorted
            .proposed
            .iter()
            .filter_map(|(name, change)| Some((fleet.clusters.get(name)?, change)))
            .collect();
        // In one file from behind, so that the lines of the others stay theirs.
        changes.sort_by_key(|(cluster, _)| Reverse((&cluster.file, cluster.line)));
        let paths: BTreeSet<_> = changes.iter().map(|(cluster, _)| cluster.file.to_string()).collect();
        let mut texts = repository.source_texts(&done.source, paths.iter().map(String::as_str))?;
        let (mut files, mut by_hand) = (BTreeMap::new(), BTreeMap::new());
        let mut open = BTreeMap::new();
        for (cluster, change) in changes {
            let path = cluster.file.to_string();
            let Some(text) = texts.get_mut(&path) else { continue };
            match edited(text, cluster, change) {
                Ok(Some(after)) => {
                    text.clone_from(&after);
                    files.insert(path, after);
                    open.insert(cluster.name.clone(), change.clone());
                }
                Ok(None) => {}
                Err(error) => {
                    by_hand.insert(cluster.name.clone(), line(&error));
                }
            }
        }
        let message = message(&open, &asked.askers);
        let mut note = sorted.note;
        if files.is_empty() {
            // Before the branch goes: a branch that is gone while this says that it is there was closed by a person.
            repository.note_keys(&mut found, &note, seconds)?;
        }
        let branch = repository.propose_keys(&done.source, &files, &message, (&found, seconds))?;
        note.open = open;
        repository.note_keys(&mut found, &note, seconds)?;
        Ok(Event::KeysProposed {
            done,
            branch,
            by_hand,
            closed: sorted.closed.into_keys().collect(),
        })
    }
}

/// What a person reads who is to merge it.
fn message(changes: &BTreeMap<ClusterName, KeyChange>, askers: &BTreeMap<ClusterName, String>) -> String {
    let added = changes.values();
    let added = added.filter(|change| matches!(change, KeyChange::Add(_))).count();
    let subject = match (added, changes.len() - added) {
        (added, 0) => format!("Add the next keys of {added} clusters"),
        (0, removed) => format!("Take out the old keys of {removed} clusters"),
        (added, removed) => format!("Add the next keys of {added} clusters, take out the old ones of {removed}"),
    };
    let lines = changes.iter().map(|(cluster, change)| {
        let asker = askers
            .get(cluster)
            .map_or("asked at a hub that is away", String::as_str);
        match change {
            KeyChange::Add(key) => format!("- {cluster} gets {key}\n  {asker}\n"),
            KeyChange::Remove(key) => format!("- {cluster} loses {key}\n  {asker}\n"),
        }
    });
    format!(
        "{subject}\n\nEach agent proved to hold both keys, its old one and the next. From the merge on, whoever proves a key\n\
         that is added is let in as that cluster, and whoever proves one that is taken out is not. An address that you do\n\
         not know may be somebody's who has the old key: close this, and take that key out of the file.\n\n{}",
        lines.collect::<String>()
    )
}
