//! Answers that were worked out last.

use std::borrow::Borrow;

/// So many answers are looked through: where thousands of clusters differ in all, looking costs more than it saves.
const LOOKED_AT: usize = 16;

/// Question → answer, for the questions that came last, round and round. Thousands of clusters ask mostly the same few.
#[derive(Debug)]
pub(super) struct Known<Q, A> {
    list: Vec<(Q, A)>,
    next: usize,
}

impl<Q, A> Default for Known<Q, A> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            next: 0,
        }
    }
}

impl<Q, A: Clone> Known<Q, A> {
    /// The answer, worked out where it is not known.
    pub(super) fn answer<B>(&mut self, question: &B, work_out: impl FnOnce(&B) -> A) -> A
    where
        B: ?Sized + PartialEq + ToOwned<Owned = Q>,
        Q: Borrow<B>,
    {
        if let Some((_, answer)) = self.list.iter().find(|(known, _)| known.borrow() == question) {
            return answer.clone();
        }
        let answer = work_out(question);
        let entry = (question.to_owned(), answer.clone());
        if self.list.len() < LOOKED_AT {
            self.list.push(entry);
        } else {
            self.list[self.next] = entry;
            self.next = (self.next + 1) % LOOKED_AT;
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_just_now_is_not_worked_out_again() {
        let mut known: Known<usize, usize> = Known::default();
        let mut worked = 0;
        let mut ask = |question: usize| {
            known.answer(&question, |question| {
                worked += 1;
                question * 2
            })
        };
        let answers: Vec<usize> = (0..40).chain(30..40).map(&mut ask).collect();
        assert!(
            answers
                .iter()
                .zip((0..40).chain(30..40))
                .all(|(answer, question)| *answer == question * 2)
        );
        assert_eq!(worked, 40, "the last ten are known still");
    }
}
