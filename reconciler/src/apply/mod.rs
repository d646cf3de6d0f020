//! The applier: what a cluster should have goes in, API requests and a report come out. One runs per
//! cluster, at its agent or at the hub.
//!
//! Journals, tunnels and envelopes are deliberately not here: whoever runs an applier hands it a
//! [`Desired`] that was believed already.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::describe::Description;
use render::{ObjectKey, UnitKey};

use crate::wire::Held;

/// The complete list of what a cluster should have.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The envelope it came from.
    pub held: Held,
    /// Unit → its content. A unit of `held` whose content is missing here has not arrived yet, and is
    /// left alone: neither applied nor removed.
    pub units: BTreeMap<UnitKey, DesiredUnit>,
}

/// One unit with its content.
#[derive(Clone, Debug)]
pub struct DesiredUnit {
    /// What it says.
    pub description: Arc<Description>,
    /// Replicas by object, to be put in.
    pub replicas: BTreeMap<ObjectKey, u64>,
}
