//! The commands that only look, run as a person or a pipeline runs them.
//!
//! In: the `flotilla` binary beside a hub whose one cluster is never reached. Out: what it prints where, and
//! with which exit code. What a push does to clusters is deliberately not here; `journeys` has it.

mod drift;
mod explain;
mod get;
mod pipes;
mod stop;
mod tools;
