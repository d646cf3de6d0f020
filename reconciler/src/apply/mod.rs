//! The applier: what a cluster should have, applied. Next room: the hub's `observe`, through the report.
//!
//! In: a [`Desired`] state, the newest of which counts. Out: API requests, and an [`ApplyReport`].
//! One runs per cluster, at its agent or at the hub. Reading order: [`run`] (`applier`, the loop) →
//! `lease` (one per cluster) → `session` (what it knows while it holds the lease), with each `unit` → `pass` (one walk
//! through `order`'s stages: `verify` what is there, hold what `gate` says has to wait, `decrypt` with `sops` what is
//! encrypted, send what differs) → `removal` (by the proof of `prune` and `inventory`) → `watch`, `drift`, `look`,
//! `health` and `patience` → `status` (the report). Beside it `dependants` answers what goes with an object.
//! HelmCharts are `helm`'s, beside the pass.
//!
//! Journals, tunnels and envelopes are deliberately not here: whoever runs an applier hands it a
//! [`Desired`] that was believed already. Nothing is forced here, and nothing is removed without proof.

mod applier;
mod apply_set;
mod backoff;
pub mod capacity;
mod client;
mod connections;
mod decrypt;
#[cfg(any(feature = "hub", feature = "agent"))]
mod dependants;
mod discovery;
mod drift;
#[cfg(feature = "hub")]
mod dry_run;
pub mod facts;
mod gate;
mod health;
mod helm;
mod inventory;
mod keyring;
mod lease;
mod look;
mod message;
mod object;
mod order;
mod ownership;
mod pass;
mod passage;
mod patience;
mod prune;
mod removal;
mod renewal;
mod request;
mod send;
mod session;
pub mod sops;
mod status;
mod suspend;
mod tenure;
mod unit;
mod unreached;
mod verify;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use render::describe::Description;
use render::model::DriftMode;
use render::{ByObject, UnitKey};

use crate::wire::Held;

#[cfg(any(feature = "hub", feature = "agent"))]
pub(crate) use backoff::Backoff;
#[cfg(any(feature = "hub", feature = "agent"))]
pub(crate) use request::{RequestError, bounded};

pub use applier::{ApplierOptions, ApplyError, run};
pub use client::{ApiServer, ClientError, check_kubeconfig};
#[cfg(feature = "hub")]
pub(crate) use connections::client_over;
#[cfg(any(feature = "hub", feature = "agent"))]
pub(crate) use dependants::look as dependants;
#[cfg(feature = "agent")]
pub(crate) use discovery::{Plural, plurals};
#[cfg(feature = "hub")]
pub(crate) use dry_run::{Checked, Verdict, dry_run};
pub use helm::HelmOptions;
#[cfg(feature = "hub")]
pub(crate) use helm::{NoHelm, preview};
pub use passage::{Answer, Passage};
pub use status::ApplyReport;
pub use tenure::{Prepare, Tenure};
pub use unreached::{LoginError, Unreached};

/// The field manager of everything that is applied, and what proves that an object is ours. Under another
/// name every object would conflict with itself, nothing could be removed any more, and fields taken out
/// of manifests would stay in clusters for ever: it never changes.
pub const FIELD_MANAGER: &str = "flotilla";

/// The namespace that lease and inventory stand in.
pub(crate) const NAMESPACE: &str = "flotilla-system";

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
    pub replicas: ByObject,
    /// What is done about fields that somebody else changed.
    pub drift: DriftMode,
}
