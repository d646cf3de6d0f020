//! Releases of Helm at the applier, against real API servers: what is installed, what is left alone, what a
//! crash leaves, and who sees a repository's password.

mod applier;
mod charts;
mod crash;
mod drift;
mod failures;
mod first;
mod removal;
mod repositories;
mod servers;
mod suspended;
