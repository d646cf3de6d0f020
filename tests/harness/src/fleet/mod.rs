//! The simulated fleet: clusters in memory, each with a real agent, in one process.
//!
//! Enters: a repository, or where a hub listens, and a folder for journals. Leaves: a hub whose state can be looked at,
//! where none is elsewhere; agents that dial it; and clusters whose objects can be looked at. Deliberately not
//! here: the API server itself ([`crate::ApiServer`]).

mod agent;
mod cluster;
mod hub;

pub use agent::{Agent, HubPlace};
pub use cluster::SimulatedCluster;
pub use hub::{Hub, HubSetup, HubView};
