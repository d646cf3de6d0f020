//! How an agent shows that it has a bootstrap token, without telling it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::hmac;

use super::{Proof, PublicKey, Role};
use crate::frame::Token;

/// What an agent that has a token says in one handshake. Whoever hears it can say it for no other key, and in no other
/// handshake.
#[derive(Clone)]
pub struct TokenProof {
    message: Vec<u8>,
    code: Vec<u8>,
}

impl TokenProof {
    /// Of an agent that has the token and the key.
    #[must_use]
    pub fn new(token: &Token, proof: &Proof<'_>, key: &PublicKey) -> Self {
        let message = message(proof, key);
        let hash = digest(&SHA256, token.0.as_bytes());
        let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, hash.as_ref()), &message);
        Self {
            message,
            code: code.as_ref().to_vec(),
        }
    }

    /// As it was heard; `None` where nothing was said.
    pub(crate) fn heard(text: &str, proof: &Proof<'_>, key: &PublicKey) -> Option<Self> {
        let code = STANDARD.decode(text).ok().filter(|code| !code.is_empty())?;
        let message = message(proof, key);
        Some(Self { message, code })
    }

    /// As it is said.
    pub(crate) fn text(&self) -> String {
        STANDARD.encode(&self.code)
    }

    /// Whether it was made with the token that has this SHA-256. Takes as long whatever comes of it.
    #[must_use]
    pub fn is_of(&self, hash: &[u8; 32]) -> bool {
        hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, hash), &self.message, &self.code).is_ok()
    }
}

fn message(proof: &Proof<'_>, key: &PublicKey) -> Vec<u8> {
    [b"token ".as_slice(), &proof.text(Role::Agent), key.as_bytes()].concat()
}
