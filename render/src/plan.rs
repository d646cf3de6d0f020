//! Composes the rooms: a snapshot in, a plan out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::describe::Description;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::name::{Revision, UnitKey};
use crate::published::{Published, UnitPlacement};

/// All that a decision may look at.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The revision to plan.
    pub revision: Revision,
    /// What it says.
    pub fleet: Arc<Fleet>,
    /// Capacity by cluster; read by dynamic scheduling.
    pub reports: Reports,
    /// Objects inside charts, as a `helm template` predicted them: chart digest → objects.
    pub chart_previews: BTreeMap<Digest, Vec<serde_json::Value>>,
    /// What `rendered` says now.
    pub previous: Arc<Published>,
    /// Seconds since 1970.
    pub now: i64,
}

/// What clusters said of their capacity. Empty until scheduling by live capacity reads it.
#[derive(Clone, Debug, Default)]
pub struct Reports {}

/// What should be, as data only.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What `rendered` should say.
    pub units: BTreeMap<UnitKey, UnitPlacement>,
    /// The contents rendered by this plan, by digest. What is held back is not among them: its content
    /// is where `previous` came from.
    pub contents: BTreeMap<Digest, Arc<Description>>,
    /// Findings of scheduling, localizing and policy; load's are not repeated.
    pub findings: Vec<Finding>,
}
/// Remembers work between plans; changes speed, never a byte.
#[derive(Debug, Default)]
pub struct Memo {}
