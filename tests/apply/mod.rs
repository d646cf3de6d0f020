//! The applier against real API servers: what it applies, what it never touches, what it removes.

mod adoption;
mod apply_set;
mod autoscaling;
mod conflicts;
mod delivery;
mod drift;
mod faults;
mod first;
mod health;
mod injected;
mod journalled;
mod keeping;
mod killed;
mod large;
mod memory;
mod one_per_cluster;
mod order;
mod ownership;
mod removal;
mod replacing;
mod rotation;
mod sealed;
mod sending;
mod served;
mod suspended;
mod upgraded;
