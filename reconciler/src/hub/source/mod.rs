//! Room 1, source: what people pushed. Next room: `render::load`.
//!
//! A path and a branch enter; the head's revision, its whole tree without a checkout ([`Source::tree`]), how it relates to
//! the accepted one ([`Source::relation`]), what broken files said before ([`Source::previous`]) and since when a file says
//! something leave. [`RefWatch`] says when to look again. A failed read is an error and never a
//! smaller tree. What files mean, and when to plan, is deliberately not here. Everything but the watch blocks: callers are
//! under `spawn_blocking`.

mod branch;
mod folder;
mod introduced;
mod previous;
mod rewrite;
mod tree;
mod watch;

pub use super::repository::Relation;
pub(crate) use branch::full_branch_name;
pub use branch::{Head, Source, SourceError};
pub(crate) use introduced::Sought;
pub use previous::Parses;
pub use rewrite::ACCEPT_REWRITE;
pub use watch::{Look, RefWatch, WatchState};

#[cfg(test)]
mod tests;
