//! An object that was there before: it is ours from now on, and what earlier tools own of the manifest too.

use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;
use tracing::info;

use super::{Task, is_same};
use crate::apply::FIELD_MANAGER;
use crate::apply::ownership::{Owners, migrated};
use crate::apply::request::{RequestError, bounded};
use crate::limits::MIGRATION_TRIES;

impl Task {
    /// Takes over what earlier tools own of an object that was applied for the first time. Gives the object, and
    /// whether it was there before.
    ///
    /// It is done before the inventory has the UID: a crash in between leaves the object to be taken over again.
    pub(super) async fn take_over(&self, live: DynamicObject) -> Result<(DynamicObject, bool), RequestError> {
        if self.entry.as_ref().is_some_and(|entry| is_same(entry, &live)) {
            return Ok((live, false));
        }
        let owners = Owners::of(&live.metadata);
        let managers = owners.earlier().join(", ");
        if managers.is_empty() {
            return Ok((live, false));
        }
        let live = self.migrate(live).await?;
        info!(object = %self.key, subscription = %self.unit, managers, "Adopted object.");
        Ok((live, true))
    }

    /// Takes our fields out of the entries of earlier tools. Nothing but the owners changes, so no pod restarts.
    async fn migrate(&self, mut live: DynamicObject) -> Result<DynamicObject, RequestError> {
        for _ in 1..MIGRATION_TRIES {
            match self.try_to_migrate(&live).await {
                Ok(None) => return Ok(live),
                Ok(Some(migrated)) => return Ok(migrated),
                Err(error) if error.code() == Some(409) => {
                    // Somebody wrote it in between: its owners are read again.
                    live = bounded(self.api().get(&live.metadata.name.clone().unwrap_or_default())).await?;
                }
                Err(error) => return Err(error),
            }
        }
        self.try_to_migrate(&live)
            .await
            .map(|migrated| migrated.unwrap_or(live))
    }

    async fn try_to_migrate(&self, live: &DynamicObject) -> Result<Option<DynamicObject>, RequestError> {
        let metadata = &live.metadata;
        let entries = metadata.managed_fields.as_deref().unwrap_or_default();
        let Some(entries) = migrated(Owners::of(metadata), entries, &self.earlier) else {
            return Ok(None);
        };
        let patch = json!({"metadata": {"resourceVersion": metadata.resource_version, "managedFields": entries}});
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = bounded(self.api().patch(&self.key.name, &params, &Patch::Merge(&patch))).await?;
        Ok(Some(patched))
    }
}
