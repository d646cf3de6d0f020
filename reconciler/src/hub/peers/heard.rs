//! What another hub told, taken in word by word.

use std::collections::BTreeMap;

use render::ClusterName;
use tunnel::limits::ENDPOINT_BYTES_MAX;

use crate::limits::{PEER_CLUSTERS_MAX, PEER_ENDPOINTS_MAX};
use crate::wire::{PeerWord, Report};

/// What one stream said by now.
#[derive(Debug, Default)]
pub(super) struct Heard {
    clusters: BTreeMap<ClusterName, i64>,
    /// Those named since `Begin`, while all are being told.
    pass: Option<BTreeMap<ClusterName, i64>>,
    reports: Vec<Report>,
    epoch: u64,
    endpoints: Vec<String>,
}

/// Why what another hub says cannot be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Nonsense {
    #[error("it tells of more than {PEER_CLUSTERS_MAX} clusters")]
    TooMany,
    #[error("a cluster's report is in another one's name")]
    AnotherName,
    #[error("it began at {0} and says that it began at {1}")]
    Older(u64, u64),
}

/// What is to be passed on.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) clusters: BTreeMap<ClusterName, i64>,
    pub(super) reports: Vec<Report>,
    /// Where agents reach that hub.
    pub(super) endpoints: Vec<String>,
}

impl Heard {
    /// Of a hub that began no earlier than that.
    pub(super) fn since(epoch: u64) -> Self {
        Self {
            epoch,
            ..Self::default()
        }
    }

    /// When that hub began.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Takes a word in. Something comes out when it is whole: never in the middle of a pass.
    pub(super) fn take(&mut self, word: PeerWord) -> Result<Option<Told>, Nonsense> {
        match word {
            PeerWord::Begin { epoch, .. } if epoch < self.epoch => return Err(Nonsense::Older(self.epoch, epoch)),
            PeerWord::Begin { epoch, endpoints } => {
                self.epoch = epoch;
                self.endpoints = offered(endpoints);
                self.pass = Some(BTreeMap::new());
                return Ok(None);
            }
            PeerWord::Cluster { cluster, since, report } => {
                if report.as_ref().is_some_and(|report| report.cluster != cluster) {
                    return Err(Nonsense::AnotherName);
                }
                let clusters = self.pass.as_mut().unwrap_or(&mut self.clusters);
                clusters.insert(cluster, since);
                if clusters.len() > PEER_CLUSTERS_MAX {
                    return Err(Nonsense::TooMany);
                }
                self.reports.extend(report.map(|report| *report));
            }
            PeerWord::Gone { cluster } => {
                self.clusters.remove(&cluster);
            }
            PeerWord::End => {
                if let Some(pass) = self.pass.take() {
                    self.clusters = pass;
                }
            }
        }
        if self.pass.is_some() {
            return Ok(None);
        }
        Ok(Some(Told {
            clusters: self.clusters.clone(),
            reports: std::mem::take(&mut self.reports),
            endpoints: self.endpoints.clone(),
        }))
    }
}

/// Of the addresses that a hub names those that agents can be told of: what is no address of a tunnel helps nobody.
fn offered(endpoints: Vec<String>) -> Vec<String> {
    let fit = endpoints
        .into_iter()
        .filter(|url| url.starts_with("wss://") && url.len() <= ENDPOINT_BYTES_MAX);
    fit.take(PEER_ENDPOINTS_MAX).collect()
}
