//! Key files on the command line.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
#[cfg(feature = "agent")]
use tunnel::PublicKey;
use tunnel::{KeyError, SecretKey};

const NOT_MADE: &str = "a new key cannot be kept; hint: name with --key a file in a folder that is there";

/// Loads a key, and says what else is in its file where it is none.
fn load(path: &Path) -> anyhow::Result<SecretKey> {
    match SecretKey::load(path) {
        Ok(key) => {
            warn_if_open(path);
            Ok(key)
        }
        Err(error @ KeyError::NotAKeyFile { .. }) => {
            let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
            let text = if size < 4096 {
                std::fs::read(path).unwrap_or_default()
            } else {
                Vec::new()
            };
            let hint = if size == 0 {
                "it is empty: restore it from its backup, or remove it so that a new key is made, which others must be told of"
            } else if text.starts_with(b"ed25519:") {
                "it holds a public key: name the file of the secret one, which was made with it"
            } else {
                "restore it from its backup, or name the file that flotilla made"
            };
            bail!("{error}; hint: {hint}")
        }
        Err(error) => Err(anyhow::Error::new(error)
            .context("a key cannot be read; hint: --key names a file that this process may read")),
    }
}

/// Somebody else who can read a key can be this hub or cluster. A mounted Secret is often open to its group, so
/// that this is no error.
fn warn_if_open(path: &Path) {
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o007 != 0 {
        tracing::warn!(path = %path.display(), "The key may be read by everybody on this machine; chmod 600 closes it.");
    }
}

/// Reads the key at `path`, or makes one there with mode 0600.
pub(super) fn read_or_make(path: &Path) -> anyhow::Result<Arc<SecretKey>> {
    let key = if path.exists() {
        load(path)?
    } else {
        let key = SecretKey::generate().context("failed to make a key")?;
        match key.save(path) {
            Ok(()) => key,
            // Whoever else makes it at this moment, such as the hub while its key is asked for, was first.
            Err(_) if path.exists() => load(path)?,
            Err(error) => return Err(anyhow::Error::new(error).context(NOT_MADE)),
        }
    };
    Ok(Arc::new(key))
}

/// Reads the key at `path`, which must exist.
#[cfg(feature = "agent")]
pub(super) fn read(path: &Path) -> anyhow::Result<Arc<SecretKey>> {
    let key = load(path)
        .context("the cluster's key cannot be used; hint: name with --key the file that `flotilla agent join` made")?;
    Ok(Arc::new(key))
}

/// Parses a public key as clap wants it.
#[cfg(feature = "agent")]
pub(super) fn public(text: &str) -> Result<PublicKey, String> {
    text.parse()
        .map_err(|error: KeyError| format!("{error}; `flotilla hub key` prints it"))
}
