//! Which objects are looked at again, and when: those that are not Current, at growing distances.

use std::collections::BTreeMap;

use render::ObjectKey;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::session::{Session, SessionError};
use crate::limits::{LOOK_FIRST, LOOK_MAX};
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

    /// Keeps only those.
    pub(super) fn retain(&mut self, keep: impl Fn(&ObjectKey) -> bool) {
        self.due.retain(|key, _| keep(key));
    }

    fn take(&self, now: Instant) -> Vec<ObjectKey> {
        let due = self.due.iter().filter(|(_, look)| look.at <= now);
        due.map(|(key, _)| key.clone()).collect()
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
        let mut gone = false;
        for key in self.looks.take(Instant::now()) {
            match self.look_at(&key).await? {
                None => {
                    self.looks.due.remove(&key);
                    gone = true;
                }
                Some(Health::Current) => {
                    self.looks.due.remove(&key);
                }
                Some(_) => self.looks.later(&key),
            }
        }
        Ok(gone)
    }
}
