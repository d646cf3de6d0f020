//! From declarations in files to the fleet's clusters, overrides and Subscriptions: each once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::catalog::{Catalog, Origin};
use super::declaration::{Declaration, DeclarationKey, UnitDeclaration};
use super::document::{Broken, Item};
use super::kinds::OwnKind;
use crate::access::{Binding, Role, ScopedName};
use crate::finding::Finding;
use crate::model::{Cluster, FleetSpec, HealthRule, Override, OverrideFeed, PruneBudget, Suspension};
use crate::name::{ClusterName, UnitKey};

/// What the repository declares.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) spec: FleetSpec,
    pub(super) clusters: BTreeMap<ClusterName, Cluster>,
    pub(super) units: BTreeMap<UnitKey, UnitDeclaration>,
    pub(super) overrides: Vec<Arc<Override>>,
    /// Those of them whose object no manifest declares.
    pub(super) of_nothing: Vec<Arc<Override>>,
    pub(super) suspensions: Vec<Arc<Suspension>>,
    pub(super) prune_budgets: Vec<Arc<PruneBudget>>,
    /// By name: of two for one kind the first counts.
    pub(super) health_rules: Vec<Arc<HealthRule>>,
    pub(super) roles: BTreeMap<ScopedName, Arc<Role>>,
    pub(super) bindings: BTreeMap<ScopedName, Arc<Binding>>,
    /// Roles and bindings that are declared twice, of which neither counts: no right is given by the order of files.
    pub(super) unclear_access: BTreeMap<DeclarationKey, Finding>,
    /// Roles and bindings that give nothing, and that stay in clusters all the same: a file that cannot be read may hold
    /// them now, or they are declared twice.
    pub(super) kept_access: Vec<Declaration>,
    /// Objects whose override cannot be trusted, and why: whoever delivers one is held.
    pub(super) held_targets: Vec<(OverrideFeed, Finding)>,
    /// Clusters that are declared twice, once for each declaration: whatever either of them asks for is held.
    pub(super) unclear_clusters: Vec<(Cluster, Finding)>,
    pub(super) findings: Vec<Finding>,
}

/// Where a declaration was found first.
struct First<'a> {
    file: &'a Arc<str>,
    line: u32,
    declaration: &'a Declaration,
}

/// Takes every declaration once. Those of files that vanished count only where nothing else declares them.
pub(super) fn gather(catalog: &Catalog<'_>) -> Declared {
    let mut declared = Declared::default();
    let mut firsts: BTreeMap<&DeclarationKey, First<'_>> = BTreeMap::new();
    for (path, loaded) in &catalog.files {
        if loaded.origin == Origin::Vanished || loaded.hidden {
            continue;
        }
        for (key, line, declaration) in declarations(&loaded.file.items) {
            let here = First {
                file: path,
                line,
                declaration,
            };
            match firsts.get(key) {
                Some(first) => declared.contradiction(key, first, &here),
                None => drop(firsts.insert(key, here)),
            }
        }
        declared.hold_targets(&loaded.file.broken);
    }
    for (path, loaded) in &catalog.files {
        if loaded.origin != Origin::Vanished {
            continue;
        }
        for (key, line, declaration) in declarations(&loaded.file.items) {
            if firsts.contains_key(key) {
                continue;
            }
            if matches!(key.kind, OwnKind::Access(_)) {
                declared.kept_access.push(declaration.clone());
                declared.findings.push(right_gone(&key.label(), path, line));
                continue;
            }
            declared.findings.push(removal_held(&key.label(), path, line));
            let here = First {
                file: path,
                line,
                declaration,
            };
            firsts.insert(key, here);
        }
    }
    for (key, first) in firsts {
        if declared.unclear_access.contains_key(key) {
            declared.kept_access.push(first.declaration.clone());
        } else {
            declared.take(first.declaration);
        }
    }
    declared.overrides.sort_by(|a, b| a.order_key().cmp(&b.order_key()));
    declared
        .health_rules
        .sort_by(|a, b| (&a.name, &a.file, a.line).cmp(&(&b.name, &b.file, b.line)));
    declared
        .suspensions
        .sort_by(|a, b| (&a.name, &a.file, a.line).cmp(&(&b.name, &b.file, b.line)));
    declared
        .prune_budgets
        .sort_by(|a, b| (&a.name, &a.file, a.line).cmp(&(&b.name, &b.file, b.line)));
    declared
}

/// Says that something stays though its file is gone.
pub(super) fn removal_held(label: &str, file: &str, line: u32) -> Finding {
    let message = format!("{label} is kept: its file is gone, and a file that cannot be read may hold it now");
    Finding::warning("RemovalHeld", message)
        .at(file, line)
        .hint("correct the unreadable file; what is in no file then is removed")
}

/// A right whose file is gone is gone. What clusters were told of it is a manifest like any other.
fn right_gone(label: &str, file: &str, line: u32) -> Finding {
    let message = format!(
        "{label} gives nothing any more, since its file is gone; in clusters it is kept, and a file that cannot be read may \
         hold it now"
    );
    Finding::warning("RemovalHeld", message)
        .at(file, line)
        .hint("correct the unreadable file; what is in no file then is removed")
}

fn declarations(items: &[Item]) -> impl Iterator<Item = (&DeclarationKey, u32, &Declaration)> {
    items.iter().filter_map(|item| match item {
        Item::Declared { key, line, declaration } => Some((key, *line, &**declaration)),
        Item::Object(_) | Item::Neither(_) => None,
    })
}

impl Declared {
    fn contradiction(&mut self, key: &DeclarationKey, first: &First<'_>, second: &First<'_>) {
        let message = format!(
            "{} is declared twice: in {}:{} and in {}:{}",
            key.label(),
            first.file,
            first.line,
            second.file,
            second.line
        );
        let finding = Finding::error("DeclaredTwice", message)
            .at(&**second.file, second.line)
            .hint("remove one of the two");
        match first.declaration {
            Declaration::Unit(unit) => {
                let finding = finding.unit(&unit.subscription.key);
                self.units
                    .entry(unit.subscription.key.clone())
                    .or_insert_with(|| unit.clone())
                    .problems
                    .push(finding.clone());
                self.findings.push(finding);
            }
            Declaration::Override(declared) => {
                self.held_targets.push((declared.feed.clone(), finding.clone()));
                self.findings.push(finding);
            }
            Declaration::Cluster(cluster) => {
                self.unclear_clusters.push((cluster.clone(), finding.clone()));
                if let Declaration::Cluster(other) = second.declaration {
                    self.unclear_clusters.push((other.clone(), finding.clone()));
                }
                self.findings.push(finding);
            }
            Declaration::Fleet(_) | Declaration::HealthRule(_) => self.findings.push(finding),
            Declaration::Role(_) | Declaration::Binding(_) => {
                self.unclear_access.insert(key.clone(), finding.clone());
                self.findings.push(finding);
            }
            Declaration::Suspension(_) | Declaration::PruneBudget(_) => {
                // Both hold: nothing loosens by a mistake.
                self.take(second.declaration);
                self.findings.push(finding);
            }
        }
    }

    fn hold_targets(&mut self, broken: &[Broken]) {
        for broken in broken {
            if let Some(target) = &broken.target {
                self.held_targets.push((target.clone(), broken.error.clone()));
            }
        }
    }

    fn take(&mut self, declaration: &Declaration) {
        match declaration {
            Declaration::Fleet(spec) => self.spec = spec.clone(),
            Declaration::Cluster(cluster) => drop(self.clusters.insert(cluster.name.clone(), cluster.clone())),
            Declaration::Override(declared) => self.overrides.push(declared.clone()),
            Declaration::Suspension(declared) => self.suspensions.push(declared.clone()),
            Declaration::PruneBudget(declared) => self.prune_budgets.push(declared.clone()),
            Declaration::HealthRule(declared) => self.health_rules.push(declared.clone()),
            Declaration::Role(role) => drop(self.roles.insert(role.key.clone(), role.clone())),
            Declaration::Binding(binding) => drop(self.bindings.insert(binding.key.clone(), binding.clone())),
            Declaration::Unit(unit) => {
                self.units
                    .entry(unit.subscription.key.clone())
                    .or_insert_with(|| unit.clone());
            }
        }
    }
}
