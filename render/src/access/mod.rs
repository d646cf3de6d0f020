//! Who may ask which cluster for what: the rules that hub, agent and edge share.
//!
//! In: a method and a path as a caller sent them. Out: what Kubernetes would call that request, and which class of
//! request it is; a path whose meaning is unclear is none. Connections, headers and clusters are deliberately not here.

pub mod request;

pub use request::{Attributes, Class, Target, Unclear, attributes};
