//! Whether one object of a release still is as its manifest says, and how it is put right.
//!
//! An object drifted when applying its manifest by server-side apply, tried without writing, would change it.
//! It is put right by the same apply, as field manager `helm`: what others added stays, as with Helm's own
//! three-way merge, and a later upgrade finds what its last manifest says. No revision is made for it.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use render::ObjectKey;
use serde_json::Value;

use super::manifest::{Managed, differ, owned};
use super::manner::Manner;
use super::touched::Sight;
use super::wanted::Place;
use crate::apply::discovery::ServedKind;
use crate::apply::drift::{Basis, Live, drift};
use crate::apply::health::Verdict;
use crate::apply::object;
use crate::apply::request::{RequestError, bounded};
use crate::apply::send::Seen;
use crate::wire::{FieldDrift, Health};

/// As Helm's own name for itself.
const MANAGER: &str = "helm";

/// One object to be looked at.
pub(super) struct One<'a> {
    pub client: Client,
    pub kind: Arc<ServedKind>,
    pub key: ObjectKey,
    pub place: &'a Place,
    pub managed: &'a Managed,
}

/// What one look at an object found.
pub(super) struct Glance {
    pub verdict: Verdict,
    /// How it was left.
    pub sight: Sight,
    /// What is not as it should be, where it was compared.
    pub difference: Option<Difference>,
}

/// How an object differs from its manifest.
pub(super) struct Difference {
    /// What puts it right.
    wanted: Value,
    /// Whether it is not there at all.
    pub is_gone: bool,
    /// The fields, as far as they can be told.
    pub fields: Vec<FieldDrift>,
}

impl One<'_> {
    /// Its health alone.
    pub(super) async fn glance(&self) -> Result<Glance, RequestError> {
        let live = self.read().await?;
        Ok(glance(live.as_ref(), None))
    }

    /// Its health, and whether it is as the manifest says; not compared where it stands as it was left.
    pub(super) async fn compare(&self, manner: &Manner, left: Option<&Sight>) -> Result<Glance, RequestError> {
        let live = self.read().await?;
        let version = live.as_ref().map(|live| live.metadata.resource_version.as_deref());
        if left.is_some_and(|left| left.version.is_some() && version == Some(left.version.as_deref())) {
            return Ok(glance(live.as_ref(), None));
        }
        let difference = self.difference(live.as_ref(), manner).await?;
        Ok(glance(live.as_ref(), difference))
    }

    /// Puts it right.
    pub(super) async fn correct(&self, difference: &Difference) -> Result<Glance, RequestError> {
        let corrected = self.apply(&difference.wanted, false).await?;
        Ok(glance(Some(&corrected), None))
    }

    async fn difference(
        &self,
        live: Option<&DynamicObject>,
        manner: &Manner,
    ) -> Result<Option<Difference>, RequestError> {
        let wanted = owned(self.managed.object(), &self.key.namespace, self.place);
        // As the fields of a Secret are found, and as rules name them.
        let mut wanted = object::with_data(wanted, &self.key);
        let Some(live) = live else {
            return Ok(Some(Difference {
                wanted,
                is_gone: true,
                fields: Vec::new(),
            }));
        };
        let managed = live.metadata.managed_fields.as_deref().unwrap_or_default();
        if is_scaled(managed)
            && let Some(spec) = wanted["spec"].as_object_mut()
        {
            spec.remove("replicas");
        }
        let live = value(live);
        if !differ(&live, &value(&self.apply(&wanted, true).await?)) {
            return Ok(None);
        }
        let fields = drift(&wanted, Live::Whole(&live), &others(managed), Basis::Another);
        let (ignored, fields): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|field| manner.ignores(&self.key, field));
        if !ignored.is_empty() {
            // They differ, so that others have them, and nothing is lost by not sending them. From the end, so that no
            // item of a list moves before its turn.
            ignored.iter().rev().for_each(|field| remove(&mut wanted, &field.path));
            if !differ(&live, &value(&self.apply(&wanted, true).await?)) {
                return Ok(None);
            }
        }
        Ok(Some(Difference {
            wanted,
            is_gone: false,
            fields,
        }))
    }

    async fn read(&self) -> Result<Option<DynamicObject>, RequestError> {
        let api = self.kind.api(&self.client, &self.key.namespace);
        let live = bounded(api.get_opt(&self.key.name)).await?;
        Ok(live.map(|live| self.kind.typed(live)))
    }

    async fn apply(&self, wanted: &Value, is_tried: bool) -> Result<DynamicObject, RequestError> {
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            dry_run: is_tried,
            force: true,
            ..PatchParams::default()
        };
        let api = self.kind.api(&self.client, &self.key.namespace);
        let applied = bounded(api.patch(&self.key.name, &params, &Patch::Apply(wanted))).await?;
        Ok(self.kind.typed(applied))
    }
}

fn glance(live: Option<&DynamicObject>, difference: Option<Difference>) -> Glance {
    let verdict = match live {
        Some(live) => Seen::object(live).verdict,
        None => Verdict {
            health: Health::Failed,
            message: "it is not there".to_owned(),
        },
    };
    Glance {
        verdict,
        sight: live.map_or_else(Sight::default, |live| Sight::of(&live.metadata)),
        difference,
    }
}

/// Whether somebody scales it: whoever does sets its replicas.
fn is_scaled(managed: &[ManagedFieldsEntry]) -> bool {
    managed
        .iter()
        .any(|entry| entry.subresource.as_deref() == Some("scale"))
}

/// The entries of others. Helm's own says that it has the maps whose fields were taken from it, as of a map that is one
/// value.
fn others(managed: &[ManagedFieldsEntry]) -> Vec<ManagedFieldsEntry> {
    let others = managed.iter().filter(|entry| entry.manager.as_deref() != Some(MANAGER));
    others.cloned().collect()
}

fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// Takes out what a JSON pointer leads to.
fn remove(object: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(index) = name.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_pointer_leads_to_is_taken_out_and_nothing_else() {
        let mut object = json!({"metadata": {"annotations": {"a/b": "1", "c": "2"}}, "list": [1, 2]});
        for pointer in ["/metadata/annotations/a~1b", "/list/0", "/list/7", "/none/x", ""] {
            remove(&mut object, pointer);
        }
        assert_eq!(object, json!({"metadata": {"annotations": {"c": "2"}}, "list": [2]}));
    }
}
