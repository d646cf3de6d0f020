//! The hub's own deny list: names and keys that are not let in, whatever Git says.
//!
//! It is a file of this machine, so that it counts while no repository can be reached. It is looked at every second,
//! and what cannot be read leaves what was read before.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use render::ClusterName;
use tokio_util::sync::CancellationToken;
use tunnel::PublicKey;

use super::blocking::blocking;
use super::registry::Registry;
use crate::limits::{DENY_FILE_BYTES_MAX, DENY_LOOK};

/// Who is not let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Denied {
    clusters: BTreeSet<String>,
    keys: BTreeSet<PublicKey>,
}

/// Why a deny list could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DenyError {
    /// The file could not be read.
    #[error("failed to read the deny list {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is larger than any list.
    #[error("the deny list {} has more than {DENY_FILE_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
    },
    /// A line of it says nothing.
    #[error(
        "line {line} of the deny list {} is neither a cluster's name nor a key; hint: one name or key stands in a line, and what follows # is a comment",
        path.display()
    )]
    Line {
        /// Which.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
}

impl Denied {
    /// Whether an agent of this name and key is not let in.
    pub(super) fn has(&self, cluster: &str, key: &PublicKey) -> bool {
        self.has_cluster(cluster) || self.keys.contains(key)
    }

    /// Whether nobody with this key is let in, whatever its name.
    pub(super) fn has_key(&self, key: &PublicKey) -> bool {
        self.keys.contains(key)
    }

    /// Whether all agents of this name are not let in.
    pub(super) fn has_cluster(&self, cluster: &str) -> bool {
        self.clusters.contains(cluster)
    }

    /// What a list says, or the first line that says nothing. A list is taken whole or not at all: who is misspelt in it
    /// would be let in.
    pub(super) fn parse(text: &str) -> Result<Self, usize> {
        let mut denied = Self::default();
        for (at, line) in text.lines().enumerate() {
            let word = line.split('#').next().unwrap_or_default().trim();
            if word.is_empty() {
            } else if let Ok(key) = word.parse() {
                denied.keys.insert(key);
            } else if ClusterName::parse(word.to_owned()).is_ok() {
                denied.clusters.insert(word.to_owned());
            } else {
                return Err(at + 1);
            }
        }
        Ok(denied)
    }

    /// Reads a list.
    pub(super) fn read(path: PathBuf) -> Result<Self, DenyError> {
        let mut text = String::new();
        let limit = DENY_FILE_BYTES_MAX + 1;
        let read = std::fs::File::open(&path).and_then(|file| file.take(limit).read_to_string(&mut text));
        match read {
            Err(source) => Err(DenyError::Read { path, source }),
            Ok(bytes) if bytes as u64 >= limit => Err(DenyError::TooLarge { path }),
            Ok(_) => Self::parse(&text).map_err(|line| DenyError::Line { path, line }),
        }
    }
}

/// Keeps the registry by the file until shutdown.
pub(super) async fn follow(path: PathBuf, registry: Arc<Registry>, shutdown: CancellationToken) {
    let mut failing = String::new();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(DENY_LOOK) => {}
        }
        let path = path.clone();
        match blocking(move || Denied::read(path)).await {
            Ok(denied) => {
                if registry.deny(denied) {
                    tracing::info!("Took over the deny list.");
                }
                failing.clear();
            }
            Err(error) => {
                let words = crate::fault::line(&error);
                if words != failing {
                    tracing::error!(
                        error = words,
                        "Could not take over the deny list; the one before counts."
                    );
                    failing = words;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_names_and_keys_and_is_taken_whole_or_not_at_all() {
        let key = PublicKey::from_bytes([7; 32]);
        let other = PublicKey::from_bytes([8; 32]);
        let denied = Denied::parse(&format!("# stolen\noslo # since Monday\n\n{key}\n")).expect("a list");
        assert!(denied.has("oslo", &other), "by its name");
        assert!(denied.has("rome", &key), "by its key");
        assert!(!denied.has("rome", &other));
        assert_eq!(Denied::parse("oslo\ned25519:nonsense\n"), Err(2));
        assert_eq!(Denied::parse("oslo rome\n"), Err(1));
    }

    #[test]
    fn a_list_that_is_gone_is_an_error_and_not_an_empty_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let gone = Denied::read(folder.path().join("deny"));
        assert!(matches!(gone, Err(DenyError::Read { .. })), "{gone:?}");
    }
}
