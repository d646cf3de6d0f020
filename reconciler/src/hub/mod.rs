//! The hub: Git in, deliveries out.
//!
//! [`source`] sees a moved ref, `planner` plans it, [`publish`] writes what was decided, and each cluster is
//! told through its tunnel, or by an applier here where it has no agent. What clusters say comes back
//! through [`observe`]. Every decision is [`engine`]'s, as a plain function; the rest carries. A repository
//! that is elsewhere is [`remote`]'s, as a copy on this disk. Agents come in through `gateway`, as far as
//! `registry` knows them; people through `door`, which asks clusters in their names; other hubs through `peers`.

mod arrivals;
mod asking;
mod blocking;
mod clock;
mod clusters;
mod connections;
#[cfg(test)]
mod crowd_tests;
mod deny;
mod departing;
mod direct;
mod dispatch;
mod door;
mod doorstep;
#[cfg(test)]
mod ending_tests;
pub mod engine;
mod following;
mod gateway;
pub mod git;
mod guarding;
#[cfg(test)]
mod hostile_tests;
mod joining;
mod keeper;
mod key_files;
mod key_proposals;
mod keys;
mod knocks;
mod last_word;
mod leaving;
mod look;
mod mode_order;
mod moves;
mod objects;
pub mod observe;
mod options;
mod pace;
mod peers;
mod pinging;
mod places;
mod planner;
mod predict;
mod predictors;
mod proposals;
pub mod publish;
mod push;
mod registry;
pub mod remote;
pub mod repository;
mod run;
pub mod serve;
mod session;
mod shares;
pub mod source;
mod tally;
pub mod tokens;
mod turned_away;
mod turns;

pub use deny::DenyError;
pub use departing::{FORGET_CLUSTER, departed, findings as departed_findings};
pub use door::{CertificateError, DoorError, DoorOptions, FileError, Identity, OidcError, OidcOptions, clusternet_id};
pub use guarding::Rules;
pub use knocks::{Knock, Why};
pub use leaving::Leaving;
pub use moves::{Memories, Words};
pub use objects::HubCluster;
pub use options::{HubError, HubOptions, OnRewrite};
pub use peers::{Peer, PeerOptions, PeerPart};
pub use planner::{judged, load_revision, load_tree, plan_anew, plan_fleet, plan_guarded, snapshot};
pub use predict::Predictor;
pub use run::{SharedState, run, run_with};
pub use serve::Listen;
