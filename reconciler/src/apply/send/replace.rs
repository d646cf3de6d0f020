//! An object with a field that cannot change: it stays and says so, or is deleted and made anew.
//!
//! Nothing needs to be noted in between: the inventory has the object, as one that may be made anew, and the delivery
//! wants it, so that whoever comes after a crash finds it missing and makes it, or finds it made and may remove it.

use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tracing::info;

use super::{Sent, Task, is_same, params};
use crate::apply::message;
use crate::apply::ownership::{self, Immutable};
use crate::apply::request::{RequestError, bounded};
use crate::apply::session::Outcome;
use crate::limits::REPLACE_GONE_TIMEOUT;
use crate::wire::ObjectState;

/// The name under which the API server is asked whether it would take the new object; nothing is made of it.
const CHECK_NAME: &str = "flotilla-check";

impl Task {
    /// Deletes the object and makes it anew, where somebody allowed that; otherwise says how to.
    pub(super) async fn replace(&self, immutable: &Immutable) -> Result<Sent, RequestError> {
        let Some(live) = self.live().await? else {
            let made = self.apply(&self.object, false).await?;
            return self.applied(made, &[]).await;
        };
        let fields = self.differing(immutable, &live);
        let is_ours = self.entry.as_ref().is_some_and(|entry| is_same(entry, &live));
        if let Some(hint) = ownership::objection(&self.key, &self.object, self.replace, is_ours) {
            return Ok(self.stays(immutable, &fields, &hint));
        }
        if let Some(refusal) = self.check().await? {
            let why = format!("it was not deleted to be made anew, since the new one would be refused: {refusal}");
            return Ok(self.stays(immutable, &fields, &why));
        }
        if live.metadata.deletion_timestamp.is_none() {
            self.delete(&live, &fields).await?;
        }
        if !self.is_gone(&live).await? {
            let words = "it is being deleted, to be made anew".to_owned();
            return Ok(Sent::Refused(Outcome::new(ObjectState::Waiting, words)));
        }
        let made = self.apply(&self.object, false).await?;
        info!(object = %self.key, subscription = %self.unit, fields = fields.join(", "), "Replaced object.");
        self.applied(made, &[]).await
    }

    /// The exact fields, where comparing tells more than the API server.
    fn differing(&self, immutable: &Immutable, live: &DynamicObject) -> Vec<String> {
        let live = serde_json::to_value(live).unwrap_or_default();
        let mut fields: Vec<_> = immutable
            .fields
            .iter()
            .flat_map(|field| ownership::differing(&self.key, &self.object, &live, field))
            .collect();
        fields.dedup();
        fields
    }

    fn stays(&self, immutable: &Immutable, fields: &[String], then: &str) -> Sent {
        let fields = match fields {
            [] => String::new(),
            fields => format!(" (it differs in {})", fields.join(", ")),
        };
        let words = message::about(&self.key, &self.object, &format!("{}{fields}", immutable.words));
        // The hint comes last and must not be cut off.
        let words = message::shorten_before(&words, &format!("; {then}"));
        Sent::Refused(Outcome::new(ObjectState::Failed, words))
    }

    /// Why the API server would not take the new object under another name; `None` when it would.
    async fn check(&self) -> Result<Option<String>, RequestError> {
        let is_named_by_content = matches!(
            self.key.group.as_str(),
            "apiextensions.k8s.io" | "apiregistration.k8s.io"
        );
        if is_named_by_content {
            return Ok(None);
        }
        let mut object = self.object.clone();
        object["metadata"]["name"] = Value::from(CHECK_NAME);
        let params = PatchParams {
            dry_run: true,
            ..params()
        };
        match bounded(self.api().patch(CHECK_NAME, &params, &Patch::Apply(&object))).await {
            // Addresses and ports of the old object are free when it is gone.
            Err(RequestError::Refused(status))
                if matches!(status.code, 400 | 422) && !status.message.contains("already allocated") =>
            {
                Ok(Some(message::about(&self.key, &self.object, &status.message)))
            }
            Err(error) if error.is_general() => Err(error),
            _ => Ok(None),
        }
    }

    async fn delete(&self, live: &DynamicObject, fields: &[String]) -> Result<(), RequestError> {
        let orphans = ownership::orphans(&self.key, fields);
        let params = DeleteParams {
            propagation_policy: Some(if orphans {
                PropagationPolicy::Orphan
            } else {
                PropagationPolicy::Background
            }),
            // Exactly the object that was looked at.
            preconditions: Some(Preconditions {
                uid: live.metadata.uid.clone(),
                resource_version: live.metadata.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        match bounded(self.api().delete(&self.key.name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until the object is gone; finalizers may hold it for longer.
    async fn is_gone(&self, live: &DynamicObject) -> Result<bool, RequestError> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(20);
        loop {
            let found = bounded(self.api().get_metadata_opt(&self.key.name)).await?;
            if found.is_none_or(|found| found.metadata.uid != live.metadata.uid) {
                return Ok(true);
            }
            if start.elapsed() >= REPLACE_GONE_TIMEOUT {
                return Ok(false);
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }
}
