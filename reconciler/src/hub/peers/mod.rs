//! Other hubs over the same state: who is connected to them, and streams to those clusters.
//!
//! In: addresses and keys of other hubs, and their connections. Out: [`Event::PeerTold`](super::engine::Event) for the
//! engine, so that a cluster that is connected elsewhere is not silent here; and doors of those clusters for
//! [`dispatch`](super::dispatch), so that a request reaches them by one hop. [`words`] is what is told of this hub,
//! [`heard`] what the other told, and [`endpoints`] what agents are told of hubs; [`first_words`] is what a hub that begins
//! waits for, [`peer_keys`] which keys hubs have, and [`twins`] two agents with one identity; [`dial`] and [`mod@listen`]
//! carry; [`pass`] is one stream that goes on to a cluster, and [`judge`] whether it may. What is decided and written is not
//! said here: hubs agree on that by the refs.
//!
//! ```text
//!   this hub                                  other hub
//!   dial ──TLS 1.3, both keys pinned────────▶ listen
//!        ── OPEN peer ──────────────────────▶
//!        ◀─ Begin, Cluster…, End, … ──────────
//!        ── OPEN apiserver 1/oslo/ ─────────▶ ── OPEN apiserver ──▶ oslo
//! ```

mod dial;
mod endpoints;
mod first_words;
mod heard;
mod judge;
mod listen;
mod pass;
mod peer_keys;
mod twins;
mod words;

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use tunnel::PublicKey;

pub(super) use dial::{ByHop, Dialling, Others, follow};
pub(super) use endpoints::Endpoints;
pub(super) use first_words::FirstWords;
pub(super) use listen::{Here, Listening, listen};
pub(super) use peer_keys::PeerKeys;

/// Another hub, as a flag names it: `URL=KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// `wss://host:port` of its `--listen-peers`.
    pub url: String,
    /// Its keys, any of which it may prove: two while one takes the other's place.
    pub keys: Vec<PublicKey>,
}

/// A part of what the flag says, which commas divide: another hub, or one more key of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerPart {
    /// `URL=KEY`
    Peer(Peer),
    /// `KEY`
    Key(PublicKey),
}

/// Other hubs, and where they come in.
#[derive(Clone, Debug, Default)]
pub struct PeerOptions {
    /// Those that this hub dials.
    pub peers: Vec<Peer>,
    /// Where they dial this one.
    pub listen: Option<SocketAddr>,
    /// Which replica this is, for people.
    pub server_id: String,
    /// Where agents reach this hub: told to them, and to other hubs, which tell theirs.
    pub advertise: Vec<String>,
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no URL=KEY such as wss://hub-b:7444=ed25519:…");
        let (url, key) = text.split_once('=').ok_or_else(wrong)?;
        if !url.starts_with("wss://") {
            return Err(wrong());
        }
        let key = key
            .parse()
            .map_err(|error| format!("the key of {url} cannot be read: {error}"))?;
        Ok(Self {
            url: url.to_owned(),
            keys: vec![key],
        })
    }
}

impl FromStr for PeerPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(key) => Ok(Self::Key(key)),
            Err(_) => text.parse().map(Self::Peer),
        }
    }
}

impl Peer {
    /// Other hubs with all their keys. `None` where a key stands before any hub.
    pub fn of(words: impl IntoIterator<Item = PeerPart>) -> Option<Vec<Self>> {
        let mut peers: Vec<Self> = Vec::new();
        for word in words {
            match word {
                PeerPart::Peer(peer) => peers.push(peer),
                PeerPart::Key(key) => peers.last_mut()?.keys.push(key),
            }
        }
        Some(peers)
    }
}

/// The name with which a hub dials another one. No cluster can have it.
fn name(server_id: &str) -> String {
    format!("{NAMES}{server_id}")
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// What the names of hubs begin with.
const NAMES: &str = "hub/";

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
