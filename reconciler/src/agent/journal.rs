//! The journal: what was taken, on disk, so that an agent that restarts without its hub keeps enforcing it.
//!
//! ```text
//! <folder>/held.json               the newest believed envelope
//! <folder>/contents/<digest>.json  each content it names
//! <folder>/absence.json            for how long no hub was heard of
//! <folder>/hub-keys.json           keys of hubs, as they told them
//! <folder>/hub-keys-known.json     since when each key of a hub is known
//! <folder>/holder                  this journal's identity in the cluster's lease
//! <folder>/lock                    locked while an agent uses the journal
//! ```
//!
//! Contents are written before the envelope that names them, every file is written beside its place and moved there, and
//! what does not read back is an error, never an empty journal.

mod files;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use render::Digest;
use render::describe::Description;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use files::Files;

use self::files::LocalFiles;
use super::secrets::SecretError;
use super::store::{Absence, Kept, Store};
use crate::key_sets::{KeysKnown, Vouched};
use crate::wire::Held;

const HELD_FILE: &str = "held.json";
const CONTENTS_FOLDER: &str = "contents";
const ABSENCE_FILE: &str = "absence.json";
const HUB_KEYS_FILE: &str = "hub-keys.json";
const HUB_KEYS_KNOWN_FILE: &str = "hub-keys-known.json";
const HOLDER_FILE: &str = "holder";
const LOCK_FILE: &str = "lock";

/// A journal on disk, used by one agent at a time.
#[derive(Clone, Debug)]
pub struct Journal {
    files: Arc<dyn Files>,
    folder: PathBuf,
    holder: String,
    stands: Arc<Mutex<Stands>>,
    /// Locked as long as it is open.
    _lock: Arc<dyn Any + Send + Sync>,
}

/// What is known to stand in it, so that it is not written again.
#[derive(Debug, Default)]
struct Stands {
    held: Option<Held>,
    contents: BTreeSet<Digest>,
    /// Files beside them that nothing names, as a process leaves them that ends between two writes.
    stray: BTreeSet<PathBuf>,
    /// Whether the newest contents may not last over a loss of power.
    unsynced: bool,
    absence: Option<Absence>,
    hub_keys: Vec<Vouched>,
    hub_keys_known: KeysKnown,
}

/// A journal that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file could not be read.
    #[error("failed to read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("failed to write {path}; hint: --journal names a folder that this process may make and write to")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// One in Secrets of the cluster.
    #[error(transparent)]
    Secrets(#[from] SecretError),
    /// Another agent uses it.
    #[error(
        "the journal {path} is in use by another agent; hint: end that one, or give this one a folder of its own with --journal"
    )]
    InUse {
        /// Its folder.
        path: PathBuf,
    },
    /// A file is not what it should be. It is left as it is, for a person to look at.
    #[error("{path} is damaged; remove the journal, and the agent asks its hub again")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl JournalError {
    /// Whether another process wrote it meanwhile.
    pub(super) fn is_overtaken(&self) -> bool {
        matches!(self, Self::Secrets(SecretError::Overtaken { .. }))
    }

    /// Whether the same may go well later, without anybody's doing.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Secrets(error) if error.may_pass())
    }
}

impl Store for Journal {
    fn read(&self) -> BoxFuture<'_, Result<Kept, JournalError>> {
        Box::pin(blocking(self.clone(), Self::read_all))
    }

    fn write(&self, kept: Kept) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(blocking(self.clone(), move |journal| journal.write_all(&kept)))
    }
}

/// Disks block, and this is the one place of the agent's where that is waited for.
async fn blocking<T: Send + 'static>(
    journal: Journal,
    work: impl FnOnce(&Journal) -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    match tokio::task::spawn_blocking(move || work(&journal)).await {
        Ok(done) => done,
        Err(join) => std::panic::resume_unwind(join.into_panic()),
    }
}

impl Journal {
    /// As [`Self::open`], from among tasks that must not be kept waiting.
    pub(super) async fn begin(folder: PathBuf, name: String) -> Result<Self, JournalError> {
        match tokio::task::spawn_blocking(move || Self::open(folder, &name)).await {
            Ok(opened) => opened,
            Err(join) => std::panic::resume_unwind(join.into_panic()),
        }
    }

    /// Opens a journal, making its folder when there is none, and locks it. `name` becomes the identity of a
    /// new one.
    pub fn open(folder: impl Into<PathBuf>, name: &str) -> Result<Self, JournalError> {
        Self::open_on(Arc::new(LocalFiles), folder, name)
    }

    /// As [`Self::open`], on another disk.
    pub fn open_on(files: Arc<dyn Files>, folder: impl Into<PathBuf>, name: &str) -> Result<Self, JournalError> {
        let folder = folder.into();
        let contents = folder.join(CONTENTS_FOLDER);
        files
            .make_private(&contents)
            .map_err(|source| JournalError::Write { path: contents, source })?;
        let path = folder.join(LOCK_FILE);
        let lock = match files.lock(&path) {
            Ok(lock) => lock.into(),
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path: folder }),
            Err(TryLockError::Error(source)) => return Err(JournalError::Write { path, source }),
        };
        let mut journal = Self {
            files,
            folder,
            holder: name.to_owned(),
            stands: Arc::default(),
            _lock: lock,
        };
        let path = journal.folder.join(HOLDER_FILE);
        match journal.read_file(&path)? {
            Some(bytes) => journal.holder = holder(&bytes).map_err(|source| JournalError::Damaged { path, source })?,
            None => journal.write_file(&path, name.as_bytes())?,
        }
        journal.sync_folder(&journal.folder)?;
        journal.sync_above();
        Ok(journal)
    }

    /// What stands in a folder, which may be another agent's at work: each file is there whole or not at all. A content that
    /// is not there, or damaged, is left out.
    pub(super) async fn look_into(folder: PathBuf) -> Result<Kept, JournalError> {
        let read = move || {
            let hub_keys: Option<Vec<Vouched>> = read_json(&LocalFiles, &folder.join(HUB_KEYS_FILE))?;
            let held: Option<Held> = read_json(&LocalFiles, &folder.join(HELD_FILE))?;
            let content = |digest: Digest| {
                let bytes = LocalFiles.read(&content_path(&folder, digest)).ok()?;
                Some((digest, Arc::new(Description::from_json(&bytes, digest).ok()?)))
            };
            Ok(Kept {
                contents: held.iter().flat_map(Held::digests).filter_map(content).collect(),
                held,
                hub_keys: hub_keys.unwrap_or_default(),
                ..Kept::default()
            })
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(kept) => kept,
            Err(join) => std::panic::resume_unwind(join.into_panic()),
        }
    }

    /// Makes the folder itself last, whoever made it and whenever that was: what is synced in a folder that a loss
    /// of power takes away goes with it. Folders that may not be opened were made by somebody else long ago.
    fn sync_above(&self) {
        for above in self.folder.ancestors().skip(1) {
            let above = if above.as_os_str().is_empty() {
                Path::new(".")
            } else {
                above
            };
            if let Err(error) = self.files.sync_folder(above) {
                tracing::debug!(path = %above.display(), %error, "Could not sync a folder above the journal.");
            }
        }
    }

    /// The identity in the cluster's lease: the same after a restart, so that an agent that was killed goes
    /// on at once, and another one's for a copy of key and name elsewhere.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    fn read_all(&self) -> Result<Kept, JournalError> {
        let held: Option<Held> = self.read_json(&self.folder.join(HELD_FILE))?;
        let absence = self.read_json(&self.folder.join(ABSENCE_FILE))?;
        let hub_keys: Option<Vec<Vouched>> = self.read_json(&self.folder.join(HUB_KEYS_FILE))?;
        let hub_keys = hub_keys.unwrap_or_default();
        let hub_keys_known: Option<KeysKnown> = self.read_json(&self.folder.join(HUB_KEYS_KNOWN_FILE))?;
        let hub_keys_known = hub_keys_known.unwrap_or_default();
        let mut contents = BTreeMap::new();
        for digest in held.iter().flat_map(Held::digests) {
            let path = self.content_path(digest);
            let Some(bytes) = self.read_file(&path)? else { continue };
            match Description::from_json(&bytes, digest) {
                Ok(content) => drop(contents.insert(digest, Arc::new(content))),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(path = %path.display(), error, "Found a damaged content and left it out.");
                }
            }
        }
        *self.stands() = Stands {
            held: held.clone(),
            contents: contents.keys().copied().collect(),
            stray: self.stray(held.iter().flat_map(Held::digests)),
            unsynced: false,
            absence,
            hub_keys: hub_keys.clone(),
            hub_keys_known: hub_keys_known.clone(),
        };
        Ok(Kept {
            held,
            contents,
            absence,
            hub_keys,
            hub_keys_known,
        })
    }

    /// Writes what does not stand yet, and removes what nothing names any more.
    fn write_all(&self, kept: &Kept) -> Result<(), JournalError> {
        let mut stands = self.stands();
        for (digest, content) in &kept.contents {
            if !stands.contents.contains(digest) {
                self.write_content(*digest, &content.to_json())?;
                stands.contents.insert(*digest);
                stands.unsynced = true;
            }
        }
        if stands.unsynced {
            self.sync_contents()?;
            stands.unsynced = false;
        }
        if let Some(held) = kept.held.as_ref().filter(|held| stands.held.as_ref() != Some(held)) {
            self.write_held(held)?;
            stands.held = Some(held.clone());
        }
        if let Some(absence) = kept.absence.filter(|absence| stands.absence != Some(*absence)) {
            self.write_json(ABSENCE_FILE, &absence)?;
            stands.absence = Some(absence);
        }
        if stands.hub_keys != kept.hub_keys {
            self.write_json(HUB_KEYS_FILE, &kept.hub_keys)?;
            stands.hub_keys.clone_from(&kept.hub_keys);
        }
        if stands.hub_keys_known != kept.hub_keys_known {
            self.write_json(HUB_KEYS_KNOWN_FILE, &kept.hub_keys_known)?;
            stands.hub_keys_known.clone_from(&kept.hub_keys_known);
        }
        let old = stands.contents.iter().copied();
        let old: Vec<_> = old.filter(|digest| !kept.contents.contains_key(digest)).collect();
        let wanted: BTreeSet<_> = kept.contents.keys().map(|digest| self.content_path(*digest)).collect();
        let stray = std::mem::take(&mut stands.stray).into_iter();
        self.remove_contents(stray.filter(|path| !wanted.contains(path)));
        self.remove_contents(old.iter().map(|digest| self.content_path(*digest)));
        stands.contents.retain(|digest| kept.contents.contains_key(digest));
        Ok(())
    }

    /// What stands beside these contents. It is a matter of space alone.
    fn stray(&self, contents: impl Iterator<Item = Digest>) -> BTreeSet<PathBuf> {
        let folder = self.folder.join(CONTENTS_FOLDER);
        let named: BTreeSet<_> = contents.map(|digest| self.content_path(digest)).collect();
        match self.files.list(&folder) {
            Ok(found) => found.into_iter().filter(|path| !named.contains(path)).collect(),
            Err(error) => {
                tracing::warn!(path = %folder.display(), %error, "Could not look for old contents.");
                BTreeSet::new()
            }
        }
    }

    fn stands(&self) -> MutexGuard<'_, Stands> {
        self.stands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a believed envelope.
    fn write_held(&self, held: &Held) -> Result<(), JournalError> {
        self.write_json(HELD_FILE, held)
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), JournalError> {
        let path = self.folder.join(name);
        let bytes = serde_json::to_vec(value).map_err(|source| JournalError::Damaged {
            path: path.clone(),
            source,
        })?;
        self.write_file(&path, &bytes)?;
        self.sync_folder(&self.folder)
    }

    /// Records a content's bytes.
    fn write_content(&self, digest: Digest, bytes: &[u8]) -> Result<(), JournalError> {
        self.write_file(&self.content_path(digest), bytes)
    }

    /// Makes the contents that were written last over a loss of power. Once for all of a delivery: a content
    /// that did not last is asked for again.
    fn sync_contents(&self) -> Result<(), JournalError> {
        self.sync_folder(&self.folder.join(CONTENTS_FOLDER))
    }

    /// Removes contents that nothing names any more.
    fn remove_contents(&self, paths: impl Iterator<Item = PathBuf>) {
        for path in paths {
            if let Err(error) = self.files.remove(&path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "Could not remove an old content.");
            }
        }
    }

    fn content_path(&self, digest: Digest) -> PathBuf {
        content_path(&self.folder, digest)
    }

    fn read_json<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, JournalError> {
        read_json(&*self.files, path)
    }

    fn read_file(&self, path: &Path) -> Result<Option<Vec<u8>>, JournalError> {
        read_file(&*self.files, path)
    }

    /// Writes beside the file's place, and moves it there once it is on disk: whatever happens, there is the
    /// old file or the new one.
    fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
        let beside = path.with_extension("new");
        let files = &self.files;
        let written = files
            .write(&beside, bytes)
            .and_then(|()| files.sync_file(&beside))
            .and_then(|()| files.rename(&beside, path));
        written.map_err(|source| JournalError::Write {
            path: path.to_owned(),
            source,
        })
    }

    /// A file's move into a folder lasts only once the folder is on disk.
    fn sync_folder(&self, folder: &Path) -> Result<(), JournalError> {
        self.files.sync_folder(folder).map_err(|source| JournalError::Write {
            path: folder.to_owned(),
            source,
        })
    }
}

fn content_path(folder: &Path, digest: Digest) -> PathBuf {
    folder.join(CONTENTS_FOLDER).join(format!("{}.json", digest.short(64)))
}

fn read_json<T: DeserializeOwned>(files: &dyn Files, path: &Path) -> Result<Option<T>, JournalError> {
    let damaged = |source| JournalError::Damaged {
        path: path.to_owned(),
        source,
    };
    let Some(bytes) = read_file(files, path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}

/// The identity in a file. Two agents whose files were damaged alike would be one to the Lease, and by an empty one nobody holds it.
fn holder(bytes: &[u8]) -> Result<String, serde_json::Error> {
    let text = std::str::from_utf8(bytes).map(str::trim).unwrap_or_default();
    let is_name = !text.is_empty() && !text.chars().any(char::is_control);
    match is_name {
        true => Ok(text.to_owned()),
        false => Err(serde::de::Error::custom("it names nobody")),
    }
}

fn read_file(files: &dyn Files, path: &Path) -> Result<Option<Vec<u8>>, JournalError> {
    match files.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(JournalError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}
