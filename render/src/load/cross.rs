//! What is wrong between declarations: clusters that share what is one's own, overrides of nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::gather::Declared;
use super::index::{Index, Wanted};
use super::lines::Lines;
use crate::access::ACCESS_NAMESPACE;
use crate::finding::Finding;
use crate::model::{Cluster, HealthRule, Override, OverrideKind, Suspension};
use crate::name::group_of;
use crate::nearest::nearest;

/// Checks declarations against each other, and takes away what two clusters claim.
pub(super) fn check(declared: &mut Declared, index: &Index<'_>, lines: &mut Lines<'_>) -> Vec<Finding> {
    let mut findings = shared_ids(declared, lines);
    findings.append(&mut refuse_shared_keys(declared, lines));
    let namespaces: BTreeSet<String> = declared
        .clusters
        .values()
        .map(|cluster| cluster.namespace.clone())
        .collect();
    for item in &declared.overrides {
        let is_localization = item.kind == OverrideKind::Localization;
        // A fleet that is begun has no cluster yet, and nothing to be compared with.
        if is_localization && !namespaces.is_empty() && !namespaces.contains(&item.namespace) {
            findings.push(strange_namespace(item, lines));
        }
        if let Some(finding) = dangling(item, index, lines) {
            findings.push(finding);
            declared.of_nothing.push(item.clone());
        }
    }
    findings.append(&mut rules_twice(&declared.health_rules));
    for suspension in &declared.suspensions {
        findings.extend(holds_nothing(suspension, declared, lines));
        findings.extend(holds_no_object(suspension, index, lines));
    }
    findings
}

fn shared_ids(declared: &Declared, lines: &mut Lines<'_>) -> Vec<Finding> {
    let mut owners: BTreeMap<&str, &Cluster> = BTreeMap::new();
    let mut findings = Vec::new();
    let with_id = declared
        .clusters
        .values()
        .filter(|cluster| !cluster.cluster_id.is_empty());
    for cluster in with_id {
        let Some(first) = owners.insert(&cluster.cluster_id, cluster) else {
            continue;
        };
        let message = format!(
            "the cluster id {:?} is that of {} too ({}:{})",
            cluster.cluster_id, first.name, first.file, first.line
        );
        let line = lines.find(&cluster.file, cluster.line, "spec.clusterId");
        let finding = Finding::error("SharedClusterId", message)
            .at(&*cluster.file, line)
            .field("spec.clusterId")
            .cluster(&cluster.name)
            .hint("give each cluster its own, or none: its name counts then");
        findings.push(finding);
    }
    findings
}

/// A key that two clusters name stays with neither: whoever holds it could be either.
fn refuse_shared_keys(declared: &mut Declared, lines: &mut Lines<'_>) -> Vec<Finding> {
    let mut owners: BTreeMap<&str, Vec<&Cluster>> = BTreeMap::new();
    for cluster in declared.clusters.values() {
        for key in &cluster.public_keys {
            owners.entry(key).or_default().push(cluster);
        }
    }
    let mut refused = Vec::new();
    let mut findings = Vec::new();
    for (key, owners) in owners {
        let [first, second, ..] = owners.as_slice() else {
            continue;
        };
        let message = format!(
            "a public key stands for one cluster alone, and this one for {} ({}:{}) and {}",
            first.name, first.file, first.line, second.name
        );
        let line = lines.find(&second.file, second.line, "spec.publicKeys");
        let finding = Finding::error("SharedPublicKey", message)
            .at(&*second.file, line)
            .field("spec.publicKeys")
            .cluster(&second.name)
            .hint("neither can connect with it; make a new key with flotilla agent join");
        findings.push(finding);
        refused.push(key.to_owned());
    }
    for cluster in declared.clusters.values_mut() {
        cluster.public_keys.retain(|key| !refused.contains(key));
    }
    findings
}

/// Of two rules for one kind nobody knows which is meant.
fn rules_twice(rules: &[Arc<HealthRule>]) -> Vec<Finding> {
    let mut firsts: BTreeMap<(&str, &str), &HealthRule> = BTreeMap::new();
    let mut findings = Vec::new();
    for rule in rules {
        let (group, kind) = (group_of(&rule.check.api_version), rule.check.kind.as_str());
        let Some(first) = firsts.get(&(group, kind)) else {
            firsts.insert((group, kind), rule);
            continue;
        };
        let message = format!(
            "the health of {kind} is judged by {} already ({}:{})",
            first.name, first.file, first.line
        );
        findings.push(
            Finding::error("HealthRuleTwice", message)
                .at(&*rule.file, rule.line)
                .hint("remove one of the two; the first by name counts until then"),
        );
    }
    findings
}

fn strange_namespace(declared: &Override, lines: &mut Lines<'_>) -> Finding {
    let message = format!(
        "no cluster has the namespace {:?}, so this changes nothing",
        declared.namespace
    );
    let line = lines.find(&declared.file, declared.line, "metadata.namespace");
    Finding::warning("NamespaceWithoutCluster", message)
        .at(&*declared.file, line)
        .field("metadata.namespace")
        .hint("a Localization stands in its cluster's namespace, which is the cluster's name unless its file says otherwise")
}

/// An override of an object that no manifest declares is a mistake in its feed.
fn dangling(declared: &Override, index: &Index<'_>, lines: &mut Lines<'_>) -> Option<Finding> {
    let wanted = Wanted::of(&declared.feed);
    if index.named(wanted).next().is_some() {
        return None;
    }
    let message = format!(
        "{} changes {} {} {}, which no manifest declares",
        declared.label(),
        wanted.api_version,
        wanted.kind,
        wanted.name
    );
    let line = lines.find(&declared.file, declared.line, "spec.feed");
    let finding = Finding::error("OverrideTargetMissing", message)
        .at(&*declared.file, line)
        .field("spec.feed")
        .hint(
            index
                .near(wanted)
                .unwrap_or_else(|| "name an object of a manifest, or remove the override".to_owned()),
        );
    Some(finding)
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean {name}?")
}

/// What to do about a name that is of nothing now: a slip, or of something that was taken out and that the Suspension
/// still keeps where it is. Whoever takes the Suspension away, or lets it name something else, lets that go.
fn kept_by(what: &str, source: &str, meant: Option<String>) -> String {
    let meant = meant.map(|meant| format!("{meant} ")).unwrap_or_default();
    format!(
        "{meant}if {what} was taken out of Git, this Suspension is what keeps it in the clusters, and without it it is \
         removed there: to keep it, put {source} back first; to let it go, remove the Suspension"
    )
}

/// The objects of a Suspension that no manifest declares.
fn holds_no_object(suspension: &Suspension, index: &Index<'_>, lines: &mut Lines<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (position, object) in suspension.objects.iter().enumerate() {
        let wanted = Wanted {
            api_version: &object.api_version,
            kind: &object.kind,
            namespace: &object.namespace,
            name: &object.name,
        };
        if index.named(wanted).next().is_some() {
            continue;
        }
        let field = format!("spec.objects[{position}]");
        let line = lines.find(&suspension.file, suspension.line, &field);
        let message = format!("no manifest declares {} {}", object.kind, object.name);
        let what = format!("{} {}", object.kind, object.name);
        let finding = Finding::warning("SuspensionOfNothing", message)
            .at(&*suspension.file, line)
            .field(field)
            .hint(kept_by(
                &what,
                "its manifest",
                index.near(wanted).map(|near| format!("{near};")),
            ));
        findings.push(finding);
    }
    findings
}

/// A Suspension that names what does not exist holds nothing, and somebody believes that it does.
fn holds_nothing(suspension: &Suspension, declared: &Declared, lines: &mut Lines<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |field: &str, message: String, hint: String| {
        let line = lines.find(&suspension.file, suspension.line, field);
        let finding = Finding::warning("SuspensionOfNothing", message)
            .at(&*suspension.file, line)
            .field(field)
            .hint(hint);
        findings.push(finding);
    };
    // Units that nobody declares are suspended as any other.
    if let Some(unit) = &suspension.unit
        && unit.namespace() != ACCESS_NAMESPACE
        && !declared.units.contains_key(unit)
    {
        let names: Vec<_> = declared.units.keys().map(ToString::to_string).collect();
        let meant = nearest(&unit.to_string(), names.iter().map(String::as_str));
        let hint = kept_by(&unit.to_string(), "its Subscription", meant.map(did_you_mean));
        say("spec.subscription", format!("there is no Subscription {unit}"), hint);
    }
    let Some(clusters) = &suspension.clusters else {
        return findings;
    };
    for (index, name) in clusters.names.iter().enumerate() {
        if !declared.clusters.contains_key(name) {
            let names = declared.clusters.keys().map(|name| name.as_str());
            let meant = nearest(name.as_str(), names).map(did_you_mean);
            let field = format!("spec.clusters[{index}]");
            let what = format!("what cluster {name} has");
            say(
                &field,
                format!("there is no cluster {name}"),
                kept_by(&what, "its file", meant),
            );
        }
    }
    let mut all = declared.clusters.values();
    if let Some(selector) = &clusters.selector
        && !all.any(|cluster| selector.matches(&cluster.labels))
    {
        let hint = "correct it, or remove the Suspension".to_owned();
        say("spec.clusterAffinity", "matches no cluster".to_owned(), hint);
    }
    findings
}
