//! Journeys: from a push to real clusters, through the `flotilla` that people run.
//!
//! Enters: a fleet repository, three shared clusters, a hub and agents as child processes ([`support`]).
//! Leaves: a judgement of what is in the clusters afterwards. Deliberately not here: what one room does by
//! itself; that is tested in the room.

mod access;
mod approval;
mod broken;
mod capacity;
mod changes;
mod closed_keys;
mod clusternet;
mod demo;
mod dependants;
mod drain;
mod drift;
mod envelopes;
mod failover;
mod first_push;
mod hostile;
mod hub_keys;
mod identity;
mod leaving;
mod networks;
mod objects;
mod people;
mod plan;
mod pushed_chart;
mod readme;
mod real_inputs;
mod refs;
mod registering;
mod registration;
mod remotes;
mod restart;
mod secrets;
mod sites;
mod still;
mod support;
mod suspension;
mod sync_modes;
mod taking;
mod two_hubs;
mod workloads;
