//! age identities, and the data key that one of them opens.

use std::io::Read as _;
use std::str::FromStr as _;

use age::armor::ArmoredReader;
use age::x25519::Identity;
use age::{DecryptError, Decryptor};
use zeroize::Zeroizing;

use super::SopsError;
use super::metadata::{AgeKey, Metadata};
use super::value::DataKey;
use crate::limits::AGE_IDENTITIES_MAX;

/// Private age keys. They have no `Debug`, and age wipes each when it is dropped.
#[derive(Default)]
pub struct Identities(Vec<Identity>);

/// A text that has something else than age identities. It says nothing of the text.
#[derive(Debug, thiserror::Error)]
pub enum InvalidIdentities {
    /// A line is none.
    #[error("line {0} is no age identity (AGE-SECRET-KEY-1…), and no comment")]
    Line(usize),
    /// Too many.
    #[error("it has more than {AGE_IDENTITIES_MAX} age identities")]
    TooMany,
}

impl Identities {
    /// Adds the identities of a text as `age-keygen` writes it: one a line, and comments.
    pub fn add(&mut self, text: &str) -> Result<(), InvalidIdentities> {
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if self.0.len() == AGE_IDENTITIES_MAX {
                return Err(InvalidIdentities::TooMany);
            }
            let identity = Identity::from_str(line).map_err(|_| InvalidIdentities::Line(index + 1))?;
            self.0.push(identity);
        }
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens the data key of a document, by whichever recipient is one of these.
    pub(super) fn data_key(&self, metadata: &Metadata) -> Result<DataKey, SopsError> {
        for key in &metadata.age {
            if let Some(opened) = self.open(key)? {
                return Ok(opened);
            }
        }
        Err(SopsError::NoIdentity {
            known: self.0.len(),
            recipients: metadata.recipients(),
        })
    }

    /// `None` when no identity is its recipient.
    fn open(&self, key: &AgeKey) -> Result<Option<DataKey>, SopsError> {
        let damaged = || SopsError::DataKey(key.recipient.clone());
        let decryptor = Decryptor::new_buffered(ArmoredReader::new(key.encrypted.as_bytes())).map_err(|_| damaged())?;
        let identities = self.0.iter().map(|identity| identity as &dyn age::Identity);
        let mut stream = match decryptor.decrypt(identities) {
            Ok(stream) => stream.take(33),
            Err(DecryptError::NoMatchingKeys) => return Ok(None),
            Err(_) => return Err(damaged()),
        };
        let mut bytes = Zeroizing::new(Vec::with_capacity(33));
        stream.read_to_end(&mut bytes).map_err(|_| damaged())?;
        let opened: [u8; 32] = bytes.as_slice().try_into().map_err(|_| damaged())?;
        Ok(Some(Zeroizing::new(opened)))
    }
}
