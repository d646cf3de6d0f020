//! Promises about many clusters, on the simulated fleet: clusters in memory, real agents and a real hub, all in
//! this process.
//!
//! Enters: a repository that is pushed to ([`support`]). Leaves: a judgement of the hub, of its repository and of
//! the clusters. With `FLOTILLA_LONG=1` the numbers are those of the cases; otherwise a few of each. What an API server
//! itself does is deliberately not here.

mod in_turn;
mod large;
mod many;
mod soak;
mod support;
