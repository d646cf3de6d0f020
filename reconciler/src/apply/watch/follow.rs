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
        let mut events = pin!(patient(events));
        // Which of ours were told since the list began.
        let mut told: Vec<ObjectKey> = Vec::new();
        while let Some(event) = events.next().await {
            let watched = match event {
                Ok(Event::Init) => continue,
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
                    // The list begins anew.
                    told.clear();
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

/// Waits longer after each failure in a row. That a list begins is no success, or who may not list would ask each second.
pub(in crate::apply) fn patient<K>(
    events: impl Stream<Item = watcher::Result<Event<K>>>,
) -> impl Stream<Item = watcher::Result<Event<K>>> {
    events
        .filter(|event| std::future::ready(!matches!(event, Ok(Event::Init))))
        .default_backoff()
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_may_not_be_listed_is_asked_for_ever_less_often() {
        let begun = Instant::now();
        // As the watcher says it: a list begins, and is refused.
        let refused = futures_util::stream::iter(0..).map(|turn| match turn % 2 {
            0 => Ok(Event::<DynamicObject>::Init),
            _ => Err(watcher::Error::NoResourceVersion),
        });
        let mut events = pin!(patient(refused));
        for _ in 0..100 {
            assert!(events.next().await.is_some_and(|event| event.is_err()));
        }
        assert!(begun.elapsed() > Duration::from_secs(1_000), "{:?}", begun.elapsed());
    }
}
