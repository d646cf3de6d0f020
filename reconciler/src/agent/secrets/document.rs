//! A document too large for one Secret: compressed, and cut into parts that are each known by the digest of their bytes.

use render::Digest;
use serde::{Deserialize, Serialize};
use zlib_rs::{DeflateConfig, InflateConfig, ReturnCode, compress_bound, compress_slice, decompress_slice};

use crate::limits::{JOURNAL_PART_BYTES, MESSAGE_BYTES_MAX};

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Document {
    /// Its bytes, before it was compressed.
    bytes: usize,
    /// Its bytes as it is stored.
    pub(super) stored: usize,
    /// Its parts, in order.
    pub(super) parts: Vec<Digest>,
}

/// A document that is not what it should be.
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentError {
    #[error("it could not be compressed: {0:?}")]
    Compress(ReturnCode),
    #[error("its parts do not make a document: {0:?}")]
    Decompress(ReturnCode),
    #[error("it says that it has {0} bytes, and no document has")]
    Size(usize),
}

/// Compresses and cuts.
pub(super) fn cut(bytes: &[u8]) -> Result<(Document, Vec<Vec<u8>>), DocumentError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(DocumentError::Size(bytes.len()));
    }
    let mut room = vec![0; compress_bound(bytes.len())];
    let (compressed, code) = compress_slice(&mut room, bytes, DeflateConfig::default());
    if code != ReturnCode::Ok {
        return Err(DocumentError::Compress(code));
    }
    let parts: Vec<_> = compressed.chunks(JOURNAL_PART_BYTES).map(<[u8]>::to_vec).collect();
    let document = Document {
        bytes: bytes.len(),
        stored: compressed.len(),
        parts: parts.iter().map(|part| Digest::of_bytes(part)).collect(),
    };
    Ok((document, parts))
}

/// The document that was cut into these parts.
pub(super) fn join(document: &Document, parts: &[Vec<u8>]) -> Result<Vec<u8>, DocumentError> {
    if document.bytes > MESSAGE_BYTES_MAX {
        return Err(DocumentError::Size(document.bytes));
    }
    let mut room = vec![0; document.bytes];
    let (found, code) = decompress_slice(&mut room, &parts.concat(), InflateConfig::default());
    if code == ReturnCode::Ok && found.len() == document.bytes {
        Ok(room)
    } else {
        Err(DocumentError::Decompress(code))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes that do not compress, the same for each seed.
    fn noise(count: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_document_is_what_was_cut_and_no_part_is_too_large(
            count in 0..3 * JOURNAL_PART_BYTES, seed: u64, plain: bool,
        ) {
            let bytes = if plain { vec![b'a'; count] } else { noise(count, seed) };
            let (document, parts) = cut(&bytes).expect("it is cut");
            prop_assert!(parts.iter().all(|part| part.len() <= JOURNAL_PART_BYTES));
            prop_assert!(plain || count < JOURNAL_PART_BYTES || parts.len() > 1);
            prop_assert_eq!(join(&document, &parts).expect("it is whole"), bytes);
        }
    }

    #[test]
    fn parts_that_are_missing_or_of_another_document_make_none() {
        let bytes = noise(2 * JOURNAL_PART_BYTES, 1);
        let (document, parts) = cut(&bytes).expect("it is cut");
        assert!(join(&document, &parts[..1]).is_err());
        assert!(join(&document, &[parts[1].clone(), parts[0].clone()]).is_err());
        let (shorter, _) = cut(&bytes[1..]).expect("it is cut");
        assert!(join(&shorter, &parts).is_err(), "another size than it says");
        let huge = Document {
            bytes: usize::MAX,
            ..document
        };
        assert!(matches!(join(&huge, &parts), Err(DocumentError::Size(_))));
    }
}
