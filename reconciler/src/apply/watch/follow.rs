//! One watch: list by pages, then what happens. A watch that ends or fails begins again, further apart each time; a
//! line that died without a word is noticed when the watch should have ended.

use std::pin::pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use kube::api::{Api, DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use render::ObjectKey;
use tokio::sync::mpsc;
use tracing::debug;

use super::{OwnedKeys, Scope, Sighting, Watched};
use crate::apply::discovery::ServedKind;
use crate::apply::health;
use crate::apply::send::Seen;
use crate::apply::verify;
use crate::limits::{WATCH_LASTS, WATCH_PAGE_OBJECTS};

/// What follows one scope.
pub(super) struct Follower {
    pub(super) client: Client,
    pub(super) kind: Arc<ServedKind>,
    pub(super) scope: Scope,
    pub(super) owned: tokio::sync::watch::Receiver<Arc<OwnedKeys>>,
    pub(super) sender: mpsc::Sender<Watched>,
}

impl Follower {
    /// Follows until its session ends.
    pub(super) async fn run(self) {
        let resource = &self.kind.resource;
        if health::has_status(&resource.group, &resource.kind) {
            let api = match &self.scope.namespace {
                Some(namespace) => Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, resource),
                None => Api::all_with(self.client.clone(), resource),
            };
            let kind = self.kind.clone();
            self.tell(watcher(api, config()), move |object| Seen::object(&kind.typed(object)))
                .await;
        } else {
            type Metadata = PartialObjectMeta<DynamicObject>;
            let api = match &self.scope.namespace {
                Some(namespace) => Api::<Metadata>::namespaced_with(self.client.clone(), namespace, resource),
                None => Api::all_with(self.client.clone(), resource),
            };
            self.tell(watcher(api, config()), |object: Metadata| {
                verify::plain(&object.metadata)
            })
            .await;
        }
    }

    /// Says what happens to our objects until nobody listens.
    async fn tell<K: ResourceExt>(
        &self,
        events: impl Stream<Item = watcher::Result<Event<K>>> + Send,
        seen: impl Fn(K) -> Seen,
    ) {
        let mut events = pin!(events.default_backoff());
        // Which of ours were told since the list began.
        let mut told: Vec<ObjectKey> = Vec::new();
        while let Some(event) = events.next().await {
            let watched = match event {
                Ok(Event::Init) => {
                    told.clear();
                    continue;
                }
                Ok(Event::InitApply(object)) => {
                    let Some(key) = self.ours(&object) else { continue };
                    told.push(key.clone());
                    sighting(key, object, &seen)
                }
                Ok(Event::InitDone) => {
                    let listed = OwnedKeys::of(told.iter());
                    told = Vec::new();
                    Watched::Listed(self.scope.clone(), listed)
                }
                Ok(Event::Apply(object)) => {
                    let Some(key) = self.ours(&object) else { continue };
                    sighting(key, object, &seen)
                }
                Ok(Event::Delete(object)) => {
                    let Some(key) = self.ours(&object) else { continue };
                    Watched::Gone(key)
                }
                Err(error) => {
                    debug!(error = crate::fault::line(&error), "Failed to watch.");
                    Watched::Failed
                }
            };
            if self.sender.send(watched).await.is_err() {
                return;
            }
        }
    }

    /// The key of an object, if it is one of ours.
    fn ours<K: ResourceExt>(&self, object: &K) -> Option<ObjectKey> {
        let key = self.kind.key_of(object.meta());
        self.owned.borrow().contains(&key).then_some(key)
    }
}

fn sighting<K: ResourceExt>(key: ObjectKey, object: K, seen: impl Fn(K) -> Seen) -> Watched {
    let managed = object.meta().managed_fields.clone().unwrap_or_default();
    Watched::Seen(Box::new(Sighting {
        key,
        seen: seen(object),
        managed,
    }))
}

fn config() -> watcher::Config {
    watcher::Config::default()
        .timeout(WATCH_LASTS.as_secs().try_into().unwrap_or(60))
        .page_size(WATCH_PAGE_OBJECTS)
}
