//! What a cluster's API server shows, as a watch tells it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use futures_util::TryStreamExt as _;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};

/// Name → `data.value` of every ConfigMap, and when that was seen.
#[derive(Debug, Default)]
pub(super) struct Objects {
    values: BTreeMap<String, String>,
    changed: Option<Instant>,
}

impl Objects {
    /// Whether an object has this value.
    pub(super) fn is(&self, name: &str, value: usize) -> bool {
        self.values.get(name).is_some_and(|found| *found == value.to_string())
    }

    /// How many names begin so.
    pub(super) fn count(&self, prefix: &str) -> usize {
        let from_prefix = self.values.range(prefix.to_owned()..);
        from_prefix.take_while(|(name, _)| name.starts_with(prefix)).count()
    }
}

/// A watch of the ConfigMaps of one namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    seen: Arc<(Mutex<Objects>, Condvar)>,
}

impl Watch {
    /// Watches until the runtime ends.
    pub(super) fn start(runtime: &tokio::runtime::Handle, client: kube::Client, namespace: &str) -> Self {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind);
        let watch = Self::default();
        let own = watch.clone();
        runtime.spawn(async move {
            loop {
                // An error ends nothing: the watcher lists again.
                let events = watcher(api.clone(), watcher::Config::default());
                let _ended = events.try_for_each(|event| std::future::ready(own.take(event))).await;
            }
        });
        watch
    }

    fn take(&self, event: Event<DynamicObject>) -> Result<(), watcher::Error> {
        let (objects, changed) = &*self.seen;
        let mut objects = objects.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Apply(object) | Event::InitApply(object) => {
                let name = object.metadata.name.unwrap_or_default();
                let value = object.data["data"]["value"].as_str().unwrap_or_default();
                objects.values.insert(name, value.to_owned());
            }
            Event::Delete(object) => {
                objects.values.remove(&object.metadata.name.unwrap_or_default());
            }
            Event::Init | Event::InitDone => {}
        }
        objects.changed = Some(Instant::now());
        changed.notify_all();
        Ok(())
    }

    /// When the objects became so: the moment of the newest event, which is what made them so, unless this
    /// was asked much later.
    pub(super) fn wait(&self, limit: Duration, so: impl Fn(&Objects) -> bool) -> anyhow::Result<Instant> {
        let (objects, changed) = &*self.seen;
        let objects = objects.lock().unwrap_or_else(PoisonError::into_inner);
        let (objects, waited) = changed
            .wait_timeout_while(objects, limit, |objects| !so(objects))
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            bail!("not within {limit:?}");
        }
        Ok(objects.changed.unwrap_or_else(Instant::now))
    }
}
