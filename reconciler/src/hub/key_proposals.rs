//! The proposal that replaces keys of agents, as the engine asks for it: files of clusters, each with a key more or less.
//! Blocks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use render::Fleet;
use render::rekey::{KeyChange, edited};

use super::engine::{Event, KeysDone};
use super::keeper::Keeper;
use super::publish::StateError;
use crate::fault::line;

impl Keeper {
    /// Makes the branch what is wished. A file that only a person can change holds up no other.
    pub(super) fn replace_keys(&self, fleet: &Fleet, done: KeysDone, seconds: i64) -> Result<Event, StateError> {
        let mut changes: Vec<_> = done
            .changes
            .iter()
            .filter_map(|(name, change)| Some((fleet.clusters.get(name)?, change)))
            .collect();
        // In one file from behind, so that the lines of the others stay theirs.
        changes.sort_by_key(|(cluster, _)| Reverse((&cluster.file, cluster.line)));
        let paths: BTreeSet<_> = changes.iter().map(|(cluster, _)| cluster.file.to_string()).collect();
        let mut texts = self
            .repository()
            .source_texts(&done.source, paths.iter().map(String::as_str))?;
        let (mut files, mut by_hand) = (BTreeMap::new(), BTreeMap::new());
        for (cluster, change) in changes {
            let path = cluster.file.to_string();
            let Some(text) = texts.get_mut(&path) else { continue };
            match edited(text, cluster, change) {
                Ok(Some(after)) => {
                    text.clone_from(&after);
                    files.insert(path, after);
                }
                Ok(None) => {}
                Err(error) => {
                    by_hand.insert(cluster.name.clone(), line(&error));
                }
            }
        }
        let branch = self
            .repository()
            .propose_keys(&done.source, &files, &message(&done), seconds)?;
        Ok(Event::KeysProposed { done, branch, by_hand })
    }
}

/// What a person reads who is to merge it.
fn message(done: &KeysDone) -> String {
    let added = done.changes.values();
    let added = added.filter(|change| matches!(change, KeyChange::Add(_))).count();
    let subject = match (added, done.changes.len() - added) {
        (added, 0) => format!("Add the next keys of {added} clusters"),
        (0, removed) => format!("Take out the old keys of {removed} clusters"),
        (added, removed) => format!("Add the next keys of {added} clusters, take out the old ones of {removed}"),
    };
    let lines = done.changes.iter().map(|(cluster, change)| match change {
        KeyChange::Add(key) => format!("- {cluster} gets {key}\n"),
        KeyChange::Remove(key) => format!("- {cluster} loses {key}\n"),
    });
    format!(
        "{subject}\n\nEach agent proved to hold both keys, its old one and the next. From the merge on, whoever proves a key\n\
         that is added is let in as that cluster, and whoever proves one that is taken out is not.\n\n{}",
        lines.collect::<String>()
    )
}
