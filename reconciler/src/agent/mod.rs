//! The agent: envelopes come in through the tunnel, a desired state goes out to `apply`, and what comes of
//! it goes back through the tunnel to the hub's `observe`.
//!
//! It dials the hub, never the other way round, and believes it only as far as `wire::accept` says. What
//! it took is in its journal, so it keeps enforcing that while the hub is away. Applying is deliberately
//! not here.

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
pub use gate::{Allow, Policy, Unclear};
pub use journal::{Files, Journal, JournalError};
pub use place::{JournalPlace, KeyPlace};
pub use run::{AgentError, AgentOptions, run};
pub use secrets::{SecretError, SecretJournal};
pub use store::{Absence, Kept, Store};
pub use tunnels::Way;
