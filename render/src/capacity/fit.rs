//! How many pods of a template fit.

use std::collections::BTreeMap;

use super::field::{Demand, Field};
use super::fill::Filling;
use super::requirements::PodRequirements;

/// How many pods fit, and why not more.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Fit {
    /// So many more.
    pub replicas: u64,
    /// Nodes that could take one, as far as labels and taints go.
    pub nodes: u64,
    /// Why nodes cannot → how many.
    pub refused: BTreeMap<&'static str, u64>,
}

/// How many pods of a template fit beside what is there. `workload` is its index in the report, where it has pods there
/// already.
///
/// Without anti-affinity and spread it is the sum over nodes of `free / request`, rounded down: what the scheduler of
/// the cluster can place, whatever its order. With them, pods are placed one by one as that scheduler does, and counted
/// up to `most`.
pub fn fit(field: &Field, requirements: &PodRequirements, workload: Option<usize>, most: u64) -> Fit {
    fit_by(field, (requirements, &field.demand(requirements)), workload, most)
}

/// The same, where it was worked out what they ask for of nodes like these.
pub fn fit_by(
    field: &Field,
    (requirements, demand): (&PodRequirements, &Demand),
    workload: Option<usize>,
    most: u64,
) -> Fit {
    let mut answer = Fit::default();
    let mut full = 0_u64;
    for (index, group) in field.groups.iter().enumerate() {
        if let Some(reason) = demand.unmet[group.kind] {
            let refused = answer.refused.entry(reason).or_default();
            *refused = refused.saturating_add(group.count);
            continue;
        }
        answer.nodes = answer.nodes.saturating_add(group.count);
        let times = field.times(index, &demand.asked);
        if times == 0 {
            full = full.saturating_add(group.count);
        }
        answer.replicas = answer.replicas.saturating_add(times.saturating_mul(group.count));
    }
    if !requirements.is_free() {
        answer.replicas = Filling::new(field, (requirements, demand), workload).fill(most);
    }
    if full > 0 && answer.replicas < most {
        answer.refused.insert("nothing left", full);
    }
    answer
}
