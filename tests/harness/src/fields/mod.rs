//! Who owns which field of an object. In: an object before and after a write, and who wrote. Out: its
//! `managedFields`; for a server-side apply the merged object, or the conflicts.
//!
//! The cap on the number of Update entries and the upgrade from client-side apply (kubectl does it by itself)
//! are deliberately not here.

mod apply;
mod compare;
mod entries;
mod merge;
mod set;

pub(crate) use apply::{ApplyOptions, Conflict, apply, ignored, update};
pub(crate) use entries::{Manager, Operation};
pub(crate) use set::Path;
