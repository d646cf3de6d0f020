//! What somebody may ask of the hub itself, and who they are: `kubectl auth can-i` and `auth whoami`.
//!
//! In: a question about oneself and what `access/` says. Out: the answer in Kubernetes' words, by the same decision as
//! requests. What a cluster allows its own API server answers.

mod wire;

use render::access::{
    ACCESS_REVIEWS, Access, Attributes, Decision, OWN_REVIEWS, Person, RULES_REVIEWS, RoleRef, Rule, SELF_REVIEWS,
    Target, Where, may,
};
use serde_json::{Value, json};

use self::wire::{About, OfPath, OfResource};
use super::verdict::is_for_anybody;
use crate::hub::serve::{GROUP, Refused};

/// What reads. At the hub nothing else is given.
const READS: [&str; 3] = ["get", "list", "watch"];

/// What is refused in its own words.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Review {
    /// Whether one thing may be done.
    Access,
    /// What may be done at all.
    Rules,
    /// Who asks.
    Own,
}

impl Review {
    /// Whether a request to the hub is such a question.
    pub(super) fn of(attributes: &Attributes) -> Option<Self> {
        let Target::Resource {
            group,
            version,
            resource,
            ..
        } = &attributes.target
        else {
            return None;
        };
        if attributes.verb != "create" || attributes.class() != render::access::Class::Read || version != "v1" {
            return None;
        }
        match (group.as_str(), resource.as_str()) {
            ACCESS_REVIEWS => Some(Self::Access),
            RULES_REVIEWS => Some(Self::Rules),
            OWN_REVIEWS => Some(Self::Own),
            _ => None,
        }
    }

    /// The answer.
    pub(super) fn answer(self, access: &Access, person: &Person, body: &[u8]) -> Result<Value, Refused> {
        let read = |about| wire::spec(body, about).ok_or_else(unreadable);
        Ok(match self {
            Self::Access => {
                let spec = read(About::Access)?;
                let asked = match (&spec.resource_attributes, &spec.non_resource_attributes) {
                    (Some(resource), None) => of_resource(resource),
                    (None, Some(path)) => of_path(path),
                    (Some(_), Some(_)) | (None, None) => return Err(unreadable()),
                };
                let (allowed, reason) = match may(access, person, Where::Hub, &asked) {
                    _ if is_for_anybody(&asked) => (true, "anybody may".to_owned()),
                    Decision::Allowed { by } => (true, by),
                    Decision::Denied { sentence, .. } => (false, sentence),
                };
                let status = json!({ "allowed": allowed, "reason": reason });
                told("authorization.k8s.io", "SelfSubjectAccessReview", status)
            }
            Self::Rules => {
                let rules = rules(access, person, &read(About::Rules)?.namespace);
                told("authorization.k8s.io", "SelfSubjectRulesReview", rules_status(&rules))
            }
            Self::Own => {
                let status = json!({ "userInfo": { "username": person.user, "groups": person.groups } });
                told("authentication.k8s.io", "SelfSubjectReview", status)
            }
        })
    }
}

fn unreadable() -> Refused {
    Refused::bad_request("the question has to ask either of a resource or of a path, as JSON or Kubernetes' Protobuf")
}

fn told(group: &str, kind: &str, status: Value) -> Value {
    json!({ "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {}, "spec": {}, "status": status })
}

fn of_resource(asked: &OfResource) -> Attributes {
    Attributes {
        verb: verb(&asked.verb),
        target: Target::Resource {
            group: asked.group.clone(),
            version: asked.version.clone(),
            namespace: asked.namespace.clone(),
            resource: asked.resource.clone(),
            subresource: asked.subresource.clone(),
            name: asked.name.clone(),
        },
    }
}

fn of_path(asked: &OfPath) -> Attributes {
    Attributes {
        verb: verb(&asked.verb),
        target: Target::Path(asked.path.clone()),
    }
}

/// A verb that nobody is given, as `*` is, is one that nobody knows.
fn verb(asked: &str) -> &'static str {
    let mut known = READS.into_iter().chain(WRITES);
    known.find(|known| *known == asked).unwrap_or("unknown")
}

/// What a person may read at the hub in a namespace, and across them.
fn rules(access: &Access, person: &Person, namespace: &str) -> Vec<Rule> {
    let mut rules = Vec::new();
    for binding in access.bindings_of(person, Where::Hub) {
        if rules.is_empty() {
            rules.extend(of_anybody_with_a_right());
        }
        if !binding.key.namespace.is_empty() && binding.key.namespace != namespace {
            continue;
        }
        let mut given: Vec<_> = match &binding.role {
            RoleRef::BuiltIn(role) => built_in(*role),
            RoleRef::Own(key) => {
                let own = access.roles.get(key).into_iter().flat_map(|role| &role.rules);
                own.filter_map(as_read).collect()
            }
        };
        if !binding.key.namespace.is_empty() {
            // Of what is in no namespace, paths are, it gives nothing.
            given.iter_mut().for_each(|rule| rule.non_resource_urls.clear());
        }
        rules.extend(given);
    }
    rules
}

/// What of a rule reads.
fn as_read(rule: &Rule) -> Option<Rule> {
    let gives = |verb: &&str| rule.verbs.iter().any(|own| own == "*" || own == verb);
    let verbs: Vec<_> = READS
        .iter()
        .filter(|verb| gives(verb))
        .map(|&verb| verb.to_owned())
        .collect();
    (!verbs.is_empty()).then(|| Rule { verbs, ..rule.clone() })
}

/// As far as there is anything of it at the hub.
fn built_in(role: render::access::BuiltIn) -> Vec<Rule> {
    let of = |group: &str, resource: &str| Rule {
        verbs: READS.map(str::to_owned).to_vec(),
        api_groups: vec![group.to_owned()],
        resources: vec![resource.to_owned()],
        ..Rule::default()
    };
    let mut rules = vec![of(GROUP, "*"), of("", "namespaces")];
    if role == render::access::BuiltIn::ClusterAdmin {
        rules.push(Rule {
            verbs: vec!["get".to_owned()],
            non_resource_urls: vec!["*".to_owned()],
            ..Rule::default()
        });
    }
    rules
}

/// What whoever has a right may ask besides.
fn of_anybody_with_a_right() -> [Rule; 2] {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    [
        Rule {
            verbs: texts(&["create"]),
            api_groups: texts(&[ACCESS_REVIEWS.0, OWN_REVIEWS.0]),
            resources: texts(&SELF_REVIEWS.map(|(_, resource)| resource)),
            ..Rule::default()
        },
        Rule {
            verbs: texts(&["get"]),
            non_resource_urls: texts(&["/version", "/api", "/api/*", "/apis", "/apis/*", "/openapi/*"]),
            ..Rule::default()
        },
    ]
}

/// A rule is of resources or of paths, and one that is of both is told as two.
fn rules_status(rules: &[Rule]) -> Value {
    let resources = rules.iter().filter(|rule| !rule.resources.is_empty()).map(|rule| {
        let mut told = json!({ "verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources });
        if !rule.resource_names.is_empty() {
            told["resourceNames"] = json!(rule.resource_names);
        }
        told
    });
    let paths = rules.iter().filter(|rule| !rule.non_resource_urls.is_empty());
    let paths = paths.map(|rule| json!({ "verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls }));
    json!({
        "resourceRules": resources.collect::<Vec<_>>(),
        "nonResourceRules": paths.collect::<Vec<_>>(),
        "incomplete": false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fleet, oslo_fleet};
    use super::*;

    fn person(user: &str, group: &str) -> Person {
        Person {
            user: user.to_owned(),
            groups: vec![group.to_owned()],
        }
    }

    /// Whether ada may, by the binding of the ops.
    fn can_i(spec: Value) -> (bool, String) {
        let body = json!({ "spec": spec }).to_string();
        let ada = person("ada", "ops");
        let answer = Review::Access.answer(&oslo_fleet().access, &ada, body.as_bytes());
        let status = answer.expect("it is a question")["status"].clone();
        let reason = status["reason"].as_str().expect("a reason").to_owned();
        (status["allowed"] == true, reason)
    }

    fn of(verb: &str, resource: &str) -> Value {
        json!({ "resourceAttributes": { "group": GROUP, "resource": resource, "verb": verb } })
    }

    #[test]
    fn what_the_hub_answers_to_can_i_is_what_it_does() {
        for verb in READS {
            assert_eq!(
                can_i(of(verb, "managedclusters")),
                (true, "ClusterRoleBinding ops".to_owned())
            );
        }
        for verb in ["create", "update", "patch", "delete", "deletecollection", "*", "bind"] {
            let (allowed, reason) = can_i(of(verb, "managedclusters"));
            assert!(!allowed && !reason.is_empty(), "{verb}: {reason}");
        }
        let (allowed, reason) = can_i(of("delete", "managedclusters"));
        let words = "may not delete managedclusters.fleet.flotilla.dev at the hub: changes are commits";
        assert!(!allowed && reason.contains(words), "{reason}");
        assert!(!can_i(of("get", "subscriptions")).0, "nobody gives that");
        let path = |path: &str, verb: &str| can_i(json!({ "nonResourceAttributes": { "path": path, "verb": verb } })).0;
        assert!(path("/version", "get") && path("/hangs", "get") && path("/healthz", "get"));
        assert!(!path("/metrics", "get") && !path("/version", "post"));
    }

    #[test]
    fn what_is_no_question_is_refused() {
        let ask = |body: &[u8]| Review::Access.answer(&oslo_fleet().access, &person("ada", "ops"), body);
        for body in [b"".as_slice(), b"{}", br#"{"spec": {}}"#, b"k8s\0"] {
            assert!(ask(body).is_err(), "{body:?}");
        }
        assert_eq!(Review::of(&attributes("POST", "v1beta1")), None);
        assert_eq!(Review::of(&attributes("GET", "v1")), None);
        assert_eq!(Review::of(&attributes("POST", "v1")), Some(Review::Access));
        for (group, resource) in SELF_REVIEWS {
            let path = format!("/apis/{group}/v1/{resource}");
            let asked = render::access::attributes("POST", &path, None).expect("a clear path");
            assert!(Review::of(&asked).is_some(), "{path} is answered");
        }
    }

    fn attributes(method: &str, version: &str) -> Attributes {
        let path = format!("/apis/authorization.k8s.io/{version}/selfsubjectaccessreviews");
        render::access::attributes(method, &path, None).expect("a clear path")
    }

    #[test]
    fn the_rules_are_those_that_read_of_whoever_asks() {
        let of = |user: &str, group: &str| {
            let body = br#"{"spec": {"namespace": "shop"}}"#;
            let answer = Review::Rules.answer(&oslo_fleet().access, &person(user, group), body);
            answer.expect("it is a question")["status"].clone()
        };
        let status = of("ada", "ops");
        let resources = status["resourceRules"].as_array().expect("a list");
        let told: Vec<_> = resources
            .iter()
            .map(|rule| (&rule["verbs"], &rule["resources"]))
            .collect();
        assert!(told.contains(&(&json!(READS), &json!(["managedclusters"]))), "{told:?}");
        assert!(
            told.iter()
                .all(|(_, resources)| !resources.to_string().contains("exec")),
            "what reaches into containers is no read: {told:?}"
        );
        let paths = status["nonResourceRules"].as_array().expect("a list");
        assert!(paths.iter().any(|rule| rule["nonResourceURLs"] == json!(["/hangs"])));
        let nobodys = of("bob", "others");
        assert_eq!(
            (&nobodys["resourceRules"], &nobodys["nonResourceRules"]),
            (&json!([]), &json!([]))
        );
    }

    #[test]
    fn a_right_in_a_namespace_is_told_without_the_paths_of_its_role() {
        const ACCESS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: both}
rules:
- {apiGroups: [fleet.flotilla.dev], resources: [subscriptions], verbs: [get]}
- {nonResourceURLs: [/hangs], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: both, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: both}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: admin, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada}]
";
        let (fleet, ada) = (fleet(&[("access/all.yaml", ACCESS)]), person("ada", "ops"));
        let body = br#"{"spec": {"namespace": "shop"}}"#;
        let answer = Review::Rules.answer(&fleet.access, &ada, body);
        let status = answer.expect("it is a question")["status"].clone();
        let resources = status["resourceRules"].as_array().expect("a list");
        assert!(
            resources
                .iter()
                .any(|rule| rule["resources"] == json!(["subscriptions"])),
            "{resources:?}"
        );
        let paths = status["nonResourceRules"].as_array().expect("a list");
        let paths = paths
            .iter()
            .flat_map(|rule| rule["nonResourceURLs"].as_array().expect("a list"));
        for path in paths {
            let path = path.as_str().expect("a path").replace('*', "v1");
            let asked = of_path(&OfPath {
                path: path.clone(),
                verb: "get".to_owned(),
            });
            assert!(
                may(&fleet.access, &ada, Where::Hub, &asked).is_allowed(),
                "{path} is refused"
            );
        }
    }

    #[test]
    fn whoever_asks_hears_who_they_are() {
        let answer = Review::Own.answer(&oslo_fleet().access, &person("ada", "ops"), b"");
        let user = &answer.expect("it is a question")["status"]["userInfo"];
        assert_eq!(*user, json!({ "username": "ada", "groups": ["ops"] }));
    }
}
