//! Which clusters get a unit, and how many replicas each. Next room: `render::localize`.
//!
//! In: a [`Fleet`], what clusters reported, and the placements published before. Out: for every unit that
//! is not blocked, its clusters with replicas and reasons. What a cluster's variant says is deliberately
//! not here, and neither is the moment at which a decision reaches a cluster.
//!
//! [`Fleet`]: crate::Fleet

mod candidates;
mod desired;
mod divide;
mod inputs;
mod kept;
mod placements;
mod taints;
mod unit;
mod why;

pub use divide::divide;
pub use placements::{Assignment, Placements, schedule};
pub use unit::{Context, schedule_unit};
pub use why::{SubscriberMatch, TaintMatch, Why, why};

pub(crate) use desired::is_divisible;

#[cfg(test)]
mod tests;
