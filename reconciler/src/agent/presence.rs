//! Whether there is a hub, and since when not: what an agent that goes on by itself says of it.
//!
//! Within a process an absence is counted by a clock that nobody sets; from one process to the next by the other one,
//! but never less than was counted before. So an absence ends by hearing of a hub and by nothing else: neither by a
//! restart nor by a clock that is set back.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::store::Absence;
use crate::limits::{ABSENCE_NOTED, CLOCK_LOOK};
use crate::wire::enforcing;

/// How long a hub is away before it is worth a line: a restart of it is not.
const WORTH_A_LINE_SECONDS: i64 = 60;

/// By how much the clock of this machine may differ from what was counted before it is taken to have been set.
const CLOCK_SLIP_SECONDS: i64 = 30;

/// Since when no hub is heard of, and for how long there was none before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Presence {
    /// `None` while there is a hub.
    away: Option<Away>,
    /// When the absence began that ended last, in seconds since 1970.
    pub(super) was_away_since: Option<i64>,
    told: bool,
}

/// An absence that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Away {
    /// When it began, by the clock of this machine.
    since: i64,
    /// When it began, by the clock that nobody sets.
    began: i64,
}

/// Now, in seconds by both clocks.
#[derive(Clone, Copy, Debug)]
struct Moment {
    wall: i64,
    steady: i64,
}

/// Keeps it, for whoever wants to know.
pub(super) struct Keeper {
    start: Instant,
    presence: watch::Sender<Presence>,
    away: watch::Sender<Option<i64>>,
    notes: watch::Sender<Option<Absence>>,
    /// How many tunnels there are.
    tunnels: Mutex<usize>,
}

/// A tunnel that there is.
pub(super) struct Connected(Arc<Keeper>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.lost();
    }
}

impl Keeper {
    /// An agent starts without a hub, and goes on counting from what was noted.
    pub(super) fn new(noted: Option<Absence>) -> Self {
        let start = Instant::now();
        let now = moment(start);
        if let Some(noted) = noted.filter(|noted| noted.is_ahead_of(now)) {
            let since = render::time::rfc3339(noted.since);
            tracing::warn!(
                since,
                "Found the clock set back, and went on counting from what was counted before."
            );
        }
        let presence = Presence::start(noted, now);
        Self {
            start,
            presence: watch::Sender::new(presence),
            away: watch::Sender::new(presence.away_since()),
            notes: watch::Sender::new(Some(presence.note(now))),
            tunnels: Mutex::default(),
        }
    }

    pub(super) fn presence(&self) -> watch::Receiver<Presence> {
        self.presence.subscribe()
    }

    /// Since when there is no hub, alone.
    pub(super) fn away(&self) -> watch::Receiver<Option<i64>> {
        self.away.subscribe()
    }

    /// What is worth being noted, whenever that is another thing.
    pub(super) fn notes(&self) -> watch::Receiver<Option<Absence>> {
        self.notes.subscribe()
    }

    /// There is a tunnel, until what is returned is dropped. Of several tunnels the last one counts.
    pub(super) fn connected(keeper: &Arc<Self>) -> Connected {
        keeper.count(|tunnels| tunnels + 1);
        keeper.change(Presence::found);
        keeper.note();
        Connected(Arc::clone(keeper))
    }

    fn lost(&self) {
        if self.count(|tunnels| tunnels.saturating_sub(1)) == 0 {
            self.change(Presence::lost);
            self.note();
        }
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) -> usize {
        let mut tunnels = self.tunnels.lock().unwrap_or_else(PoisonError::into_inner);
        *tunnels = change(*tunnels);
        *tunnels
    }

    /// Looks at the clock now and then, for as long as it runs.
    pub(super) async fn look(&self) {
        let mut noted = Instant::now();
        loop {
            tokio::time::sleep(CLOCK_LOOK).await;
            self.change(Presence::settle);
            if noted.elapsed() >= ABSENCE_NOTED {
                noted = Instant::now();
                self.note();
            }
        }
    }

    /// Says once for each absence that the agent goes on without a hub, and with what.
    pub(super) fn tell(&self, sequence: Option<u64>) {
        let (presence, now) = (*self.presence.borrow(), moment(self.start));
        let worth_it = |away: &Away| !presence.told && away.lasted(now) >= WORTH_A_LINE_SECONDS;
        let Some(away) = presence.away.filter(worth_it) else {
            return;
        };
        let state = enforcing(sequence, away.since);
        tracing::info!(state, "Went on without a hub.");
        self.presence.send_if_modified(|presence| {
            presence.told = true;
            false
        });
    }

    fn change(&self, change: impl FnOnce(Presence, Moment) -> Presence) {
        let now = moment(self.start);
        self.presence.send_modify(|presence| *presence = change(*presence, now));
        let away_since = self.presence.borrow().away_since();
        self.away.send_if_modified(|away| {
            let changed = *away != away_since;
            *away = away_since;
            changed
        });
    }

    fn note(&self) {
        let note = self.presence.borrow().note(moment(self.start));
        self.notes.send_replace(Some(note));
    }
}

impl Absence {
    /// Whether the clock stands where it stood before this was noted.
    fn is_ahead_of(&self, now: Moment) -> bool {
        self.since.saturating_add(self.lasted) > now.wall.saturating_add(CLOCK_SLIP_SECONDS)
    }
}

impl Away {
    fn lasted(&self, now: Moment) -> i64 {
        now.steady.saturating_sub(self.began).max(0)
    }
}

impl Presence {
    /// Counts on from what was noted, and no less than that.
    fn start(noted: Option<Absence>, now: Moment) -> Self {
        let by_clock = |noted: Absence| now.wall.saturating_sub(noted.since);
        let lasted = noted.map_or(0, |noted| noted.lasted.max(by_clock(noted)).max(0));
        let away = Away {
            since: now.wall.saturating_sub(lasted),
            began: now.steady.saturating_sub(lasted),
        };
        Self {
            away: Some(away),
            was_away_since: None,
            told: false,
        }
    }

    /// In seconds since 1970; `None` while there is a hub.
    pub(super) fn away_since(&self) -> Option<i64> {
        self.away.map(|away| away.since)
    }

    fn found(self, now: Moment) -> Self {
        // A tunnel that was lost for a moment is no absence that anybody asks about.
        let long = self.away.filter(|away| away.lasted(now) >= WORTH_A_LINE_SECONDS);
        Self {
            away: None,
            was_away_since: long.map(|away| away.since).or(self.was_away_since),
            told: false,
        }
    }

    fn lost(self, now: Moment) -> Self {
        let begun = Away {
            since: now.wall,
            began: now.steady,
        };
        Self {
            away: self.away.or(Some(begun)),
            ..self
        }
    }

    /// Where the clock of this machine was set, the time since when there is no hub is told by its new hands.
    fn settle(self, now: Moment) -> Self {
        let settled = |away: Away| {
            let since = now.wall.saturating_sub(away.lasted(now));
            let slipped = (since - away.since).abs() > CLOCK_SLIP_SECONDS;
            Away {
                since: if slipped { since } else { away.since },
                ..away
            }
        };
        Self {
            away: self.away.map(settled),
            ..self
        }
    }

    /// What a process after this one should know. While there is a hub: that it was heard of just now.
    fn note(self, now: Moment) -> Absence {
        let heard = Absence {
            since: now.wall,
            lasted: 0,
        };
        self.away.map_or(heard, |away| Absence {
            since: away.since,
            lasted: away.lasted(now),
        })
    }
}

fn moment(start: Instant) -> Moment {
    Moment {
        wall: Timestamp::now().as_second(),
        steady: i64::try_from(start.elapsed().as_secs()).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wall: i64, steady: i64) -> Moment {
        Moment { wall, steady }
    }

    /// Both clocks go alike.
    fn after(seconds: i64) -> Moment {
        at(1_000 + seconds, seconds)
    }

    #[test]
    fn only_a_long_absence_is_remembered_and_it_begins_when_the_hub_was_lost() {
        let start = Presence::start(None, after(0));
        let found = start.found(after(10));
        assert_eq!((found.away_since(), found.was_away_since), (None, None));
        let lost = found.lost(after(100)).lost(after(150));
        assert_eq!(
            lost.away_since(),
            Some(1_100),
            "each redial that fails is the same absence"
        );
        assert_eq!(lost.found(after(500)).was_away_since, Some(1_100));
        let again = lost.found(after(500)).lost(after(600)).found(after(610));
        assert_eq!(again.was_away_since, Some(1_100));
    }

    #[test]
    fn a_restart_does_not_move_the_time_since_when_there_is_no_hub() {
        let away = Presence::start(None, after(0)).found(after(5)).lost(after(100));
        let mut note = away.note(after(400));
        for down in [0, 60, 100_000] {
            // A new process, whose steady clock begins anew.
            let restarted = Presence::start(Some(note), at(1_400 + down, 0));
            assert_eq!(restarted.away_since(), Some(1_100));
            note = restarted.note(at(1_400 + down, 0));
        }
        let heard = away.found(after(500)).note(after(700));
        let restarted = Presence::start(Some(heard), at(9_000, 0));
        assert_eq!(
            restarted.away_since(),
            Some(1_700),
            "there was a hub until shortly before the end, and that is noted"
        );
    }

    #[test]
    fn a_clock_that_is_set_back_takes_nothing_away_from_an_absence() {
        let noted = Absence {
            since: 10_000,
            lasted: 500,
        };
        let restarted = Presence::start(Some(noted), at(3_000, 0));
        assert_eq!(restarted.away_since(), Some(2_500), "500 seconds were counted");
        assert!(noted.is_ahead_of(at(3_000, 0)) && !noted.is_ahead_of(at(10_500, 0)));
        let note = restarted.note(at(3_100, 100));
        assert_eq!(note.lasted, 600);
        // Within a process: an hour back after 200 seconds.
        let set_back = restarted.settle(at(3_200 - 3_600, 200));
        assert_eq!(set_back.away_since(), Some(3_200 - 3_600 - 700));
        // And a machine that learns the time only after the agent started.
        let booted = Presence::start(None, at(0, 0)).settle(at(1_700_000_010, 10));
        assert_eq!(booted.away_since(), Some(1_700_000_000));
    }

    #[tokio::test]
    async fn of_several_tunnels_the_last_one_makes_an_absence() {
        let keeper = Arc::new(Keeper::new(None));
        let away = keeper.away();
        assert!(away.borrow().is_some(), "an agent starts without a hub");
        let (first, second) = (Keeper::connected(&keeper), Keeper::connected(&keeper));
        drop(first);
        assert!(away.borrow().is_none(), "there is another tunnel");
        drop(second);
        assert!(away.borrow().is_some());
    }

    #[test]
    fn a_clock_that_is_a_little_off_changes_no_word() {
        let away = Presence::start(None, after(0));
        for off in [-30, -1, 0, 1, 30] {
            assert_eq!(away.settle(at(1_500 + off, 500)).away_since(), Some(1_000));
        }
    }
}
