//! The Secrets of a journal, one request at a time.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions};
use render::Digest;

use super::{SecretError, SecretJournal};
use crate::apply::{FIELD_MANAGER, RequestError, bounded};
use crate::limits::LIST_PAGE_OBJECTS;

/// The key of a head's Secret.
pub(super) const HEAD_KEY: &str = "head.json";

/// The key of a part's Secret.
pub(super) const PART_KEY: &str = "part";

/// Digits of a part's digest in its name: more than enough to tell parts apart, and a name that people can read.
pub(super) const NAME_DIGITS: usize = 40;

/// Its Secrets' type, by which people tell them from others.
const TYPE: &str = "fleet.flotilla.dev/journal";

/// What Kubernetes calls whoever manages an object.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Which journal a Secret is of.
const LABEL: &str = "fleet.flotilla.dev/journal";

/// What a Secret holds under a key.
pub(super) fn bytes<'a>(secret: &'a Secret, key: &str) -> Option<&'a [u8]> {
    Some(&secret.data.as_ref()?.get(key)?.0)
}

impl SecretJournal {
    /// A Secret; `None` only where the API server says that there is none.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Secret>, SecretError> {
        bounded(self.secrets.get_opt(name))
            .await
            .map_err(|error| self.unread(name, &error))
    }

    /// Writes the head in place of that version of it; says which version it has now.
    pub(super) async fn put_head(&self, before: Option<String>, bytes: Vec<u8>) -> Result<Option<String>, SecretError> {
        self.check_lease()?;
        let mut head = self.secret(&self.prefix, HEAD_KEY, bytes);
        let is_new = before.is_none();
        head.metadata.resource_version = before;
        let written = if is_new {
            bounded(self.secrets.create(&params(), &head)).await
        } else {
            bounded(self.secrets.replace(&self.prefix, &params(), &head)).await
        };
        match written {
            Ok(written) => Ok(written.metadata.resource_version),
            Err(error) if error.code() == Some(409) || (!is_new && error.is_not_found()) => {
                let secret = self.name(&self.prefix);
                Err(SecretError::Overtaken { secret })
            }
            Err(error) => Err(self.unwritten(&self.prefix, &error)),
        }
    }

    /// Writes a part, unless it stands.
    pub(super) async fn put_part(&self, digest: Digest, bytes: Vec<u8>) -> Result<(), SecretError> {
        self.check_lease()?;
        let name = self.part_name(digest);
        let mut part = self.secret(&name, PART_KEY, bytes);
        part.immutable = Some(true);
        match bounded(self.secrets.create(&params(), &part)).await {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some(409) => {}
            Err(error) => return Err(self.unwritten(&name, &error)),
        }
        let found = self.get(&name).await?;
        if let Some(found) = found {
            if self::bytes(&found, PART_KEY) == self::bytes(&part, PART_KEY) {
                return Ok(());
            }
            // Whoever damaged it: what its name says is what belongs there.
            self.remove(&name, &found.metadata.uid.unwrap_or_default()).await?;
        }
        let made = bounded(self.secrets.create(&params(), &part)).await;
        made.map(drop).map_err(|error| self.unwritten(&name, &error))
    }

    /// Every part that is there, by name, with its UID; also those whose labels somebody removed.
    pub(super) async fn list_parts(&self) -> Result<BTreeMap<String, String>, SecretError> {
        let mut parts = BTreeMap::new();
        let mut page = ListParams::default().limit(LIST_PAGE_OBJECTS);
        loop {
            let list = bounded(self.secrets.list_metadata(&page)).await;
            let list = list.map_err(|error| self.unread(&format!("{}-*", self.prefix), &error))?;
            let named = list.items.into_iter().filter_map(|secret| {
                let name = secret.metadata.name?;
                self.is_part(&name).then_some((name, secret.metadata.uid?))
            });
            parts.extend(named);
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(parts),
            }
        }
    }

    /// Removes exactly the Secret that was looked at.
    pub(super) async fn remove(&self, name: &str, uid: &str) -> Result<(), SecretError> {
        self.check_lease()?;
        let preconditions = Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        };
        let params = DeleteParams::default().preconditions(preconditions);
        match bounded(self.secrets.delete(name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() || error.code() == Some(409) => Ok(()),
            Err(error) => Err(self.unwritten(name, &error)),
        }
    }

    fn is_part(&self, name: &str) -> bool {
        let digits = name.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix('-'));
        digits.is_some_and(|digits| {
            digits.len() == NAME_DIGITS && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        })
    }

    fn secret(&self, name: &str, key: &str, bytes: Vec<u8>) -> Secret {
        let labels = [(MANAGED_BY, FIELD_MANAGER), (LABEL, &self.prefix)];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            },
            type_: Some(TYPE.to_owned()),
            data: Some([(key.to_owned(), ByteString(bytes))].into()),
            ..Secret::default()
        }
    }

    fn check_lease(&self) -> Result<(), SecretError> {
        if self.tenure.is_held() {
            Ok(())
        } else {
            Err(SecretError::LeaseLost)
        }
    }

    fn unread(&self, name: &str, error: &RequestError) -> SecretError {
        let (secret, why) = (self.name(name), error.line());
        match error.code() {
            Some(403) => SecretError::NotAllowed { secret, why },
            _ => SecretError::Read { secret, why },
        }
    }

    fn unwritten(&self, name: &str, error: &RequestError) -> SecretError {
        let (secret, why) = (self.name(name), words(error));
        SecretError::Write { secret, why }
    }
}

/// What the API server said, and what helps where it is a matter of rights.
fn words(error: &RequestError) -> String {
    let words = error.line();
    match error.code() {
        Some(403) => format!("{words}; hint: its Role needs get, list, create, update and delete of secrets there"),
        _ => words,
    }
}

fn params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}
