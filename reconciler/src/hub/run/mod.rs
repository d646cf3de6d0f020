//! A hub that runs.
//!
//! In: [`HubOptions`](super::HubOptions). Out: what [`engine`](super::engine) decided, done, until shutdown.
//! Reading order: `assemble` (puts the parts together, and ends them together) → `listeners`
//! (where agents and other hubs come in) → `turn` (the loop: an event, a
//! step, effects) → `perform` (each effect) → `looking` (when refs are looked at). Nothing is decided here.

mod assemble;
mod commit_times;
mod key_times;
mod listeners;
mod looking;
mod perform;
mod planning;
mod turn;

use std::sync::{Arc, RwLock};

use super::engine::State;

pub use assemble::{run, run_with};

/// The hub's state, as others may read it.
pub type SharedState = Arc<RwLock<State>>;
