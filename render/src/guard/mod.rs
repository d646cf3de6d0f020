//! The guard: what a plan would take away, or give to two, that it must not.
//!
//! In: a snapshot with its plan, and what else decides about removal ([`Evidence`]): the contents of what is
//! published, the PruneBudgets in force, and what commits allowed. Out: the same plan, in which some units keep on
//! some clusters what they have there, and Errors that say why. What a cluster does about an object that is gone from
//! its delivery is deliberately not here: the applier has its own proof.
//!
//! 1. An object has one unit (`claims`). Of two that would deliver one object to one cluster, the one that has it
//!    goes on, and the newcomer keeps what it had. So nothing is removed, and nothing changes hands, by a mistake.
//!    The same holds for what a chart is predicted to bring (`predicted`), where it is predicted at all.
//! 2. An object that moves to a unit which is held does not leave the one it was in (`moves`).
//! 3. What would go beyond a budget stays (`budget`), until a commit allows exactly that list.

mod budget;
mod claims;
mod holdings;
mod moves;
mod predicted;
mod scene;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::digest::Digest;
use crate::model::{PruneAllowance, PruneBudget};
use crate::plan::{Plan, Snapshot};

pub use budget::{Exceeded, REASON_BUDGET, Removal};
pub use holdings::Holdings;

pub(crate) use holdings::Same;

use scene::Scene;

/// What decides about removal, beside the snapshot.
pub struct Evidence<'a> {
    /// The PruneBudgets in force: those of the revisions accepted before, and this one's.
    pub budgets: &'a [Arc<PruneBudget>],
    /// What commits allowed since the newest decision.
    pub allowed: &'a BTreeSet<PruneAllowance>,
    /// What a content of what is published has, by its digest; `None` where it cannot be read. Unreadable is not
    /// empty: whoever has it keeps it.
    pub holdings: &'a dyn Fn(&Digest) -> Option<Arc<Holdings>>,
}

/// Holds back what must not go, in the plan itself. Gives the lists that went beyond a budget and were not allowed.
pub fn guard(snapshot: &Snapshot, plan: &mut Plan, evidence: &Evidence<'_>) -> Vec<Exceeded> {
    let (entries, findings, exceeded) = {
        let mut scene = Scene::new(snapshot, plan, evidence);
        scene.settle();
        let exceeded = budget::check(&mut scene, evidence);
        if !exceeded.is_empty() {
            scene.settle();
        }
        (scene.held_units(), scene.findings(), exceeded)
    };
    for (unit, placement) in entries {
        if placement.clusters.is_empty() {
            plan.units.remove(&unit);
        } else {
            plan.units.insert(unit, placement);
        }
    }
    plan.findings.extend(findings);
    plan.findings.sort();
    plan.findings.dedup();
    exceeded
}

#[cfg(test)]
mod tests;
