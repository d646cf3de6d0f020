//! Registrations: branches on source that each bring one cluster's file, for a person to merge.
//!
//! A branch has its name from the cluster, so that however often an agent asks there is one. What a person put on it or
//! in its place is left alone, and so is what another hub proposes: each commit says by a key which hub that is.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use gix::objs::Kind;
use gix::objs::tree::EntryKind;
use gix::refs::Target;
use gix::refs::transaction::{PreviousValue, RefEdit};
use render::{ClusterName, Revision};
use tunnel::PublicKey;

use super::content::{entry, write_tree};
use super::proposal::list;
use super::{CommitId, Proposal, StateError, StateRepository};
use crate::hub::repository::{RepositoryError, commit, object_id, tree_entries, verified};

/// The folder that clusters' files are proposed in.
const FOLDER: &str = "clusters";

/// The trailer by which a commit of the hub's own is known.
const TRAILER: &str = "Registers-Cluster";

/// The trailer with the key of the hub that was asked.
const MARK: &str = "Asked-At-Hub";

/// The branches of registrations after a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registrations {
    /// Cluster → its branch, short.
    pub branches: BTreeMap<ClusterName, String>,
    /// Clusters whose branch another hub proposes, with another key.
    pub contested: BTreeSet<ClusterName>,
    /// Whether one of all these is another hub's, which may take it back.
    pub rests_on_others: bool,
}

/// By which keys hubs are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// This hub's, the one first that it shows; none where it proposes nothing.
    pub own: Vec<PublicKey>,
    /// Those of the other hubs that flags name, also those that they told since.
    pub others: Vec<PublicKey>,
}

/// What is known of what other hubs are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Whether they have told.
    pub hubs: OtherHubs,
    /// The clusters whose agents ask there, with which keys, as they told last.
    pub asked: BTreeMap<ClusterName, BTreeSet<PublicKey>>,
    /// The clusters that are registered, so that nobody's asking counts.
    pub registered: BTreeSet<ClusterName>,
}

/// Whether other hubs have told who asks there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherHubs {
    /// There are none, as far as this hub was told.
    #[default]
    None,
    /// One of them is away, or older, or has not told yet.
    Silent,
    /// All of them are there and have.
    Told,
}

/// Who put a branch there that no person changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hub) enum Whose {
    /// This hub.
    Own,
    /// Another hub, which takes it back itself.
    Another,
    /// A hub that nobody here knows: its key was replaced, or it is no more, or this one was not told of it.
    Unknown,
    /// A hub older than the mark.
    Unmarked,
}

impl Elsewhere {
    /// Whether this hub may take back a branch with this file that it is not asked for. That nobody is heard to ask for it is
    /// no reason where somebody may. Its own it keeps for another hub that is asked for the same.
    pub(in crate::hub) fn gives_back(&self, cluster: &str, whose: Whose, file: &str) -> bool {
        // What is no cluster's name nobody asks for.
        let name = ClusterName::parse(cluster.to_owned()).ok();
        if name.as_ref().is_some_and(|name| self.registered.contains(name)) {
            return true;
        }
        let asked = name.and_then(|name| self.asked.get(&name));
        let is_asked = asked.is_some();
        match (whose, self.hubs) {
            (Whose::Own, _) => !asked.is_some_and(|keys| keys.iter().any(|key| file.contains(&key.to_string()))),
            (Whose::Unmarked, OtherHubs::None) | (Whose::Unknown | Whose::Unmarked, OtherHubs::Told) => !is_asked,
            (Whose::Another | Whose::Unknown | Whose::Unmarked, _) => false,
        }
    }
}

impl StateRepository {
    /// Makes the branches of registrations those that are wanted, on `source` where they are new or say something else, but
    /// for those that are another hub's to take back. Doing it twice is doing it once.
    pub fn propose_registrations(
        &self,
        source: &Revision,
        wanted: &BTreeMap<ClusterName, String>,
        (marks, elsewhere): (&Marks, &Elsewhere),
        seconds: i64,
    ) -> Result<Registrations, StateError> {
        let prefix = self.refs.register_prefix.as_str();
        let present = self.repository.read(|repo| list(repo, prefix));
        let present = present.map_err(StateError::Unreadable)?;
        let of_branch = |proposal: &Proposal| proposal.branch.strip_prefix(prefix).map(str::to_owned);
        for proposal in &present {
            let is_wanted = of_branch(proposal).is_some_and(|name| wanted.keys().any(|known| known.as_str() == name));
            let Some(whose) = self.whose(proposal, marks)?.filter(|_| !is_wanted) else {
                continue;
            };
            let Some(name) = of_branch(proposal) else { continue };
            let file = self.file_of(proposal, &name)?.unwrap_or_default();
            if elsewhere.gives_back(&name, whose, &file) {
                match self.withdraw(proposal) {
                    // A person who pushes to it at this moment has made it theirs.
                    Ok(()) | Err(StateError::Moved { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let mut found_now = Registrations::default();
        for (cluster, file) in wanted {
            let branch = format!("{prefix}{cluster}");
            let found = present.iter().find(|proposal| proposal.branch == branch);
            let whose = found.map(|found| self.whose(found, marks)).transpose()?;
            let is_persons = whose == Some(None);
            found_now.rests_on_others |= !matches!(whose, None | Some(None | Some(Whose::Own)));
            let there = match found {
                Some(found) => self.file_of(found, cluster.as_str())?,
                None => None,
            };
            if !is_persons && there.as_ref() != Some(file) {
                // Of two keys for one cluster, at two hubs, the one that is there stays.
                let is_free = match whose.flatten() {
                    None | Some(Whose::Own) => true,
                    Some(whose) => elsewhere.gives_back(cluster.as_str(), whose, there.as_deref().unwrap_or_default()),
                };
                if !is_free {
                    found_now.contested.insert(cluster.clone());
                    continue;
                }
                let mark = marks.own.first();
                let commit = self.registration(source, (cluster, file, mark), seconds)?;
                self.point(&branch, found, commit, seconds)?;
            }
            let short = branch.trim_start_matches("refs/heads/").to_owned();
            found_now.branches.insert(cluster.clone(), short);
        }
        Ok(found_now)
    }

    /// What the names of registrations' branches begin with.
    pub fn register_prefix(&self) -> &str {
        &self.refs.register_prefix
    }

    /// Which hub put a branch there; `None` where it is a person's.
    fn whose(&self, proposal: &Proposal, marks: &Marks) -> Result<Option<Whose>, StateError> {
        let name = proposal.branch.trim_start_matches(self.refs.register_prefix.as_str());
        let message = self.message_of(proposal)?;
        let trailer = format!("{TRAILER}: {name}");
        if !message.lines().any(|line| line == trailer) {
            return Ok(None);
        }
        let mark = message.lines().find_map(|line| line.strip_prefix(MARK));
        let Some(mark) = mark.and_then(|mark| mark.strip_prefix(": ")) else {
            return Ok(Some(Whose::Unmarked));
        };
        let has = |keys: &[PublicKey]| keys.iter().any(|key| key.to_string() == mark);
        Ok(Some(match () {
            () if has(&marks.own) => Whose::Own,
            () if has(&marks.others) => Whose::Another,
            () => Whose::Unknown,
        }))
    }

    /// Whether the commit of a branch has a line by which the hub knows its own.
    pub(super) fn has_trailer(&self, proposal: &Proposal, trailer: &str) -> Result<bool, StateError> {
        Ok(self.message_of(proposal)?.lines().any(|line| line == trailer))
    }

    /// What the commit of a branch says.
    pub(super) fn message_of(&self, proposal: &Proposal) -> Result<String, StateError> {
        let message = self.repository.read(|repo| {
            let object = verified(repo, proposal.commit.0, Kind::Commit)?.into_commit();
            Ok(object.message_raw_sloppy().to_string())
        });
        message.map_err(StateError::Unreadable)
    }

    /// The file that a branch brings for a cluster.
    fn file_of(&self, found: &Proposal, cluster: &str) -> Result<Option<String>, StateError> {
        let names = file_names(cluster);
        let text = self.repository.read(|repo| {
            let root = tree_entries(repo, commit(repo, found.commit.0)?.tree)?;
            let Some(folder) = root
                .iter()
                .find(|entry| entry.filename == FOLDER && entry.mode.is_tree())
            else {
                return Ok(None);
            };
            let entries = tree_entries(repo, folder.oid)?;
            // The second name is used where something else has the first.
            for name in names.iter().rev() {
                if let Some(entry) = entries.iter().find(|entry| entry.filename == name.as_str()) {
                    let data = verified(repo, entry.oid, Kind::Blob)?.detach().data;
                    return Ok(String::from_utf8(data).ok());
                }
            }
            Ok(None)
        });
        text.map_err(StateError::Unreadable)
    }

    /// A commit on source with the file.
    fn registration(
        &self,
        source: &Revision,
        (cluster, file, mark): (&ClusterName, &str, Option<&PublicKey>),
        seconds: i64,
    ) -> Result<CommitId, StateError> {
        let unknown = || StateError::UnknownRevision {
            revision: source.clone(),
        };
        let parent = object_id(source).ok_or_else(unknown)?;
        let read = self.repository.read(|repo| {
            let root = tree_entries(repo, commit(repo, parent)?.tree)?;
            let folder = root
                .iter()
                .find(|entry| entry.filename == FOLDER && entry.mode.is_tree());
            let inside = folder.map(|folder| tree_entries(repo, folder.oid)).transpose()?;
            Ok::<_, RepositoryError>((root, inside.unwrap_or_default()))
        });
        let (mut root, mut inside) = read.map_err(StateError::Unreadable)?;
        let repo = self.repository.local();
        let blob = repo.write_blob(file).map_err(StateError::Write)?.detach();
        // A file that is there already declares something else, or this cluster would be registered.
        let mut names = file_names(cluster.as_str()).into_iter();
        let free = names.find(|name| !inside.iter().any(|entry| entry.filename == name.as_str()));
        let name = free.unwrap_or_else(|| format!("{cluster}.registration.yaml"));
        inside.retain(|entry| entry.filename != name.as_str());
        inside.push(entry(name, EntryKind::Blob, blob));
        root.retain(|entry| entry.filename != FOLDER);
        root.push(entry(FOLDER, EntryKind::Tree, write_tree(&repo, inside)?));
        let mark = mark.map(|key| format!("{MARK}: {key}\n")).unwrap_or_default();
        let message = format!(
            "Register cluster {cluster}\n\nAn agent asked for it with a bootstrap token. From the merge on, whoever proves this \
             key is\nlet in as this cluster.\n\n{TRAILER}: {cluster}\n{mark}"
        );
        self.commit_on(parent, write_tree(&repo, root)?, message, seconds)
    }

    /// Writes a commit for people to merge.
    pub(super) fn commit_on(
        &self,
        parent: ObjectId,
        tree: ObjectId,
        message: String,
        seconds: i64,
    ) -> Result<CommitId, StateError> {
        self.commit_with(Some(parent), tree, message, seconds)
    }

    /// The same, on a commit or on none.
    pub(super) fn commit_with(
        &self,
        parent: Option<ObjectId>,
        tree: ObjectId,
        message: String,
        seconds: i64,
    ) -> Result<CommitId, StateError> {
        let signature = self.signature(seconds);
        let commit = gix::objs::Commit {
            tree,
            parents: parent.into_iter().collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: message.into(),
            extra_headers: Vec::new(),
        };
        let repo = self.repository.local();
        let id = repo.write_object(&commit).map_err(StateError::Write)?.detach();
        Ok(CommitId(id))
    }

    /// Lets a branch point to a commit, if it still stands where it was found.
    pub(super) fn point(
        &self,
        branch: &str,
        found: Option<&Proposal>,
        to: CommitId,
        seconds: i64,
    ) -> Result<(), StateError> {
        let expected = match found {
            Some(found) => PreviousValue::MustExistAndMatch(Target::Object(found.commit.0)),
            None => PreviousValue::MustNotExist,
        };
        self.edit_ref(branch, found.map(|found| found.commit), seconds, |name| {
            RefEdit::update(name, to.0, expected, "propose")
        })
    }
}

/// Where a cluster's file may be, the usual place first.
fn file_names(cluster: &str) -> [String; 2] {
    [format!("{cluster}.yaml"), format!("{cluster}.registration.yaml")]
}
