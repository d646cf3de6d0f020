//! What another hub told, taken in word by word.

use std::collections::BTreeMap;

use render::ClusterName;
use tunnel::PublicKey;
use tunnel::limits::ENDPOINT_BYTES_MAX;

use crate::hub::engine::KeyWish;
use crate::key_wish::CarriedWish;
use crate::limits::{PEER_CLUSTERS_MAX, PEER_ENDPOINTS_MAX, PEER_INSTANCE_CHARS_MAX, PEER_WISHES_MAX, TOKENS_MAX};
use crate::wire::{PeerWord, Report};

/// What one stream said by now.
#[derive(Debug, Default)]
pub(super) struct Heard {
    clusters: BTreeMap<ClusterName, There>,
    /// Those named since `Begin`, while all are being told.
    pass: Option<BTreeMap<ClusterName, There>>,
    /// The newest of each cluster.
    reports: BTreeMap<ClusterName, Report>,
    epoch: u64,
    endpoints: Vec<String>,
    /// `None` before it was told, and from an older hub.
    joining: Option<BTreeMap<ClusterName, PublicKey>>,
    /// What agents there wish: proven, by cluster and next key.
    wishes: Wishes,
    /// Those named since `Begin`.
    wishes_pass: Option<Wishes>,
}

type Wishes = BTreeMap<(ClusterName, PublicKey), KeyWish>;

/// A cluster that is connected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct There {
    /// In seconds since 1970.
    pub(super) since: i64,
    /// What its agent proved; `None` for a cluster without one.
    pub(super) key: Option<PublicKey>,
    /// Which process of its agents; may be empty.
    pub(super) instance: String,
}

/// Why what another hub says cannot be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Nonsense {
    #[error("it tells of more than {PEER_CLUSTERS_MAX} clusters")]
    TooMany,
    #[error("more than {PEER_WISHES_MAX} of its agents wish other keys")]
    TooManyWish,
    #[error("a wish for another key is not proven")]
    Wish,
    #[error("more than {TOKENS_MAX} agents ask it for registration")]
    TooManyJoin,
    #[error("a cluster's report is in another one's name")]
    AnotherName,
    #[error("a cluster's key cannot be read")]
    Key,
    #[error("it began at {0} and says that it began at {1}")]
    Older(u64, u64),
}

/// What is to be passed on.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) clusters: BTreeMap<ClusterName, There>,
    pub(super) reports: Vec<Report>,
    /// Where agents reach that hub.
    pub(super) endpoints: Vec<String>,
    /// Whose agents ask there for registration; `None` where it has not told.
    pub(super) joining: Option<BTreeMap<ClusterName, PublicKey>>,
    /// Which keys agents there wish.
    pub(super) wishes: Vec<(ClusterName, KeyWish)>,
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

    /// Takes a word in. Something comes out when it is whole: never in the middle of a pass. Of those who do not count here
    /// no report is kept, so that there are no more than clusters.
    pub(super) fn take(
        &mut self,
        word: PeerWord,
        counts: impl Fn(&ClusterName, Option<&PublicKey>) -> bool,
    ) -> Result<Option<Told>, Nonsense> {
        match word {
            PeerWord::Begin { epoch, .. } if epoch < self.epoch => return Err(Nonsense::Older(self.epoch, epoch)),
            PeerWord::Begin { epoch, endpoints } => {
                self.epoch = epoch;
                self.endpoints = offered(endpoints);
                self.pass = Some(BTreeMap::new());
                self.wishes_pass = Some(Wishes::new());
                return Ok(None);
            }
            PeerWord::Cluster {
                cluster,
                since,
                key,
                instance,
                report,
            } => {
                if report.as_ref().is_some_and(|report| report.cluster != cluster) {
                    return Err(Nonsense::AnotherName);
                }
                let key = match key.as_str() {
                    "" => None,
                    key => Some(key.parse().map_err(|_| Nonsense::Key)?),
                };
                let does_count = counts(&cluster, key.as_ref());
                let there = There {
                    since,
                    key,
                    instance: instance.chars().take(PEER_INSTANCE_CHARS_MAX).collect(),
                };
                let clusters = self.pass.as_mut().unwrap_or(&mut self.clusters);
                clusters.insert(cluster.clone(), there);
                if clusters.len() > PEER_CLUSTERS_MAX {
                    return Err(Nonsense::TooMany);
                }
                let report = report.filter(|_| does_count);
                self.reports.extend(report.map(|report| (cluster, *report)));
            }
            PeerWord::Gone { cluster } => {
                self.clusters.remove(&cluster);
                self.reports.remove(&cluster);
            }
            PeerWord::Joining { clusters } if clusters.len() > TOKENS_MAX => return Err(Nonsense::TooManyJoin),
            PeerWord::Joining { clusters } => {
                let parsed = clusters.into_iter().map(|(cluster, key)| Ok((cluster, key.parse()?)));
                let parsed = parsed.collect::<Result<_, tunnel::KeyError>>();
                self.joining = Some(parsed.map_err(|_| Nonsense::Key)?);
            }
            PeerWord::Wish { cluster, wish } => self.wish(cluster, &wish)?,
            PeerWord::End => {
                if let Some(wishes) = self.wishes_pass.take() {
                    self.wishes = wishes;
                }
                if let Some(pass) = self.pass.take() {
                    self.clusters = pass;
                }
            }
        }
        Ok(self.pass.is_none().then(|| self.told()))
    }

    /// Takes in a wish that its keys signed. What was verified before is not verified again.
    fn wish(&mut self, cluster: ClusterName, carried: &CarriedWish) -> Result<(), Nonsense> {
        let next = carried.wish.next.key.parse().map_err(|_| Nonsense::Key)?;
        let at = (cluster, next);
        let known = self.wishes.get(&at).and_then(|known| known.repeated(carried));
        let wish = match known {
            Some(known) => known,
            None => KeyWish::of(&at.0, carried).map_err(|_| Nonsense::Wish)?,
        };
        let wishes = self.wishes_pass.as_mut().unwrap_or(&mut self.wishes);
        wishes.insert(at, wish);
        match wishes.len() > PEER_WISHES_MAX {
            true => Err(Nonsense::TooManyWish),
            false => Ok(()),
        }
    }

    /// What was told by now, with the reports that were not passed on yet.
    pub(super) fn told(&mut self) -> Told {
        Told {
            clusters: self.clusters.clone(),
            reports: std::mem::take(&mut self.reports).into_values().collect(),
            endpoints: self.endpoints.clone(),
            joining: self.joining.clone(),
            wishes: {
                let wishes = self.wishes.iter();
                wishes
                    .map(|((cluster, _), wish)| (cluster.clone(), wish.clone()))
                    .collect()
            },
        }
    }
}

/// Of the addresses that a hub names those that agents can be told of: what is no address of a tunnel helps nobody.
fn offered(endpoints: Vec<String>) -> Vec<String> {
    let fit = endpoints
        .into_iter()
        .filter(|url| url.starts_with("wss://") && url.len() <= ENDPOINT_BYTES_MAX);
    fit.take(PEER_ENDPOINTS_MAX).collect()
}
