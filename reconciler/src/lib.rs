//! The shell of Flotilla: `hub` (Git → deliveries → tunnel) and `agent` (delivery → objects).
//!
//! Both share what stands beside them here and never use each other: [`wire`] (what they say),
//! [`apply`] (the applier that each of them runs), [`audit`] (who reached what), [`registration`], [`key_sets`], [`key_wish`],
//! [`fault`], [`telemetry`] and [`limits`]. Decisions are plain functions, here or in `render`; the async code only carries.

pub mod apply;
pub mod audit;
pub mod cli;
mod computing;
mod exchange;
pub mod fault;
pub mod key_sets;
pub mod key_wish;
pub mod limits;
pub mod registration;
pub mod telemetry;
pub mod wire;
mod words;

#[cfg(feature = "agent")]
pub mod agent;
#[cfg(feature = "hub")]
pub mod hub;
