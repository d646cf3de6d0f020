//! What if: a fleet and what its clusters reported go in with suppositions, and come out as if those were true.
//!
//! [`simulate()`] plans both and tells what differs. Nothing is written, and nobody is asked.

mod scale;
mod simulate;
#[cfg(test)]
mod tests;
mod words;

use crate::fleet::Fleet;
use crate::model::{Cluster, Taint, TaintEffect};
use crate::name::{ClusterName, UnitKey};
use crate::nearest;
use crate::schedule::Reports;

pub use scale::{ObjectWords, Scale};
pub use simulate::{ClusterShift, Simulation, UnitShift, simulate};
pub use words::Unreadable;

/// Something that is not so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supposition {
    /// A cluster is gone for good, and its share goes to others at once.
    Lost(ClusterName),
    /// A cluster has this label, or with `None` has it not.
    Label(ClusterName, String, Option<String>),
    /// A cluster has this taint.
    Tainted(ClusterName, Taint),
    /// A cluster has no taint of this key, or none of this key and effect.
    Untainted(ClusterName, String, Option<TaintEffect>),
    /// An object asks for another number of replicas. Without words for it, the only one of the unit that has any.
    Scale(UnitKey, Option<ObjectWords>, Scale),
}

/// A supposition about what is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSuch {
    /// No cluster of that name.
    #[error("cluster {0} is not registered{1}")]
    Cluster(ClusterName, Hint),
    /// No Subscription of that name.
    #[error("subscription {0} is not declared{1}")]
    Unit(UnitKey, Hint),
    /// A taint that the cluster has not.
    #[error("cluster {0} has no taint {1}{2}")]
    Taint(ClusterName, String, Hint),
    /// A label that the cluster has not.
    #[error("cluster {0} has no label {1}{2}")]
    Label(ClusterName, String, Hint),
    /// Nothing of the unit has replicas that can be read, or nothing of it is called so.
    #[error("subscription {0} has no object{1} with replicas{2}")]
    Object(UnitKey, String, Hint),
    /// Several objects of the unit are meant.
    #[error("subscription {0} has several objects{1} with replicas{2}")]
    Several(UnitKey, String, Hint),
}

/// What may have been meant, as the end of a sentence; empty where nothing is near.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Hint(String);

impl Hint {
    fn of<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Self {
        Self(nearest::hint(word, names))
    }

    fn list(names: &[String]) -> Self {
        match names {
            [] => Self::default(),
            names => Self(format!("; hint: it has {}", names.join(", "))),
        }
    }
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fleet and the reports as if all of that were true, whatever its order; clusters are lost last.
///
/// # Errors
///
/// What is supposed of something that is not there.
pub fn suppose(fleet: &Fleet, reports: &Reports, suppositions: &[Supposition]) -> Result<(Fleet, Reports), NoSuch> {
    let (mut fleet, mut reports) = (fleet.clone(), reports.clone());
    let mut lost = Vec::new();
    for supposition in suppositions {
        match supposition {
            Supposition::Lost(name) => {
                cluster(&mut fleet, name)?;
                lost.push(name);
            }
            Supposition::Label(name, key, value) => {
                let labels = &mut cluster(&mut fleet, name)?.labels;
                match value {
                    Some(value) => drop(labels.insert(key.clone(), value.clone())),
                    None if labels.remove(key).is_some() => {}
                    None => {
                        let hint = Hint::of(key, labels.keys().map(String::as_str));
                        return Err(NoSuch::Label(name.clone(), key.clone(), hint));
                    }
                }
            }
            Supposition::Tainted(name, taint) => {
                let taints = &mut cluster(&mut fleet, name)?.taints;
                taints.retain(|known| known.key != taint.key || known.effect != taint.effect);
                taints.push(taint.clone());
            }
            Supposition::Untainted(name, key, effect) => {
                let taints = &mut cluster(&mut fleet, name)?.taints;
                let before = taints.len();
                let hint = Hint::of(key, taints.iter().map(|taint| taint.key.as_str()));
                taints.retain(|taint| taint.key != *key || effect.is_some_and(|effect| taint.effect != effect));
                if taints.len() == before {
                    return Err(NoSuch::Taint(name.clone(), key.clone(), hint));
                }
            }
            Supposition::Scale(unit, object, to) => scale::scale(&mut fleet, unit, object.as_ref(), *to)?,
        }
    }
    for name in lost {
        fleet.clusters.remove(name);
        reports.clusters.remove(name);
        reports.presence.remove(name);
        reports.predicted.remove(name);
    }
    Ok((fleet, reports))
}

fn cluster<'a>(fleet: &'a mut Fleet, name: &ClusterName) -> Result<&'a mut Cluster, NoSuch> {
    let hint = Hint::of(name.as_str(), fleet.clusters.keys().map(ClusterName::as_str));
    let known = fleet.clusters.get_mut(name);
    known.ok_or_else(|| NoSuch::Cluster(name.clone(), hint))
}
