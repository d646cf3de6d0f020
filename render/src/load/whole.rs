//! Puts the parts of a load together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::access;
use super::catalog::Catalog;
use super::charts::Charts;
use super::cross;
use super::document::Item;
use super::gather::{Declared, gather};
use super::index::{Index, Wanted};
use super::kinds::{is_own_name, meant};
use super::lines::Lines;
use super::memo::LoadMemo;
use super::needs;
use super::projected;
use super::resolve::{Context, resolve};
use crate::finding::{Finding, Severity};
use crate::fleet::{Fleet, Unit};
use crate::limits::{DOCUMENTS_MAX, FINDINGS_PER_FILE_MAX};
use crate::model::{Cluster, Feed, HealthCheck};
use crate::name::{UnitKey, group_of};
use crate::tree::{Previous, SourceTree};

pub(super) fn load(tree: &SourceTree, previous: &Previous, memo: &mut LoadMemo) -> (Fleet, Vec<Finding>) {
    let mut catalog = Catalog::read(tree, previous, memo);
    let mut declared = gather(&catalog);
    for unit in declared.units.values() {
        for selection in unit.selections.iter().flatten() {
            catalog.read_hidden(selection, memo);
        }
    }
    catalog.leave_out_charts();
    let charts = Charts::read(&catalog, memo);
    memo.turn();
    let mut findings = std::mem::take(&mut declared.findings);
    findings.append(&mut catalog.findings);
    let access = access::resolve(&mut declared, &mut Lines::new(&catalog), &mut findings);
    let mut units = units(&catalog, &charts, &mut declared, &mut findings);
    let projected = projected::units(&access, &declared, &catalog);
    findings.extend(projected.values().flat_map(|unit| unit.blocked.iter().cloned()));
    units.extend(projected);
    let fleet = Fleet {
        revision: tree.revision.clone(),
        spec: declared.spec,
        clusters: declared.clusters,
        units,
        overrides: declared.overrides,
        of_nothing: declared.of_nothing,
        suspensions: declared.suspensions,
        prune_budgets: declared.prune_budgets,
        access: Arc::new(access),
        unreadable: catalog.unreadable.into_iter().collect(),
    };
    (fleet, limited(findings))
}

fn units(
    catalog: &Catalog<'_>,
    charts: &Charts,
    declared: &mut Declared,
    findings: &mut Vec<Finding>,
) -> BTreeMap<UnitKey, Unit> {
    let feeds = declared.units.values().flat_map(|unit| &unit.subscription.feeds);
    let with_labels = feeds.into_iter().any(|feed| matches!(feed, Feed::Selector { .. }));
    let mut index = Index::new(catalog, with_labels);
    findings.append(&mut index.findings);
    let context = Context {
        catalog,
        index: &index,
        charts,
    };
    let mut lines = Lines::new(catalog);
    let mut units = BTreeMap::new();
    for (key, declaration) in &declared.units {
        let mut unit = resolve(&context, declaration, &mut lines, findings);
        hold(&mut unit, declared);
        hold_unclear(&mut unit, declared);
        learn(&mut unit, declared);
        findings.extend(unit.blocked.iter().cloned());
        units.insert(key.clone(), unit);
    }
    findings.append(&mut cross::check(declared, &index, &mut lines));
    findings.append(&mut needs::check(&mut units, &mut lines));
    refuse_too_many(catalog, &mut units, findings);
    findings.extend(undeclared(catalog, &units));
    units
}

/// Objects with the name of one of our kinds that no unit delivers: who wrote one may have meant a declaration.
fn undeclared(catalog: &Catalog<'_>, units: &BTreeMap<UnitKey, Unit>) -> Vec<Finding> {
    let files = catalog.files.values().filter(|loaded| !loaded.hidden);
    let objects = files
        .flat_map(|loaded| &loaded.file.items)
        .filter_map(|item| match item {
            Item::Object(object) if is_own_name(&object.key.kind) => Some(object),
            _ => None,
        });
    let mut findings = Vec::new();
    for object in objects {
        let mut delivered = units.values().flat_map(|unit| &unit.base.objects);
        if delivered.any(|other| other.key == object.key) {
            continue;
        }
        let (kind, version) = (&object.key.kind, &object.api_version);
        let message = format!("{kind} of {version} is no declaration of the fleet, and it is in no feed");
        findings.push(
            Finding::warning("NoDeclaration", message)
                .at(&*object.file, object.line)
                .hint(meant(version, kind)),
        );
    }
    findings
}

/// Takes the fleet's rules of health for the kinds that a unit has; its own word counts before them.
fn learn(unit: &mut Unit, declared: &Declared) {
    let checks = &unit.subscription.apply.health_checks;
    let mut learned = Vec::new();
    for rule in &declared.health_rules {
        let check = &rule.check;
        let is_same = |other: &HealthCheck| {
            other.kind == check.kind && group_of(&other.api_version) == group_of(&check.api_version)
        };
        let is_needed = unit.base.objects.iter().any(|object| check.concerns(&object.key));
        if is_needed && !checks.iter().chain(&learned).any(is_same) {
            learned.push(check.clone());
        }
    }
    if !learned.is_empty() {
        Arc::make_mut(&mut unit.subscription)
            .apply
            .health_checks
            .append(&mut learned);
    }
}

/// Holds a unit that a cluster which is declared twice has a part in: nobody knows whose labels are right, and which
/// cluster has no file by that slip.
fn hold_unclear(unit: &mut Unit, declared: &Declared) {
    let subscribers = &unit.subscription.subscribers;
    let selects = |cluster: &Cluster| {
        let mut selectors = subscribers.iter().filter_map(|one| one.cluster_affinity.as_ref());
        selectors.any(|selector| selector.matches(&cluster.labels))
    };
    let mut unclear = declared.unclear_clusters.iter();
    if let Some((cluster, error)) = unclear.find(|(cluster, _)| selects(cluster)) {
        let (key, name) = (&unit.subscription.key, &cluster.name);
        let message = format!("{key} is for cluster {name}, which is declared twice");
        let finding = Finding::error("ClusterUnclear", message)
            .at(error.file.as_str(), error.line)
            .hint("give each cluster a name of its own; what is placed stays until then")
            .unit(&unit.subscription.key);
        unit.blocked.push(finding);
    }
}

/// Holds a unit that delivers an object whose override cannot be trusted: without it, it would loosen.
fn hold(unit: &mut Unit, declared: &Declared) {
    for (target, error) in &declared.held_targets {
        let wanted = Wanted::of(target);
        if let Some(object) = unit.base.objects.iter().find(|object| wanted.is(&object.key)) {
            let message = format!("an override of {} {} cannot be used", object.key.kind, object.key.name);
            let finding = Finding::error("OverrideUnusable", message)
                .at(error.file.as_str(), error.line)
                .unit(&unit.subscription.key);
            unit.blocked.push(finding);
        }
    }
}

/// Beyond the limit no part of the revision is trusted to be whole.
fn refuse_too_many(catalog: &Catalog<'_>, units: &mut BTreeMap<UnitKey, Unit>, findings: &mut Vec<Finding>) {
    let objects: usize = catalog.files.values().map(|loaded| loaded.file.items.len()).sum();
    if objects <= DOCUMENTS_MAX {
        return;
    }
    let message = format!("the revision has {objects} documents, and at most {DOCUMENTS_MAX} are taken");
    let finding = Finding::error("TooManyDocuments", message);
    for (key, unit) in units {
        unit.blocked.push(finding.clone().unit(key));
    }
    findings.push(finding);
}

/// Sorted, each once, and no more of one file than a person reads.
fn limited(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_unstable();
    findings.dedup();
    let mut out = Vec::with_capacity(findings.len());
    for file in findings.chunk_by(|a, b| a.file == b.file) {
        let left_out = file.len().saturating_sub(FINDINGS_PER_FILE_MAX);
        if left_out == 0 || file[0].file.is_empty() {
            out.extend_from_slice(file);
            continue;
        }
        let mut kept = file.to_vec();
        // The worst first, so that what is left out is what matters least.
        kept.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let worst = kept[FINDINGS_PER_FILE_MAX..]
            .iter()
            .map(|finding| finding.severity)
            .max();
        kept.truncate(FINDINGS_PER_FILE_MAX);
        kept.sort_unstable();
        out.append(&mut kept);
        let severity = worst.unwrap_or(Severity::Info);
        let message = format!("and {left_out} more findings in this file");
        out.push(Finding::new(severity, "MoreFindings", message).at(file[0].file.as_str(), 0));
    }
    out.sort_unstable();
    out
}
