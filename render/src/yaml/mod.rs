//! YAML: the bytes of a manifest go in, JSON values with their places come out, and back.
//!
//! Reading resolves scalars by YAML 1.1 as kubectl does, and is stricter where kubectl loses something:
//! a repeated key, an integer of more than 64 bits and an infinity are errors. Writing quotes every string
//! that any YAML 1.1 or 1.2 reader could take for something else. What a document means is not known here.

mod build;
mod outline;
mod places;
mod read;
mod scalar;
mod splice;
mod text;
mod tree;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub use build::Note;
pub(crate) use places::{Places, locate};
pub use read::{Document, read};
pub use splice::{Item, ListAt, splice};
pub(crate) use text::decode;
pub use tree::{Node, read_tree};
pub use write::write;

/// Why a text could not be read, with the place in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, never with a value of the document.
    pub message: String,
}

impl YamlError {
    pub(crate) fn new(line: u32, column: u32, message: impl Into<String>) -> Self {
        Self {
            line,
            column,
            message: message.into(),
        }
    }
}
