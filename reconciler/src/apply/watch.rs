//! Follows objects whose state changes by itself: workloads, claims, custom resources. A watch for each of
//! their kinds and namespaces says at once what [`super::look`] would find later.
//!
//! Kinds without a status are deliberately not watched: they are compared at each resync.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use render::ObjectKey;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, debug, info_span};

use super::discovery::ServedKind;
use super::health;
use super::send::Seen;
use super::session::Session;
use crate::limits::{WATCH_EVENTS_MAX, WATCH_NAMESPACES_MAX};

/// What a watch says of an object.
pub(super) enum Watched {
    /// It is there.
    Seen(ObjectKey, Seen),
    /// It is not there any more.
    Gone(ObjectKey),
}

/// The watches of a session; they end with it.
pub(super) struct Watches {
    running: BTreeMap<Scope, AbortOnDropHandle<()>>,
    sender: mpsc::Sender<Watched>,
    receiver: mpsc::Receiver<Watched>,
}

/// API version, kind, and a namespace, or none for all of them.
type Scope = (String, String, Option<String>);

impl Default for Watches {
    fn default() -> Self {
        // A full channel makes the watches wait, and the API server keeps what they have not read.
        let (sender, receiver) = mpsc::channel(WATCH_EVENTS_MAX);
        Self {
            running: BTreeMap::new(),
            sender,
            receiver,
        }
    }
}

impl Watches {
    /// What a watch says next. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Watched> {
        self.receiver.recv().await
    }

    /// What a watch said already.
    pub(super) fn ready(&mut self) -> Option<Watched> {
        self.receiver.try_recv().ok()
    }

    /// Runs exactly these.
    fn keep(&mut self, client: &Client, scopes: &BTreeMap<Scope, Arc<ServedKind>>) {
        self.running.retain(|scope, _| scopes.contains_key(scope));
        for (scope, kind) in scopes {
            if self.running.contains_key(scope) {
                continue;
            }
            let (_, _, namespace) = scope;
            let api = match namespace {
                Some(namespace) => kind.api(client, namespace),
                None => Api::all_with(client.clone(), &kind.resource),
            };
            let following = follow(api, kind.clone(), self.sender.clone()).instrument(info_span!("watch"));
            let task = AbortOnDropHandle::new(tokio::spawn(following));
            self.running.insert(scope.clone(), task);
        }
    }
}

/// A kind, and where there are objects of it.
struct Spread<'a> {
    kind: Arc<ServedKind>,
    namespaces: BTreeSet<&'a str>,
}

impl Spread<'_> {
    /// What to watch: some namespaces, or all of them.
    fn scopes(&self) -> Vec<Scope> {
        let resource = &self.kind.resource;
        let scope = |namespace| (resource.api_version.clone(), resource.kind.clone(), namespace);
        if !self.kind.namespaced || self.namespaces.len() > WATCH_NAMESPACES_MAX {
            return vec![scope(None)];
        }
        let each = self.namespaces.iter();
        each.map(|namespace| scope(Some((*namespace).to_owned()))).collect()
    }
}

impl Session {
    /// Watches what is applied now, and nothing else.
    pub(super) fn follow(&mut self) {
        let mut spreads: BTreeMap<(&str, &str), Spread<'_>> = BTreeMap::new();
        for key in self
            .known
            .keys()
            .filter(|key| health::has_status(&key.group, &key.kind))
        {
            let entry = self.inventory.get(key);
            let Some(kind) = entry.and_then(|entry| self.kinds.find_any(&entry.api_version, &key.kind)) else {
                continue;
            };
            let spread = spreads.entry((&key.group, &key.kind)).or_insert_with(|| Spread {
                kind: kind.clone(),
                namespaces: BTreeSet::new(),
            });
            spread.namespaces.insert(&key.namespace);
        }
        let mut scopes = BTreeMap::new();
        for spread in spreads.values() {
            scopes.extend(spread.scopes().into_iter().map(|scope| (scope, spread.kind.clone())));
        }
        self.watches.keep(&self.client, &scopes);
    }

    /// Takes in what a watch says; whether something is to be put right.
    pub(super) fn observe(&mut self, watched: Watched) -> bool {
        match watched {
            Watched::Gone(key) => {
                self.looks.remove(&key);
                self.known.remove(&key).is_some() && self.inventory.get(&key).is_some()
            }
            Watched::Seen(key, seen) => {
                let uid = self.inventory.get(&key).and_then(|entry| entry.uid.clone());
                // This watch works, and says the rest as well.
                self.looks.remove(&key);
                let verdict = self.unjudged(&key, seen.verdict);
                let Some(known) = self.known.get_mut(&key) else {
                    return false;
                };
                let is_touched = known.fresh && (known.fields != seen.fields || uid != seen.uid);
                known.fresh &= !is_touched;
                known.verdict = verdict;
                is_touched
            }
        }
    }
}

/// Follows one kind until its session ends. Errors are waited out; meanwhile objects are looked at.
async fn follow(api: Api<DynamicObject>, kind: Arc<ServedKind>, sender: mpsc::Sender<Watched>) {
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let watched = match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                let object = kind.typed(object);
                Watched::Seen(kind.key(&object), Seen::object(&object))
            }
            Ok(watcher::Event::Delete(object)) => Watched::Gone(kind.key(&object)),
            Ok(watcher::Event::Init | watcher::Event::InitDone) => continue,
            Err(error) => {
                debug!(error = crate::fault::line(&error), "Failed to watch.");
                continue;
            }
        };
        if sender.send(watched).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::api::ApiResource;

    use super::*;

    #[track_caller]
    fn check(namespaced: bool, namespaces: &[&str], expected: &[Option<&str>]) {
        let resource = ApiResource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            plural: "deployments".to_owned(),
        };
        let spread = Spread {
            kind: Arc::new(ServedKind { resource, namespaced }),
            namespaces: namespaces.iter().copied().collect(),
        };
        let scopes = spread.scopes();
        let watched: Vec<_> = scopes.iter().map(|(_, _, namespace)| namespace.as_deref()).collect();
        assert_eq!(watched, expected);
    }

    #[test]
    fn few_namespaces_are_watched_one_by_one_and_many_at_once() {
        check(true, &["a", "b"], &[Some("a"), Some("b")]);
        check(true, &["a", "b", "c", "d", "e"], &[None]);
        check(false, &[""], &[None]);
    }
}
