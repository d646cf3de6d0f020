use super::*;
use crate::access::attributes;
use crate::load;
use crate::name::Revision;
use crate::tree::{Previous, SourceTree};

mod properties;

/// Access as files below `access/` say it.
fn access(text: &str) -> Access {
    let revision = Revision::parse("0".repeat(40)).unwrap();
    let tree = SourceTree::from_files(revision, [("access/a.yaml", text.as_bytes())]);
    let (fleet, findings) = load::load(&tree, &Previous::default());
    let errors: Vec<_> = findings.iter().filter(|finding| finding.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    Access::clone(&fleet.access)
}

fn role(name: &str, rules: &str) -> String {
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\nrules: {rules}\n"
    )
}

/// A binding of `group` to a ClusterRole, in a namespace where one is given.
fn binding(name: &str, namespace: &str, clusters: &str, role: &str, group: &str) -> String {
    let (kind, namespace) = match namespace {
        "" => ("ClusterRoleBinding", String::new()),
        namespace => ("RoleBinding", format!(", namespace: {namespace}")),
    };
    let annotations = match clusters {
        "" => String::new(),
        clusters => format!(", annotations: {{fleet.flotilla.dev/clusters: '{clusters}'}}"),
    };
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: {name}{namespace}{annotations}}}\n\
         subjects: [{{kind: Group, name: {group}}}]\nroleRef: {{kind: ClusterRole, name: {role}}}\n"
    )
}

fn person(groups: &[&str]) -> Person {
    Person {
        user: "ada".to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
    }
}

fn labels(environment: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("env".to_owned(), environment.to_owned())])
}

/// `GET /path` as a request.
fn request(text: &str) -> Attributes {
    let (method, path) = text.split_once(' ').unwrap();
    let (path, query) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query)));
    attributes(method, path, query).unwrap()
}

/// What each request comes to on a cluster with `env: staging`: the binding, `-` where it is denied, `?` where not even
/// the cluster is known.
#[track_caller]
fn check(access: &Access, groups: &[&str], table: &[(&str, &str)]) {
    let labels = labels("staging");
    let place = Where::Cluster {
        name: "paris",
        labels: &labels,
    };
    for (text, expected) in table {
        let request = request(text);
        let decision = match request.class() {
            Class::Interactive => may_interact(access, &person(groups), place, &request),
            Class::Read | Class::Write => may(access, &person(groups), place, &request),
        };
        let found = match decision {
            Decision::Allowed { by } => by,
            Decision::Denied { is_known: true, .. } => "-".to_owned(),
            Decision::Denied { is_known: false, .. } => "?".to_owned(),
        };
        assert_eq!(found, *expected, "{text} of {groups:?}");
    }
}

#[test]
fn rules_are_read_as_rbac_reads_them() {
    let rules = "
- {apiGroups: [''], resources: [pods, pods/log], verbs: [get, list]}
- {apiGroups: [apps], resources: ['*'], verbs: ['*']}
- {apiGroups: ['*'], resources: ['*/status'], verbs: [get]}
- {apiGroups: [''], resources: [configmaps], resourceNames: [page], verbs: [get, list]}
- {nonResourceURLs: [/healthz, '/metrics/*'], verbs: [get]}";
    let access = access(&(role("r", rules) + &binding("b", "", "", "r", "g")));
    let by = "ClusterRoleBinding b";
    check(
        &access,
        &["g"],
        &[
            ("GET /api/v1/namespaces/a/pods/p", by),
            ("GET /api/v1/pods", by),
            ("GET /api/v1/pods?watch=true", "-"),
            ("GET /api/v1/namespaces/a/pods/p/log?follow=true", by),
            ("GET /api/v1/namespaces/a/pods/p/ephemeralcontainers", "-"),
            ("GET /api/v1/namespaces/a/pods/p/status", by),
            ("GET /apis/x.io/v1/things/t/status", by),
            ("GET /apis/x.io/v1/pods", "-"),
            ("GET /apis/apps/v1/namespaces/a/deployments/d/scale", by),
            ("GET /apis/apps/v1/deployments?watch=1", by),
            ("GET /api/v1/namespaces/a/configmaps/page", by),
            ("GET /api/v1/namespaces/a/configmaps/other", "-"),
            ("GET /api/v1/namespaces/a/configmaps", "-"),
            ("GET /healthz", by),
            ("GET /healthz/etcd", "-"),
            ("GET /metrics/cadvisor", by),
            ("GET /metrics", "-"),
        ],
    );
}

#[test]
fn whoever_has_any_right_on_a_cluster_may_ask_what_it_has_and_what_they_may() {
    let access =
        access(&(role("r", "[{apiGroups: [''], resources: [pods], verbs: [get]}]") + &binding("b", "a", "", "r", "g")));
    let reviews = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked = [
        "GET /version",
        "GET /api",
        "GET /api/v1",
        "GET /apis",
        "GET /apis/apps",
        "GET /apis/apps/v1",
        "GET /openapi/v3/apis/apps/v1",
        reviews,
    ];
    check(&access, &["g"], &asked.map(|text| (text, "RoleBinding a/b")));
    check(&access, &["other"], &asked.map(|text| (text, "?")));
    // What looks like it and is not.
    check(
        &access,
        &["g"],
        &[
            ("GET /", "-"),
            ("GET /logs", "-"),
            ("POST /version", "-"),
            ("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", "-"),
        ],
    );
}

#[test]
fn a_role_binding_gives_what_is_in_its_namespace() {
    let rules = "[{apiGroups: [''], resources: ['*'], verbs: [get, list]}]";
    let access = access(&(role("r", rules) + &binding("b", "a", "", "r", "g")));
    check(
        &access,
        &["g"],
        &[
            ("GET /api/v1/namespaces/a/pods", "RoleBinding a/b"),
            ("GET /api/v1/namespaces/a", "RoleBinding a/b"),
            ("GET /api/v1/namespaces/b/pods", "-"),
            ("GET /api/v1/pods", "-"),
            ("GET /api/v1/namespaces", "-"),
            ("GET /api/v1/nodes/n", "-"),
        ],
    );
}

#[test]
fn a_binding_with_an_annotation_counts_on_the_clusters_that_it_selects() {
    let text = binding("here", "", "env in (dev,staging)", "view", "g")
        + &binding("there", "", "env=production", "admin", "g");
    let access = access(&text);
    let secrets = "GET /api/v1/namespaces/a/secrets/s";
    check(
        &access,
        &["g"],
        &[("GET /api/v1/pods", "ClusterRoleBinding here"), (secrets, "-")],
    );
    let production = labels("production");
    let there = Where::Cluster {
        name: "rome",
        labels: &production,
    };
    assert!(may(&access, &person(&["g"]), there, &request(secrets)).is_allowed());
    let dark = labels("dark");
    let nowhere = Where::Cluster {
        name: "oslo",
        labels: &dark,
    };
    assert!(!may(&access, &person(&["g"]), nowhere, &request("GET /version")).is_allowed());
    // The hub's own kinds are no cluster's.
    let at_hub = may(
        &access,
        &person(&["g"]),
        Where::Hub,
        &request("GET /apis/x.io/v1/things"),
    );
    assert!(!at_hub.is_allowed(), "{at_hub:?}");
}

#[test]
fn a_binding_without_annotation_counts_at_the_hub_too() {
    let access = access(&binding("all", "", "", "view", "g"));
    let things = request("GET /apis/apps.clusternet.io/v1alpha1/subscriptions");
    assert!(may(&access, &person(&["g"]), Where::Hub, &things).is_allowed());
    assert!(!may(&access, &person(&[]), Where::Hub, &things).is_allowed());
}

#[test]
fn built_in_roles_read_what_kubernetes_own_read() {
    let table = |role: &str, expected: [bool; 5]| {
        let access = access(&binding("b", "", "", role, "g"));
        let asked = [
            "GET /api/v1/namespaces/a/pods/p/log",
            "GET /api/v1/namespaces/a/secrets/s",
            "GET /apis/rbac.authorization.k8s.io/v1/clusterroles",
            "GET /metrics",
            "POST /api/v1/namespaces/a/pods/p/exec",
        ];
        for (text, expected) in asked.into_iter().zip(expected) {
            let outcome = if expected { "ClusterRoleBinding b" } else { "-" };
            check(&access, &["g"], &[(text, outcome)]);
        }
    };
    table("view", [true, false, false, false, false]);
    table("edit", [true, true, false, false, true]);
    table("admin", [true, true, true, false, true]);
    table("cluster-admin", [true, true, true, true, true]);
}

#[test]
fn no_right_allows_a_write() {
    let everything = "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}, {nonResourceURLs: ['*'], verbs: ['*']}]";
    for text in [
        role("all", everything) + &binding("b", "", "", "all", "g"),
        binding("b", "", "", "cluster-admin", "g"),
    ] {
        let access = access(&text);
        check(
            &access,
            &["g"],
            &[
                ("GET /api/v1/secrets", "ClusterRoleBinding b"),
                ("POST /api/v1/namespaces/a/pods", "-"),
                ("PUT /api/v1/namespaces/a/pods/p", "-"),
                ("PATCH /api/v1/namespaces/a/pods/p", "-"),
                ("DELETE /api/v1/namespaces/a/pods", "-"),
                ("POST /api/v1/namespaces/a/serviceaccounts/s/token", "-"),
                ("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", "-"),
                ("OPTIONS /api/v1/pods", "-"),
            ],
        );
    }
}

#[test]
fn what_reads_everything_runs_no_command() {
    let reading = role("r", "[{apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}]")
        + &binding("b", "", "", "r", "g");
    let running =
        role("r", "[{apiGroups: [''], resources: [pods/exec], verbs: [create]}]") + &binding("b", "", "", "r", "g");
    let exec = [
        "GET /api/v1/namespaces/a/pods/p/exec",
        "POST /api/v1/namespaces/a/pods/p/exec",
    ];
    check(&access(&reading), &["g"], &exec.map(|text| (text, "-")));
    check(
        &access(&running),
        &["g"],
        &exec.map(|text| (text, "ClusterRoleBinding b")),
    );
    // Behind a proxy anything listens: behind a node's, what runs commands as exec does.
    let proxies = [
        "GET /api/v1/nodes/n/proxy/exec/a/p/c?command=id",
        "GET /api/v1/namespaces/a/services/s/proxy/",
        "GET /api/v1/namespaces/a/pods/p/proxy/",
        "POST /api/v1/nodes/n/proxy/run/a/p/c",
    ];
    check(&access(&reading), &["g"], &proxies.map(|text| (text, "-")));
    let request = request(exec[0]);
    let labels = labels("staging");
    let place = Where::Cluster {
        name: "paris",
        labels: &labels,
    };
    let read = may(&access(&running), &person(&["g"]), place, &request);
    assert!(!read.is_allowed(), "it is never part of the path that reads");
}

#[test]
fn a_kubelet_is_reached_by_cluster_admins_alone() {
    let everything = role("r", "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]");
    let named = role(
        "r",
        "[{apiGroups: [''], resources: [nodes/proxy, services/proxy], verbs: [get, create]}]",
    );
    let kubelet = "GET /api/v1/nodes/n/proxy/exec/a/p/c?command=id";
    let service = "GET /api/v1/namespaces/a/services/s/proxy/";
    for text in [everything, named] {
        let access = access(&(text + &binding("b", "", "", "r", "g")));
        check(&access, &["g"], &[(kubelet, "-"), (service, "ClusterRoleBinding b")]);
    }
    for (role, outcome) in [("admin", "-"), ("edit", "-"), ("cluster-admin", "ClusterRoleBinding b")] {
        let access = access(&binding("b", "", "", role, "g"));
        check(
            &access,
            &["g"],
            &[(kubelet, outcome), (service, "ClusterRoleBinding b")],
        );
    }
}

#[test]
fn nobody_is_called_as_kubernetes_calls_its_own() {
    let access = access(&binding("b", "", "", "view", "g"));
    let labels = labels("staging");
    let place = Where::Cluster {
        name: "paris",
        labels: &labels,
    };
    for person in [
        person(&["g", "system:masters"]),
        person(&["g", "flotilla:g"]),
        Person {
            user: "system:admin".to_owned(),
            groups: vec!["g".to_owned()],
        },
    ] {
        let decision = may(&access, &person, place, &request("GET /api/v1/pods"));
        assert!(!decision.is_allowed(), "{person}");
    }
}

#[test]
fn a_refusal_says_what_would_be_needed_and_nothing_of_clusters_that_one_may_not_ask() {
    let access = access(&binding("b", "shop", "env=staging", "view", "g"));
    let sentence = |groups: &[&str], environment: &str, text: &str| {
        let labels = labels(environment);
        let place = Where::Cluster {
            name: "paris",
            labels: &labels,
        };
        match may(&access, &person(groups), place, &request(text)) {
            Decision::Denied { sentence, .. } => sentence,
            Decision::Allowed { by } => by,
        }
    };
    assert_eq!(
        sentence(&["g"], "staging", "GET /apis/apps/v1/namespaces/a/deployments/d/status"),
        "\"ada\" (groups g) may not get deployments.apps/status \"d\" in namespace a on cluster paris: no binding below \
         access/ in the fleet repository gives them that"
    );
    assert_eq!(
        sentence(&["g"], "staging", "DELETE /api/v1/namespaces/shop/pods/p"),
        "\"ada\" (groups g) may not delete pods \"p\" in namespace shop on cluster paris: changes are commits in the fleet \
         repository"
    );
    let stranger = unknown(&person(&["x"]), "paris");
    assert_eq!(
        stranger,
        "\"ada\" (groups x) may ask no cluster \"paris\": no binding below access/ in the fleet repository names them for it"
    );
    for text in [
        "GET /version",
        "GET /api/v1/pods",
        "DELETE /api/v1/namespaces/shop/pods/p",
    ] {
        assert_eq!(sentence(&["x"], "staging", text), stranger);
        assert_eq!(sentence(&["g"], "production", text), unknown(&person(&["g"]), "paris"));
    }
}
