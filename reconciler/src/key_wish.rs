//! An agent's wish that another key take its key's place: what it says on a `keys` stream to `agent`, and when a hub
//! believes it.
//!
//! Both keys sign, so that whoever has one of them, or reads the tunnel, gets no key of its own proposed; and they sign
//! the tunnel's own word, so that a wish is worth nothing in another tunnel. What comes of it is deliberately not here.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use render::ClusterName;
use serde::{Deserialize, Serialize};
use tunnel::{PublicKey, SecretKey};

use crate::key_sets::SignedKey;

/// The target of the stream.
pub const TARGET: &str = "agent";

/// A tunnel, as both of its ends know it.
#[derive(Clone, Copy, Debug)]
pub struct Within<'a> {
    /// Whose agent is at one end.
    pub cluster: &'a ClusterName,
    /// The key that it proved in the handshake.
    pub used: PublicKey,
    /// The tunnel's own word.
    pub binding: [u8; 32],
}

/// What the agent says, once in each tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignedWish {
    /// The key that is to go.
    pub old: SignedKey,
    /// The key that is to take its place.
    pub next: SignedKey,
}

/// A wish with all that proves it, as one hub tells it another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedWish {
    /// What the agent said.
    pub wish: SignedWish,
    /// Whether it came by the next key. No signature says so: it is the hub's word.
    #[serde(default)]
    pub is_in_use: bool,
    /// Base64 of the word of the tunnel that it came by.
    pub binding: String,
    /// From which address, where the hub knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// When that hub heard it first, in seconds since 1970.
    pub since: i64,
    /// When it heard it last.
    pub last: i64,
}

impl CarriedWish {
    /// The two keys, if each of them signed this for the cluster and for that tunnel.
    pub fn proven(&self, cluster: &ClusterName) -> Result<ProvenWish, WishError> {
        let used = if self.is_in_use {
            &self.wish.next
        } else {
            &self.wish.old
        };
        let used = used.key.parse();
        let within = Within {
            cluster,
            used: used.map_err(|_| WishError::NotAKey(String::new()))?,
            binding: self.binding()?,
        };
        self.wish.proven(&within)
    }

    /// The word of the tunnel that it came by.
    pub(crate) fn binding(&self) -> Result<[u8; 32], WishError> {
        let binding = STANDARD.decode(&self.binding).unwrap_or_default();
        binding.try_into().map_err(|_| WishError::OtherTunnel)
    }
}

/// What the hub says then, and again whenever it is otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyStand {
    /// Whether whoever proves the old key is let in.
    pub old: bool,
    /// Whether whoever proves the next key is.
    pub next: bool,
}

/// Two keys that were proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenWish {
    /// The key that is to go.
    pub old: PublicKey,
    /// The key that is to take its place.
    pub next: PublicKey,
    /// Whether the tunnel was made with that one.
    pub is_in_use: bool,
}

/// A wish that is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WishError {
    /// A key that is none.
    #[error("{0:?} is no key")]
    NotAKey(String),
    /// A key is to take its own place.
    #[error("a key cannot take its own place")]
    Same,
    /// Neither of the two was proven in the handshake.
    #[error("the tunnel was made with neither of the two keys")]
    OtherTunnel,
    /// A key whose owner did not sign, or for another tunnel.
    #[error("key {0} did not sign the wish for this tunnel")]
    NotSigned(PublicKey),
}

impl SignedWish {
    /// The wish of whoever has both keys.
    pub fn new(within: &Within<'_>, old: &SecretKey, next: &SecretKey) -> Self {
        let bytes = signed_bytes(within, &old.public(), &next.public());
        let signed = |key: &SecretKey| SignedKey {
            key: key.public().to_string(),
            signature: STANDARD.encode(key.sign(&bytes)),
        };
        Self {
            old: signed(old),
            next: signed(next),
        }
    }

    /// The two keys, if each of them signed for this tunnel and it was made with one of them.
    pub fn proven(&self, within: &Within<'_>) -> Result<ProvenWish, WishError> {
        let parse = |signed: &SignedKey| {
            let key: Result<PublicKey, _> = signed.key.parse();
            key.map_err(|_| WishError::NotAKey(signed.key.clone()))
        };
        let (old, next) = (parse(&self.old)?, parse(&self.next)?);
        if old == next {
            return Err(WishError::Same);
        }
        if ![old, next].contains(&within.used) {
            return Err(WishError::OtherTunnel);
        }
        let bytes = signed_bytes(within, &old, &next);
        for (key, signed) in [(old, &self.old), (next, &self.next)] {
            let signature = STANDARD.decode(&signed.signature).unwrap_or_default();
            if !key.verifies(&bytes, &signature) {
                return Err(WishError::NotSigned(key));
            }
        }
        Ok(ProvenWish {
            old,
            next,
            is_in_use: next == within.used,
        })
    }
}

fn signed_bytes(within: &Within<'_>, old: &PublicKey, next: &PublicKey) -> Vec<u8> {
    let binding = STANDARD.encode(within.binding);
    format!("flotilla agent key v1\n{}\n{old}\n{next}\n{binding}\n", within.cluster).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> SecretKey {
        SecretKey::generate().expect("there is randomness")
    }

    #[test]
    fn a_wish_is_proven_wherever_it_is_carried() {
        let cluster = ClusterName::parse("oslo").expect("a valid name");
        let (old, next, stolen) = (secret(), secret(), secret());
        let within = Within {
            cluster: &cluster,
            used: old.public(),
            binding: [7; 32],
        };
        let carried = CarriedWish {
            wish: SignedWish::new(&within, &old, &next),
            is_in_use: false,
            binding: STANDARD.encode(within.binding),
            from: Some("10.0.0.7".parse().expect("an address")),
            since: 1,
            last: 2,
        };
        let text = serde_json::to_string(&carried).expect("it is JSON");
        let carried: CarriedWish = serde_json::from_str(&text).expect("it reads back");
        let proven = carried.proven(&cluster).expect("both keys signed");
        assert_eq!((proven.old, proven.next), (old.public(), next.public()));
        let rome = ClusterName::parse("rome").expect("a valid name");
        assert!(carried.proven(&rome).is_err(), "it is for one cluster");
        let mut forged = carried.clone();
        forged.wish.next.key = stolen.public().to_string();
        assert!(
            forged.proven(&cluster).is_err(),
            "the other hub has no key of its own proposed"
        );
        for binding in ["", "AAAA", &STANDARD.encode([8; 32])] {
            let other = CarriedWish {
                binding: binding.to_owned(),
                ..carried.clone()
            };
            assert!(other.proven(&cluster).is_err(), "{binding}");
        }
    }

    #[test]
    fn a_key_that_is_not_proven_is_not_proposed() {
        let cluster = ClusterName::parse("oslo").expect("a valid name");
        let (old, next, stolen) = (secret(), secret(), secret());
        let within = Within {
            cluster: &cluster,
            used: old.public(),
            binding: [7; 32],
        };
        let wish = SignedWish::new(&within, &old, &next);
        let proven = ProvenWish {
            old: old.public(),
            next: next.public(),
            is_in_use: false,
        };
        assert_eq!(wish.proven(&within), Ok(proven));
        let with_next = Within {
            used: next.public(),
            ..within
        };
        let in_use = SignedWish::new(&with_next, &old, &next).proven(&with_next);
        assert_eq!(in_use.map(|proven| proven.is_in_use), Ok(true));

        // A public key of somebody else, whose secret nobody here has.
        let mut forged = wish.clone();
        forged.next.key = stolen.public().to_string();
        assert_eq!(forged.proven(&within), Err(WishError::NotSigned(old.public())));
        // Whoever ends TLS in between has a key of its own, and not the old one.
        let mut own = SignedWish::new(&within, &stolen, &stolen);
        own.old = wish.old.clone();
        assert!(matches!(own.proven(&within), Err(WishError::NotSigned(_))));
        // Whoever has one of the two keys signs for that one, and cannot sign for the other.
        let (mut old_alone, mut next_alone) = (wish.clone(), wish.clone());
        old_alone.next.signature.clone_from(&wish.old.signature);
        next_alone.old.signature.clone_from(&wish.next.signature);
        for (half, missing) in [(old_alone, &next), (next_alone, &old)] {
            assert_eq!(half.proven(&within), Err(WishError::NotSigned(missing.public())));
        }
        // A wish of another tunnel, of another cluster, and one of keys that made no tunnel.
        let elsewhere = Within {
            binding: [8; 32],
            ..within
        };
        assert!(matches!(wish.proven(&elsewhere), Err(WishError::NotSigned(_))));
        let rome = ClusterName::parse("rome").expect("a valid name");
        let of_rome = Within {
            cluster: &rome,
            ..within
        };
        assert!(matches!(wish.proven(&of_rome), Err(WishError::NotSigned(_))));
        let strange = Within {
            used: stolen.public(),
            ..within
        };
        assert_eq!(wish.proven(&strange), Err(WishError::OtherTunnel));
        assert_eq!(
            SignedWish::new(&within, &old, &old).proven(&within),
            Err(WishError::Same)
        );
        let mut odd = wish;
        odd.next.key = "ed25519:?".to_owned();
        assert!(matches!(odd.proven(&within), Err(WishError::NotAKey(_))));
    }
}
