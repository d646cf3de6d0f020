//! An identity provider's public keys, as it publishes them (JWKS).

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use crate::limits::{KEYS_BYTES_MAX, KEYS_MAX};

/// The keys that an identity provider signs with now. Symmetric ones are none: whoever could check such a signature could
/// make one.
#[derive(Clone, Default)]
pub struct Keys {
    keys: Vec<Key>,
}

#[derive(Clone)]
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// Why a list of keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysWrong {
    /// It is larger than any provider's.
    #[error("the list of keys has more than {KEYS_BYTES_MAX} bytes")]
    TooLarge,
    /// It is no list of keys.
    #[error("the list of keys is no JSON object with a list of keys")]
    NoList,
    /// There is nothing in it that a signature can be checked with.
    #[error("the list of keys has none that is for signatures and can be used")]
    NoKey,
}

impl Keys {
    /// Reads what a provider publishes at its `jwks_uri`. A key that is not understood is left out, as new kinds come up;
    /// of more than 64 the first count.
    pub fn read(bytes: &[u8]) -> Result<Self, KeysWrong> {
        if bytes.len() > KEYS_BYTES_MAX {
            return Err(KeysWrong::TooLarge);
        }
        let list: Value = serde_json::from_slice(bytes).map_err(|_| KeysWrong::NoList)?;
        let list = list.get("keys").and_then(Value::as_array).ok_or(KeysWrong::NoList)?;
        let keys: Vec<_> = list.iter().filter_map(Key::read).take(KEYS_MAX).collect();
        if keys.is_empty() {
            return Err(KeysWrong::NoKey);
        }
        Ok(Self { keys })
    }

    /// The keys that a token may be signed with, by the name that it gives; without a name, each that fits.
    pub(super) fn fitting(&self, id: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &DecodingKey> {
        let fits = move |key: &&Key| {
            key.algorithms.contains(&algorithm) && (id.is_none() || key.id.is_none() || key.id.as_deref() == id)
        };
        self.keys.iter().filter(fits).map(|key| &key.key)
    }
}

impl Key {
    fn read(value: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
        if !matches!(&jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
            return None;
        }
        let mut algorithms = algorithms(&jwk.algorithm)?;
        if let Some(one) = value.get("alg").and_then(Value::as_str) {
            let one: Algorithm = one.parse().ok()?;
            algorithms.retain(|algorithm| *algorithm == one);
        }
        Some(Self {
            id: jwk.common.key_id.clone(),
            key: DecodingKey::from_jwk(&jwk).ok()?,
            algorithms,
        })
    }
}

/// What a key can have signed, by its kind: never what the token says, which would let a public key be taken for a
/// shared secret.
fn algorithms(parameters: &AlgorithmParameters) -> Option<Vec<Algorithm>> {
    use jsonwebtoken::jwk::EllipticCurve;
    match parameters {
        AlgorithmParameters::RSA(_) => Some(vec![
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ]),
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => Some(vec![Algorithm::ES256]),
            EllipticCurve::P384 => Some(vec![Algorithm::ES384]),
            EllipticCurve::P521 | EllipticCurve::Ed25519 => None,
        },
        AlgorithmParameters::OctetKeyPair(_) => Some(vec![Algorithm::EdDSA]),
        AlgorithmParameters::OctetKey(_) => None,
    }
}
