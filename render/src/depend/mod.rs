//! What needs what: the words on objects go in, keys and cycles come out.
//!
//! Whose fault a cycle is, and what it holds, is [`crate::load`]'s matter; waiting is the applier's and
//! [`crate::release`]'s.

mod graph;
mod reference;

pub use graph::Graph;
pub use reference::{BadReference, annotations, references};
