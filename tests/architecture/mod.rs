//! The rules of the house, read from its files and from `cargo metadata`.
//!
//! Each rule is a test whose name is the rule. What the code means is deliberately not here: these tests
//! know names, places and words, and the compiler and the other tests know the rest.

mod doors;
mod house;
mod invariants;
mod ladder;
mod manifests;
mod names;
mod papers;
pub(crate) mod sources;
pub(crate) mod test_names;
mod walk;
mod workspace;
