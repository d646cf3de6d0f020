//! What an agent counted of its tunnels, and sums of what is counted.

use serde::{Deserialize, Serialize};

/// What an agent counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCounts {
    /// Tunnels that it left for the next one since their hub asked for it.
    pub left_asked: u64,
    /// Tunnels on which nothing was heard any more.
    pub left_dead: u64,
    /// Tunnels that broke, or that a hub ended without a word.
    pub left_cut: u64,
    /// Tunnels that it left since somebody said so, or since its machine moved.
    pub left_woken: u64,
    /// Lines of its audit log that were never written.
    pub audit_lines_lost: u64,
    /// Streams that its policy refused: to read.
    pub refused_read: u64,
    /// Into containers.
    pub refused_interactive: u64,
    /// For the hub's applier.
    pub refused_push: u64,
    /// To addresses.
    pub refused_dial: u64,
    /// Questions.
    pub refused_look: u64,
    /// Of other classes.
    pub refused_other: u64,
}

impl AgentCounts {
    /// Whether there is nothing.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// Streams that the policy refused, of all classes.
    pub fn refused(&self) -> u64 {
        let [_, _, _, _, _, refused @ ..] = self.values();
        refused.iter().sum()
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::of(sum(self.values(), other.values()))
    }

    /// How many came since an earlier count. Whoever counts less than before began anew.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self::of(grown(self.values(), earlier.values()))
    }

    fn values(self) -> [u64; 11] {
        [
            self.left_asked,
            self.left_dead,
            self.left_cut,
            self.left_woken,
            self.audit_lines_lost,
            self.refused_read,
            self.refused_interactive,
            self.refused_push,
            self.refused_dial,
            self.refused_look,
            self.refused_other,
        ]
    }

    fn of(values: [u64; 11]) -> Self {
        let [
            left_asked,
            left_dead,
            left_cut,
            left_woken,
            audit_lines_lost,
            refused_read,
            refused_interactive,
            refused_push,
            refused_dial,
            refused_look,
            refused_other,
        ] = values;
        Self {
            left_asked,
            left_dead,
            left_cut,
            left_woken,
            audit_lines_lost,
            refused_read,
            refused_interactive,
            refused_push,
            refused_dial,
            refused_look,
            refused_other,
        }
    }
}

/// Each number with its other.
pub(super) fn sum<const N: usize>(one: [u64; N], other: [u64; N]) -> [u64; N] {
    std::array::from_fn(|at| one[at].saturating_add(other[at]))
}

/// How far each number has grown; where one of them is less than before, all began anew.
pub(super) fn grown<const N: usize>(now: [u64; N], earlier: [u64; N]) -> [u64; N] {
    let began_anew = now.iter().zip(earlier).any(|(now, before)| *now < before);
    match began_anew {
        true => now,
        false => std::array::from_fn(|at| now[at] - earlier[at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_begins_anew_takes_nothing_away() {
        let counted = |left_cut, refused_push| AgentCounts {
            left_cut,
            refused_push,
            ..AgentCounts::default()
        };
        let mut all = AgentCounts::default();
        for (before, now) in [
            (counted(0, 0), counted(2, 1)),
            (counted(2, 1), counted(3, 1)),
            (counted(3, 1), counted(1, 0)),
        ] {
            all = all.and(now.since(before));
        }
        assert_eq!(all, counted(4, 1));
        let each = std::array::from_fn(|at| at as u64 + 1);
        assert_eq!(AgentCounts::of(each).values(), each, "each field is itself");
    }
}
