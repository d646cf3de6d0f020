//! What clusters of a unit have in common is kept once.
//!
//! Thousands of clusters have mostly a few different numbers and sentences among them. Nothing that is decided changes.

use std::collections::BTreeMap;

use crate::by_object::ByObject;
use crate::name::ClusterName;
use crate::schedule::Assignment;
use crate::shared::Shared;

/// So many different values are looked for: one report differs from the next, and where all do, looking costs more than
/// it saves.
const LOOKED_AT: usize = 8;

/// Lets equal parts of the assignments be the same.
pub(super) fn share_alike(assignments: &mut BTreeMap<ClusterName, Assignment>) {
    let mut reasons: Known<Shared<Vec<String>>> = Known::default();
    let mut numbers: Known<ByObject> = Known::default();
    for assignment in assignments.values_mut() {
        reasons.share(&mut assignment.reasons);
        numbers.share(&mut assignment.replicas);
        if let Some(evidence) = &mut assignment.capacity {
            numbers.share(&mut evidence.room);
        }
    }
}

/// The values that were met last, round and round.
struct Known<T> {
    values: Vec<T>,
    next: usize,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            next: 0,
        }
    }
}

impl<T: Clone + PartialEq> Known<T> {
    fn share(&mut self, value: &mut T) {
        if let Some(known) = self.values.iter().find(|known| *known == value) {
            *value = known.clone();
        } else if self.values.len() < LOOKED_AT {
            self.values.push(value.clone());
        } else {
            self.values[self.next] = value.clone();
            self.next = (self.next + 1) % LOOKED_AT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_become_the_same_and_others_stay() {
        let mut known = Known::default();
        let mut values: Vec<Shared<Vec<usize>>> = (0..40).map(|index| vec![index % 12 / 2].into()).collect();
        let before = values.clone();
        for value in &mut values {
            known.share(value);
        }
        assert_eq!(values, before);
        let is_same = |a: usize, b: usize| std::ptr::eq(values[a].as_ptr(), values[b].as_ptr());
        assert!(is_same(0, 1) && is_same(0, 12) && !is_same(0, 2));
    }
}
