//! Whose field it is: what is forced, what is left to others, and what is taken over, as pure functions.
//!
//! In: the manifest, the live object with its managed fields, what is known of what was applied last, and the
//! API server's words. Out: a [`Ruling`] for each field in dispute, and the manifest as it is sent then.
//! Reading order: `conflict` (the API server's words) → `path` (a field of a manifest) → `fields` (who owns
//! what) → `decide` → `shape` (what is sent) → `migrate` (ownership of earlier tools) → `immutable`.
//! Requests are deliberately not here.

mod conflict;
mod decide;
mod fields;
#[cfg(test)]
pub(super) mod fixture;
mod immutable;
mod migrate;
mod path;
mod scale;
mod shape;

pub(super) use conflict::{Cause, causes, words};
pub(super) use decide::{Claim, Last, Ruling, Why, refused_before};
pub(super) use fields::Owners;
pub(super) use immutable::{Immutable, differing, immutable, orphans};
pub(super) use migrate::migrated;
pub(super) use path::{Path, locate, pointer};
pub(super) use render::immutable::objection;
pub(super) use scale::{REPLICAS, is_left_to_scaler, scaled_by};
pub(super) use shape::{leave_out, left_by_rules};
