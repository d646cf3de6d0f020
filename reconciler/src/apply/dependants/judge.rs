//! What facts of a cluster mean for objects that are to go: a plain function.

use std::collections::{BTreeMap, BTreeSet};

use render::ObjectKey;

use crate::limits::{DEPENDANTS_KINDS_MAX, DEPENDANTS_NAMED_MAX};
use crate::wire::{ClaimVolume, Counted, ObjectDependants};

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// The objects that were asked for, are there and are ours, in that order.
    pub(super) asked: Vec<Asked>,
    /// Everything that was seen beside them, by UID.
    pub(super) seen: BTreeMap<String, Seen>,
    /// Releases of ours, `namespace/name`.
    pub(super) releases: BTreeSet<String>,
    /// Claims by UID.
    pub(super) volumes: BTreeMap<String, ClaimVolume>,
}

/// An object that is to go.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// As it was asked for.
    pub(super) key: ObjectKey,
    /// The same where it is: with its namespace, if its kind has any.
    pub(super) place: ObjectKey,
    pub(super) uid: String,
    pub(super) finalizers: Vec<String>,
    /// Of a definition: the objects of its kind.
    pub(super) custom_resources: Option<Counted>,
}

/// An object, as far as its owners are concerned.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) key: ObjectKey,
    /// UIDs of its owners.
    pub(super) owners: Vec<String>,
    /// Whether the fleet manages it.
    pub(super) ours: bool,
    /// The release of Helm that it belongs to, `namespace/name`.
    pub(super) release: Option<String>,
}

/// What goes or stays behind with each. What others that are to go have in common with it is told at each of them.
pub(super) fn judge(facts: &Facts) -> Vec<ObjectDependants> {
    let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (uid, seen) in &facts.seen {
        for owner in &seen.owners {
            children.entry(owner).or_default().push(uid);
        }
    }
    let roots: BTreeSet<&str> = facts.asked.iter().map(|asked| asked.uid.as_str()).collect();
    facts
        .asked
        .iter()
        .map(|asked| of(facts, asked, &children, &roots))
        .collect()
}

fn of(facts: &Facts, asked: &Asked, children: &BTreeMap<&str, Vec<&str>>, roots: &BTreeSet<&str>) -> ObjectDependants {
    let (going, staying) = family(facts, &asked.uid, children, roots);
    let home = &asked.place.namespace;
    let strangers = match (asked.key.group.as_str(), asked.key.kind.as_str()) {
        ("", "Namespace") => strangers(facts, &asked.key.name),
        _ => Vec::new(),
    };
    let claims = going
        .iter()
        .chain(strangers.iter())
        .copied()
        .chain([asked.uid.as_str()]);
    let volumes: BTreeSet<_> = claims.filter_map(|uid| facts.volumes.get(uid)).collect();
    ObjectDependants {
        object: asked.key.to_string(),
        finalizers: asked.finalizers.clone(),
        goes: counted(facts, &going, home),
        stays: counted(facts, &staying, home),
        strangers: counted(facts, &strangers, &asked.key.name),
        custom_resources: asked.custom_resources.clone(),
        volumes: volumes.into_iter().cloned().collect(),
    }
}

/// What names an object as owner, or names what does: those that go with it, and those that have another owner which
/// stays. What is to go anyway is told as that, and not again.
fn family<'a>(
    facts: &'a Facts,
    root: &'a str,
    children: &BTreeMap<&str, Vec<&'a str>>,
    roots: &BTreeSet<&str>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut going: BTreeSet<&str> = BTreeSet::from([root]);
    let mut named: BTreeSet<&str> = BTreeSet::new();
    let mut queue = vec![root];
    // Each is queued once: whoever goes is in `going` from then on.
    while let Some(uid) = queue.pop() {
        for child in children.get(uid).into_iter().flatten().copied() {
            let Some(seen) = facts.seen.get(child).filter(|_| !roots.contains(child)) else {
                continue;
            };
            named.insert(child);
            let is_going = |owner: &String| {
                let owner = owner.as_str();
                // An owner that nobody saw is gone, or of a kind that was not listed: it holds nothing.
                going.contains(owner) || roots.contains(owner) || !facts.seen.contains_key(owner)
            };
            if seen.owners.iter().all(is_going) && going.insert(child) {
                queue.push(child);
            }
        }
    }
    let staying = named.difference(&going).copied().collect();
    going.remove(root);
    (going.into_iter().collect(), staying)
}

/// What is in a namespace and is nobody's of the fleet. What belongs to something there is told with that alone, and
/// what every namespace has is nobody's loss.
fn strangers<'a>(facts: &'a Facts, namespace: &str) -> Vec<&'a str> {
    let services: BTreeSet<&str> = facts
        .seen
        .values()
        .filter(|seen| seen.key.group.is_empty() && seen.key.kind == "Service" && seen.key.namespace == namespace)
        .map(|seen| seen.key.name.as_str())
        .collect();
    let is_stranger = |seen: &Seen| {
        let is_ours = seen.ours
            || seen
                .release
                .as_ref()
                .is_some_and(|release| facts.releases.contains(release));
        let has_owner = seen.owners.iter().any(|owner| facts.seen.contains_key(owner));
        let is_usual = match (seen.key.kind.as_str(), seen.key.name.as_str()) {
            ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt") => true,
            ("Endpoints", name) => services.contains(name),
            _ => false,
        };
        seen.key.namespace == namespace && !is_ours && !has_owner && !is_usual
    };
    let found = facts.seen.iter().filter(|(_, seen)| is_stranger(seen));
    found.map(|(uid, _)| uid.as_str()).collect()
}

/// Objects by kind, the most numerous first.
fn counted(facts: &Facts, uids: &[&str], home: &str) -> Vec<Counted> {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for seen in uids.iter().filter_map(|uid| facts.seen.get(*uid)) {
        let names = kinds.entry(kind(&seen.key)).or_default();
        names.push(name(&seen.key, home));
    }
    let count = |(kind, mut names): (String, Vec<String>)| {
        let count = names.len();
        names.sort_unstable();
        names.truncate(DEPENDANTS_NAMED_MAX);
        Counted { kind, count, names }
    };
    let mut counted: Vec<_> = kinds.into_iter().map(count).collect();
    counted.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.kind.cmp(&b.kind)));
    let rest: usize = counted
        .iter()
        .skip(DEPENDANTS_KINDS_MAX)
        .map(|counted| counted.count)
        .sum();
    counted.truncate(DEPENDANTS_KINDS_MAX);
    if rest > 0 {
        counted.push(Counted {
            kind: "objects of other kinds".to_owned(),
            count: rest,
            names: Vec::new(),
        });
    }
    counted
}

/// `Kind`, or `Kind.group` where the group is none of Kubernetes' own.
fn kind(key: &ObjectKey) -> String {
    let group = key.group.as_str();
    match group.contains('.') && !group.ends_with(".k8s.io") {
        true => format!("{}.{group}", key.kind),
        false => key.kind.clone(),
    }
}

/// With its namespace where that is not the one that is spoken of.
pub(super) fn name(key: &ObjectKey, home: &str) -> String {
    match key.namespace.as_str() {
        "" => key.name.clone(),
        namespace if namespace == home => key.name.clone(),
        namespace => format!("{namespace}/{}", key.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(kind: &str, name: &str, owners: &[&str], ours: bool) -> (String, Seen) {
        let seen = Seen {
            key: ObjectKey::new("v1", kind, "shop", name),
            owners: owners.iter().map(|owner| (*owner).to_owned()).collect(),
            ours,
            release: None,
        };
        (name.to_owned(), seen)
    }

    fn asked(kind: &str, name: &str) -> Asked {
        let namespace = if kind == "Namespace" { "" } else { "shop" };
        let key = ObjectKey::new("v1", kind, namespace, name);
        Asked {
            place: key.clone(),
            key,
            uid: name.to_owned(),
            finalizers: Vec::new(),
            custom_resources: None,
        }
    }

    /// `2 Pod (a, b)` of each.
    fn told(counted: &[Counted]) -> Vec<String> {
        let line = |counted: &Counted| format!("{} {} ({})", counted.count, counted.kind, counted.names.join(", "));
        counted.iter().map(line).collect()
    }

    #[test]
    fn what_is_owned_goes_along_and_what_another_holds_stays() {
        let facts = Facts {
            asked: vec![asked("Deployment", "web"), asked("ConfigMap", "other")],
            seen: BTreeMap::from([
                seen("Deployment", "web", &[], true),
                seen("ConfigMap", "other", &["web"], true),
                seen("ConfigMap", "owner", &[], false),
                seen("ReplicaSet", "set", &["web"], false),
                seen("Pod", "p1", &["set"], false),
                seen("Pod", "p2", &["set"], false),
                seen("Secret", "shared", &["set", "owner"], false),
                seen("Secret", "orphaned", &["set", "gone"], false),
                seen("Pod", "loop", &["loop", "set"], false),
            ]),
            ..Facts::default()
        };
        let judged = judge(&facts);
        assert_eq!(
            told(&judged[0].goes),
            ["2 Pod (p1, p2)", "1 ReplicaSet (set)", "1 Secret (orphaned)"],
            "what is asked for itself is not told again, and whoever owns itself holds itself"
        );
        assert_eq!(told(&judged[0].stays), ["1 Pod (loop)", "1 Secret (shared)"]);
        assert!(judged[1].is_empty(), "{:?}", judged[1]);
    }

    #[test]
    fn a_namespace_takes_strangers_along_but_not_what_every_namespace_has() {
        let mut facts = Facts {
            asked: vec![asked("Namespace", "shop")],
            seen: BTreeMap::from([
                seen("ConfigMap", "ours", &[], true),
                seen("ConfigMap", "kube-root-ca.crt", &[], false),
                seen("ServiceAccount", "default", &[], false),
                seen("Service", "svc", &[], true),
                seen("Deployment", "theirs", &[], false),
                seen("Pod", "theirs-1", &["theirs"], false),
                seen("PersistentVolumeClaim", "data", &[], false),
                seen("Secret", "released", &[], false),
            ]),
            releases: BTreeSet::from(["shop/web".to_owned()]),
            ..Facts::default()
        };
        facts
            .seen
            .insert("ep".to_owned(), seen("Endpoints", "svc", &[], false).1);
        if let Some(seen) = facts.seen.get_mut("released") {
            seen.release = Some("shop/web".to_owned());
        }
        let volume = ClaimVolume {
            claim: "shop/data".to_owned(),
            volume: "pv".to_owned(),
            reclaim_policy: "Delete".to_owned(),
        };
        facts.volumes.insert("data".to_owned(), volume.clone());
        let judged = judge(&facts);
        let expected = ["1 Deployment (theirs)", "1 PersistentVolumeClaim (data)"];
        assert_eq!(told(&judged[0].strangers), expected);
        assert_eq!(judged[0].volumes, [volume]);
    }

    #[test]
    fn many_are_counted_and_the_first_are_named() {
        let mut facts = Facts {
            asked: vec![asked("Namespace", "shop")],
            ..Facts::default()
        };
        for kind in 0..DEPENDANTS_KINDS_MAX + 5 {
            let (kind, name) = (format!("Kind{kind:02}"), format!("x{kind}"));
            facts.seen.extend([seen(&kind, &name, &[], false)]);
        }
        facts
            .seen
            .extend((0..10).map(|at| seen("Pod", &format!("p{at}"), &[], false)));
        let strangers = &judge(&facts)[0].strangers;
        assert_eq!(told(&strangers[..1]), ["10 Pod (p0, p1, p2)"]);
        assert_eq!(strangers.len(), DEPENDANTS_KINDS_MAX + 1);
        assert_eq!(
            told(&strangers[DEPENDANTS_KINDS_MAX..]),
            ["6 objects of other kinds ()"]
        );
    }
}
