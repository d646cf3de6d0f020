//! One encrypted value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`, bound to its path.

use aes_gcm::aead::consts::{U12, U32};
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, Key, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// What every encrypted value begins with.
pub(super) const PREFIX: &str = "ENC[AES256_GCM,";

const TAG_BYTES: usize = 16;

/// The key of a document's values.
pub(super) type DataKey = Zeroizing<[u8; 32]>;

/// A value that was decrypted, with the type that it had.
pub(super) struct Plain {
    pub(super) bytes: Zeroizing<Vec<u8>>,
    pub(super) value_type: String,
}

/// Decrypts a value that stands at a path; `None` when it is not what was encrypted there.
pub(super) fn decrypt(text: &str, key: &DataKey, bound_to: &[u8]) -> Option<Plain> {
    let parts = Parts::read(text)?;
    let mut sealed = STANDARD.decode(parts.data).ok()?;
    let nonce = STANDARD.decode(parts.nonce).ok()?;
    let tag = STANDARD.decode(parts.tag).ok().filter(|tag| tag.len() == TAG_BYTES)?;
    sealed.extend(tag);
    let payload = Payload {
        msg: &sealed,
        aad: bound_to,
    };
    let key = Key::<Aes256>::from_slice(key.as_slice());
    // SOPS itself writes 32 bytes; other writers of its format took GCM's usual 12.
    let bytes = match nonce.len() {
        32 => AesGcm::<Aes256, U32>::new(key).decrypt(Nonce::<U32>::from_slice(&nonce), payload),
        12 => AesGcm::<Aes256, U12>::new(key).decrypt(Nonce::<U12>::from_slice(&nonce), payload),
        _ => return None,
    };
    Some(Plain {
        bytes: Zeroizing::new(bytes.ok()?),
        value_type: parts.value_type.to_owned(),
    })
}

struct Parts<'a> {
    data: &'a str,
    nonce: &'a str,
    tag: &'a str,
    value_type: &'a str,
}

impl<'a> Parts<'a> {
    /// The parts of a value. None of them can have a comma, since three are base64 and one is a word.
    fn read(text: &'a str) -> Option<Self> {
        let inner = text.strip_prefix(PREFIX)?.strip_suffix(']')?;
        let mut parts = inner.split(',');
        let mut part = |name: &str| parts.next()?.strip_prefix(name);
        let read = Self {
            data: part("data:")?,
            nonce: part("iv:")?,
            tag: part("tag:")?,
            value_type: part("type:")?,
        };
        parts.next().is_none().then_some(read)
    }
}
