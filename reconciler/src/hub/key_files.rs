//! The hub's own keys, as the files stand that `--key` named: looked at while the hub runs, so that a key is replaced
//! without a tunnel that ends.
//!
//! What is taken over is decided by [`step`]; agents are told by `keys`, and new dials are shown the first key by the listener.

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
enum FilesError {
    #[error("a key cannot be read")]
    Read(#[source] KeyError),
    #[error("no certificate can be made of the first key")]
    Tls(#[source] TlsError),
    #[error("{0}")]
    Step(#[from] StepError),
}

/// Keys that cannot take the place of those that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum StepError {
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

/// What follows the files.
pub(super) struct Follower {
    /// The files of `--key`, in their order; without any nothing is followed.
    pub(super) files: Vec<PathBuf>,
    /// All keys, for agents that ask.
    pub(super) keys: watch::Sender<KeyList>,
    /// What new dials are answered with.
    pub(super) accept: watch::Sender<Arc<AcceptOptions>>,
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
        let read = move || files.iter().map(|file| SecretKey::load(file).map(Arc::new)).collect();
        let found: Result<Vec<_>, _> = blocking(read).await;
        let found = found.map_err(FilesError::Read)?;
        let present: Vec<_> = self.keys.borrow().iter().map(|key| key.public()).collect();
        let public: Vec<_> = found.iter().map(|key| key.public()).collect();
        if !step(&present, &public)? {
            return Ok(());
        }
        let shown = Arc::clone(&found[0]);
        let accept = self.accept.borrow().with_key(shown).map_err(FilesError::Tls)?;
        self.accept.send_replace(Arc::new(accept));
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
    fn what_stands_there_while_files_change_places_is_not_taken_over() {
        check(&[1, 2], &[2, 2], Err(StepError::Twice));
        check(&[1, 2], &[], Err(StepError::Count));
    }
}
