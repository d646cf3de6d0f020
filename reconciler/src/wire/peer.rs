//! What hubs over one state say to each other.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use render::ClusterName;
use serde::{Deserialize, Serialize};
use tunnel::PublicKey;

use super::Report;
use crate::key_wish::CarriedWish;

/// The target of the stream on which a hub hears another one: it understands what agents ask for, too. An older hub names
/// none, and hears of connected clusters alone.
pub const WITH_ASKS: &str = "asks";

/// The target of a question for [`TunnelWord`].
pub const TUNNEL_TARGET: &str = "tunnel";

/// What one hub tells another of the clusters that are connected to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum PeerWord {
    /// All of them follow, until [`PeerWord::End`].
    Begin {
        /// When that hub began, in milliseconds since 1970: what an older process says counts no more.
        epoch: u64,
        /// Where agents reach it, as URLs; none from an older hub.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        endpoints: Vec<String>,
    },
    /// A cluster is connected.
    Cluster {
        /// Which.
        cluster: ClusterName,
        /// Since when, in seconds since 1970.
        since: i64,
        /// The key that its agent proved; empty for a cluster without one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        key: String,
        /// Which process of its agents it is; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        instance: String,
        /// What it said last, where that is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<Report>>,
    },
    /// A cluster is not connected any more.
    Gone {
        /// Which.
        cluster: ClusterName,
    },
    /// Whose agents ask for registration with a token of that hub, all of them.
    Joining {
        /// Cluster → the key that its agent proved, as text.
        clusters: BTreeMap<ClusterName, String>,
    },
    /// An agent there wishes another key in its key's place.
    Wish {
        /// Whose.
        cluster: ClusterName,
        /// With what proves it.
        wish: Box<CarriedWish>,
    },
    /// Whoever was not named since `Begin` is not connected.
    End,
}

impl PeerWord {
    /// The word for who asks for registration.
    #[must_use]
    pub fn joining(clusters: &BTreeMap<ClusterName, PublicKey>) -> Self {
        let text = |(cluster, key): (&ClusterName, &PublicKey)| (cluster.clone(), key.to_string());
        Self::Joining {
            clusters: clusters.iter().map(text).collect(),
        }
    }
}

/// What a hub knows of a cluster's tunnel, told to another one that is asked by a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelWord {
    /// That hub's version.
    pub hub: String,
    /// What it knows.
    pub seen: TunnelSeen,
}

/// What there is to say of one cluster's tunnel now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelSeen {
    /// `None`: there is none.
    pub tunnel: Option<StandingTunnel>,
    /// How the one before it ended.
    pub last_end: Option<TunnelEnd>,
    /// Who was not let in last.
    pub last_refusal: Option<TunnelRefusal>,
}

/// A tunnel that stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StandingTunnel {
    /// In seconds since 1970.
    pub since: i64,
    /// The agent's, as it says.
    pub version: String,
    /// The key that the agent proved, as text.
    pub key: String,
    /// Whether it said that all of the hub's keys outlive it.
    pub has_hub_keys: bool,
    /// Streams that are open.
    pub streams: usize,
    /// Of the last answered ping.
    pub rtt_ms: Option<f64>,
}

/// How the last tunnel ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelEnd {
    /// In seconds since 1970.
    pub at: i64,
    /// In words.
    pub why: String,
}

/// An agent that said this cluster's name and was not let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelRefusal {
    /// The last time, in seconds since 1970.
    pub at: i64,
    /// In words.
    pub why: String,
    /// How often since the hub started.
    pub times: u64,
    /// From where the last time; `None` where that hub does not say.
    pub from: Option<SocketAddr>,
}

/// Where a stream goes that one hub opens at another: to a cluster whose tunnel is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// How many hubs it has come through, this one included.
    pub hops: u32,
    /// Whose tunnel.
    pub cluster: ClusterName,
    /// The target in that tunnel.
    pub target: String,
}

/// A target that is no hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HopError {
    /// It is not of that form.
    #[error("the target is no HOPS/CLUSTER/TARGET")]
    Malformed,
    /// It has come through another hub already.
    #[error("a request goes from one hub to another once, and this one came through {0}")]
    Loop(u32),
}

impl Hop {
    /// The first hop of a stream.
    #[must_use]
    pub fn first(cluster: ClusterName, target: impl Into<String>) -> Self {
        Self {
            hops: 1,
            cluster,
            target: target.into(),
        }
    }

    /// As it stands in OPEN.
    #[must_use]
    pub fn to_target(&self) -> String {
        format!("{}/{}/{}", self.hops, self.cluster, self.target)
    }

    /// Reads it back. A second hop is a loop.
    pub fn parse(text: &str) -> Result<Self, HopError> {
        let mut parts = text.splitn(3, '/');
        let mut next = || parts.next().ok_or(HopError::Malformed);
        let hops: u32 = next()?.parse().map_err(|_| HopError::Malformed)?;
        let cluster = ClusterName::parse(next()?).map_err(|_| HopError::Malformed)?;
        let target = next()?.to_owned();
        if hops != 1 {
            return Err(HopError::Loop(hops));
        }
        Ok(Self { hops, cluster, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_reads_back_and_a_second_one_is_a_loop() {
        let oslo = ClusterName::parse("oslo").expect("a valid cluster");
        for target in ["", "10.0.0.1:80", "a/b/c"] {
            let hop = Hop::first(oslo.clone(), target);
            assert_eq!(Hop::parse(&hop.to_target()), Ok(hop));
        }
        assert_eq!(Hop::parse("2/oslo/"), Err(HopError::Loop(2)));
        assert_eq!(Hop::parse("0/oslo/"), Err(HopError::Loop(0)));
        for broken in ["", "1", "1/oslo", "x/oslo/", "1//", "1/../", "-1/oslo/"] {
            assert_eq!(Hop::parse(broken), Err(HopError::Malformed), "{broken}");
        }
    }
}
