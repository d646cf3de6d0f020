//! What the hub may reach through this agent, and in whose name.
//!
//! In: a stream of the hub's. Out: what [`policy`] lends it, and its lines of the audit log. To the API server go HTTP
//! requests with the agent's own credential and the asker impersonated, each of which is looked at as if the hub had not
//! looked: its class by its path, its headers by a list of those that go on. An address is dialled once it was judged
//! ([`mod@dial`]). Rights are deliberately not here; RBAC of the cluster decides about them, and `access/` about who may ask
//! at all, at the hub.

mod address;
mod caller;
mod counted;
mod dial;
mod forward;
mod gather;
mod judge;
mod lend;
mod own;
mod policy;
mod room;
mod talk;

use caller::identity;
use forward::{Forwarding, serve};
use judge::Entry;
use policy::Lent;
use room::Room;

pub(super) use address::is_guarded;
pub(super) use lend::Gate;
pub use own::Own;
pub use policy::{Allow, Policy, Unclear};
