//! The objects of a release in the cluster: their health, and whether they still are as the manifest says.
//!
//! An object drifted when applying its manifest by server-side apply, tried without writing, would change it.
//! It is put right by the same apply, as field manager `helm`: what others added stays, as with Helm's own
//! three-way merge, and a later upgrade finds what its last manifest says. No revision is made for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use render::ObjectKey;
use render::model::DriftMode;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::manifest::{Managed, differ, owned};
use super::wanted::Place;
use crate::apply::discovery::{Kinds, ServedKind};
use crate::apply::health::{self, Verdict};
use crate::apply::message;
use crate::apply::request::{RequestError, bounded};
use crate::apply::send::Seen;
use crate::limits::{HELM_LOOK_CONCURRENCY, KINDS_REST};
use crate::wire::Health;

/// As Helm's own name for itself.
const MANAGER: &str = "helm";

/// Which kinds the cluster serves, for all releases.
#[derive(Default)]
pub(super) struct KnownKinds {
    known: Mutex<Option<(Instant, Arc<Kinds>)>>,
}

impl KnownKinds {
    /// Those that were asked for last; anew where `lacks` says that they are not enough.
    pub(super) async fn with(
        &self,
        client: &Client,
        lacks: impl Fn(&Kinds) -> bool,
    ) -> Result<Arc<Kinds>, RequestError> {
        let known = self.known.lock().await.clone();
        if let Some((at, kinds)) = known
            && (at.elapsed() < KINDS_REST || !lacks(&kinds))
        {
            return Ok(kinds);
        }
        let kinds = Arc::new(Kinds::discover(client).await?);
        *self.known.lock().await = Some((Instant::now(), kinds.clone()));
        Ok(kinds)
    }
}

/// The objects of one revision.
pub(super) struct Objects {
    managed: Vec<Managed>,
    /// Of each object, the version that is as the manifest says.
    right: BTreeMap<ObjectKey, String>,
}

/// How the objects of a release fare.
pub(super) struct Found {
    /// The worst health, and whose.
    pub verdict: Verdict,
    /// The same without Jobs, whose end Helm waits for only when told.
    pub without_jobs: Verdict,
    /// Objects that are not as the manifest says, with what was done about it.
    pub drifted: Vec<String>,
}

/// How one object fares.
struct Look {
    key: ObjectKey,
    verdict: Verdict,
    /// Its version, when it is as the manifest says.
    right: Option<String>,
    drifted: Option<String>,
}

impl Objects {
    /// Those of a manifest.
    pub(super) fn new(managed: Vec<Managed>) -> Self {
        Self {
            managed,
            right: BTreeMap::new(),
        }
    }

    /// Looks at them. Only a look that compares sees drift, and objects whose kind has no status.
    pub(super) async fn look(
        &mut self,
        client: &Client,
        kinds: &KnownKinds,
        place: &Place,
        compare: Option<DriftMode>,
    ) -> Result<Found, RequestError> {
        let lacks = |kinds: &Kinds| {
            self.managed
                .iter()
                .any(|managed| managed.key_in(kinds, place).is_none())
        };
        let kinds = kinds.with(client, lacks).await?;
        let mut tasks = Vec::new();
        let mut looks = Vec::new();
        for managed in &self.managed {
            let kind = kinds.find(&managed.api_version, &managed.key.kind);
            let (Some(kind), Some(key)) = (kind, managed.key_in(&kinds, place)) else {
                let absence = kinds.absence(&managed.api_version, &managed.key.kind);
                looks.push(Look::unknown(managed.key.clone(), absence));
                continue;
            };
            if compare.is_some() || health::has_status(&key.group, &key.kind) {
                let right = self.right.get(&key).cloned();
                let one = One {
                    client: client.clone(),
                    kind: kind.clone(),
                    key,
                    place,
                    managed,
                };
                tasks.push(one.look(right, compare));
            }
        }
        let mut answers = stream::iter(tasks).buffer_unordered(HELM_LOOK_CONCURRENCY);
        while let Some(look) = answers.next().await {
            looks.push(look?);
        }
        drop(answers);
        Ok(self.take(looks))
    }

    fn take(&mut self, looks: Vec<Look>) -> Found {
        let well = || Verdict {
            health: Health::Current,
            message: String::new(),
        };
        let (mut verdict, mut without_jobs) = (well(), well());
        let mut drifted = Vec::new();
        for look in looks {
            worsen(&mut verdict, &look);
            if look.key.kind != "Job" {
                worsen(&mut without_jobs, &look);
            }
            drifted.extend(look.drifted);
            match look.right {
                Some(version) => self.right.insert(look.key, version),
                None => self.right.remove(&look.key),
            };
        }
        drifted.sort();
        Found {
            verdict,
            without_jobs,
            drifted,
        }
    }
}

fn worsen(verdict: &mut Verdict, look: &Look) {
    if look.verdict.health > verdict.health {
        let message = format!("{}: {}", look.key, look.verdict.message);
        *verdict = Verdict {
            health: look.verdict.health,
            message,
        };
    }
}

impl Look {
    fn unknown(key: ObjectKey, why: String) -> Self {
        Self {
            key,
            verdict: Verdict {
                health: Health::Unknown,
                message: why,
            },
            right: None,
            drifted: None,
        }
    }
}

/// One object to be looked at.
struct One<'a> {
    client: Client,
    kind: Arc<ServedKind>,
    key: ObjectKey,
    place: &'a Place,
    managed: &'a Managed,
}

impl One<'_> {
    async fn look(self, right: Option<String>, compare: Option<DriftMode>) -> Result<Look, RequestError> {
        match self.try_look(right, compare).await {
            Err(error) if error.is_general() => Err(error),
            Err(error) => {
                let words = message::about(&self.key, &self.managed.object(), &error.line());
                Ok(Look::unknown(self.key, words))
            }
            Ok(look) => Ok(look),
        }
    }

    async fn try_look(&self, right: Option<String>, compare: Option<DriftMode>) -> Result<Look, RequestError> {
        let api = self.kind.api(&self.client, &self.key.namespace);
        let live = bounded(api.get_opt(&self.key.name))
            .await?
            .map(|live| self.kind.typed(live));
        let version = live.as_ref().and_then(|live| live.metadata.resource_version.clone());
        let is_right = version.is_some() && version == right;
        let Some(drift) = compare.filter(|_| !is_right) else {
            return Ok(self.seen(live.as_ref(), right.filter(|_| is_right), None));
        };
        let wanted = self.wanted(live.as_ref());
        if let Some(live) = &live {
            let tried = self.apply(&wanted, true).await?;
            if !differ(&value(live), &value(&tried)) {
                return Ok(self.seen(Some(live), version, None));
            }
        }
        let what = if live.is_some() { "was changed" } else { "was removed" };
        match drift {
            DriftMode::Report | DriftMode::Freeze => {
                Ok(self.seen(live.as_ref(), None, Some(format!("{} {what}", self.key))))
            }
            DriftMode::Correct => {
                let corrected = self.apply(&wanted, false).await?;
                let version = corrected.metadata.resource_version.clone();
                let words = format!("{} {what} and put right", self.key);
                Ok(self.seen(Some(&corrected), version, Some(words)))
            }
        }
    }

    /// What the manifest says, without what whoever scales the object sets.
    fn wanted(&self, live: Option<&DynamicObject>) -> Value {
        let mut wanted = owned(self.managed.object(), &self.key.namespace, self.place);
        let entries = live.and_then(|live| live.metadata.managed_fields.as_ref());
        let is_scaled = |entry: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry| {
            entry.subresource.as_deref() == Some("scale")
        };
        if entries.into_iter().flatten().any(is_scaled)
            && let Some(spec) = wanted["spec"].as_object_mut()
        {
            spec.remove("replicas");
        }
        wanted
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

    fn seen(&self, live: Option<&DynamicObject>, right: Option<String>, drifted: Option<String>) -> Look {
        let verdict = match live {
            Some(live) => Seen::object(live).verdict,
            None => Verdict {
                health: Health::Failed,
                message: "it is not there".to_owned(),
            },
        };
        Look {
            key: self.key.clone(),
            verdict,
            right,
            drifted,
        }
    }
}

fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
