//! What the guard of a plan goes by, read from Git: budgets of the revisions accepted before, and what commits allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::model::{PruneAllowance, PruneBudget};
use render::{Fleet, Revision};

use super::planner::load_declaring;
use super::source::{Source, SourceError};

/// The budgets of a revision.
type Budgets = Vec<Arc<PruneBudget>>;

/// What a file that declares a PruneBudget has in it.
const KIND: &[u8] = b"PruneBudget";

/// Budgets and allowances of one plan.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The budgets in force.
    pub budgets: Budgets,
    /// What was allowed since the newest decision.
    pub allowed: BTreeSet<PruneAllowance>,
}

/// Budgets that need not be read again.
pub(super) type KnownBudgets = BTreeMap<Revision, Budgets>;

impl Rules {
    /// Reads them for a revision. `since` is the commit of source that the newest decision was made from, and
    /// `accepted` the newest that was planned before, where that is known.
    ///
    /// A budget is in force if this revision has it, or one that was accepted before it: a commit may tighten one at
    /// once, and what it loosens counts for the next.
    pub fn read(
        source: &Source,
        fleet: &Fleet,
        since: Option<&Revision>,
        accepted: Option<&Revision>,
    ) -> Result<Self, SourceError> {
        Self::read_with(source, fleet, since, accepted, &mut KnownBudgets::new())
    }

    /// As [`Rules::read`], with what is known from before.
    pub(super) fn read_with(
        source: &Source,
        fleet: &Fleet,
        since: Option<&Revision>,
        accepted: Option<&Revision>,
        known: &mut KnownBudgets,
    ) -> Result<Self, SourceError> {
        let head = &fleet.revision;
        let Some(since) = since else {
            // Nothing was decided yet, so that nothing can be taken away.
            return Ok(Self {
                budgets: fleet.prune_budgets.clone(),
                allowed: BTreeSet::new(),
            });
        };
        let parent = source.first_parent(head)?;
        let before = accepted.filter(|accepted| *accepted != head).unwrap_or(since);
        let asked: BTreeSet<&Revision> = parent.iter().chain([before]).filter(|at| *at != head).collect();
        let mut found = KnownBudgets::from([(head.clone(), fleet.prune_budgets.clone())]);
        let mut budgets = fleet.prune_budgets.clone();
        for revision in asked {
            let there = match known.get(revision) {
                Some(there) => there.clone(),
                None => load_declaring(source, revision, KIND)?.prune_budgets,
            };
            let is_new = |budget: &&Arc<PruneBudget>| !budgets.iter().any(|own| own.is_same(budget));
            let new: Budgets = there.iter().filter(is_new).cloned().collect();
            budgets.extend(new);
            found.insert(revision.clone(), there);
        }
        *known = found;
        let words = source.trailer_values(head, Some(since), PruneAllowance::TRAILER)?;
        let allowed = words
            .iter()
            .filter_map(|(_, word)| PruneAllowance::parse(word))
            .collect();
        Ok(Self { budgets, allowed })
    }
}

#[cfg(test)]
mod tests {
    use render::load::LoadMemo;

    use super::*;
    use crate::hub::planner::load_revision;
    use crate::hub::repository::fixture::Fixture;

    fn budget(most: u64) -> String {
        format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: PruneBudget\nmetadata: {{name: small}}\nspec: {{maxObjects: {most}}}\n"
        )
    }

    fn commit(fixture: &Fixture, most: u64, message: &str) -> Revision {
        fixture.write("policies/small.yaml", budget(most));
        fixture.write("note", message);
        Revision::parse(fixture.commit(message)).expect("git prints a commit")
    }

    fn rules(source: &Source, at: &Revision, since: &Revision, accepted: Option<&Revision>) -> Rules {
        let (fleet, _) = load_revision(source, at, &mut LoadMemo::default()).expect("it is readable");
        Rules::read(source, &fleet, Some(since), accepted).expect("it is readable")
    }

    fn most(rules: &Rules) -> Vec<u64> {
        rules.budgets.iter().filter_map(|budget| budget.objects_max).collect()
    }

    #[test]
    fn no_commit_loosens_a_budget_and_uses_it() {
        let fixture = Fixture::new();
        let strict = commit(&fixture, 1, "strict");
        let loose = commit(&fixture, 50, "loose");
        let later = commit(&fixture, 50, "later");
        let source = Source::open(fixture.path(), "main").expect("it opens");
        let known = rules(&source, &loose, &strict, Some(&strict));
        assert_eq!(most(&known), [50, 1], "the older one holds beside it");
        assert_eq!(
            most(&rules(&source, &loose, &strict, None)),
            [50, 1],
            "also after a restart"
        );
        assert_eq!(
            most(&rules(&source, &loose, &loose, Some(&loose))),
            [50, 1],
            "also where it is planned again"
        );
        assert_eq!(
            most(&rules(&source, &later, &strict, Some(&loose))),
            [50],
            "it counts for the next commit, whether the one before decided anything or not"
        );
        assert_eq!(
            most(&rules(&source, &later, &strict, Some(&strict))),
            [50, 1],
            "two commits that come in one push are one step"
        );
    }

    #[test]
    fn an_allowance_counts_from_the_decision_before_it_on() {
        let fixture = Fixture::new();
        let first = commit(&fixture, 1, "first\n\nAllow-Prune: 3 0123abcd");
        let second = commit(&fixture, 1, "second\n\nAllow-Prune: 4 4567ef01\nallow-prune: 5 89ab");
        let third = commit(&fixture, 1, "third\n\nAllow-Prune: everything");
        let source = Source::open(fixture.path(), "main").expect("it opens");
        let counts = |since: &Revision| {
            let rules = rules(&source, &third, since, Some(&second));
            rules.allowed.iter().map(|allowed| allowed.count).collect::<Vec<_>>()
        };
        assert_eq!(counts(&first), [4, 5], "what was decided is over");
        assert_eq!(
            counts(&second),
            Vec::<u64>::new(),
            "a word that names no list allows none"
        );
    }
}
