//! The tunnel against raw TLS, over a slow link, into silence, and ten thousand of it; then a person's requests
//! through hub and agent.
//!
//! Enters: the crate `tunnel`, and for requests the release binary `flotilla` and one real cluster. Leaves: the figures of bench `tunnel`. Hub, agent,
//! client and target are threads with a runtime of their own; both sides of a ratio are measured in one run.
//! `handshakes` is what two cores give that do nothing but the hub's part, `handshakes_seen` what came while the
//! agents worked beside it.

mod ends;
mod flow;
mod kubectl;
mod link;
mod many;
mod place;
mod raw;
mod silence;
mod slow_link;
mod throughput;

use super::Figures;

/// Measures all of it.
pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    if let Some(ended) = many::agents() {
        return ended;
    }
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build, whose figures say nothing; run `cargo fleet-bench tunnel`");
    }
    // Memory first, while this process is small.
    many::run(figures)?;
    throughput::run(figures)?;
    slow_link::run(figures)?;
    silence::run(figures)?;
    kubectl::run(figures)
}
