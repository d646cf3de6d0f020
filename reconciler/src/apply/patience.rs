//! How long objects have been on their way, and which of them took too long.
//!
//! The time counts from when an object stopped being as it should be, or was applied anew. A controller that only
//! changes its words starts no new one, or a crash loop would be on its way for ever.

use std::collections::BTreeMap;
use std::time::Duration;

use render::ObjectKey;
use tokio::time::Instant;

use super::session::{Known, Session, Slot};
use crate::limits::{HEALTH_TIMEOUT, STATUS_GRACE};
use crate::wire::Health;

/// Objects that are on their way.
#[derive(Default)]
pub(super) struct Patience {
    waits: BTreeMap<ObjectKey, Wait>,
}

struct Wait {
    since: Instant,
    /// What was applied then.
    applied: Option<String>,
    limit: Duration,
    over: bool,
}

/// An object that is on its way.
pub(super) struct Going<'a> {
    pub(super) key: &'a ObjectKey,
    /// What was applied last.
    pub(super) applied: Option<&'a str>,
    pub(super) limit: Duration,
}

impl Patience {
    /// Takes in everything that is on its way now.
    pub(super) fn sweep<'a>(&mut self, now: Instant, going: impl IntoIterator<Item = Going<'a>>) {
        let mut before = std::mem::take(&mut self.waits);
        for Going { key, applied, limit } in going {
            let kept = before.remove(key).filter(|wait| wait.applied.as_deref() == applied);
            let since = kept.map_or(now, |wait| wait.since);
            let over = now.duration_since(since) >= limit;
            let applied = applied.map(str::to_owned);
            self.waits.insert(
                key.clone(),
                Wait {
                    since,
                    applied,
                    limit,
                    over,
                },
            );
        }
    }

    /// When the next of them will have taken too long.
    pub(super) fn next(&self) -> Option<Instant> {
        let open = self.waits.values().filter(|wait| !wait.over);
        open.map(|wait| wait.since + wait.limit).min()
    }

    /// Whether an object is waited for still.
    pub(super) fn is_waiting(&self, key: &ObjectKey) -> bool {
        self.waits.get(key).is_some_and(|wait| !wait.over)
    }

    /// How long an object was given, once it took longer.
    pub(super) fn exhausted(&self, key: &ObjectKey) -> Option<Duration> {
        self.waits.get(key).filter(|wait| wait.over).map(|wait| wait.limit)
    }
}

impl Session {
    /// Notes what is on its way, and what took too long.
    pub(super) fn wait(&mut self, now: Instant) {
        let is_silent = |key: &ObjectKey, known: &Known| known.verdict.is_silent() && self.kinds.has_status(key);
        let going = self.known.iter().filter_map(|(key, known)| {
            let entry = self.inventory.get(key)?;
            let limit = if known.verdict.health == Health::InProgress {
                let policy = &self.units.get(&entry.unit)?.policy;
                policy.timeout_seconds.map_or(HEALTH_TIMEOUT, Duration::from_secs)
            } else if is_silent(key, known) {
                STATUS_GRACE
            } else {
                return None;
            };
            Some(Going {
                key,
                applied: entry.applied.as_deref(),
                limit,
            })
        });
        self.patience.sweep(now, going);
    }

    /// How an object fares, and why it is not Current: what took too long has failed.
    pub(super) fn fares(&self, slot: &Slot) -> (Health, String) {
        let key = slot.place.as_ref().map_or(&slot.identity.key, |place| &place.key);
        let Some(verdict) = self.known.get(key).map(|known| &known.verdict) else {
            return (Health::Unknown, String::new());
        };
        match self.patience.exhausted(key) {
            Some(limit) if verdict.health == Health::InProgress => {
                let message = format!("not healthy after {}: {}", words(limit), verdict.message);
                (Health::Failed, message)
            }
            None if verdict.is_silent() && self.patience.is_waiting(key) => {
                (Health::InProgress, verdict.message.clone())
            }
            _ if verdict.is_silent() => (Health::Current, String::new()),
            _ => (verdict.health, verdict.message.clone()),
        }
    }
}

/// `1h30m`, as people write it.
fn words(limit: Duration) -> String {
    let seconds = limit.as_secs();
    let parts = [(seconds / 3_600, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let written: String = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if written.is_empty() { "0s".to_owned() } else { written }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn going<'a>(key: &'a ObjectKey, applied: &'a str) -> [Going<'a>; 1] {
        [Going {
            key,
            applied: Some(applied),
            limit: Duration::from_mins(10),
        }]
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_longer_than_it_was_given_is_over() {
        let key = ObjectKey::new("apps/v1", "Deployment", "shop", "web");
        let mut patience = Patience::default();
        patience.sweep(Instant::now(), going(&key, "1"));
        let due = patience.next().expect("it is waited for");
        tokio::time::advance(Duration::from_mins(9)).await;
        patience.sweep(Instant::now(), going(&key, "1"));
        assert_eq!(
            (patience.exhausted(&key), patience.next()),
            (None, Some(due)),
            "its words may change meanwhile"
        );
        tokio::time::advance(Duration::from_mins(1)).await;
        patience.sweep(Instant::now(), going(&key, "1"));
        assert_eq!(
            (patience.exhausted(&key), patience.next()),
            (Some(Duration::from_mins(10)), None)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_content_and_a_recovery_start_anew() {
        let key = ObjectKey::new("apps/v1", "Deployment", "shop", "web");
        let mut patience = Patience::default();
        patience.sweep(Instant::now(), going(&key, "1"));
        tokio::time::advance(Duration::from_mins(10)).await;
        patience.sweep(Instant::now(), going(&key, "2"));
        assert_eq!(patience.exhausted(&key), None, "it was applied anew");
        patience.sweep(Instant::now(), []);
        tokio::time::advance(Duration::from_mins(9)).await;
        patience.sweep(Instant::now(), going(&key, "2"));
        assert_eq!(patience.exhausted(&key), None, "it was well in between");
    }

    #[test]
    fn a_time_is_written_as_people_do() {
        let written = [5_400, 600, 61].map(|seconds| words(Duration::from_secs(seconds)));
        assert_eq!(written, ["1h30m", "10m", "1m1s"]);
    }
}
