//! One object changed by hand, until it is as it was delivered, as a watch of somebody else sees it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::TryStreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::LIMIT;

/// Nobody is faster by hand, and what a correction leaves to do is done by the next one.
const BETWEEN: Duration = Duration::from_millis(50);

/// Where the field is that is changed.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    /// JSON pointer.
    pub(super) pointer: &'static str,
}

/// Name → version and value of the field.
type Objects = BTreeMap<String, (u64, Value)>;

/// Objects of one kind in one namespace.
pub(super) struct Watched {
    api: Api<DynamicObject>,
    field: Field,
    objects: watch::Receiver<Objects>,
    _following: AbortOnDropHandle<()>,
}

impl Watched {
    pub(super) fn start(client: kube::Client, namespace: &str, field: Field) -> Self {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(field.group, "v1", field.kind));
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind);
        let (sender, objects) = watch::channel(Objects::new());
        let events = watcher(api.clone(), watcher::Config::default());
        let following = events.try_for_each(move |event| {
            if let Event::Apply(object) | Event::InitApply(object) = event {
                let seen = (version(&object), value(&object, field));
                sender.send_modify(|objects| {
                    objects.insert(object.metadata.name.unwrap_or_default(), seen);
                });
            }
            std::future::ready(Ok(()))
        });
        let following = async move {
            // A bench that is not told of changes any more says so by its limit in time.
            let _ended = following.await;
        };
        Self {
            api,
            field,
            objects,
            _following: AbortOnDropHandle::new(tokio::spawn(following)),
        }
    }

    /// Changes an object by hand; how long it stayed so.
    pub(super) async fn change(&mut self, name: &str, by_hand: &Value) -> anyhow::Result<Duration> {
        sleep(BETWEEN).await;
        let seen = self.objects.wait_for(|objects| objects.contains_key(name));
        let wanted = timeout(LIMIT, seen).await??.get(name).map(|(_, value)| value.clone());
        let params = PatchParams {
            field_manager: Some("by-hand".to_owned()),
            ..PatchParams::default()
        };
        let patch = self.patch(by_hand);
        let changed = self.api.patch(name, &params, &Patch::Merge(&patch)).await?;
        let started = Instant::now();
        let after = version(&changed);
        let back = self.objects.wait_for(|objects| {
            let found = objects.get(name);
            found.is_some_and(|(version, value)| *version > after && Some(value) == wanted.as_ref())
        });
        let kind = self.field.kind;
        timeout(LIMIT, back)
            .await
            .with_context(|| format!("{kind} {name} was never put right"))??;
        Ok(started.elapsed())
    }

    fn patch(&self, value: &Value) -> Value {
        let words: Vec<_> = self.field.pointer.split('/').skip(1).collect();
        words
            .iter()
            .rev()
            .fold(value.clone(), |inner, word| json!({ *word: inner }))
    }
}

fn version(object: &DynamicObject) -> u64 {
    let version = object.metadata.resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

fn value(object: &DynamicObject, field: Field) -> Value {
    object.data.pointer(field.pointer).cloned().unwrap_or_default()
}
