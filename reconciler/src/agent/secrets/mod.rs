//! The journal in Secrets of the cluster itself, so that an agent that loses its disk without a hub goes on all the same.
//!
//! ```text
//! <prefix>            head.json: whose journal it is, which index counts, for how long no hub was heard of, and hubs' keys
//! <prefix>-<digest>   a part of the index (the envelope, and where each content is) or of a content
//! ```
//!
//! A part is named after its own bytes and never changes, so that a damaged one is known by its name. What is new is
//! written first, then the head, which alone decides what counts and names the version that it takes the place of; what
//! it does not lead to is removed last. Only who holds the applier's Lease writes.
//!
//! The identity in that Lease is deliberately not here: two pods would share it.

mod document;
mod object;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use render::describe::Description;
use render::{ClusterName, Digest};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use self::document::{Document, DocumentError, cut, join};
use super::journal::JournalError;
use super::store::{Absence, Kept, Store};
use crate::apply::Tenure;
use crate::key_sets::{KeysKnown, Vouched};
use crate::limits::{JOURNAL_BYTES_MAX, JOURNAL_CONCURRENCY, JOURNAL_READ_TRIES};
use crate::wire::Held;

/// A journal in Secrets, used by whoever holds the cluster's Lease.
#[derive(Debug)]
pub struct SecretJournal {
    secrets: Api<Secret>,
    prefix: String,
    cluster: ClusterName,
    tenure: Tenure,
    stands: Mutex<Stands>,
}

/// What is known to stand in it.
#[derive(Debug, Default)]
struct Stands {
    /// The head's version; `None` where there is no head.
    version: Option<String>,
    /// Contents, by their digests.
    contents: BTreeMap<Digest, Document>,
    index: Option<(Digest, Document)>,
}

/// What the head says.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: u32,
    cluster: ClusterName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<Document>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absence: Option<Absence>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hub_keys: Vec<Vouched>,
    #[serde(default, skip_serializing_if = "KeysKnown::is_empty")]
    hub_keys_known: KeysKnown,
}

/// The document that a head leads to.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    held: Held,
    contents: BTreeMap<Digest, Document>,
}

/// A journal in Secrets that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The API server did not give one.
    #[error("failed to read Secret {secret} of the journal: {why}")]
    Read {
        /// Namespace and name.
        secret: String,
        /// In the API server's words.
        why: String,
    },
    /// The API server gives none to whoever asks, now or later.
    #[error(
        "failed to read Secret {secret} of the journal: {why}; hint: the agent's Role needs get, list, create, update and delete of secrets there, or name a folder of a volume with --journal"
    )]
    NotAllowed {
        /// Namespace and name.
        secret: String,
        /// In the API server's words.
        why: String,
    },
    /// The API server did not take one.
    #[error("failed to write Secret {secret} of the journal: {why}")]
    Write {
        /// Namespace and name.
        secret: String,
        /// In the API server's words.
        why: String,
    },
    /// One is not what it should be. It is left as it is, for a person to look at.
    #[error(
        "the journal's Secret {secret} is damaged: {why}; hint: delete the Secret that bears the journal's name, and the agent asks its hub again"
    )]
    Damaged {
        /// Namespace and name.
        secret: String,
        /// What is wrong.
        why: String,
    },
    /// It is another cluster's.
    #[error(
        "the journal in Secret {secret} is of cluster {found}; hint: delete that Secret if this cluster bears another name now, or name another place with --journal"
    )]
    OfAnother {
        /// Namespace and name.
        secret: String,
        /// Whose it is.
        found: ClusterName,
    },
    /// Somebody else wrote it since it was read.
    #[error("the journal's Secret {secret} was written by another agent of this cluster")]
    Overtaken {
        /// Namespace and name.
        secret: String,
    },
    /// There is more than may be kept in a cluster.
    #[error(
        "the journal would take more than {} MiB of the cluster's Secrets; hint: keep it in a folder of a volume with --journal",
        JOURNAL_BYTES_MAX >> 20
    )]
    TooLarge,
    /// Another process may write now.
    #[error("the applier lease was lost")]
    LeaseLost,
}

/// The form of head and index that this build writes.
const VERSION: u32 = 1;

impl SecretError {
    /// Whether the same may go well later, without anybody's doing.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Read { .. })
    }
}

impl Store for SecretJournal {
    fn read(&self) -> BoxFuture<'_, Result<Kept, JournalError>> {
        Box::pin(async { Ok(self.read_all(&mut *self.stands.lock().await).await?) })
    }

    fn read_newer(&self) -> BoxFuture<'_, Result<Option<Kept>, JournalError>> {
        Box::pin(async {
            let mut stands = self.stands.lock().await;
            let head = self.get(&self.prefix).await?;
            let version = head.and_then(|head| head.metadata.resource_version);
            if version == stands.version {
                return Ok(None);
            }
            Ok(Some(self.read_all(&mut stands).await?))
        })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.tenure.held())
    }

    fn write(&self, kept: Kept) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let mut stands = self.stands.lock().await;
            self.write_all(&mut stands, &kept).await?;
            // What is left over is a matter of space alone.
            if let Err(error) = self.sweep(&mut stands).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "Could not remove old parts of the journal.");
            }
            Ok(())
        })
    }
}

impl SecretJournal {
    /// A journal in `namespace`, whose Secrets are named `prefix` and what follows it.
    pub fn new(client: Client, namespace: &str, prefix: &str, cluster: ClusterName, tenure: Tenure) -> Self {
        Self {
            secrets: Api::namespaced(client, namespace),
            prefix: prefix.to_owned(),
            cluster,
            tenure,
            stands: Mutex::default(),
        }
    }

    async fn read_all(&self, stands: &mut Stands) -> Result<Kept, SecretError> {
        let mut tries = 1;
        loop {
            let Some(head) = self.get(&self.prefix).await? else {
                *stands = Stands::default();
                return Ok(Kept::default());
            };
            let version = head.metadata.resource_version.clone();
            match self.read_from(head, stands).await {
                // Who wrote meanwhile removed what this head led to.
                Err(SecretError::Damaged { .. }) if tries < JOURNAL_READ_TRIES => {
                    let now = self.get(&self.prefix).await?;
                    if now.is_some_and(|now| now.metadata.resource_version == version) {
                        tries = JOURNAL_READ_TRIES;
                    }
                    tries += 1;
                }
                read => return read,
            }
        }
    }

    /// Reads what a head leads to.
    async fn read_from(&self, head: Secret, stands: &mut Stands) -> Result<Kept, SecretError> {
        let version = head.metadata.resource_version.clone();
        let damaged = |why: String| self.damaged(&self.prefix, why);
        let text = object::bytes(&head, object::HEAD_KEY).ok_or_else(|| damaged("it has no head.json".to_owned()))?;
        let head: Head = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
        if head.version != VERSION {
            let why = format!("its form is {}, and this build knows {VERSION}", head.version);
            return Err(damaged(why));
        }
        if head.cluster != self.cluster {
            let secret = self.name(&self.prefix);
            return Err(SecretError::OfAnother {
                secret,
                found: head.cluster,
            });
        }
        let mut read = Stands {
            version,
            ..Stands::default()
        };
        let mut kept = Kept {
            absence: head.absence,
            hub_keys: head.hub_keys,
            hub_keys_known: head.hub_keys_known,
            ..Kept::default()
        };
        if let Some(place) = head.index {
            let bytes = self.document(&place).await?;
            let index: Index = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
            read.index = Some((Digest::of_bytes(&bytes), place));
            let contents = index.contents.into_iter().map(|(digest, place)| async move {
                let content = self.content(digest, &place).await?;
                Ok::<_, SecretError>((digest, place, content))
            });
            let mut contents = stream::iter(contents).buffer_unordered(JOURNAL_CONCURRENCY);
            while let Some((digest, place, content)) = contents.try_next().await? {
                if let Some(content) = content {
                    read.contents.insert(digest, place);
                    kept.contents.insert(digest, content);
                }
            }
            kept.held = Some(index.held);
        }
        *stands = read;
        Ok(kept)
    }

    /// A content; `None` where it is damaged, which the hub can put right.
    async fn content(&self, digest: Digest, place: &Document) -> Result<Option<Arc<Description>>, SecretError> {
        let read = self.document(place).await.and_then(|bytes| {
            let first = place
                .parts
                .first()
                .map(|part| self.part_name(*part))
                .unwrap_or_default();
            let description = Description::from_json(&bytes, digest);
            description.map_err(|error| self.damaged(&first, crate::fault::line(&error)))
        });
        match read {
            Ok(description) => Ok(Some(Arc::new(description))),
            Err(error @ SecretError::Damaged { .. }) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "Found a damaged content and left it out.");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn document(&self, place: &Document) -> Result<Vec<u8>, SecretError> {
        let parts = place.parts.clone().into_iter().map(|part| self.part(part));
        let parts: Vec<_> = stream::iter(parts).buffered(JOURNAL_CONCURRENCY).try_collect().await?;
        let first = place
            .parts
            .first()
            .map(|part| self.part_name(*part))
            .unwrap_or_default();
        join(place, &parts).map_err(|error| self.damaged(&first, error.to_string()))
    }

    async fn part(&self, digest: Digest) -> Result<Vec<u8>, SecretError> {
        let name = self.part_name(digest);
        let Some(secret) = self.get(&name).await? else {
            return Err(self.damaged(&name, "it is gone".to_owned()));
        };
        let bytes = object::bytes(&secret, object::PART_KEY).unwrap_or_default();
        if Digest::of_bytes(bytes) == digest {
            Ok(bytes.to_vec())
        } else {
            Err(self.damaged(&name, "its bytes are not those that its name is made of".to_owned()))
        }
    }

    async fn write_all(&self, stands: &mut Stands, kept: &Kept) -> Result<(), SecretError> {
        let mut contents = BTreeMap::new();
        let mut stored = 0;
        for (digest, content) in &kept.contents {
            let document = match stands.contents.get(digest) {
                Some(document) => document.clone(),
                None => self.write_document(&stored, content.to_json()).await?,
            };
            stored += document.stored;
            stands.contents.insert(*digest, document.clone());
            contents.insert(*digest, document);
        }
        if let Some(held) = kept.held.clone() {
            let index = Index { held, contents };
            let bytes = serde_json::to_vec(&index).map_err(|error| self.damaged(&self.prefix, error.to_string()))?;
            let digest = Digest::of_bytes(&bytes);
            if stands.index.as_ref().is_none_or(|(stands, _)| *stands != digest) {
                stands.index = Some((digest, self.write_document(&stored, bytes).await?));
            }
        }
        let head = Head {
            version: VERSION,
            cluster: self.cluster.clone(),
            index: stands.index.as_ref().map(|(_, place)| place.clone()),
            absence: kept.absence,
            hub_keys: kept.hub_keys.clone(),
            hub_keys_known: kept.hub_keys_known.clone(),
        };
        let bytes = serde_json::to_vec(&head).map_err(|error| self.damaged(&self.prefix, error.to_string()))?;
        stands.version = self.put_head(stands.version.clone(), bytes).await?;
        stands.contents.retain(|digest, _| kept.contents.contains_key(digest));
        Ok(())
    }

    async fn write_document(&self, stored: &usize, bytes: Vec<u8>) -> Result<Document, SecretError> {
        // Some MiB take a while to compress.
        let cutting = tokio::task::spawn_blocking(move || cut(&bytes));
        let (document, parts) = match cutting.await {
            Ok(cut) => cut.map_err(|error| match error {
                DocumentError::Size(_) => SecretError::TooLarge,
                error => self.damaged(&self.prefix, error.to_string()),
            })?,
            Err(join) => std::panic::resume_unwind(join.into_panic()),
        };
        if stored + document.stored > JOURNAL_BYTES_MAX {
            return Err(SecretError::TooLarge);
        }
        let parts = document.parts.clone().into_iter().zip(parts);
        stream::iter(parts.map(|(digest, part)| self.put_part(digest, part)))
            .buffer_unordered(JOURNAL_CONCURRENCY)
            .try_collect::<()>()
            .await?;
        Ok(document)
    }

    /// Removes what the head does not lead to, and finds out whether somebody removed what it does.
    async fn sweep(&self, stands: &mut Stands) -> Result<(), SecretError> {
        let there = self.list_parts().await?;
        let index = stands.index.iter().map(|(_, document)| document);
        let documents = stands.contents.values().chain(index);
        let parts = documents.flat_map(|document| &document.parts);
        let wanted: BTreeSet<String> = parts.map(|part| self.part_name(*part)).collect();
        for (name, uid) in &there {
            if !wanted.contains(name) {
                self.remove(name, uid).await?;
            }
        }
        let is_there = |document: &Document| {
            document
                .parts
                .iter()
                .all(|part| there.contains_key(&self.part_name(*part)))
        };
        stands.contents.retain(|_, document| is_there(document));
        if stands.index.as_ref().is_some_and(|(_, document)| !is_there(document)) {
            stands.index = None;
        }
        Ok(())
    }

    fn part_name(&self, part: Digest) -> String {
        format!("{}-{}", self.prefix, part.short(object::NAME_DIGITS))
    }

    /// Namespace and name, for people.
    fn name(&self, name: &str) -> String {
        let namespace = self.secrets.namespace().unwrap_or_default();
        format!("{namespace}/{name}")
    }

    fn damaged(&self, name: &str, why: String) -> SecretError {
        let secret = self.name(name);
        SecretError::Damaged { secret, why }
    }
}
