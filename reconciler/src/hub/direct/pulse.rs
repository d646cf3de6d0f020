//! Whether a cluster without an agent is there: its API server is asked again and again.
//!
//! In: whether it answered, each time. Out: when that is news. What follows from silence is for the engine to say.

use std::mem;

use crate::limits::PULSE_MISSES;

/// What is known of an API server.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    is_heard: bool,
    missed: u32,
}

/// What is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It answers.
    Heard,
    /// It answers no more.
    Away,
}

impl Pulse {
    /// Takes in whether it answered. One answer that fails to come is none yet: an API server that starts anew is not
    /// gone.
    pub(super) fn beat(&mut self, answered: bool) -> Option<Turn> {
        if answered {
            self.missed = 0;
            return (!mem::replace(&mut self.is_heard, true)).then_some(Turn::Heard);
        }
        self.missed = self.missed.saturating_add(1);
        let is_over = self.missed >= PULSE_MISSES;
        (is_over && mem::take(&mut self.is_heard)).then_some(Turn::Away)
    }
}

/// Whether somebody is there. Who refuses is; what stands in front of an API server that is gone says a 5xx.
pub(super) fn is_answer<T>(answer: &Result<T, kube::Error>) -> bool {
    match answer {
        Ok(_) => true,
        Err(kube::Error::Api(status)) => status.code < 500,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[track_caller]
    fn check(answers: &[bool], expected: &[(usize, Turn)]) {
        let mut pulse = Pulse::default();
        let turns = answers.iter().enumerate();
        let turns: Vec<_> = turns
            .filter_map(|(place, answered)| Some((place, pulse.beat(*answered)?)))
            .collect();
        assert_eq!(turns, expected, "{answers:?}");
    }

    #[test]
    fn an_api_server_is_away_once_several_answers_in_a_row_are_missing() {
        check(&[true, true, true], &[(0, Turn::Heard)]);
        check(&[true, false, false, true, false, false], &[(0, Turn::Heard)]);
        check(
            &[true, false, false, false, false, true],
            &[(0, Turn::Heard), (3, Turn::Away), (5, Turn::Heard)],
        );
    }

    #[test]
    fn one_that_never_answered_is_neither_there_nor_lost() {
        check(&[false; 9], &[]);
        check(&[false, false, false, true], &[(3, Turn::Heard)]);
    }

    #[test]
    fn who_refuses_is_there_and_a_door_before_nobody_is_not() {
        let said = |code: u16| -> Result<(), kube::Error> {
            let status = Status::failure("no", "NotNow").with_code(code);
            Err(kube::Error::Api(Box::new(status)))
        };
        assert!(is_answer(&Ok(())) && is_answer(&said(401)) && is_answer(&said(403)) && is_answer(&said(429)));
        assert!(!is_answer(&said(502)) && !is_answer(&said(503)));
        let cut: Result<(), _> = Err(kube::Error::Service("connection refused".into()));
        assert!(!is_answer(&cut));
    }
}
