//! The proposal that replaces keys of agents, as the engine asks for it: files of clusters, each with a key more or less.
//! Blocks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use render::rekey::{KeyChange, edited};
use render::{ClusterName, Fleet};

use super::engine::{Event, KeysDone};
use super::keeper::Keeper;
use super::publish::{KeysAsked, StateError};
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
        if found.is_persons {
            // It is left alone, whatever is wished by now: who closes it says no to what was on it.
            open.clone_from(&found.note.open);
            note.open.clone_from(&open);
        }
        if files.is_empty() || found.branch.is_none() {
            // Before the branch goes: a branch that is gone while this says that it is there was closed by a person. And
            // before it comes back with others, since what it was closed with is forgotten where it stands.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use render::load::load;
    use render::{Previous, Revision, SourceTree};
    use tunnel::PublicKey;

    use super::*;
    use crate::hub::publish::{Author, StateRefs, StateRepository};
    use crate::hub::repository::fixture::Fixture;
    use crate::hub::source::Source;

    fn key(number: u8) -> String {
        PublicKey::from_bytes([number; 32]).to_string()
    }

    fn name() -> ClusterName {
        ClusterName::parse("oslo").expect("a valid name")
    }

    /// A repository in which oslo has the key 1, and what its hub reads there.
    fn oslo() -> (Fixture, Arc<Fleet>) {
        let fixture = Fixture::new();
        let text = format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata:\n  name: oslo\nspec:\n  publicKeys:\n    - {}\n",
            key(1)
        );
        fixture.write("clusters/oslo.yaml", &text);
        fixture.commit("oslo");
        let revision = Revision::parse(fixture.head()).expect("a commit");
        let files = [("clusters/oslo.yaml".to_owned(), text.into_bytes())];
        let fleet = load(&SourceTree::from_files(revision, files), &Previous::default()).0;
        (fixture, Arc::new(fleet))
    }

    /// A hub that has just started proposes this next key; the branch, and whether it says that a person closed it.
    fn propose(fixture: &Fixture, fleet: &Fleet, next: u8) -> (Option<String>, bool) {
        replace(fixture, fleet, Some(next)).expect("it is written")
    }

    /// The same, where nobody may wish one, and where it may fail.
    fn replace(fixture: &Fixture, fleet: &Fleet, next: Option<u8>) -> Result<(Option<String>, bool), StateError> {
        let source = Source::open(fixture.file("."), "main").expect("it opens");
        let opened = StateRepository::open(fixture.file("."), StateRefs::default(), Author::default(), &source);
        let keeper = Keeper::new(opened.expect("it opens"));
        let done = KeysDone {
            source: fleet.revision.clone(),
            changes: next
                .map(|next| (name(), KeyChange::Add(key(next))))
                .into_iter()
                .collect(),
        };
        let asked = KeysAsked {
            askers: [(name(), "asked with k, from 10.0.0.7, since then".to_owned())].into(),
            heard: [name()].into(),
            is_partial: false,
        };
        match keeper.replace_keys(fleet, (done, asked), 1)? {
            Event::KeysProposed { branch, closed, .. } => Ok((branch, closed.contains(&name()))),
            other => unreachable!("{other:?}"),
        }
    }

    /// A person puts a commit on the branch.
    fn touch(fixture: &Fixture) {
        fixture.git(&["checkout", "--quiet", "flotilla/keys"]);
        fixture.write("why.txt", "asked by phone\n");
        fixture.commit("why");
        fixture.git(&["checkout", "--quiet", "main"]);
    }

    #[test]
    fn a_branch_that_a_person_deleted_does_not_come_back_at_any_hub_and_says_who_asked_while_it_is_there() {
        let (fixture, fleet) = oslo();
        let git = |arguments: &[&str]| fixture.git(arguments);
        let there = (Some("flotilla/keys".to_owned()), false);
        assert_eq!(propose(&fixture, &fleet, 2), there);
        assert_eq!(propose(&fixture, &fleet, 2), there, "by whichever hub");
        let message = git(&["log", "-1", "--format=%B", "flotilla/keys"]);
        assert!(message.contains("asked with k, from 10.0.0.7, since then"), "{message}");
        assert!(git(&["show", "flotilla/keys:clusters/oslo.yaml"]).contains(&key(2)));
        git(&["branch", "--quiet", "-D", "flotilla/keys"]);
        for _ in 0..3 {
            assert_eq!(propose(&fixture, &fleet, 2), (None, true));
        }
        // Another key is another question, and leaves the answer to the first one.
        assert_eq!(propose(&fixture, &fleet, 3), there);
        assert_eq!(propose(&fixture, &fleet, 2), (None, true));
        assert_eq!(
            git(&["for-each-ref", "refs/heads/flotilla/keys"]),
            "",
            "nobody wishes it any more"
        );
        assert_eq!(
            propose(&fixture, &fleet, 3),
            there,
            "which a hub took back and no person"
        );
    }

    #[test]
    fn who_closes_a_branch_with_a_commit_of_theirs_closes_what_was_on_it_and_nothing_that_was_wished_meanwhile() {
        // Whether something was wished while it stood, or nothing.
        for meanwhile in [Some(3), None] {
            let (fixture, fleet) = oslo();
            let there = (Some("flotilla/keys".to_owned()), false);
            assert_eq!(propose(&fixture, &fleet, 2), there);
            touch(&fixture);
            let left_alone = (meanwhile.map(|_| "flotilla/keys".to_owned()), false);
            for _ in 0..2 {
                assert_eq!(replace(&fixture, &fleet, meanwhile).expect("it is written"), left_alone);
            }
            fixture.git(&["branch", "--quiet", "-D", "flotilla/keys"]);
            assert_eq!(propose(&fixture, &fleet, 3), there, "nobody said no to it");
            assert_eq!(propose(&fixture, &fleet, 2), (None, true), "a person did to this one");
        }
    }

    #[test]
    fn what_a_person_closed_is_remembered_before_others_are_proposed() {
        let (fixture, fleet) = oslo();
        let there = (Some("flotilla/keys".to_owned()), false);
        assert_eq!(propose(&fixture, &fleet, 2), there);
        fixture.git(&["branch", "--quiet", "-D", "flotilla/keys"]);
        // A hub that cannot write what is remembered, as one that dies at that moment.
        let lock = fixture.file(".git/refs/flotilla/keys-asked.lock");
        std::fs::write(&lock, "").expect("written");
        assert!(replace(&fixture, &fleet, Some(3)).is_err());
        std::fs::remove_file(&lock).expect("it is there");
        assert_eq!(propose(&fixture, &fleet, 2), (None, true), "at whichever hub is next");
    }
}
