//! Ed25519 keys enter as files or text, and proofs that a peer is who it says leave.
//!
//! `key` holds the keys, `proof` what exactly is signed in the handshake. Whose key it is, is not known
//! here: the hub finds an agent's keys in the cluster's file in Git, and an agent is given the hub's.

mod key;
mod proof;
mod token;

#[cfg(test)]
mod tests;

pub use key::{KeyError, PublicKey, SecretKey};
pub use proof::{Proof, Role};
pub use token::TokenProof;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::frame::Nonce;

/// A fresh nonce from the system's generator.
pub(crate) fn fresh_nonce() -> Result<Nonce, KeyError> {
    fresh_bytes().map(Nonce)
}

/// 256 random bits from the system's generator.
pub fn fresh_bytes() -> Result<[u8; 32], KeyError> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| KeyError::NoRandomness)?;
    Ok(bytes)
}
