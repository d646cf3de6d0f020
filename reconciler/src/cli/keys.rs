//! Key files on the command line.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
#[cfg(feature = "agent")]
use tunnel::PublicKey;
use tunnel::SecretKey;

/// Reads the key at `path`, or makes one there with mode 0600.
pub(super) fn read_or_make(path: &Path) -> anyhow::Result<Arc<SecretKey>> {
    let key = if path.exists() {
        SecretKey::load(path)?
    } else {
        let key = SecretKey::generate().context("failed to make a key")?;
        match key.save(path) {
            Ok(()) => key,
            // Whoever else makes it at this moment, such as the hub while its key is asked for, was first.
            Err(_) if path.exists() => SecretKey::load(path)?,
            Err(error) => return Err(error.into()),
        }
    };
    Ok(Arc::new(key))
}

/// Reads the key at `path`, which must exist.
#[cfg(feature = "agent")]
pub(super) fn read(path: &Path) -> anyhow::Result<Arc<SecretKey>> {
    let key = SecretKey::load(path).context("failed to read the cluster's key, which `flotilla agent join` makes")?;
    Ok(Arc::new(key))
}

/// Parses a public key as clap wants it.
#[cfg(feature = "agent")]
pub(super) fn public(text: &str) -> Result<PublicKey, String> {
    text.parse().map_err(|error: tunnel::KeyError| error.to_string())
}
