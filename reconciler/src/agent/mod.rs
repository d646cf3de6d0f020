//! The agent: envelopes come in through the tunnel, a desired state goes out to `apply`, and what comes of
//! it goes back through the tunnel to the hub's `observe`.
//!
//! It dials the hubs (`tunnels`), never the other way round, and believes them only as far as `wire::accept` says.
//! What it took is in its `journal`, so that it keeps enforcing that while no hub is there. What a hub may reach through
//! it is said by `gate`; [`manifests`] is what is applied for it in a cluster, and [`doctor`] looks for what is wrong on
//! its way. How objects are applied is deliberately not here but in `apply`; `applying` decides whether this agent does.

mod applying;
mod counts;
mod deliver;
pub mod doctor;
mod gate;
mod grants;
mod hub_keys;
mod journal;
pub mod key_secret;
mod look;
pub mod manifests;
mod own_address;
mod own_keys;
mod place;
mod presence;
mod record;
mod reports;
mod run;
mod secrets;
mod store;
mod streams;
mod tunnels;

pub use deliver::{DeliverError, Holdings, serve};
pub use gate::{Allow, Own, Policy, Unclear};
pub use journal::{Files, Journal, JournalError};
pub use place::{JournalPlace, KeyPlace};
pub use run::{AgentError, AgentOptions, run};
pub use secrets::{SecretError, SecretJournal};
pub use store::{Absence, Kept, Store};
pub use tunnels::Way;
