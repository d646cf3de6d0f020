//! One agent's wish for another key, as hubs hold it: proven, and with what says so to other hubs.

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use render::ClusterName;
use render::time::rfc3339;
use tunnel::PublicKey;

use crate::key_wish::{CarriedWish, ProvenWish, SignedWish, WishError};
use crate::limits::KEY_WISH_FORGOTTEN_SECONDS;

/// What the agent of one cluster wishes. It proved to hold both keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyWish {
    /// The key that is to go.
    pub old: PublicKey,
    /// The key that is to take its place.
    pub next: PublicKey,
    /// Whether it was let in with that one.
    pub is_in_use: bool,
    /// From which address it was said last, where that is known.
    pub from: Option<IpAddr>,
    /// When it was said first, in seconds since 1970.
    pub since: i64,
    /// When it was said last.
    pub last: i64,
    /// What was signed, and the word of the tunnel.
    pub(in crate::hub) proof: Arc<(SignedWish, [u8; 32])>,
}

/// What a person would read of a wish (the keys that go and come, and whether that one is in use), and whether it was said
/// lately.
pub(super) type Said = (PublicKey, PublicKey, bool, bool);

impl KeyWish {
    /// One that this hub heard and verified.
    pub(in crate::hub) fn new(
        proven: ProvenWish,
        (from, since, last): (Option<IpAddr>, i64, i64),
        proof: Arc<(SignedWish, [u8; 32])>,
    ) -> Self {
        Self {
            old: proven.old,
            next: proven.next,
            is_in_use: proven.is_in_use,
            from,
            since,
            last,
            proof,
        }
    }

    /// One that another hub tells, verified.
    pub(in crate::hub) fn of(cluster: &ClusterName, carried: &CarriedWish) -> Result<Self, WishError> {
        let proven = carried.proven(cluster)?;
        let proof = Arc::new((carried.wish.clone(), carried.binding()?));
        Ok(Self::new(proven, (carried.from, carried.since, carried.last), proof))
    }

    /// The same, where another hub tells again what was verified before.
    pub(in crate::hub) fn repeated(&self, carried: &CarriedWish) -> Option<Self> {
        let is_same = self.proof.0 == carried.wish && STANDARD.encode(self.proof.1) == carried.binding;
        is_same.then(|| Self {
            is_in_use: carried.is_in_use,
            from: carried.from,
            since: carried.since,
            last: carried.last,
            ..self.clone()
        })
    }

    /// As another hub is told it.
    pub(in crate::hub) fn carried(&self) -> CarriedWish {
        CarriedWish {
            wish: self.proof.0.clone(),
            is_in_use: self.is_in_use,
            binding: STANDARD.encode(self.proof.1),
            from: self.from,
            since: self.since,
            last: self.last,
        }
    }

    /// The key of its tunnel.
    pub(in crate::hub) fn used(&self) -> PublicKey {
        if self.is_in_use { self.next } else { self.old }
    }

    /// From when on it stands in no other one's way, unless it is said again.
    pub(super) fn forgotten_at(&self) -> i64 {
        self.last.saturating_add(KEY_WISH_FORGOTTEN_SECONDS)
    }

    /// Where this is the same, nothing is new.
    pub(super) fn said(&self, now: i64) -> Said {
        (self.old, self.next, self.is_in_use, now < self.forgotten_at())
    }

    /// Who asks: by which key, from where and since when.
    pub(in crate::hub) fn asker(&self) -> String {
        let from = self.from.map(|from| format!(", from {from}")).unwrap_or_default();
        format!("asked with {}{from}, since {}", self.used(), rfc3339(self.since))
    }
}
