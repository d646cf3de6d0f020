//! Plans a fleet that is loaded, and holds back what must not go.

use std::collections::BTreeSet;
use std::sync::Arc;

use render::chart::Previews;
use render::guard::{Evidence, Exceeded, guard};
use render::plan::{Memo, Moves, Reports, Snapshot, plan};
use render::{Finding, Fleet, Plan, Published};

/// Plans a fleet on what is published, whatever that takes away; the findings are those of its load and of its plan,
/// sorted, each once.
pub fn plan_fleet(
    fleet: &Arc<Fleet>,
    findings: Vec<Finding>,
    previous: Arc<Published>,
    now: i64,
    memo: &mut Memo,
) -> (Plan, Vec<Finding>) {
    let plan = plan(&snapshot(fleet, previous, now), memo);
    let findings = all_findings(findings, &plan);
    (plan, findings)
}

/// As [`plan_fleet`], and holds back what must not go. The last part are the lists that went beyond a budget.
pub fn plan_guarded(
    fleet: &Arc<Fleet>,
    findings: Vec<Finding>,
    previous: Arc<Published>,
    now: i64,
    memo: &mut Memo,
    evidence: &Evidence<'_>,
) -> (Plan, Vec<Finding>, Vec<Exceeded>) {
    let snapshot = snapshot(fleet, previous, now);
    let plan = plan(&snapshot, memo);
    judged(&snapshot, plan, findings, evidence)
}

/// Holds back what must not go in a plan of this snapshot; as [`plan_guarded`] does.
pub fn judged(
    snapshot: &Snapshot,
    mut plan: Plan,
    findings: Vec<Finding>,
    evidence: &Evidence<'_>,
) -> (Plan, Vec<Finding>, Vec<Exceeded>) {
    let exceeded = guard(snapshot, &mut plan, evidence);
    let findings = all_findings(findings, &plan);
    (plan, findings, exceeded)
}

/// What holds of a fleet that is on no cluster yet: nothing can be taken away.
pub fn plan_anew(fleet: &Arc<Fleet>, findings: Vec<Finding>) -> (Plan, Vec<Finding>) {
    let evidence = Evidence {
        budgets: &[],
        allowed: &BTreeSet::new(),
        holdings: &|_| None,
    };
    let (plan, findings, _) = plan_guarded(fleet, findings, Arc::default(), 0, &mut Memo::default(), &evidence);
    (plan, findings)
}

/// What is known where nobody is asked of anything.
pub fn snapshot(fleet: &Arc<Fleet>, previous: Arc<Published>, now: i64) -> Snapshot {
    Snapshot {
        revision: fleet.revision.clone(),
        fleet: Arc::clone(fleet),
        reports: Reports::default(),
        moves: Moves::default(),
        chart_previews: Previews::default(),
        previous,
        now,
    }
}

fn all_findings(mut findings: Vec<Finding>, plan: &Plan) -> Vec<Finding> {
    findings.extend(plan.findings.iter().cloned());
    findings.sort();
    findings.dedup();
    findings
}
