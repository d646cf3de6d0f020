//! Releases of Helm at the applier, against real API servers: what is installed, what is left alone, what a
//! crash leaves, and who sees a repository's password.

mod applier;
mod charts;
mod crash;
mod drift;
mod failures;
mod first;
mod options;
mod removal;
mod repositories;
pub(crate) mod servers;
mod suspended;
