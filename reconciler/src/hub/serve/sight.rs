//! What a person who asks about dependants is shown: of objects that they may read, and names that they may list.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::access::{Attributes, Person, RBAC_GROUP, Target, Where, may};
use render::intake::guessed_plural;
use render::{ClusterName, Fleet, ObjectKey};

use crate::wire::{Counted, Dependants, DependantsQuestion, ObjectDependants};
use crate::words::counted;

/// What one person sees of a cluster, by what `access/` says now.
pub(super) struct Sight {
    pub(super) person: Arc<Person>,
    pub(super) fleet: Option<Arc<Fleet>>,
    pub(super) cluster: ClusterName,
}

/// Kinds whose names ask for a right of their own, since `view` has none to them.
const RIGHTS: [&str; 4] = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

impl Sight {
    /// The question about what they may read, and a note where that is not all.
    pub(super) fn question(&self, question: DependantsQuestion) -> (DependantsQuestion, Option<String>) {
        let asked = question.objects.len();
        let objects: Vec<_> = question.objects.into_iter().filter(|key| self.reads(key)).collect();
        let left_out = asked - objects.len();
        let left = counted(left_out, "object");
        let note = format!("{left} that access/ does not let you read there: not looked at");
        (DependantsQuestion { objects }, (left_out > 0).then_some(note))
    }

    /// The answer with the names that they may know. Kinds and counts stay.
    pub(super) fn answer(&self, mut found: Dependants) -> Dependants {
        let mut left_out = false;
        for object in &mut found.objects {
            left_out |= self.narrow(object);
        }
        if left_out {
            let note = "names that access/ does not let you list there were left out";
            found.notes.push(note.to_owned());
        }
        found
    }

    fn narrow(&self, object: &mut ObjectDependants) -> bool {
        let key = object.object.parse::<ObjectKey>().ok();
        let home = key.as_ref().map(namespace_of).unwrap_or_default();
        let mut left_out = false;
        let lists = [&mut object.goes, &mut object.stays, &mut object.strangers];
        for counted in lists.into_iter().flatten().chain(&mut object.custom_resources) {
            let before = counted.names.len();
            let names = std::mem::take(&mut counted.names);
            let shown = names.into_iter().filter(|name| self.lists(counted, name, home));
            counted.names = shown.collect();
            left_out |= counted.names.len() < before;
        }
        let before = object.volumes.len();
        object.volumes.retain(|volume| {
            let (namespace, name) = volume.claim.split_once('/').unwrap_or((home, &volume.claim));
            self.may("get", ("", "persistentvolumeclaims"), (namespace, name))
        });
        left_out | (object.volumes.len() < before)
    }

    fn reads(&self, key: &ObjectKey) -> bool {
        let resource = guessed_plural(&key.kind);
        self.may("get", (&key.group, &resource), (namespace_of(key), &key.name))
    }

    /// Whether they may list whatever there is where that object is. An answer names Kubernetes' own kinds without their
    /// groups, so that a right to one kind alone names nothing.
    fn lists(&self, counted: &Counted, name: &str, home: &str) -> bool {
        let namespace = name.split_once('/').map_or(home, |(namespace, _)| namespace);
        let of_its_own = match counted.kind.as_str() {
            "Secret" => Some(("", "secrets")),
            kind if RIGHTS.contains(&kind) => Some((RBAC_GROUP, "*")),
            _ => None,
        };
        let lists = |of| self.may("list", of, (namespace, ""));
        lists(("*", "*")) && of_its_own.is_none_or(lists)
    }

    fn may(&self, verb: &'static str, (group, resource): (&str, &str), (namespace, name): (&str, &str)) -> bool {
        let Some(fleet) = &self.fleet else { return false };
        let (none, declared) = (BTreeMap::new(), fleet.clusters.get(&self.cluster));
        let place = Where::Cluster {
            name: self.cluster.as_str(),
            labels: declared.map_or(&none, |declared| &declared.labels),
        };
        let target = Target::Resource {
            group: group.to_owned(),
            version: String::new(),
            namespace: namespace.to_owned(),
            resource: resource.to_owned(),
            subresource: String::new(),
            name: name.to_owned(),
        };
        may(&fleet.access, &self.person, place, &Attributes { verb, target }).is_allowed()
    }
}

/// An API server has a Namespace in itself.
fn namespace_of(key: &ObjectKey) -> &str {
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "Namespace") => &key.name,
        _ => &key.namespace,
    }
}

#[cfg(test)]
mod tests {
    use render::load::load;
    use render::{Previous, SourceTree};

    use super::*;
    use crate::wire::ClaimVolume;

    const ACCESS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: web}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get, list]}
- {apiGroups: [gateway.networking.k8s.io], resources: [gateways], verbs: [get]}
- {apiGroups: [''], resources: [endpoints], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: web}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: all, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
";
    const OSLO: &str = "{apiVersion: fleet.flotilla.dev/v1alpha1, kind: ManagedCluster, metadata: {name: oslo}}";

    fn sight(user: &str) -> Sight {
        let revision = "1".repeat(40).parse().expect("forty hex digits");
        let files = [("clusters/oslo.yaml", OSLO), ("access/all.yaml", ACCESS)];
        let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        let (fleet, _) = load(&SourceTree::from_files(revision, files), &Previous::default());
        let person = Person {
            user: user.to_owned(),
            groups: Vec::new(),
        };
        Sight {
            person: Arc::new(person),
            fleet: Some(Arc::new(fleet)),
            cluster: ClusterName::parse("oslo").expect("a valid cluster"),
        }
    }

    fn key(text: &str) -> ObjectKey {
        text.parse().expect("a key")
    }

    #[test]
    fn nobody_asks_what_goes_with_an_object_that_they_may_not_read() {
        let objects = [
            "apps/Deployment/shop/web",
            "apps/Deployment/till/web",
            "/Secret/shop/tls",
        ]
        .map(key);
        let asked = |user: &str| {
            let question = DependantsQuestion {
                objects: objects.to_vec(),
            };
            let (question, note) = sight(user).question(question);
            (question.objects, note.is_some())
        };
        assert_eq!(asked("ada"), (objects[..1].to_vec(), true));
        assert_eq!(asked("bob"), (objects[..1].to_vec(), true));
        assert_eq!(asked("eve"), (objects.to_vec(), false));
        assert_eq!(asked("nobody"), (Vec::new(), true));
        let blind = Sight {
            fleet: None,
            ..sight("eve")
        };
        let question = DependantsQuestion {
            objects: objects.to_vec(),
        };
        assert!(blind.question(question).0.objects.is_empty(), "no rights are known yet");
    }

    #[test]
    fn a_right_to_a_kind_with_an_odd_plural_counts() {
        let objects = ["gateway.networking.k8s.io/Gateway/shop/web", "/Endpoints/shop/web"].map(key);
        let question = DependantsQuestion {
            objects: objects.to_vec(),
        };
        assert_eq!(
            sight("ada").question(question),
            (
                DependantsQuestion {
                    objects: objects.to_vec()
                },
                None
            )
        );
    }

    #[test]
    fn what_goes_along_is_named_to_whoever_may_list_it_and_counted_for_the_others() {
        let some = |kind: &str, names: &[&str]| Counted {
            kind: kind.to_owned(),
            count: 2,
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        let web = ObjectDependants {
            object: "apps/Deployment/shop/web".to_owned(),
            goes: vec![some("Pod", &["p1", "till/p2"]), some("Secret", &["tls"])],
            strangers: vec![some("Role", &["reader"])],
            volumes: vec![ClaimVolume {
                claim: "shop/data".to_owned(),
                ..ClaimVolume::default()
            }],
            ..ObjectDependants::default()
        };
        let shown = |user: &str| {
            let found = Dependants {
                objects: vec![web.clone()],
                notes: Vec::new(),
            };
            let mut found = sight(user).answer(found);
            let object = found.objects.remove(0);
            let lists = object.goes.iter().chain(&object.strangers);
            assert!(lists.clone().all(|counted| counted.count == 2), "{object:?}");
            let names: Vec<_> = lists.flat_map(|counted| counted.names.clone()).collect();
            (names.join(" "), object.volumes.len(), found.notes.len())
        };
        assert_eq!(
            shown("ada"),
            (String::new(), 0, 1),
            "a right to one kind names no other"
        );
        assert_eq!(shown("bob"), ("p1".to_owned(), 1, 1));
        assert_eq!(shown("eve"), ("p1 till/p2 tls reader".to_owned(), 1, 0));
    }
}
