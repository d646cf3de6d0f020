//! What the hub may ask of this cluster's API server, and in whose name.
//!
//! In: a stream of the hub's, with who asks and one HTTP request. Out: that request at the API server, with the agent's
//! own credential and the asker impersonated, and its answer. A request is looked at as if the hub had not looked:
//! its class by its path, its headers by a list of those that go on. Rights are deliberately not here; RBAC of the
//! cluster decides about them, and `access/` about who may ask at all, at the hub.

mod address;
mod caller;
mod dial;
mod forward;
mod gather;
mod headers;
mod judge;
mod lend;
mod line;
mod policy;

use caller::identity;
use forward::{Answered, serve};
use judge::Entry;

pub(super) use lend::Gate;
pub use policy::{Allow, Policy, Unclear};
