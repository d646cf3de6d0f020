//! What exactly is signed in the handshake.

use super::{PublicKey, SecretKey};
use crate::frame::Nonce;

/// Keeps these signatures apart from every other thing the same key may ever sign.
const LABEL: &[u8] = b"flotilla tunnel handshake v1";

/// Which side signs. Part of the text, so that nobody's proof can be handed back to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that dials.
    Agent,
    /// The side that is dialled.
    Hub,
}

impl Role {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Agent => b"agent",
            Self::Hub => b"hub",
        }
    }
}

/// All that both sides sign, each in its own role.
#[derive(Clone, Copy, Debug)]
pub struct Proof<'a> {
    /// The hub's challenge.
    pub hub_nonce: Nonce,
    /// The agent's challenge.
    pub agent_nonce: Nonce,
    /// The cluster's name.
    pub cluster: &'a str,
    /// The session's epoch.
    pub epoch: u64,
    /// Key material of this very TLS connection, where the hub ended TLS itself. It makes a signature
    /// worthless to whoever sits between two TLS connections.
    pub exporter: Option<[u8; 32]>,
    /// Which replica of the hub it says that it is.
    pub server_id: &'a str,
    /// Where else it says that hubs can be reached, so that nobody in between sends agents elsewhere.
    pub endpoints: &'a [String],
}

impl Proof<'_> {
    /// The signed text: every part with its length before it, so that no two meanings share bytes.
    #[must_use]
    pub fn text(&self, role: Role) -> Vec<u8> {
        let exporter: &[u8] = self.exporter.as_ref().map_or(&[], |bytes| bytes);
        let epoch = self.epoch.to_be_bytes();
        let parts: [&[u8]; 8] = [
            LABEL,
            role.label(),
            &self.hub_nonce.0,
            &self.agent_nonce.0,
            self.cluster.as_bytes(),
            &epoch,
            exporter,
            self.server_id.as_bytes(),
        ];
        let endpoints = self.endpoints.iter().map(String::as_bytes);
        parts
            .into_iter()
            .chain(endpoints)
            .flat_map(|part| {
                (part.len() as u32)
                    .to_be_bytes()
                    .into_iter()
                    .chain(part.iter().copied())
            })
            .collect()
    }

    /// A word for this tunnel: what is signed with it counts in no other one.
    #[must_use]
    pub fn binding(&self) -> [u8; 32] {
        // In the hub's role, whatever it is made for: both sides come to the same.
        let text = [b"binding ".as_slice(), &self.text(Role::Hub)].concat();
        let mut binding = [0; 32];
        binding.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, &text).as_ref());
        binding
    }

    /// Signs in `role`.
    #[must_use]
    pub fn sign(&self, role: Role, key: &SecretKey) -> [u8; 64] {
        key.sign(&self.text(role))
    }

    /// Whether `signature` is `key`'s in `role`.
    #[must_use]
    pub fn verify(&self, role: Role, key: &PublicKey, signature: &[u8]) -> bool {
        key.verifies(&self.text(role), signature)
    }
}
