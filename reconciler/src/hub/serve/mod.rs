//! Serve: what the hub knows, as a read-only Kubernetes API: on loopback, on a unix socket, and behind `hub::door`.
//!
//! In: requests of `kubectl`, `flotilla get` and scrapers. Out: discovery, lists, tables and watches of
//! our own kinds, health and metrics, all made from [`super::observe`] when somebody asks. No verb
//! writes: the fleet is changed by `git push`, and `POST /reconcile` only asks the hub to look at once. An
//! object was created when Git says that the commit which placed it was made, and has no creation time where
//! Git does not say; conditions have no transition time, since the hub stores nothing that it observes.
//!
//! Callers from outside, their identity and their rights are deliberately not here but `hub::door`'s, which asks the same
//! routes; so are other clusters' objects.

mod accept;
mod answer;
mod context;
mod costs;
mod discovery;
mod explanation;
mod kinds;
mod list;
mod listen;
mod live;
mod metrics;
mod object;
mod objects;
mod one_cluster;
mod openapi;
mod query;
mod reconcile;
mod resource;
mod router;
mod routes;
mod shelf;
mod sight;
mod store;
mod table;
mod watch;

pub(super) use answer::{Refused, json_answer};
pub(super) use costs::Asker;
pub(super) use listen::run;
pub use listen::{Bound, Listen, ServeError, bind};
pub(super) use resource::GROUP;
pub(super) use routes::Routes;
pub use store::CommitTimes;
pub(super) use store::{GitTimes, KeyTimes, KeysDated};

#[cfg(test)]
mod tests;
