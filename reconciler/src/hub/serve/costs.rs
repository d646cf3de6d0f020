//! What costs more than an answer from memory, and how much of it is done at a time: of one person, and of all together.
//!
//! A place is held until the work is done and not until its caller went away: who asks and leaves again and again would have
//! any number of it done otherwise.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::answer::Refused;
use crate::hub::pace::Pace;
use crate::hub::places::{Place, Places};
use crate::hub::tally::{Limit, Tally};
use crate::limits::{
    DEPENDANTS_QUESTIONS_OF_PERSON_MAX, DEPENDANTS_QUESTIONS_WAITING_MAX, EXPLANATIONS_MAX, EXPLANATIONS_OF_PERSON_MAX,
    PING_OF_ALL_EVERY, PING_OF_PERSON_EVERY, PINGS_OF_ALL_MAX, PINGS_OF_PERSON_MAX, PINGS_PEOPLE_MAX, SCRAPES_MAX,
    SCRAPES_OF_PERSON_MAX,
};

/// Who asks, where that is known: the door for people says so of each request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::hub) struct Asker(pub(in crate::hub) String);

/// All that is counted.
#[derive(Debug)]
pub(super) struct Costs {
    explanations: Work,
    questions: Work,
    scrapes: Work,
    pings: Mutex<Pings>,
}

#[derive(Debug)]
struct Pings {
    of_all: Pace<()>,
    of_person: Pace<String>,
}

/// One kind of work: places for it, and how many of them one person may have.
#[derive(Debug)]
struct Work {
    places: Places<String>,
    of_person: usize,
}

impl Work {
    fn new(all: usize, of_person: usize) -> Self {
        Self {
            places: Places::new(all),
            of_person,
        }
    }

    fn place(&self, who: &Asker) -> Option<Place<String>> {
        let most = match who.0.is_empty() {
            // Whoever is on this machine and nobody's name: all that there is.
            true => usize::MAX,
            false => self.of_person,
        };
        self.places.place(who.0.clone(), most).ok()
    }
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            explanations: Work::new(EXPLANATIONS_MAX, EXPLANATIONS_OF_PERSON_MAX),
            questions: Work::new(DEPENDANTS_QUESTIONS_WAITING_MAX, DEPENDANTS_QUESTIONS_OF_PERSON_MAX),
            scrapes: Work::new(SCRAPES_MAX, SCRAPES_OF_PERSON_MAX),
            pings: Mutex::new(Pings {
                of_all: Pace::new(PING_OF_ALL_EVERY, PINGS_OF_ALL_MAX, 1),
                of_person: Pace::new(PING_OF_PERSON_EVERY, PINGS_OF_PERSON_MAX, PINGS_PEOPLE_MAX),
            }),
        }
    }
}

impl Costs {
    /// A place to explain a unit.
    pub(super) fn explanation(&self, who: &Asker, tally: &Tally) -> Result<Place<String>, Refused> {
        let place = self.explanations.place(who);
        place.ok_or_else(|| too_many(tally, Limit::Explanations, "units are explained"))
    }

    /// A place to ask a cluster what goes with objects.
    pub(super) fn question(&self, who: &Asker, tally: &Tally) -> Result<Place<String>, Refused> {
        let place = self.questions.place(who);
        place.ok_or_else(|| too_many(tally, Limit::Questions, "questions to clusters wait"))
    }

    /// A place to write the metrics.
    pub(super) fn scrape(&self, who: &Asker, tally: &Tally) -> Result<Place<String>, Refused> {
        let place = self.scrapes.place(who);
        place.ok_or_else(|| too_many(tally, Limit::Scrapes, "metrics are written"))
    }

    /// So many pings, of which none is sent where there is no room for all.
    pub(super) fn pings(&self, who: &Asker, times: usize, tally: &Tally) -> Result<(), Refused> {
        let (times, now) = (u32::try_from(times).unwrap_or(u32::MAX), Instant::now());
        let mut pings = self.pings.lock().unwrap_or_else(PoisonError::into_inner);
        let of_all = pings.of_all.wait(&(), times, now);
        let taken = match of_all {
            Some(wait) => Err(wait),
            // Nobody's name is this machine, which has what all have.
            None if who.0.is_empty() => Ok(()),
            None => pings.of_person.take(&who.0, times, now),
        };
        taken.map_err(|wait| too_many(tally, Limit::Pings, "pings are sent").retry_in(wait))?;
        pings.of_all.note((), times, now);
        Ok(())
    }
}

fn too_many(tally: &Tally, limit: Limit, what: &str) -> Refused {
    tally.limited(limit);
    Refused::too_many(format!("as many {what} already as this hub allows at a time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(name: &str) -> Asker {
        Asker(name.to_owned())
    }

    #[test]
    fn one_person_leaves_explanations_to_others_and_all_together_have_an_end() {
        let (costs, tally) = (Costs::default(), Tally::default());
        let explain = |name: &str| costs.explanation(&asker(name), &tally);
        let hers: Vec<_> = (0..EXPLANATIONS_OF_PERSON_MAX).map(|_| explain("ada")).collect();
        assert!(hers.iter().all(Result::is_ok));
        let refused = explain("ada").map(drop).expect_err("she has hers");
        assert_eq!(refused.status()["code"], 429);
        assert_eq!(refused.status()["details"]["retryAfterSeconds"], 1);
        let others: Vec<_> = (EXPLANATIONS_OF_PERSON_MAX..EXPLANATIONS_MAX)
            .map(|number| explain(&format!("user-{number}")))
            .collect();
        assert!(others.iter().all(Result::is_ok), "others have theirs");
        assert!(explain("eve").is_err(), "and that is all");
        assert!(explain("").is_err(), "on this machine as well");
        drop(hers);
        assert!(explain("eve").is_ok());
        assert_eq!(tally.counts().limited["Explanations"], 3);
    }

    #[test]
    fn pings_are_so_many_at_once_and_then_so_many_a_second() {
        let (costs, tally) = (Costs::default(), Tally::default());
        let ping = |name: &str, times: u32| costs.pings(&asker(name), times as usize, &tally);
        assert!(ping("ada", PINGS_OF_PERSON_MAX).is_ok());
        let refused = ping("ada", 1).expect_err("she has hers");
        assert_eq!(refused.status()["code"], 429);
        assert!(ping("bob", 1).is_ok(), "others have theirs");
        let left = PINGS_OF_ALL_MAX - PINGS_OF_PERSON_MAX - 1;
        assert!(ping("", left).is_ok(), "this machine has what is left");
        assert!(ping("eve", PINGS_OF_PERSON_MAX).is_err(), "and that is all");
        assert_eq!(tally.counts().limited["Pings"], 2);
    }
}
