//! A key of the agent's own in a Secret of its cluster: read, or made where there is none.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client};
use tunnel::{KeyError, SecretKey};

use crate::apply::{RequestError, bounded};

/// The field of the Secret, as in the one that `flotilla agent join --manifests` prints.
const FIELD: &str = "key";

/// A key that cannot be had from a Secret.
#[derive(Debug, thiserror::Error)]
pub enum KeySecretError {
    /// The API server did not give it.
    #[error("failed to read Secret {secret}: {why}")]
    Read {
        /// Namespace and name.
        secret: String,
        /// In the API server's words.
        why: String,
    },
    /// There is none, and none is to be made.
    #[error("there is no Secret {0}")]
    Absent(String),
    /// It holds something else, which nobody overwrites.
    #[error("Secret {0} holds no key as {FIELD:?}")]
    NotAKey(String),
    /// No key could be made.
    #[error("failed to make a key")]
    Make(#[source] KeyError),
    /// The API server did not take it.
    #[error("failed to write Secret {secret}: {why}")]
    Write {
        /// Namespace and name.
        secret: String,
        /// In the API server's words.
        why: String,
    },
}

/// The key in a Secret.
pub async fn read(client: &Client, namespace: &str, name: &str) -> Result<SecretKey, KeySecretError> {
    let found = get(client, namespace, name).await?;
    found.ok_or_else(|| KeySecretError::Absent(format!("{namespace}/{name}")))
}

/// The key in a Secret, which is made with a new one where it is not there. Of two agents that make it at once, one does.
pub async fn read_or_make(client: &Client, namespace: &str, name: &str) -> Result<SecretKey, KeySecretError> {
    if let Some(key) = get(client, namespace, name).await? {
        return Ok(key);
    }
    let key = SecretKey::generate().map_err(KeySecretError::Make)?;
    let mut secret = Secret {
        data: Some(BTreeMap::from([(
            FIELD.to_owned(),
            ByteString(key.to_pem().into_bytes()),
        )])),
        ..Secret::default()
    };
    secret.metadata.name = Some(name.to_owned());
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    match bounded(api.create(&PostParams::default(), &secret)).await {
        Ok(_) => Ok(key),
        Err(RequestError::Refused(status)) if status.code == 409 => read(client, namespace, name).await,
        Err(error) => Err(KeySecretError::Write {
            secret: format!("{namespace}/{name}"),
            why: error.line(),
        }),
    }
}

async fn get(client: &Client, namespace: &str, name: &str) -> Result<Option<SecretKey>, KeySecretError> {
    let place = format!("{namespace}/{name}");
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let found = bounded(api.get_opt(name)).await.map_err(|error| KeySecretError::Read {
        secret: place.clone(),
        why: error.line(),
    })?;
    let Some(secret) = found else { return Ok(None) };
    let data = secret.data.unwrap_or_default();
    let key = data.get(FIELD).and_then(|pem| SecretKey::from_pem(&pem.0));
    key.map(Some).ok_or(KeySecretError::NotAKey(place))
}
