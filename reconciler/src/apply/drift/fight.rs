//! Two controllers that undo each other: told by how often, and then put right less and less often, at most once a
//! minute, until the other one rests or Git says something new. A pure record of times since the session began.

use std::collections::BTreeMap;
use std::time::Duration;

use render::ObjectKey;

use crate::limits::{FIGHT_CALM, FIGHT_CORRECTIONS, FIGHT_WAIT_FIRST, FIGHT_WAIT_MAX, FIGHT_WINDOW};

/// Objects that were put right lately.
#[derive(Debug, Default)]
pub(in crate::apply) struct Fights(BTreeMap<ObjectKey, Contest>);

/// One object and who changes it.
#[derive(Debug)]
struct Contest {
    manager: String,
    field: String,
    touched: Duration,
    corrected: Vec<Duration>,
    /// Zero until it is a fight.
    wait: Duration,
}

impl Fights {
    /// Somebody changed a field of ours. Gives when it is to be put right: now, or later where this goes on and on.
    pub(in crate::apply) fn touched(&mut self, key: &ObjectKey, manager: &str, field: &str, now: Duration) -> Duration {
        let fresh = || Contest {
            manager: manager.to_owned(),
            field: field.to_owned(),
            touched: now,
            corrected: Vec::new(),
            wait: Duration::ZERO,
        };
        let contest = self.0.entry(key.clone()).or_insert_with(fresh);
        if contest.manager != manager || contest.is_calm(now) {
            *contest = fresh();
        }
        contest.touched = now;
        field.clone_into(&mut contest.field);
        let last = contest.corrected.last().copied().unwrap_or(now);
        if contest.is_fight() {
            now.max(last + contest.wait)
        } else {
            now
        }
    }

    /// It was put right.
    pub(in crate::apply) fn corrected(&mut self, key: &ObjectKey, now: Duration) {
        let Some(contest) = self.0.get_mut(key) else { return };
        contest.corrected.retain(|at| now.saturating_sub(*at) < FIGHT_WINDOW);
        contest.corrected.push(now);
        if contest.is_fight() || contest.corrected.len() >= FIGHT_CORRECTIONS {
            contest.wait = (contest.wait * 2).clamp(FIGHT_WAIT_FIRST, FIGHT_WAIT_MAX);
        }
    }

    /// Who fights over which field of an object; `None` when nobody does.
    pub(in crate::apply) fn opponent(&self, key: &ObjectKey) -> Option<(&str, &str)> {
        let contest = self.0.get(key).filter(|contest| contest.is_fight())?;
        Some((&contest.manager, &contest.field))
    }

    /// A new word of Git ends the fight over an object.
    pub(in crate::apply) fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    /// Forgets what has been calm for long.
    pub(in crate::apply) fn rest(&mut self, now: Duration) {
        self.0.retain(|_, contest| !contest.is_calm(now));
    }
}

impl Contest {
    fn is_fight(&self) -> bool {
        !self.wait.is_zero()
    }

    fn is_calm(&self, now: Duration) -> bool {
        now.saturating_sub(self.touched) >= FIGHT_CALM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::new("apps/v1", "Deployment", "shop", "web")
    }

    /// Plays an opponent that changes the object whenever it is as it should be, and gives when it was put right.
    fn corrections(fights: &mut Fights, from: u64, until: u64, manager: &str) -> Vec<u64> {
        let mut due = None;
        let mut done = Vec::new();
        for second in from..until {
            let now = Duration::from_secs(second);
            if due.is_some_and(|due| due <= now) {
                fights.corrected(&key(), now);
                done.push(second);
            }
            due = Some(fights.touched(&key(), manager, "/spec/replicas", now));
            if due.is_some_and(|due| due <= now) {
                fights.corrected(&key(), now);
                done.push(second);
                due = Some(fights.touched(&key(), manager, "/spec/replicas", now));
            }
        }
        done
    }

    #[test]
    fn a_single_change_is_put_right_at_once_however_often_it_happens_over_a_day() {
        let mut fights = Fights::default();
        for minute in 0..600 {
            let now = Duration::from_secs(minute * 60);
            assert_eq!(fights.touched(&key(), "kubectl-edit", "/data/a", now), now);
            fights.corrected(&key(), now);
            assert_eq!(fights.opponent(&key()), None);
        }
    }

    #[test]
    fn an_opponent_that_never_rests_is_answered_less_than_once_a_minute_and_named() {
        let mut fights = Fights::default();
        let done = corrections(&mut fights, 0, 600, "operator");
        assert_eq!(fights.opponent(&key()), Some(("operator", "/spec/replicas")));
        assert!(done.len() < 25, "{done:?}");
        let late: Vec<_> = done.iter().filter(|second| **second > 180).collect();
        assert!(late.windows(2).all(|pair| *pair[1] - *pair[0] > 60), "{done:?}");
        assert!(!late.is_empty(), "it does not give up: {done:?}");
    }

    #[test]
    fn a_new_commit_or_a_calm_time_ends_a_fight() {
        let mut fights = Fights::default();
        corrections(&mut fights, 0, 600, "operator");
        fights.forget(&key());
        let now = Duration::from_secs(601);
        assert_eq!(fights.touched(&key(), "operator", "/spec/replicas", now), now);
        corrections(&mut fights, 601, 1_200, "operator");
        assert!(fights.opponent(&key()).is_some());
        let later = Duration::from_secs(1_200) + FIGHT_CALM;
        fights.rest(later);
        assert_eq!(fights.opponent(&key()), None);
        assert_eq!(fights.touched(&key(), "operator", "/spec/replicas", later), later);
    }

    #[test]
    fn another_manager_is_no_part_of_a_fight() {
        let mut fights = Fights::default();
        corrections(&mut fights, 0, 60, "operator");
        let now = Duration::from_secs(61);
        assert_eq!(fights.touched(&key(), "kubectl-edit", "/spec/replicas", now), now);
    }
}
