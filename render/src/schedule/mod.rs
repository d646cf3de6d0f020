//! Which clusters get a unit, and how many replicas each. Next room: `render::localize`.
//!
//! In: a [`Fleet`], what clusters reported of their room, and the placements published before. Out: for every unit
//! that is not blocked, its clusters with replicas and reasons. What a cluster's variant says is deliberately
//! not here, and neither is the moment at which a decision reaches a cluster.
//!
//! `candidates` finds the clusters that match, `choose` takes the best where not all are wanted, `divided` shares
//! replicas out (`share`) by weight or by the room that a [`Ledger`] says is left. `silence` says which clusters are lost,
//! and `parting` what becomes of what they had.
//!
//! [`Fleet`]: crate::Fleet

mod alike;
mod begin;
mod by_name;
mod candidates;
mod choose;
mod clusternet;
mod context;
mod desired;
mod divided;
mod inputs;
mod kept;
mod known;
mod ledger;
mod look;
mod moves;
mod narrowed;
mod parting;
mod placements;
mod predictions;
mod preempt;
mod reports;
mod score;
mod share;
mod silence;
mod taints;
mod trouble;
mod unit;
mod why;

pub use choose::{ChoiceRule, LeftOut};
pub use context::Context;
pub use desired::{Divided, replica_path_of, workloads_of};
pub use ledger::{Ledger, Workloads};
pub use look::{PredictorWord, Standing, predictor_words, rooms, standings};
pub use moves::{Moves, Rebalance, RebalanceWord};
pub(crate) use parting::TAKES_OVER;
pub use placements::{Assignment, Placements, in_order, schedule};
pub use reports::{NOT_SAID, Presence, Report, Reports, doubt};
pub use score::Score;
pub use share::divide;
pub use silence::least_patience;
pub use unit::{Inventory, Scheduled, schedule_unit};
pub use why::{SubscriberMatch, TaintMatch, Why, why};

#[cfg(test)]
mod tests;
