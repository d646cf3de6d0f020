//! Follows every kind of which something is applied, so that a change is known when it happens.
//!
//! In: which objects are ours, those of releases among them. Out: [`Watched`], what was seen of them, in a bounded
//! queue. A watch tells of everybody's objects; those of others are dropped where they are read (`follow`), so that
//! memory grows with what is ours. Kinds whose health is read come whole, all others as metadata. What a sighting means
//! is `touch`'s.

mod follow;
mod owned;
mod scope;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::Client;
use render::ObjectKey;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, info_span};

pub(super) use self::follow::patient;
pub(super) use self::owned::OwnedKeys;
pub(super) use self::scope::Scope;
use self::scope::Spreads;
use super::discovery::ServedKind;
use super::send::Seen;
use super::session::Session;
use crate::limits::{WATCH_EVENTS_MAX, WATCH_FAILURE_COUNTS};

/// What a watch says.
pub(super) enum Watched {
    /// An object of ours is there.
    Seen(Box<Sighting>),
    /// It is not there any more.
    Gone(ObjectKey),
    /// All of a scope was told; what is missing here is gone.
    Listed(Scope, OwnedKeys),
    /// It does not work right now.
    Failed,
}

/// What was seen of an object.
pub(super) struct Sighting {
    pub(super) key: ObjectKey,
    pub(super) seen: Seen,
    /// Who owns which of its fields.
    pub(super) managed: Vec<ManagedFieldsEntry>,
}

/// The watches of a session; they end with it.
pub(super) struct Watches {
    running: BTreeMap<Scope, AbortOnDropHandle<()>>,
    owned: tokio::sync::watch::Sender<Arc<OwnedKeys>>,
    sender: mpsc::Sender<Watched>,
    receiver: mpsc::Receiver<Watched>,
    failed_at: Option<Instant>,
}

impl Default for Watches {
    fn default() -> Self {
        // A full channel makes the watches wait, and the API server keeps what they have not read.
        let (sender, receiver) = mpsc::channel(WATCH_EVENTS_MAX);
        Self {
            running: BTreeMap::new(),
            owned: tokio::sync::watch::Sender::default(),
            sender,
            receiver,
            failed_at: None,
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

    /// A watch does not work.
    pub(super) fn failed(&mut self) {
        self.failed_at = Some(Instant::now());
    }

    /// How long unchanged objects rest before they are compared: shorter while watches do not tell everything.
    pub(super) fn resync(&self, usual: Duration, failing: Duration) -> Duration {
        if self.are_failing() { usual.min(failing) } else { usual }
    }

    /// Whether some did not work a moment ago.
    pub(super) fn are_failing(&self) -> bool {
        self.failed_at.is_some_and(|at| at.elapsed() < WATCH_FAILURE_COUNTS)
    }

    /// Tells of these objects only.
    fn own<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey>) {
        let next = OwnedKeys::of(keys);
        self.owned.send_if_modified(|owned| {
            let changed = **owned != next;
            if changed {
                *owned = Arc::new(next);
            }
            changed
        });
    }

    /// Runs exactly these.
    fn keep(&mut self, client: &Client, scopes: &BTreeMap<Scope, Arc<ServedKind>>) {
        self.running.retain(|scope, _| scopes.contains_key(scope));
        for (scope, kind) in scopes {
            if self.running.contains_key(scope) {
                continue;
            }
            let follower = follow::Follower {
                client: client.clone(),
                kind: kind.clone(),
                scope: scope.clone(),
                owned: self.owned.subscribe(),
                sender: self.sender.clone(),
            };
            let task = tokio::spawn(follower.run().instrument(info_span!("watch")));
            self.running.insert(scope.clone(), AbortOnDropHandle::new(task));
        }
    }
}

impl Session {
    /// Tells the watches which objects are ours, before anything is sent: what somebody does to an object just after
    /// it was made must not be missed.
    pub(super) fn own(&self) {
        let slots = self.units.values().flat_map(|unit| &unit.slots);
        let places = slots.filter_map(|slot| Some(&slot.place.as_ref()?.key));
        self.watches.own(
            places
                .chain(self.inventory.iter().map(|(key, _)| key))
                .chain(self.releases.followed().map(|followed| &followed.key)),
        );
    }

    /// Watches what is applied now, and nothing else.
    pub(super) fn follow(&mut self) {
        // Kinds may have become known since: an object that a watch lists and takes for somebody else's counts as gone.
        self.own();
        let mut spreads = Spreads::default();
        for key in self.known.keys() {
            let entry = self.inventory.get(key);
            if let Some(kind) = entry.and_then(|entry| self.kinds.find_any(&entry.api_version, &key.kind)) {
                spreads.add(key, kind);
            }
        }
        for followed in self.releases.followed() {
            spreads.add(&followed.key, &followed.kind);
        }
        self.watches.keep(&self.client, &spreads.scopes());
    }
}
