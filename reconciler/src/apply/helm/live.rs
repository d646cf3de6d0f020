//! A release as the cluster has it: the labels of the Secrets in which Helm keeps its revisions. Their
//! content is never read.

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Preconditions};
use kube::core::ObjectMeta;

use super::wanted::Place;
use crate::apply::request::{RequestError, bounded};

/// Label of a release: digest of the chart and values that it was made from.
pub(super) const LABEL_CONTENT: &str = "fleet.flotilla.dev/content";

/// Label of a release: whose it is.
pub(in crate::apply) const LABEL_OWNER: &str = "fleet.flotilla.dev/helm-chart";

/// A release's revisions, oldest first. None: there is no release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    /// Each that Helm still has.
    pub revisions: Vec<LiveRevision>,
}

/// One revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LiveRevision {
    /// Its number.
    pub number: u64,
    /// Where it stands.
    pub status: Status,
    /// [`LABEL_CONTENT`].
    pub content: Option<String>,
    /// [`LABEL_OWNER`].
    pub owner: Option<String>,
    /// When it was last written, in seconds since 1970.
    pub written: u64,
    /// Of its Secret.
    pub uid: String,
}

/// Helm's words for where a revision stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It is what runs.
    Deployed,
    /// A later one took its place.
    Superseded,
    /// Helm gave it up.
    Failed,
    /// Helm installs it, or was ended while it did.
    PendingInstall,
    /// Helm upgrades to it, or was ended while it did.
    PendingUpgrade,
    /// Helm rolls back to it, or was ended while it did.
    PendingRollback,
    /// Helm takes it away, or was ended while it did.
    Uninstalling,
    /// It was taken away, and its history kept.
    Uninstalled,
    /// Anything else.
    Unknown,
}

impl Status {
    fn read(word: &str) -> Self {
        match word {
            "deployed" => Self::Deployed,
            "superseded" => Self::Superseded,
            "failed" => Self::Failed,
            "pending-install" => Self::PendingInstall,
            "pending-upgrade" => Self::PendingUpgrade,
            "pending-rollback" => Self::PendingRollback,
            "uninstalling" => Self::Uninstalling,
            "uninstalled" => Self::Uninstalled,
            _ => Self::Unknown,
        }
    }

    /// Whether some helm is at work, or was ended while it was.
    pub(super) fn is_pending(self) -> bool {
        matches!(
            self,
            Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback | Self::Uninstalling
        )
    }
}

impl Live {
    /// Reads what the cluster has.
    pub(super) async fn read(client: &Client, place: &Place) -> Result<Self, RequestError> {
        let api: Api<Secret> = Api::namespaced(client.clone(), &place.namespace);
        let params = ListParams::default().labels(&format!("owner=helm,name={}", place.release));
        let list = bounded(api.list_metadata(&params)).await?;
        Ok(Self::from_metadata(list.items.iter().map(|secret| &secret.metadata)))
    }

    fn from_metadata<'a>(secrets: impl Iterator<Item = &'a ObjectMeta>) -> Self {
        let mut revisions: Vec<_> = secrets.filter_map(revision).collect();
        revisions.sort_by_key(|revision| revision.number);
        Self { revisions }
    }

    /// The newest revision.
    pub(super) fn latest(&self) -> Option<&LiveRevision> {
        self.revisions.last()
    }

    /// The newest revision that ran, before the latest.
    pub(super) fn ran_before(&self) -> Option<&LiveRevision> {
        let (_, earlier) = self.revisions.split_last()?;
        let ran = |revision: &&LiveRevision| matches!(revision.status, Status::Deployed | Status::Superseded);
        earlier.iter().rev().find(ran)
    }
}

fn revision(secret: &ObjectMeta) -> Option<LiveRevision> {
    let labels = secret.labels.as_ref()?;
    let number = |label: &str| labels.get(label).and_then(|text| text.parse().ok());
    Some(LiveRevision {
        number: number("version")?,
        status: Status::read(labels.get("status").map_or("", String::as_str)),
        content: labels.get(LABEL_CONTENT).cloned(),
        owner: labels.get(LABEL_OWNER).cloned(),
        written: number("modifiedAt").or_else(|| number("createdAt")).unwrap_or_default(),
        uid: secret.uid.clone().unwrap_or_default(),
    })
}

/// Forgets a revision that a crash left half made. Exactly the one that was looked at: another helm's stays.
pub(super) async fn forget(client: &Client, place: &Place, revision: &LiveRevision) -> Result<(), RequestError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &place.namespace);
    let name = format!("sh.helm.release.v1.{}.v{}", place.release, revision.number);
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: Some(revision.uid.clone()),
        resource_version: None,
    });
    match bounded(api.delete(&name, &params)).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(labels: &[(&str, &str)]) -> ObjectMeta {
        let labels = labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()));
        ObjectMeta {
            labels: Some(labels.collect()),
            uid: Some("u".to_owned()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn revisions_are_sorted_by_number_and_not_by_name() {
        let secrets = [
            secret(&[("version", "10"), ("status", "failed"), ("createdAt", "7")]),
            secret(&[
                ("version", "9"),
                ("status", "deployed"),
                ("createdAt", "5"),
                ("modifiedAt", "6"),
            ]),
            secret(&[("status", "deployed")]),
        ];
        let live = Live::from_metadata(secrets.iter());
        let seen: Vec<_> = live
            .revisions
            .iter()
            .map(|one| (one.number, one.status, one.written))
            .collect();
        assert_eq!(seen, [(9, Status::Deployed, 6), (10, Status::Failed, 7)]);
        assert_eq!(live.ran_before().map(|revision| revision.number), Some(9));
    }

    #[test]
    fn a_word_that_is_not_known_is_no_state_to_rely_on() {
        assert_eq!(Status::read("pending-something"), Status::Unknown);
        assert!(!Status::Unknown.is_pending());
        assert!(Status::Uninstalling.is_pending());
    }
}
