//! Decrypts SOPS documents with age keys. Next: `session`, which applies what came out as any object.
//!
//! In: a document's text and [`Identities`]. Out: an [`Opened`] object, or a [`SopsError`] that names document
//! fields and recipients and never a value. Nothing is believed before the MAC over all of it was verified. Reading
//! order: `tree` (the document in its own order) is `render::yaml`'s → `metadata` → `keys` (the data key, by age) →
//! `rules` (which values are encrypted) → `value` (one of them) → `walk` (all of them, and the MAC) → `opened`.
//!
//! Encrypting is deliberately not here, nor is reading keys from clusters or files.

mod keys;
mod metadata;
mod opened;
mod rules;
mod value;
mod walk;

use render::yaml::{self, YamlError};
use serde_json::{Map, Value};

use self::metadata::Metadata;
use self::rules::Rules;

pub use keys::{Identities, InvalidIdentities};
pub use opened::Opened;

/// The key under which a document says how it was encrypted.
const SECTION: &str = "sops";

/// Why a document was not decrypted. No text here has a value of the document.
#[derive(Debug, thiserror::Error)]
pub enum SopsError {
    /// It is not YAML of the form that SOPS writes.
    #[error("it is not a document as SOPS writes them")]
    Unreadable(#[source] YamlError),
    /// Its `sops` section lacks something, or has it in another form.
    #[error("its sops section is damaged at {0}")]
    Metadata(&'static str),
    /// Its data key is divided between groups of keys.
    #[error(
        "its data key is divided between key groups, which is not supported; hint: use one group with age recipients"
    )]
    KeyGroups,
    /// No age recipient.
    #[error("it is encrypted for {0} and for no age recipient; hint: add one with sops rotate --add-age")]
    NoAgeRecipient(String),
    /// None of the identities is a recipient.
    #[error("none of the {known} age keys at hand opens it; it is encrypted for {recipients}")]
    NoIdentity {
        /// How many keys were tried.
        known: usize,
        /// The document's recipients, comma separated.
        recipients: String,
    },
    /// A data key that an identity opened, or should have, and that is none.
    #[error("the data key for {0} is damaged")]
    DataKey(String),
    /// More than one rule, or one that is no regular expression.
    #[error("its rule of what is encrypted is not supported: {0}")]
    Rule(String),
    /// A value that does not decrypt where it stands.
    #[error("the value at {0} is not what was encrypted there")]
    Value(String),
    /// A type that is not known.
    #[error("the value at {0} has a type that is not known")]
    ValueType(String),
    /// The MAC does not fit.
    #[error(
        "it was changed after it was encrypted: its MAC does not fit; hint: a document that shared its file with others needs a file of its own"
    )]
    Mac,
}

/// Decrypts a document and verifies it.
pub fn open(original: &str, identities: &Identities) -> Result<Opened, SopsError> {
    let tree = yaml::read_tree(original).map_err(SopsError::Unreadable)?;
    let metadata = Metadata::read(tree.get(SECTION).ok_or(SopsError::Metadata(SECTION))?)?;
    let rules = Rules::new(&metadata)?;
    let key = identities.data_key(&metadata)?;
    let yaml::Node::Mapping(entries) = tree else {
        return Err(SopsError::Metadata(SECTION));
    };
    let entries = entries.into_iter().filter(|(name, _)| name != SECTION);
    let mut walk = walk::Walk::new(&key, &rules);
    let mut opened = Opened::new(Map::new());
    walk.mapping(entries, opened.object_mut())?;
    walk.verify(&metadata)?;
    Ok(opened)
}

/// A mapping's place in a path, for people.
fn told(path: &[String]) -> String {
    path.join(".")
}

/// A value as JSON, when it is not a comment, which no object has.
type Decrypted = Option<Value>;

#[cfg(test)]
mod tests;
