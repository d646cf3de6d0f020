//! A local Git repository as `source` and `publish` share it.
//!
//! A path enters; objects leave whose bytes match their ids, and answers about ancestry. What the files
//! mean, and writing, is deliberately not here. Everything blocks: callers are under `spawn_blocking`.

mod handle;
mod history;
mod objects;

pub use handle::{LocalRepository, RepositoryError};
pub use history::Relation;
pub(crate) use history::{
    commits_since, first_parent, is_relation_told, merge_base, relation, subject, trailer_values, trailers,
};
pub(crate) use objects::{commit, object_id, revision, tree_entries, verified};

#[cfg(test)]
pub(crate) mod fixture;
