//! The pure core of Flotilla: what a fleet repository says at one revision goes in, a plan comes out.
//!
//! Nothing here reads a clock, a disk, the environment or a map's random order: time is a field of
//! [`Snapshot`], files arrive as a [`SourceTree`]. What a shell does with a [`Plan`] (commits, streams,
//! API requests) is deliberately not here.
//!
//! The rooms in reading order: [`load`] → [`schedule`] → [`localize`] → [`describe`] → [`plan`], which
//! composes them, [`guard`], which holds back what must not go, and [`release`], which says who is told what next. [`layout`] is the form of a plan as
//! files of a commit. [`explain`] says why, for people, [`suppose`] what if, and [`verify`] whether
//! such files are what their revisions make.
#![warn(missing_docs)]

pub mod access;
pub mod by_object;
pub mod capacity;
pub mod chart;
pub mod cordon;
pub mod depend;
pub mod describe;
pub mod digest;
pub mod explain;
pub mod expression;
pub mod finding;
#[cfg(test)]
mod fixture;
pub mod fleet;
pub mod guard;
pub mod immutable;
pub mod intake;
pub mod keep;
pub mod layout;
pub mod limits;
pub mod load;
pub mod localize;
pub mod model;
pub mod name;
pub mod nearest;
pub mod plan;
pub mod policy;
pub mod predictor;
pub mod published;
pub mod quantity;
pub mod registration;
pub mod rekey;
pub mod release;
pub mod schedule;
pub mod schema;
pub mod selector;
pub mod shared;
pub mod suppose;
pub mod suspend;
pub mod time;
pub mod tree;
pub mod verify;
pub mod yaml;

pub use by_object::ByObject;
pub use digest::Digest;
pub use finding::{Finding, Severity};
pub use fleet::{Base, Fleet, ManifestObject, Unit};
pub use name::{ClusterName, ObjectKey, Revision, UnitKey, VariantName};
pub use plan::{Memo, Plan, Snapshot};
pub use published::{Published, UnitPlacement};
pub use shared::Shared;
pub use tree::{Previous, SourceTree};
