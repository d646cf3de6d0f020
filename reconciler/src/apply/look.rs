//! Which objects are looked at again, and when: those that are not Current, at growing distances.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use kube::api::{Api, DynamicObject};
use render::ObjectKey;
use tokio::time::Instant;
use tracing::debug;

use super::backoff::Backoff;
use super::request::{RequestError, bounded};
use super::send::Seen;
use super::session::{Session, SessionError};
use crate::limits::{APPLY_CONCURRENCY, LOOK_FIRST, LOOK_MAX};
use crate::wire::Health;

/// Objects to be looked at again.
#[derive(Default)]
pub(super) struct Looks {
    due: BTreeMap<ObjectKey, Look>,
}

struct Look {
    at: Instant,
    backoff: Backoff,
}

impl Looks {
    /// Looks at an object soon.
    pub(super) fn add(&mut self, key: &ObjectKey) {
        let mut backoff = Backoff::new(LOOK_FIRST, LOOK_MAX);
        let at = Instant::now() + backoff.wait();
        self.due.insert(key.clone(), Look { at, backoff });
    }

    /// Whether one is to be looked at now.
    pub(super) fn due(&self, now: Instant) -> bool {
        self.next().is_some_and(|next| next <= now)
    }

    /// When the next one is to be looked at.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.values().map(|look| look.at).min()
    }

    /// Somebody else follows it.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        self.due.remove(key);
    }

    /// Keeps only those.
    pub(super) fn retain(&mut self, keep: impl Fn(&ObjectKey) -> bool) {
        self.due.retain(|key, _| keep(key));
    }

    /// What is due, and when it is due again if nobody says otherwise.
    fn take(&mut self, now: Instant) -> Vec<ObjectKey> {
        let due = self.due.iter().filter(|(_, look)| look.at <= now);
        let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
        due.iter().for_each(|key| self.later(key));
        due
    }

    fn later(&mut self, key: &ObjectKey) {
        if let Some(look) = self.due.get_mut(key) {
            look.at = Instant::now() + look.backoff.wait();
        }
    }
}

impl Session {
    /// Looks at what is due; whether an object is gone that should be there.
    pub(super) async fn look(&mut self) -> Result<bool, SessionError> {
        let due = self.looks.take(Instant::now());
        let mut gone = false;
        for (key, health) in self.look_at(&due).await? {
            gone |= health.is_none();
            if matches!(health, None | Some(Health::Current)) {
                self.looks.due.remove(&key);
            }
        }
        Ok(gone)
    }

    /// Looks at objects again; `None` for one that is gone.
    pub(super) async fn look_at(
        &mut self,
        keys: &[ObjectKey],
    ) -> Result<Vec<(ObjectKey, Option<Health>)>, SessionError> {
        let mut requests = Vec::new();
        for key in keys {
            let entry = self.inventory.get(key);
            let Some(kind) = entry.and_then(|entry| self.kinds.find_any(&entry.api_version, &key.kind)) else {
                continue;
            };
            requests.push(get(kind.api(&self.client, &key.namespace), key.clone()));
        }
        let mut answers = stream::iter(requests).buffer_unordered(APPLY_CONCURRENCY);
        let mut seen = Vec::new();
        while let Some((key, answer)) = answers.next().await {
            match answer {
                Ok(found) => {
                    let judged = found.as_ref().map(|object| self.judged(&key, object));
                    seen.push((key, judged));
                }
                Err(error) if error.is_general() => return Err(SessionError::Server(error)),
                // It is looked at again.
                Err(error) => debug!(object = %key, error = error.line(), "Failed to look at object."),
            }
        }
        drop(answers);
        Ok(seen.into_iter().map(|(key, seen)| self.looked_at(key, seen)).collect())
    }

    /// What an object shows, judged by the rule that people wrote for it where there is one.
    fn judged(&self, key: &ObjectKey, object: &DynamicObject) -> Seen {
        let mut seen = Seen::object(object);
        if let Some(check) = self.check(key) {
            let whole = serde_json::to_value(object).unwrap_or_default();
            seen.verdict = check.health(&whole);
        }
        seen
    }

    fn looked_at(&mut self, key: ObjectKey, seen: Option<Seen>) -> (ObjectKey, Option<Health>) {
        let Some(seen) = seen else {
            self.known.remove(&key);
            return (key, None);
        };
        let health = seen.verdict.health;
        if let Some(known) = self.known.get_mut(&key) {
            known.verdict = seen.verdict;
        }
        (key, Some(health))
    }
}

async fn get(api: Api<DynamicObject>, key: ObjectKey) -> (ObjectKey, Result<Option<DynamicObject>, RequestError>) {
    let found = bounded(api.get_opt(&key.name)).await;
    (key, found)
}
