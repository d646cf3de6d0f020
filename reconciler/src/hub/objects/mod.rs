//! Objects: what is released, and how it fares, as Clusternet's objects in a hub cluster, where the fleet's
//! `render.mode` is `objects`.
//!
//! In: the hub's [`State`](super::engine::State), looked at again whenever it may have changed, and contents
//! by digest. Out: Namespaces, ManagedClusters, Subscriptions, Bases and Descriptions, and a condition of
//! the fleet. Reading order: `run` (the loop) → `plan`, `desired` and `content` (what should be there) → `live`
//! (what is there, and the proof of a removal) → `mirror` and `write` (the requests) → `status` and `condition`.
//!
//! Nothing is read back: a hub cluster decides nothing, and deliveries never wait for it. Decisions are
//! commits in every mode, so that they are deliberately not made here; and no value of a Secret comes here.

mod condition;
mod content;
mod desired;
mod kind;
mod live;
mod mirror;
mod name;
mod plan;
mod run;
mod status;
mod write;

pub use run::HubCluster;
pub(super) use run::Objects;
