//! The door of the simulated fleet: an in-memory API server and as many agents as a bench or a demonstration
//! wants, without one real cluster.
//!
//! Nothing of it is here yet. What proves a promise uses the real control planes of `flotilla-tests`; this
//! crate will serve fast tests, a newcomer's first run and runs of a thousand clusters.
