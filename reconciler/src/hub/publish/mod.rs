//! Room 5, publish: a plan as commits. Next room: `render::release`.
//!
//! Decisions enter ([`render::Published`] and the contents that it names); commits of the state repository
//! leave, a ref is moved by compare-and-swap, and what stands there is read back ([`StateRepository`]).
//! Which decision is due, and what to do about a ref that somebody else moved, is deliberately not here.
//! Everything blocks: callers are under `spawn_blocking`.
//!
//! ```text
//! release.yaml                        cause, source revision, sequence
//! placements/<namespace>/<name>.yaml  who has which variant, and why
//! units/<namespace>/<name>/<variant>/ its objects, one file each
//! ```

mod advance;
mod agent_keys;
mod commit_index;
mod content;
mod error;
mod followed;
mod key_note;
mod lock;
mod memories;
mod message;
mod proposal;
mod refs;
mod registration;
mod standing;
mod state;
mod summary;
mod write;

pub use agent_keys::KeysFound;
pub use error::StateError;
pub use followed::Followed;
pub use key_note::{KeyNote, KeysAsked, Sorted};
pub use message::message;
pub use proposal::{Proposal, Standing};
pub use refs::{StateRef, StateRefs};
#[cfg(test)]
pub(in crate::hub) use registration::Whose;
pub use registration::{Elsewhere, Marks, OtherHubs, Registrations};
pub use state::{Author, CommitId, StateRepository};
pub use summary::{SourceCommit, Summary, UnitSummary};
pub use write::Decision;

#[cfg(test)]
mod tests;
