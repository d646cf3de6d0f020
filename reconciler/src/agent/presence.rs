//! Whether there is a hub, and since when not: what an agent that goes on by itself says of it.

use jiff::Timestamp;
use tokio::sync::watch;

/// How long a hub is away before it is worth a line: a restart of it is not.
const WORTH_A_LINE_SECONDS: i64 = 60;

/// Since when no hub is heard of, and for how long there was none before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Presence {
    /// Seconds since 1970; `None` while there is a hub.
    pub(super) away_since: Option<i64>,
    /// When the absence began that ended last.
    pub(super) was_away_since: Option<i64>,
    told: bool,
}

/// Keeps it, for whoever wants to know.
pub(super) struct Keeper {
    presence: watch::Sender<Presence>,
    away: watch::Sender<Option<i64>>,
}

impl Keeper {
    /// An agent starts without a hub.
    pub(super) fn new() -> Self {
        let away_since = Some(now());
        let presence = Presence {
            away_since,
            was_away_since: None,
            told: false,
        };
        Self {
            presence: watch::Sender::new(presence),
            away: watch::Sender::new(away_since),
        }
    }

    pub(super) fn presence(&self) -> watch::Receiver<Presence> {
        self.presence.subscribe()
    }

    /// Since when there is no hub, alone.
    pub(super) fn away(&self) -> watch::Receiver<Option<i64>> {
        self.away.subscribe()
    }

    pub(super) fn connected(&self) {
        self.presence.send_modify(|presence| *presence = presence.found(now()));
        self.away.send_replace(None);
    }

    pub(super) fn lost(&self) {
        self.presence.send_modify(|presence| *presence = presence.lost(now()));
        self.away.send_replace(self.presence.borrow().away_since);
    }

    /// Says once for each absence that the agent goes on without a hub.
    pub(super) fn tell(&self, sequence: Option<u64>) {
        let presence = *self.presence.borrow();
        let Some(since) = presence
            .away_since
            .filter(|since| !presence.told && now() - since >= WORTH_A_LINE_SECONDS)
        else {
            return;
        };
        let since = render::time::rfc3339(since);
        tracing::info!(sequence, since, "Went on without a hub.");
        self.presence.send_if_modified(|presence| {
            presence.told = true;
            false
        });
    }
}

impl Presence {
    fn found(self, now: i64) -> Self {
        // A tunnel that was lost for a moment is no absence that anybody asks about.
        let long = self.away_since.filter(|since| now - since >= WORTH_A_LINE_SECONDS);
        Self {
            away_since: None,
            was_away_since: long.or(self.was_away_since),
            told: false,
        }
    }

    fn lost(self, now: i64) -> Self {
        Self {
            away_since: self.away_since.or(Some(now)),
            ..self
        }
    }
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_absence_is_remembered_and_it_begins_when_the_hub_was_lost() {
        let start = Presence {
            away_since: Some(0),
            was_away_since: None,
            told: false,
        };
        let found = start.found(10);
        assert_eq!((found.away_since, found.was_away_since), (None, None));
        let lost = found.lost(100).lost(150);
        assert_eq!(lost.away_since, Some(100), "each redial that fails is the same absence");
        assert_eq!(lost.found(500).was_away_since, Some(100));
        assert_eq!(lost.found(500).lost(600).found(610).was_away_since, Some(100));
    }
}
