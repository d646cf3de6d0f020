//! Where the age keys of a cluster come from: a Secret in it, and a file beside the agent.
//!
//! They are read when a document is to be decrypted and dropped when that is done, so that a key may be rotated, and
//! so that nobody finds one in a process that had no use for it for weeks.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::io::AsyncReadExt as _;
use zeroize::{Zeroize as _, Zeroizing};

use super::request::{RequestError, bounded};
use super::sops::Identities;
use crate::limits::AGE_KEY_FILE_BYTES_MAX;

/// The Secret that has the keys where a Subscription names none.
pub(super) const SECRET: &str = "sops-age";

/// Data keys of this ending are identities; where there is none, all of them are.
const ENDING: &str = ".agekey";

/// Keys, and what was wrong where some could not be had.
#[derive(Default)]
pub(super) struct Keyring {
    /// What could be had.
    pub(super) identities: Identities,
    /// What could not, in words for people.
    pub(super) lacks: Vec<String>,
}

/// Reads the keys of a Secret and of a file. Only an API server that is of no use at all is an error.
pub(super) async fn read(
    client: &Client,
    namespace: &str,
    name: &str,
    file: Option<&Path>,
) -> Result<Keyring, RequestError> {
    let mut keyring = Keyring::default();
    if let Some(path) = file {
        keyring.add_file(path).await;
    }
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    match bounded(api.get_opt(name)).await {
        Ok(Some(secret)) => {
            let data = secret.data.unwrap_or_default();
            let data = data.into_iter().map(|(key, value)| (key, Zeroizing::new(value.0)));
            keyring.add_secret(&format!("Secret {namespace}/{name}"), data.collect());
        }
        Ok(None) => keyring.lacks.push(format!("there is no Secret {namespace}/{name}")),
        Err(error) if error.is_general() => return Err(error),
        Err(error) => keyring
            .lacks
            .push(format!("Secret {namespace}/{name} cannot be read: {}", error.line())),
    }
    Ok(keyring)
}

impl Keyring {
    fn add_secret(&mut self, secret: &str, data: BTreeMap<String, Zeroizing<Vec<u8>>>) {
        let any = data.keys().any(|key| key.ends_with(ENDING));
        for (key, value) in data.iter().filter(|(key, _)| !any || key.ends_with(ENDING)) {
            self.add(&format!("{key} of {secret}"), value);
        }
    }

    async fn add_file(&mut self, path: &Path) {
        let mut bytes = Zeroizing::new(Vec::new());
        let read = async {
            let file = tokio::fs::File::open(path).await?;
            file.take(AGE_KEY_FILE_BYTES_MAX).read_to_end(&mut bytes).await
        };
        match read.await {
            Ok(_) => self.add(&path.display().to_string(), &bytes),
            Err(error) => self.lacks.push(format!("{} cannot be read: {error}", path.display())),
        }
    }

    fn add(&mut self, place: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        if let Err(error) = self.identities.add(&text) {
            self.lacks.push(format!("{place}: {error}"));
        }
        if let std::borrow::Cow::Owned(mut text) = text {
            text.zeroize();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33\n";

    fn keyring(data: &[(&str, &str)]) -> Keyring {
        let mut keyring = Keyring::default();
        let data = data
            .iter()
            .map(|(key, text)| ((*key).to_owned(), Zeroizing::new(text.as_bytes().to_vec())));
        keyring.add_secret("Secret a/b", data.collect());
        keyring
    }

    #[test]
    fn agekeys_are_read_and_where_there_are_none_everything() {
        let read = keyring(&[("a.agekey", KEY), ("readme", "no key")]);
        assert!(read.lacks.is_empty() && !read.identities.is_empty(), "{:?}", read.lacks);
        let read = keyring(&[("key", KEY), ("other", "hunter2")]);
        assert!(!read.identities.is_empty(), "one bad key does not hide a good one");
        assert_eq!(
            read.lacks,
            ["other of Secret a/b: line 1 is no age identity (AGE-SECRET-KEY-1…), and no comment"]
        );
    }
}
