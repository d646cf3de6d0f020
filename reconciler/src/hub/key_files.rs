//! The hub's own keys, as the files stand that `--key` named: looked at while the hub runs, so that a key is replaced
//! without a tunnel that ends.
//!
//! What is taken over is decided by [`step`]; agents are told by `keys`, and new dials are shown the first key by
//! the listeners.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::sleep;
use tunnel::{AcceptOptions, KeyError, PublicKey, SecretKey, TlsError};

use super::blocking::blocking;
use super::connections::Connections;
use super::keys::KeyList;
use crate::limits::{HUB_KEY_FILES_LOOK, HUB_KEYS_MAX};

/// Why the keys of before go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilesError {
    #[error("it is not known whether there is a next key")]
    Next(#[source] std::io::Error),
    #[error("a key cannot be read")]
    Read(#[source] KeyError),
    #[error("no certificate can be made of the first key")]
    Tls(#[source] TlsError),
    #[error("{0}")]
    Step(#[from] StepError),
}

/// Keys that cannot take the place of those that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StepError {
    #[error("the files hold one key twice, as while two of them change places")]
    Twice,
    #[error("a hub has 1 to {HUB_KEYS_MAX} keys")]
    Count,
    #[error(
        "the first key is one that agents were not told of; hint: let it be second first, until every agent keeps it"
    )]
    Unknown,
}

/// Whether these keys, the one that is shown first, are others than those in use, and may take their place.
fn step(present: &[PublicKey], found: &[PublicKey]) -> Result<bool, StepError> {
    if present == found {
        return Ok(false);
    }
    if found.is_empty() || found.len() > HUB_KEYS_MAX {
        return Err(StepError::Count);
    }
    if (1..found.len()).any(|at| found[..at].contains(&found[at])) {
        return Err(StepError::Twice);
    }
    match present.contains(&found[0]) {
        true => Ok(true),
        false => Err(StepError::Unknown),
    }
}

/// The files that count: beside a single one also `<file>.next`, while that is there, so that a hub that was started with one
/// key gets another without another start. Blocks.
fn with_next(mut files: Vec<PathBuf>) -> std::io::Result<Vec<PathBuf>> {
    if let [only] = files.as_slice() {
        let mut next = only.clone().into_os_string();
        next.push(".next");
        let next = PathBuf::from(next);
        if next.try_exists()? {
            files.push(next);
        }
    }
    Ok(files)
}

/// What follows the files.
pub(super) struct Follower {
    /// The files of `--key`, in their order; without any nothing is followed.
    pub(super) files: Vec<PathBuf>,
    /// All keys, for agents that ask.
    pub(super) keys: watch::Sender<KeyList>,
    /// What new dials are answered with, at each listener.
    pub(super) accept: Vec<watch::Sender<Arc<AcceptOptions>>>,
    pub(super) connections: Arc<Connections>,
}

impl Follower {
    /// Looks at the files for ever.
    pub(super) async fn run(self) {
        if self.files.is_empty() {
            return std::future::pending().await;
        }
        let mut failing = String::new();
        loop {
            sleep(HUB_KEY_FILES_LOOK).await;
            match self.look().await {
                Ok(()) => failing.clear(),
                Err(error) => {
                    let words = crate::fault::line(&error);
                    if words != failing {
                        tracing::error!(
                            error = words,
                            "Could not follow the files of the hub's keys; those of before count."
                        );
                        failing = words;
                    }
                }
            }
        }
    }

    async fn look(&self) -> Result<(), FilesError> {
        let files = self.files.clone();
        let found = blocking(move || {
            let files = with_next(files).map_err(FilesError::Next)?;
            let read = files.iter().map(|file| SecretKey::load(file).map(Arc::new));
            read.collect::<Result<Vec<_>, _>>().map_err(FilesError::Read)
        });
        self.take(found.await?)
    }

    /// Takes these keys over, the one that is shown first, where they are others and may take the place of those in use.
    pub(super) fn take(&self, found: Vec<Arc<SecretKey>>) -> Result<(), FilesError> {
        let present: Vec<_> = self.keys.borrow().iter().map(|key| key.public()).collect();
        let public: Vec<_> = found.iter().map(|key| key.public()).collect();
        if !step(&present, &public)? {
            return Ok(());
        }
        let with_key = |accept: &watch::Sender<Arc<AcceptOptions>>| accept.borrow().with_key(Arc::clone(&found[0]));
        let shown: Result<Vec<_>, _> = self.accept.iter().map(with_key).collect();
        for (accept, shown) in self.accept.iter().zip(shown.map_err(FilesError::Tls)?) {
            accept.send_replace(Arc::new(shown));
        }
        self.keys.send_replace(found.into());
        // Until they say so again.
        self.connections.forget_keys();
        // docs/register-a-cluster.md quotes this line.
        tracing::info!(key = %public[0], "Follows the hub's keys; agents are told, and this one is shown.");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(present: &[u8], found: &[u8], expected: Result<bool, StepError>) {
        let keys = |numbers: &[u8]| -> Vec<_> {
            let key = |number: &u8| PublicKey::from_bytes([*number; 32]);
            numbers.iter().map(key).collect()
        };
        assert_eq!(step(&keys(present), &keys(found)), expected);
    }

    #[test]
    fn a_key_is_told_before_it_is_shown_and_shown_before_the_old_one_goes() {
        check(&[1], &[1], Ok(false));
        check(&[1], &[1, 2], Ok(true));
        check(&[1, 2], &[2, 1], Ok(true));
        check(&[2, 1], &[2, 3], Ok(true));
        check(&[2, 1], &[2], Ok(true));
        check(&[1], &[2, 1], Err(StepError::Unknown));
        check(&[1, 2], &[3], Err(StepError::Unknown));
    }

    #[test]
    fn a_hub_that_was_started_with_one_key_finds_its_next_one_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        assert_eq!(
            with_next(vec![path("hub.key")]).expect("it is known"),
            [path("hub.key")]
        );
        std::fs::write(path("hub.key.next"), "").expect("it is writable");
        let both = [path("hub.key"), path("hub.key.next")];
        assert_eq!(with_next(vec![path("hub.key")]).expect("it is known"), both);
        let several = vec![path("hub.key"), path("other.key")];
        assert_eq!(
            with_next(several.clone()).expect("it is known"),
            several,
            "flags say all"
        );
        // Its steps are those of several files.
        check(&[1], &[1, 2], Ok(true));
        check(&[1, 2], &[2, 1], Ok(true));
        check(&[2, 1], &[2], Ok(true));
    }

    #[test]
    fn what_stands_there_while_files_change_places_is_not_taken_over() {
        check(&[1, 2], &[2, 2], Err(StepError::Twice));
        check(&[1, 2], &[], Err(StepError::Count));
    }
}
