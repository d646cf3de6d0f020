//! Observe: where the report of room eight comes back, and becomes what people are shown.
//!
//! In: the hub's [`State`](super::engine::State), which holds what every cluster said last. Out: for each
//! unit and cluster the ladder SourceVerified → Scheduled → Rendered → Approved → Released → Applied →
//! Healthy, kstatus conditions, counts and the worst few objects. All of it is computed when somebody
//! asks: observed state is stored nowhere and is never a commit. How it is served is [`super::serve`]'s
//! matter, and nothing is decided here.

mod cluster;
mod condition;
mod evidence;
mod fleet;
mod index;
mod ladder;
mod revision;
mod unit;

pub use cluster::{CALLERS, ClusterView, Session};
pub use condition::{Condition, Status};
pub use evidence::WorstObject;
pub use fleet::{FindingCounts, FleetView, UnitCounts};
pub use index::Observation;
pub use ladder::{Ladder, PlacementView, Rung};
pub use revision::{short_revision, shown_revision};
pub use unit::{ClusterCounts, UnitView};

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
