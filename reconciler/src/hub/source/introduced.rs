//! Since when files have said something: the commit of the branch that brought a text to where it stands.
//!
//! In: a revision, files and a text in each. Out: when the commit was made since which the text is there without a break, by
//! first parents, so that a merge counts and not the branch that it brought. A file that moves takes its text along.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};
use gix::objs::tree::EntryMode;
use render::Revision;
use render::limits::FILE_BYTES_MAX;

use super::branch::{Source, SourceError, known};
use crate::hub::repository::{RepositoryError, commit, tree_entries, verified};
use crate::limits::{FILE_MOVES_MAX, TREE_DEPTH_MAX};

/// A text in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sought {
    /// Path of the file at the revision.
    pub(crate) path: String,
    /// What stands in it.
    pub(crate) text: String,
}

impl Source {
    /// When each text was brought, in seconds since 1970; `None` where the commit is not among the newest `commits`, or not
    /// here.
    pub(crate) fn introduced(
        &self,
        at: &Revision,
        sought: &[Sought],
        commits: usize,
    ) -> Result<Vec<Option<i64>>, SourceError> {
        let id = known(at)?;
        let found = self.repository.read(|repo| Walk::new(repo, sought).back(id, commits));
        found.map_err(SourceError::Unreadable)
    }
}

type Entries = BTreeMap<BString, (EntryMode, ObjectId)>;

struct Walk<'a> {
    repo: &'a gix::Repository,
    trails: Vec<Trail<'a>>,
    /// Where the paths of those that are open begin.
    roots: BTreeSet<BString>,
    /// Folders of the commit that is looked at, by id.
    folders: BTreeMap<ObjectId, Entries>,
}

/// One text, followed from commit to older commit.
struct Trail<'a> {
    text: &'a str,
    path: String,
    /// The file in the commit before.
    blob: Option<ObjectId>,
    is_there: bool,
    is_over: bool,
    since: Option<i64>,
}

impl<'a> Walk<'a> {
    fn new(repo: &'a gix::Repository, sought: &'a [Sought]) -> Self {
        let trail = |sought: &'a Sought| Trail {
            text: &sought.text,
            path: sought.path.clone(),
            blob: None,
            is_there: false,
            is_over: false,
            since: None,
        };
        let trails: Vec<_> = sought.iter().map(trail).collect();
        Self {
            repo,
            roots: roots(&trails),
            trails,
            folders: BTreeMap::new(),
        }
    }

    fn back(mut self, from: ObjectId, commits: usize) -> Result<Vec<Option<i64>>, RepositoryError> {
        let mut next = Some(from);
        let mut younger: Option<(ObjectId, i64)> = None;
        // What stands at the roots of paths, so that a commit that changes nothing below costs one look.
        let mut roots_before = None;
        for _ in 0..commits {
            let Some(id) = next else { break };
            let (links, seconds) = (commit(self.repo, id)?, seconds(self.repo, id)?);
            self.folders.clear();
            let at_roots = self.at_roots(links.tree)?;
            if roots_before.as_ref() != Some(&at_roots) {
                self.look(links.tree, younger)?;
                // A file that moved may have another root.
                self.roots = roots(&self.trails);
                roots_before = Some(self.at_roots(links.tree)?);
            }
            next = links.parents.first().copied();
            if next.is_none() && !self.is_at_edge(id)? {
                let open = self.trails.iter_mut().filter(|trail| trail.is_there && !trail.is_over);
                open.for_each(|trail| trail.since = Some(seconds));
            }
            if self.trails.iter().all(|trail| trail.is_over) {
                break;
            }
            younger = Some((links.tree, seconds));
        }
        Ok(self.trails.into_iter().map(|trail| trail.since).collect())
    }

    /// Looks at every file in a commit; `younger` is the tree and the time of the one that builds on it.
    fn look(&mut self, tree: ObjectId, younger: Option<(ObjectId, i64)>) -> Result<(), RepositoryError> {
        let mut moved = None;
        for at in 0..self.trails.len() {
            if self.trails[at].is_over {
                continue;
            }
            let (path, before) = (self.trails[at].path.clone(), self.trails[at].blob);
            let blob = self.blob(tree, &path)?;
            if blob.is_some() && blob == before {
                continue;
            }
            let is_there = match blob {
                Some(blob) => self.says(blob, self.trails[at].text)?,
                None => false,
            };
            if is_there || !self.trails[at].is_there {
                self.trails[at].is_there = is_there;
                self.trails[at].blob = blob;
                continue;
            }
            if blob.is_none()
                && let Some((younger, _)) = younger
            {
                let gone = match &moved {
                    Some(gone) => gone,
                    None => moved.insert(self.gone_in(tree, younger)?),
                };
                if let Some((path, blob)) = self.found_in(gone, self.trails[at].text)? {
                    self.trails[at].path = path;
                    self.trails[at].blob = Some(blob);
                    continue;
                }
            }
            self.trails[at].is_over = true;
            self.trails[at].since = younger.map(|(_, seconds)| seconds);
        }
        Ok(())
    }

    /// What stands there in a commit, in the order of the names.
    fn at_roots(&mut self, tree: ObjectId) -> Result<Vec<Option<ObjectId>>, RepositoryError> {
        let names = std::mem::take(&mut self.roots);
        let entries = self.entries(tree)?;
        let ids = names.iter().map(|name| entries.get(name).map(|(_, id)| *id)).collect();
        self.roots = names;
        Ok(ids)
    }

    fn entries(&mut self, folder: ObjectId) -> Result<&Entries, RepositoryError> {
        use std::collections::btree_map::Entry;
        match self.folders.entry(folder) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(entries(self.repo, folder)?)),
        }
    }

    fn blob(&mut self, tree: ObjectId, path: &str) -> Result<Option<ObjectId>, RepositoryError> {
        let mut at = tree;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let Some((mode, id)) = self.entries(at)?.get(part.as_bytes().as_bstr()).copied() else {
                return Ok(None);
            };
            match (parts.peek(), mode.is_tree(), mode.is_blob()) {
                (None, _, true) => return Ok(Some(id)),
                (Some(_), true, _) => at = id,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn says(&self, blob: ObjectId, text: &str) -> Result<bool, RepositoryError> {
        let header = self.repo.find_header(blob).map_err(|source| RepositoryError::Object {
            id: blob.to_string(),
            source,
        })?;
        if header.size() > FILE_BYTES_MAX as u64 {
            return Ok(false);
        }
        let object = verified(self.repo, blob, gix::objs::Kind::Blob)?;
        Ok(object.data.contains_str(text))
    }

    /// Files that a commit has and the one that builds on it has not where they were, as far as there are few of them.
    fn gone_in(&self, older: ObjectId, younger: ObjectId) -> Result<Vec<(String, ObjectId)>, RepositoryError> {
        let mut gone = Vec::new();
        let mut open = vec![(String::new(), older, Some(younger), 0)];
        while let Some((prefix, older, younger, depth)) = open.pop() {
            let now = match younger {
                Some(younger) => entries(self.repo, younger)?,
                None => Entries::new(),
            };
            for (name, (mode, id)) in entries(self.repo, older)? {
                let there = now.get(&name);
                if there.is_some_and(|(_, there)| *there == id) {
                    continue;
                }
                let path = format!("{prefix}{}", name.to_str_lossy());
                if mode.is_tree() && depth < TREE_DEPTH_MAX {
                    let below = there.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| *id);
                    open.push((format!("{path}/"), id, below, depth + 1));
                } else if mode.is_blob() && there.is_none() && gone.len() < FILE_MOVES_MAX {
                    gone.push((path, id));
                }
            }
        }
        Ok(gone)
    }

    fn found_in(
        &self,
        files: &[(String, ObjectId)],
        text: &str,
    ) -> Result<Option<(String, ObjectId)>, RepositoryError> {
        for (path, blob) in files {
            if self.says(*blob, text)? {
                return Ok(Some((path.clone(), *blob)));
            }
        }
        Ok(None)
    }

    fn is_at_edge(&self, id: ObjectId) -> Result<bool, RepositoryError> {
        let shallow = self.repo.shallow_commits().map_err(|source| RepositoryError::History {
            from: id.to_string(),
            source,
        })?;
        Ok(shallow.is_some_and(|edge| edge.binary_search(&id).is_ok()))
    }
}

fn roots(trails: &[Trail<'_>]) -> BTreeSet<BString> {
    let open = trails.iter().filter(|trail| !trail.is_over);
    let names = open.filter_map(|trail| trail.path.split('/').next());
    names.map(BString::from).collect()
}

fn entries(repo: &gix::Repository, folder: ObjectId) -> Result<Entries, RepositoryError> {
    let listed = tree_entries(repo, folder)?.into_iter();
    Ok(listed.map(|entry| (entry.filename, (entry.mode, entry.oid))).collect())
}

fn seconds(repo: &gix::Repository, id: ObjectId) -> Result<i64, RepositoryError> {
    let failed = |source| RepositoryError::History {
        from: id.to_string(),
        source,
    };
    let object = verified(repo, id, gix::objs::Kind::Commit)?;
    let decoded = object.try_to_commit_ref().map_err(failed)?;
    let time = decoded.time().map_err(failed)?;
    Ok(time.seconds)
}
