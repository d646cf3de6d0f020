//! PruneBudget: how much one commit may take away.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::SuspendedClusters;
use crate::name::{ClusterName, UnitKey};

/// The spec of kind PruneBudget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneBudget {
    /// `metadata.name`.
    pub name: String,
    /// `spec.subscription`; without it every unit.
    pub unit: Option<UnitKey>,
    /// `spec.clusters` and `spec.clusterAffinity`; without both every cluster.
    pub clusters: Option<SuspendedClusters>,
    /// `spec.maxObjects`: objects that may go, each counted once for every cluster that it leaves.
    pub objects_max: Option<u64>,
    /// `spec.maxPercent`: the same, of a hundred that are there.
    pub percent_max: Option<u64>,
    /// File and line of the declaration.
    pub file: Arc<str>,
    /// See `file`.
    pub line: u32,
}

/// A commit's word that exactly one list of objects may go: the trailer `Allow-Prune: <count> <digest>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PruneAllowance {
    /// How many objects.
    pub count: u64,
    /// The digest of the list, shortened.
    pub digest: String,
}

impl PruneBudget {
    /// Whether it is about a unit on a cluster. `labels` are the cluster's; `None` where it is not registered.
    pub fn concerns(&self, unit: &UnitKey, cluster: &ClusterName, labels: Option<&BTreeMap<String, String>>) -> bool {
        let of_unit = self.unit.as_ref().is_none_or(|own| own == unit);
        let of_cluster = self.clusters.as_ref().is_none_or(|own| own.contain(cluster, labels));
        of_unit && of_cluster
    }

    /// Whether so many of `there` are more than it allows.
    pub fn is_exceeded(&self, leaving: u64, there: u64) -> bool {
        let too_many = self.objects_max.is_some_and(|most| leaving > most);
        let percent = |most: u64| u128::from(leaving) * 100 > u128::from(most) * u128::from(there);
        too_many || self.percent_max.is_some_and(percent)
    }

    /// Whether it says the same, wherever it stands.
    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.unit == other.unit
            && self.clusters == other.clusters
            && self.objects_max == other.objects_max
            && self.percent_max == other.percent_max
    }

    /// What it allows, in words: `5 objects`, `10 %`, `5 objects and 10 %`.
    pub fn allowed(&self) -> String {
        let objects = self.objects_max.map(|most| match most {
            1 => "1 object".to_owned(),
            most => format!("{most} objects"),
        });
        let percent = self.percent_max.map(|most| format!("{most} %"));
        let parts: Vec<_> = objects.into_iter().chain(percent).collect();
        parts.join(" and ")
    }
}

impl PruneAllowance {
    /// The name of the trailer.
    pub const TRAILER: &str = "Allow-Prune";

    /// Reads a trailer's value; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (count, digest) = text.trim().split_once(' ')?;
        let digest = digest.trim();
        let is_digest = !digest.is_empty() && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(Self {
            count: count.parse().ok()?,
            digest: is_digest.then(|| digest.to_ascii_lowercase())?,
        })
    }

    /// A trailer's value.
    pub fn text(&self) -> String {
        format!("{} {}", self.count, self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(objects_max: Option<u64>, percent_max: Option<u64>) -> PruneBudget {
        PruneBudget {
            name: "small".to_owned(),
            unit: None,
            clusters: None,
            objects_max,
            percent_max,
            file: "policies/small.yaml".into(),
            line: 1,
        }
    }

    #[test]
    fn a_budget_is_exceeded_by_more_than_it_allows_and_by_either_measure() {
        assert!(!budget(Some(5), None).is_exceeded(5, 5));
        assert!(budget(Some(5), None).is_exceeded(6, 1_000));
        assert!(!budget(None, Some(10)).is_exceeded(10, 100));
        assert!(budget(None, Some(10)).is_exceeded(11, 100));
        assert!(budget(None, Some(0)).is_exceeded(1, 1_000_000));
        assert!(budget(Some(50), Some(10)).is_exceeded(2, 10));
        assert_eq!(budget(Some(1), Some(10)).allowed(), "1 object and 10 %");
    }

    #[test]
    fn an_allowance_is_read_as_it_is_written() {
        let allowance = PruneAllowance {
            count: 12,
            digest: "0123abcd".to_owned(),
        };
        assert_eq!(PruneAllowance::parse(&allowance.text()), Some(allowance.clone()));
        assert_eq!(PruneAllowance::parse(" 12  0123ABCD "), Some(allowance));
        for wrong in ["", "12", "all 0123abcd", "12 everything", "12 "] {
            assert_eq!(PruneAllowance::parse(wrong), None, "{wrong:?}");
        }
    }
}
