//! Registrations: branches on source that each bring one cluster's file, for a person to merge.
//!
//! A branch has its name from the cluster, so that however often an agent asks there is one. What a person put on it or
//! in its place is left alone.

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::objs::Kind;
use gix::objs::tree::EntryKind;
use gix::refs::Target;
use gix::refs::transaction::{PreviousValue, RefEdit};
use render::{ClusterName, Revision};

use super::content::{entry, write_tree};
use super::proposal::list;
use super::{CommitId, Proposal, StateError, StateRepository};
use crate::hub::repository::{RepositoryError, commit, object_id, tree_entries, verified};

/// The folder that clusters' files are proposed in.
const FOLDER: &str = "clusters";

/// The trailer by which a commit of the hub's own is known.
const TRAILER: &str = "Registers-Cluster";

/// The branches of registrations after a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registrations {
    /// Cluster → its branch, short.
    pub branches: BTreeMap<ClusterName, String>,
}

impl StateRepository {
    /// Makes the branches of registrations those that are wanted, on `source` where they are new or say something else.
    /// Doing it twice is doing it once.
    pub fn propose_registrations(
        &self,
        source: &Revision,
        wanted: &BTreeMap<ClusterName, String>,
        seconds: i64,
    ) -> Result<Registrations, StateError> {
        let prefix = self.refs.register_prefix.as_str();
        let present = self.repository.read(|repo| list(repo, prefix));
        let present = present.map_err(StateError::Unreadable)?;
        let of_branch = |proposal: &Proposal| proposal.branch.strip_prefix(prefix).map(str::to_owned);
        for proposal in &present {
            let is_wanted = of_branch(proposal).is_some_and(|name| wanted.keys().any(|known| known.as_str() == name));
            if !is_wanted && self.registers(proposal)? {
                match self.withdraw(proposal) {
                    // A person who pushes to it at this moment has made it theirs.
                    Ok(()) | Err(StateError::Moved { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let mut branches = BTreeMap::new();
        for (cluster, file) in wanted {
            let branch = format!("{prefix}{cluster}");
            let found = present.iter().find(|proposal| proposal.branch == branch);
            let is_theirs = match found {
                Some(found) => !self.registers(found)?,
                None => false,
            };
            if !is_theirs && !self.says(found, cluster, file)? {
                let commit = self.registration(source, cluster, file, seconds)?;
                self.point(&branch, found, commit, seconds)?;
            }
            let short = branch.trim_start_matches("refs/heads/").to_owned();
            branches.insert(cluster.clone(), short);
        }
        Ok(Registrations { branches })
    }

    /// What the names of registrations' branches begin with.
    pub fn register_prefix(&self) -> &str {
        &self.refs.register_prefix
    }

    /// Whether a branch is as the hub wrote it.
    fn registers(&self, proposal: &Proposal) -> Result<bool, StateError> {
        let name = proposal.branch.trim_start_matches(self.refs.register_prefix.as_str());
        self.has_trailer(proposal, &format!("{TRAILER}: {name}"))
    }

    /// Whether the commit of a branch has a line by which the hub knows its own.
    pub(super) fn has_trailer(&self, proposal: &Proposal, trailer: &str) -> Result<bool, StateError> {
        let message = self.repository.read(|repo| {
            let object = verified(repo, proposal.commit.0, Kind::Commit)?.into_commit();
            Ok(object.message_raw_sloppy().to_string())
        });
        let message = message.map_err(StateError::Unreadable)?;
        Ok(message.lines().any(|line| line == trailer))
    }

    /// Whether a branch brings exactly this file.
    fn says(&self, found: Option<&Proposal>, cluster: &ClusterName, file: &str) -> Result<bool, StateError> {
        let Some(found) = found else { return Ok(false) };
        let names = file_names(cluster);
        let text = self.repository.read(|repo| {
            let root = tree_entries(repo, commit(repo, found.commit.0)?.tree)?;
            let Some(folder) = root
                .iter()
                .find(|entry| entry.filename == FOLDER && entry.mode.is_tree())
            else {
                return Ok(false);
            };
            for entry in tree_entries(repo, folder.oid)? {
                if names.iter().any(|name| entry.filename == name.as_str())
                    && verified(repo, entry.oid, Kind::Blob)?.data == file.as_bytes()
                {
                    return Ok(true);
                }
            }
            Ok(false)
        });
        text.map_err(StateError::Unreadable)
    }

    /// A commit on source with the file.
    fn registration(
        &self,
        source: &Revision,
        cluster: &ClusterName,
        file: &str,
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
        let mut names = file_names(cluster).into_iter();
        let free = names.find(|name| !inside.iter().any(|entry| entry.filename == name.as_str()));
        let name = free.unwrap_or_else(|| format!("{cluster}.registration.yaml"));
        inside.retain(|entry| entry.filename != name.as_str());
        inside.push(entry(name, EntryKind::Blob, blob));
        root.retain(|entry| entry.filename != FOLDER);
        root.push(entry(FOLDER, EntryKind::Tree, write_tree(&repo, inside)?));
        let message = format!(
            "Register cluster {cluster}\n\nAn agent asked for it with a bootstrap token. From the merge on, whoever proves this \
             key is\nlet in as this cluster.\n\n{TRAILER}: {cluster}\n"
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
        let signature = self.signature(seconds);
        let commit = gix::objs::Commit {
            tree,
            parents: [parent].into_iter().collect(),
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
fn file_names(cluster: &ClusterName) -> [String; 2] {
    [format!("{cluster}.yaml"), format!("{cluster}.registration.yaml")]
}
