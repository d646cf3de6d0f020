//! The real parts themselves: each is there, and does what the journeys rely on.

mod control_plane;
mod git;
mod ignore;
mod network;
mod parts;
mod yaml;
