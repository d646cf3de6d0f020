//! Ed25519 keys: made, kept in a PEM file, written as text.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::limits::KEY_FILE_BYTES_MAX;

const TEXT_PREFIX: &str = "ed25519:";

/// Why a key could not be made, read or kept.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The system's generator failed.
    #[error("system gave no random bytes")]
    NoRandomness,
    /// Text that is no key.
    #[error("key {text:?} is not of the form ed25519:<base64 of 32 bytes>")]
    NotAKey {
        /// The text, cut.
        text: String,
    },
    /// A file that holds no key of ours.
    #[error("file {path} holds no PKCS#8 Ed25519 private key in PEM form", path = path.display())]
    NotAKeyFile {
        /// Where.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("failed to read key file {path}", path = path.display())]
    Read {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file could not be written; an existing one is never overwritten.
    #[error("failed to write key file {path}", path = path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// An Ed25519 public key; its text form is `ed25519:<base64 of its 32 bytes>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// A key from its raw bytes; whether they are a point of the curve shows at the first signature.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether `signature` over `message` was made by this key's owner.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0)
            .verify(message, signature)
            .is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        text.strip_prefix(TEXT_PREFIX)
            .and_then(|encoded| STANDARD.decode(encoded).ok())
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| KeyError::NotAKey {
                text: text.chars().take(80).collect(),
            })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{TEXT_PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An Ed25519 private key. It has no `Debug` and no text form on purpose.
pub struct SecretKey {
    pair: Ed25519KeyPair,
    pkcs8: PrivatePkcs8KeyDer<'static>,
}

impl SecretKey {
    /// A new key from the system's generator.
    pub fn generate() -> Result<Self, KeyError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| KeyError::NoRandomness)?;
        Self::from_pkcs8(document.as_ref().to_vec()).ok_or(KeyError::NoRandomness)
    }

    /// Keys that other tools wrote have no public half inside, which ring allows on request.
    fn from_pkcs8(document: Vec<u8>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&document).ok()?;
        Some(Self {
            pair,
            pkcs8: document.into(),
        })
    }

    /// Reads a PKCS#8 PEM file. Blocks on the disk.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let read_failed = |source| KeyError::Read {
            path: path.to_owned(),
            source,
        };
        let mut pem = Vec::new();
        // By what comes and not by the size that is stated: a pipe or a device states none.
        std::fs::File::open(path)
            .and_then(|file| file.take(KEY_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut pem))
            .map_err(read_failed)?;
        Some(pem)
            .filter(|pem| pem.len() <= KEY_FILE_BYTES_MAX)
            .and_then(|pem| Self::from_pem(&pem))
            .ok_or_else(|| KeyError::NotAKeyFile { path: path.to_owned() })
    }

    /// Reads a PKCS#8 PEM text, as it may also come from a Kubernetes Secret; `None` if it is not one.
    #[must_use]
    pub fn from_pem(pem: &[u8]) -> Option<Self> {
        let document = PrivatePkcs8KeyDer::from_pem_slice(pem).ok()?;
        Self::from_pkcs8(document.secret_pkcs8_der().to_vec())
    }

    /// Writes a new PKCS#8 PEM file that only its owner may read. Blocks on the disk.
    ///
    /// An existing file is an error: replacing a cluster's identity is never an accident.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        let write_failed = |source| KeyError::Write {
            path: path.to_owned(),
            source,
        };
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(write_failed)?;
        file.write_all(self.to_pem().as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(write_failed)
    }

    /// The PKCS#8 PEM text, which is a secret and goes into a file or a Secret alone.
    #[must_use]
    pub fn to_pem(&self) -> String {
        let encoded = STANDARD.encode(self.pkcs8.secret_pkcs8_der());
        let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
        for (at, character) in encoded.chars().enumerate() {
            if at > 0 && at % 64 == 0 {
                pem.push('\n');
            }
            pem.push(character);
        }
        pem.push_str("\n-----END PRIVATE KEY-----\n");
        pem
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey(bytes)
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(self.pair.sign(message).as_ref());
        bytes
    }

    pub(crate) fn pkcs8(&self) -> &PrivatePkcs8KeyDer<'static> {
        &self.pkcs8
    }
}
