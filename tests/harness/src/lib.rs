//! The simulated fleet: an in-memory Kubernetes API server, as many of them in one process as a bench or a
//! demonstration wants, with an agent for each ([`fleet`]), and the demonstration itself ([`demo`]).
//!
//! In: requests, by [`ApiServer::client`] without a socket or by [`ApiServer::serve`] with one. Out: what a
//! real API server would answer, as far as `docs/harness.md` lists it; the contract tests of the house hold
//! both servers to the same list. What is missing answers 501 with its name.
//!
//! Reading order: [`ApiServer`] (`cluster`) → `request` (what is asked) → `verbs` (what is done) → `fields`
//! (who owns what) and `patch` → `store` (what is held) → `controller` (what follows from it) → `table` and
//! `watching` (what is answered). `kinds` and `schema` are tables that all clusters of a process share.
//!
//! Users, roles, admission webhooks and containers are deliberately not here. What proves a promise about a
//! real cluster uses the real control planes of `flotilla-tests`.

mod bootstrap;
mod cluster;
mod controller;
mod documents;
mod failure;
mod fault;
mod fields;
mod kinds;
mod limits;
mod patch;
mod request;
mod reviews;
mod schema;
mod serve;
mod store;
mod table;
mod verbs;
mod watching;

pub mod demo;
pub mod fleet;

pub use cluster::{ApiServer, Backup, Body, Options};
pub use fault::{Cut, Fault, FaultId, Faults, Requests};

#[cfg(test)]
mod tests;
