//! Loads and plans a revision: blocking work, one at a time, with what it remembers from the last.

mod fleet;
mod load;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use render::chart::Previews;
use render::guard::{Evidence, Holdings};
use render::load::LoadMemo;
use render::model::Approval;
use render::plan::{Memo, Moves, Reports, Snapshot, plan};
use render::{ClusterName, Digest, Finding, Fleet, Published, Revision, UnitKey};

pub use self::fleet::{judged, plan_anew, plan_fleet, plan_guarded, snapshot};
pub(super) use self::load::load_declaring;
pub use self::load::{load_revision, load_tree};
use super::departing::{self, departed};
use super::engine::Planned;
use super::guarding::{KnownBudgets, Rules};
use super::keeper::Keeper;
use super::leaving::Leaving;
use super::moves::{Memories, Words};
use super::publish::SourceCommit;
use super::source::{Source, SourceError};
use crate::limits::{GATE_COMMITS_MAX, PROPOSAL_COMMITS_MAX};

/// Plans revisions of one source.
#[derive(Debug)]
pub(super) struct Planner {
    source: Arc<Source>,
    /// Where the contents of what is published are.
    keeper: Option<Arc<Keeper>>,
    memos: Mutex<Memos>,
}

#[derive(Debug, Default)]
struct Memos {
    load: LoadMemo,
    plan: Memo,
    gates: BTreeMap<Revision, Approval>,
    budgets: KnownBudgets,
    /// Of contents that are published and were not rendered by the last plan.
    holdings: BTreeMap<Digest, Arc<Holdings>>,
}

/// What a plan is made on, beside the revision.
#[derive(Debug, Default)]
pub(super) struct Known<'a> {
    /// The commit of `rendered` that `previous` stands for.
    pub(super) base: Option<Revision>,
    /// What is published.
    pub(super) previous: Arc<Published>,
    /// The newest revision that was planned before.
    pub(super) accepted: Option<&'a Revision>,
    /// Words about units that left, which clusters need no more.
    pub(super) let_go: BTreeSet<(UnitKey, ClusterName)>,
    /// What charts are predicted to bring.
    pub(super) previews: Previews,
    /// What room clusters have.
    pub(super) reports: Reports,
    /// Units whose words to place them anew found nothing to move, up to a revision.
    pub(super) rebalanced: BTreeMap<UnitKey, Revision>,
    /// Whether the revision was decided on before, so that no source commit asks for the decision.
    pub(super) decided: bool,
    /// In seconds since 1970.
    pub(super) now: i64,
}

impl Planner {
    /// A planner that remembers nothing yet. Without a keeper, what is published has no contents.
    pub(super) fn new(source: Arc<Source>, keeper: Option<Arc<Keeper>>) -> Self {
        Self {
            source,
            keeper,
            memos: Mutex::default(),
        }
    }

    /// Reads, loads and plans `revision` on what is published and predicted. Blocks.
    ///
    /// A source that cannot be read whole is an error, and nothing may be concluded from it.
    pub(super) fn plan(&self, revision: &Revision, known: Known<'_>) -> Result<Planned, SourceError> {
        let Known {
            base,
            previous,
            accepted,
            previews,
            reports,
            rebalanced,
            decided,
            now,
            ..
        } = known;
        // A memo that was left in the middle of a panic only costs speed.
        let mut memos = self.memos.lock().unwrap_or_else(PoisonError::into_inner);
        let memos = &mut *memos;
        let (fleet, found) = load_revision(&self.source, revision, &mut memos.load)?;
        let fleet = Arc::new(fleet);
        let gate = self.gate(&mut memos.gates, &fleet, &previous, accepted)?;
        let commits = match gate {
            Approval::Required => self.commits(&previous, revision)?,
            Approval::None => Vec::new(),
        };
        let since = previous.record.as_ref().map(|record| &record.source);
        let rules = Rules::read_with(&self.source, &fleet, since, accepted, &mut memos.budgets)?;
        let remembered = std::mem::take(&mut memos.holdings);
        let used = RefCell::new(BTreeMap::new());
        let holdings = |digest: &Digest| {
            let found = remembered.get(digest).cloned();
            let found = found.or_else(|| self.keeper.as_ref()?.holdings(base.as_ref(), digest).map(Arc::new))?;
            used.borrow_mut().insert(*digest, Arc::clone(&found));
            Some(found)
        };
        let evidence = Evidence {
            budgets: &rules.budgets,
            allowed: &rules.allowed,
            holdings: &holdings,
        };
        let departed = departed(&self.source, &fleet, &previous, accepted)?;
        let words = Words::read(&self.source, &fleet, since, &rebalanced)?;
        let found = found.into_iter().chain(departing::findings(&departed));
        let mut found: Vec<Finding> = found.chain(words.findings).collect();
        let mut snapshot = Snapshot {
            chart_previews: previews,
            reports,
            moves: Moves {
                rebalance: words.rebalance,
                decided,
                ..Moves::default()
            },
            ..snapshot(&fleet, Arc::clone(&previous), now)
        };
        let plan = match &self.keeper {
            None => plan(&snapshot, &mut memos.plan),
            Some(keeper) => {
                let memories = Memories {
                    source: &self.source,
                    since,
                    state: keeper.repository(),
                };
                let (plan, trouble) = memories.plan(&mut snapshot, &mut memos.plan)?;
                found.extend(trouble);
                plan
            }
        };
        let (plan, mut findings, _) = judged(&snapshot, plan, found, &evidence);
        let leaving = Leaving {
            source: &self.source,
            fleet: &fleet,
            previous: &previous,
            decided: since,
            units: &plan.units,
            accepted,
            departed: &departed.clusters,
            holdings: &holdings,
            // What is proposed to people stays as it is, whatever clusters say meanwhile.
            let_go: match gate {
                Approval::None => &known.let_go,
                Approval::Required => &BTreeSet::new(),
            },
        };
        let (orphaned, forgotten) = leaving.orphaned()?;
        findings.extend(forgotten);
        memos.holdings = used.into_inner();
        Ok(Planned {
            fleet,
            plan,
            findings,
            base,
            gate,
            commits,
            departed: departed.clusters,
            orphaned,
        })
    }

    /// The commits from the one that `rendered` was made from, itself left out, to `head`: newest first, by first
    /// parents, as a branch that is merged into reads. One more than a proposal shows at most.
    fn commits(&self, previous: &Published, head: &Revision) -> Result<Vec<SourceCommit>, SourceError> {
        let rendered = previous.record.as_ref().map(|record| &record.source);
        let mut found = Vec::new();
        let mut at = Some(head.clone());
        while let Some(revision) = at.filter(|at| Some(at) != rendered && found.len() <= PROPOSAL_COMMITS_MAX) {
            let (subject, parent) = self.source.subject(&revision)?;
            found.push(SourceCommit { revision, subject });
            at = parent;
        }
        Ok(found)
    }

    /// The gate is read from the revisions accepted before, so that no commit switches off its own: from the
    /// one that `rendered` was made from, and from the newest that was planned. After a restart nobody knows
    /// the latter, and any first parent since the former may be it. A first run has only itself.
    fn gate(
        &self,
        known: &mut BTreeMap<Revision, Approval>,
        fleet: &Fleet,
        previous: &Published,
        accepted: Option<&Revision>,
    ) -> Result<Approval, SourceError> {
        let rendered = previous.record.as_ref().map(|record| record.source.clone());
        let own = fleet.spec.approval;
        if rendered.is_none() && accepted.is_none() {
            return Ok(own);
        }
        let newest = match accepted {
            Some(accepted) => vec![accepted.clone()],
            None => self.between(rendered.as_ref(), &fleet.revision)?,
        };
        let mut gates = BTreeMap::from([(fleet.revision.clone(), own)]);
        let mut gate = Approval::None;
        for revision in rendered.into_iter().chain(newest) {
            let found = match known.get(&revision).or(gates.get(&revision)) {
                Some(found) => *found,
                None => load_declaring(&self.source, &revision, KIND)?.spec.approval,
            };
            gates.insert(revision, found);
            if found == Approval::Required {
                gate = Approval::Required;
            }
        }
        *known = gates;
        Ok(gate)
    }

    /// The commits that may have been accepted while an earlier process ran: the first parents of `head`
    /// back to the one that `rendered` was made from. One that cannot be read is an error: nothing loosens by
    /// being unreadable.
    fn between(&self, rendered: Option<&Revision>, head: &Revision) -> Result<Vec<Revision>, SourceError> {
        let mut found = Vec::new();
        let mut at = self.source.first_parent(head)?;
        while let Some(revision) = at.filter(|revision| Some(revision) != rendered && found.len() < GATE_COMMITS_MAX) {
            at = self.source.first_parent(&revision)?;
            found.push(revision);
        }
        Ok(found)
    }
}

/// What a file that declares a Fleet has in it, in YAML and in JSON.
const KIND: &[u8] = b"Fleet";

#[cfg(test)]
mod tests {
    use render::published::{Cause, RENDER_VERSION, ReleaseRecord};

    use super::*;
    use crate::hub::repository::fixture::Fixture;

    fn fleet(approval: &str) -> String {
        format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {{name: fleet}}\nspec: {{approval: {approval}}}\n"
        )
    }

    fn commit(fixture: &Fixture, approval: &str) -> Revision {
        fixture.write("fleet.yaml", fleet(approval));
        Revision::parse(fixture.commit(approval)).expect("git prints a commit")
    }

    fn published(source: Option<&Revision>) -> Arc<Published> {
        let record = source.map(|source| ReleaseRecord {
            cause: Cause::SourceCommit,
            source: source.clone(),
            sequence: None,
            rendered: None,
            departed: Default::default(),
            orphaned: Default::default(),
            render_version: RENDER_VERSION,
        });
        Arc::new(Published {
            record,
            ..Published::default()
        })
    }

    #[track_caller]
    fn check(planner: &Planner, rendered: Option<&Revision>, accepted: Option<&Revision>, now: &Revision) -> Approval {
        let planned = planner.plan(
            now,
            Known {
                previous: published(rendered),
                accepted,
                ..Known::default()
            },
        );
        planned.expect("the repository is readable").gate
    }

    #[test]
    fn approval_is_gits_and_no_commit_switches_off_its_own_gate() {
        let fixture = Fixture::new();
        let on = commit(&fixture, "required");
        let off = commit(&fixture, "none");
        let later = commit(&fixture, "none # later");
        let planner = || Planner::new(Arc::new(Source::open(fixture.path(), "main").expect("it opens")), None);
        assert_eq!(
            check(&planner(), None, None, &on),
            Approval::Required,
            "a first run has only itself"
        );
        assert_eq!(check(&planner(), Some(&on), Some(&on), &off), Approval::Required);
        assert_eq!(
            check(&planner(), Some(&on), None, &off),
            Approval::Required,
            "also after a restart"
        );
        assert_eq!(
            check(&planner(), Some(&off), Some(&off), &later),
            Approval::None,
            "what was merged counts"
        );
        // Nothing of the gated commit was rendered yet: its word stands all the same.
        let again = commit(&fixture, "required");
        let next = commit(&fixture, "none");
        assert_eq!(check(&planner(), Some(&off), Some(&again), &next), Approval::Required);
        assert_eq!(
            check(&planner(), Some(&off), None, &next),
            Approval::Required,
            "also after a restart"
        );
    }
}
