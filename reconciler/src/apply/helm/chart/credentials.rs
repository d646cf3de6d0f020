//! What a private repository asks for: a Secret of the cluster, by reference.

use std::collections::BTreeMap;

use ::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use render::chart::PullSecret;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::apply::request::{RequestError, bounded};

/// Name, password and certificates. It has no `Debug`: nothing of it is ever shown.
#[derive(Default)]
pub(super) struct Credentials {
    /// `Basic …`, or nothing.
    pub(super) basic: Option<HeaderValue>,
    /// What signs the repository's certificate; empty for what this machine trusts.
    pub(super) authorities: Vec<Vec<u8>>,
}

/// Why a Secret is of no use.
#[derive(Debug, thiserror::Error)]
pub(in crate::apply::helm) enum CredentialError {
    /// It could not be read.
    #[error("failed to read Secret {namespace}/{name} of this cluster")]
    Read {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: RequestError,
    },
    /// It lacks what it should have.
    #[error(
        "Secret {namespace}/{name} {why}; hint: it has keys username and password, and ca.crt where the repository's certificate is your own"
    )]
    Unfit {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
}

/// Reads it.
pub(super) async fn read(client: &Client, secret: &PullSecret) -> Result<Credentials, CredentialError> {
    let PullSecret { namespace, name } = secret;
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = bounded(api.get(name)).await.map_err(|source| CredentialError::Read {
        namespace: namespace.clone(),
        name: name.clone(),
        source,
    })?;
    understand(&secret.data.unwrap_or_default()).map_err(|why| CredentialError::Unfit {
        namespace: namespace.clone(),
        name: name.clone(),
        why,
    })
}

fn understand(data: &BTreeMap<String, ByteString>) -> Result<Credentials, &'static str> {
    let text = |key: &str| data.get(key).map(|value| value.0.as_slice());
    let basic = match (text("username"), text("password")) {
        (None, None) => None,
        (Some(name), Some(password)) => {
            let pair = [name.trim_ascii_end(), b":", password.trim_ascii_end()].concat();
            let mut header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
                .map_err(|_| "holds what is no name and password")?;
            header.set_sensitive(true);
            Some(header)
        }
        _ => return Err("has only one of username and password"),
    };
    let authorities = match text("ca.crt") {
        None => Vec::new(),
        Some(pem) => {
            let certificates = CertificateDer::pem_slice_iter(pem).map(|one| one.map(|one| one.to_vec()));
            let certificates: Result<Vec<_>, _> = certificates.collect();
            let certificates = certificates.map_err(|_| "has a ca.crt that is no certificate in PEM form")?;
            if certificates.is_empty() {
                return Err("has a ca.crt without a certificate");
            }
            certificates
        }
    };
    if basic.is_none() && authorities.is_empty() {
        return Err("has none of the keys that count");
    }
    Ok(Credentials { basic, authorities })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(entries: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), bytes(value)))
            .collect()
    }

    #[test]
    fn name_and_password_belong_together() {
        let whole = understand(&data(&[("username", "me"), ("password", "pw\n")])).expect("it is whole");
        assert_eq!(whole.basic.expect("it has both"), "Basic bWU6cHc=");
        for half in [
            &[("username", "me")][..],
            &[("password", "pw")],
            &[("token", "x")],
            &[("ca.crt", "x")],
        ] {
            assert!(understand(&data(half)).is_err());
        }
    }
}
