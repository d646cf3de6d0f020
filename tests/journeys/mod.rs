//! A push, followed through hub, tunnel and agents into real clusters.
//!
//! Enters: the `flotilla` binary, real `git` and real control planes. Leaves: what stands in the clusters and
//! on the refs. Deliberately not here: how the binary gets there.

mod readme;
