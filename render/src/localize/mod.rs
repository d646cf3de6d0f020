//! What differs from the Base on which clusters. Next room: `hub::publish`, by way of [`crate::describe`]
//! and [`crate::plan`].
//!
//! In: a unit's [`Base`] and the overrides that meet a cluster. Out: the [`Description`] of that variant, or
//! the findings that keep the old one in place on the clusters of that set of overrides. Which clusters
//! have the unit is deliberately not here, and neither are replicas: dispatch puts them in last.
//!
//! Overrides apply Globalizations first, then Localizations, each by (priority, namespace/name), and the
//! steps of one in list order; the later wins. A step that does not fit stops its object. Nothing of an
//! object, and so of a variant, is ever applied in part.
//!
//! A HelmChart, whichever of the two groups it came from, is described as `fleet.flotilla.dev/v1alpha1`
//! with the values that overrides gave it in `spec.values`. Clusternet's own kind has no such field, and a
//! wrapper around it would be no Kubernetes object that tools can read.
//!
//! [`Base`]: crate::Base
//! [`Description`]: crate::describe::Description

mod carried;
mod chart;
mod field;
mod index;
mod json;
mod object;
mod patch;
mod problem;
mod provenance;
mod trace;
mod variant;

pub use carried::{Unfitting, apply_carried};
pub use index::{Index, Touching, matching};
pub use trace::{Traced, trace};
pub use variant::{localize, variant_name};

#[cfg(test)]
mod tests;
