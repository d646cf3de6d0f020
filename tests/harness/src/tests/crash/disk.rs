//! A disk in memory that can lose power: of what was not synced, any part may be there afterwards, in any
//! order, and any part not.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reconciler::agent::Files;

use super::dice::Dice;
use super::switch::{Fate, Switch};

/// What a disk holds. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Mutex<State>>);

/// A disk as one process uses it.
#[derive(Debug)]
pub(super) struct Mounted {
    disk: Disk,
    switch: Arc<Switch>,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<File>,
    /// As processes see it.
    now: Names,
    /// As it is without power, but for what is pending.
    lasting: Names,
    /// Changes of names since their folder was synced.
    pending: Vec<(PathBuf, Change)>,
}

#[derive(Clone, Debug, Default)]
struct Names {
    files: BTreeMap<PathBuf, usize>,
    folders: BTreeSet<PathBuf>,
}

/// The content of a file: what is there now, and what lasts.
#[derive(Debug, Default)]
struct File {
    now: Vec<u8>,
    lasting: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Change {
    Folder(PathBuf),
    Link(PathBuf, usize),
    Rename(PathBuf, PathBuf, usize),
    Unlink(PathBuf),
}

impl Disk {
    pub(super) fn mount(&self, switch: &Arc<Switch>) -> Arc<Mounted> {
        let (disk, switch) = (self.clone(), Arc::clone(switch));
        Arc::new(Mounted { disk, switch })
    }

    /// Takes away, at random, what was not synced.
    pub(super) fn cut_power(&self, dice: &mut Dice) {
        let mut state = self.state();
        let mut pending = std::mem::take(&mut state.pending);
        while !pending.is_empty() {
            let (_, change) = pending.remove(dice.below(pending.len()));
            if dice.happens(50) {
                state.lasting.change(&change);
            }
        }
        state.lasting.drop_orphans();
        state.now = state.lasting.clone();
        for file in &mut state.files {
            if file.lasting.as_ref() != Some(&file.now) {
                file.now = torn(file, dice);
                file.lasting = Some(file.now.clone());
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What may be left of a content that was not synced.
fn torn(file: &File, dice: &mut Dice) -> Vec<u8> {
    match dice.below(4) {
        0 => file.lasting.clone().unwrap_or_default(),
        1 => file.now.clone(),
        2 => file.now[..dice.below(file.now.len() + 1)].to_vec(),
        _ => vec![0; file.now.len()],
    }
}

impl Names {
    fn change(&mut self, change: &Change) {
        match change {
            Change::Folder(path) => {
                self.folders.insert(path.clone());
            }
            Change::Link(path, file) => {
                self.files.insert(path.clone(), *file);
            }
            Change::Rename(from, to, file) => {
                self.files.remove(from);
                self.files.insert(to.clone(), *file);
            }
            Change::Unlink(path) => {
                self.files.remove(path);
            }
        }
    }

    /// What is in a folder goes with it.
    fn drop_orphans(&mut self) {
        let folders = self.folders.clone();
        let stands = |path: &Path| {
            path.ancestors()
                .skip(1)
                .all(|above| is_root(above) || folders.contains(above))
        };
        self.folders.retain(|folder| stands(folder));
        self.files.retain(|file, _| stands(file));
    }
}

fn is_root(path: &Path) -> bool {
    path.parent().is_none() || path.as_os_str().is_empty()
}

impl State {
    fn happen(&mut self, folder: &Path, change: Change) {
        self.now.change(&change);
        self.pending.push((folder.to_owned(), change));
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        self.now
            .files
            .get(path)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Mounted {
    /// Does a write, unless the process ends before it; it never hears of the one it ends with.
    fn do_write<T>(&self, write: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let ended = || io::Error::other("the process has ended");
        match self.switch.decide() {
            Fate::Happens => write(&mut self.disk.state()),
            Fate::Last => write(&mut self.disk.state()).and(Err(ended())),
            Fate::Lost => Err(ended()),
        }
    }
}

impl Files for Mounted {
    fn make_private(&self, folder: &Path) -> io::Result<()> {
        let mut folders: Vec<_> = folder.ancestors().filter(|folder| !is_root(folder)).collect();
        folders.reverse();
        for folder in folders {
            if !self.disk.state().now.folders.contains(folder) {
                self.do_write(|state| {
                    state.happen(above(folder), Change::Folder(folder.to_owned()));
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn lock(&self, _: &Path) -> Result<Box<dyn Any + Send + Sync>, TryLockError> {
        Ok(Box::new(()))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.disk.state();
        Ok(state.files[state.file(path)?].now.clone())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.disk.state();
        let files = state.now.files.keys().filter(|path| path.parent() == Some(folder));
        Ok(files.cloned().collect())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.do_write(|state| {
            if !state.now.folders.contains(above(path)) {
                return Err(io::ErrorKind::NotFound.into());
            }
            if let Ok(file) = state.file(path) {
                state.files[file].now = bytes.to_owned();
                return Ok(());
            }
            let now = bytes.to_owned();
            state.files.push(File { now, lasting: None });
            let change = Change::Link(path.to_owned(), state.files.len() - 1);
            state.happen(above(path), change);
            Ok(())
        })
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.do_write(|state| {
            let file = state.file(path)?;
            state.files[file].lasting = Some(state.files[file].now.clone());
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.do_write(|state| {
            let change = Change::Rename(from.to_owned(), to.to_owned(), state.file(from)?);
            state.happen(above(to), change);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.do_write(|state| {
            state.file(path)?;
            state.happen(above(path), Change::Unlink(path.to_owned()));
            Ok(())
        })
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.do_write(|state| {
            let (here, elsewhere) = state.pending.drain(..).partition(|(of, _)| of == folder);
            state.pending = elsewhere;
            let here: Vec<(PathBuf, Change)> = here;
            here.iter().for_each(|(_, change)| state.lasting.change(change));
            Ok(())
        })
    }
}

fn above(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

#[test]
fn a_power_cut_takes_nothing_that_was_synced_and_may_take_everything_else() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..200 {
        let disk = Disk::default();
        let files = disk.mount(&Arc::new(Switch::at(None)));
        let path = |name: &str| Path::new("/agent").join(name);
        files.make_private(Path::new("/agent")).expect("a folder");
        for name in ["kept", "torn"] {
            files.write(&path(name), b"first").expect("it is written");
            files.sync_file(&path(name)).expect("it is synced");
        }
        files.sync_folder(Path::new("/agent")).expect("it is synced");
        files.sync_folder(Path::new("/")).expect("it is synced");
        files.write(&path("torn"), b"second").expect("it is written");
        files.write(&path("new"), b"new").expect("it is written");
        files
            .sync_file(&path("new"))
            .expect("its content is synced, and its name is not");
        disk.cut_power(&mut Dice::new(seed));
        assert_eq!(files.read(&path("kept")).expect("it is there"), b"first");
        let torn = files.read(&path("torn")).expect("its name was synced");
        outcomes.insert((torn, files.read(&path("new")).ok()));
    }
    let torn: BTreeSet<_> = outcomes.iter().map(|(torn, _)| torn.as_slice()).collect();
    assert!(torn.contains(b"first".as_slice()) && torn.contains(b"second".as_slice()) && torn.len() > 4);
    let new: BTreeSet<_> = outcomes.iter().map(|(_, new)| new.as_deref()).collect();
    assert_eq!(new, [None, Some(b"new".as_slice())].into());
}
