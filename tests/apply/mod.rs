//! The applier against real API servers: what it applies, what it never touches, what it removes.

mod delivery;
mod faults;
mod first;
mod health;
mod keeping;
mod one_per_cluster;
mod ownership;
mod removal;
mod sealed;
