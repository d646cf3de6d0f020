use super::super::tests::fleet;
use super::*;

const FILES: [(&str, &str); 4] = [
    (
        "clusters/oslo.yaml",
        "{apiVersion: fleet.flotilla.dev/v1alpha1, kind: ManagedCluster, metadata: {name: oslo}, spec: {clusterId: 6a1f}}",
    ),
    (
        "clusters/paris.yaml",
        "{apiVersion: fleet.flotilla.dev/v1alpha1, kind: ManagedCluster, metadata: {name: paris, labels: {env: pull}},
          spec: {clusterId: 7b2e, syncMode: Pull}}",
    ),
    (
        "access/roles.yaml",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: pods}, rules: [
          {apiGroups: ['*'], resources: [pods, managedclusters], verbs: [get, list, watch]},
          {apiGroups: [''], resources: [pods/exec], verbs: [create]},
          {nonResourceURLs: ['/dial/10.0.0.1:80'], verbs: [get]}]}",
    ),
    (
        "access/people.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pods}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: ops}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: shop, namespace: shop, annotations: {fleet.flotilla.dev/clusters: '!env'}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pods}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: sue}]
",
    ),
];

fn judged(who: &str, request: &str, interactive: bool) -> Verdict {
    let (method, path) = request.split_once(' ').expect("a method and a path");
    let route = route::route(path).expect("a whole path");
    let inner = match &route {
        Route::Hub => path.to_owned(),
        Route::Cluster(to) => to.judged_path(),
    };
    let attributes = access::attributes(method, &inner, None).expect("a clear path");
    let groups = if who == "ada" {
        vec!["ops".to_owned()]
    } else {
        Vec::new()
    };
    let person = Person {
        user: who.to_owned(),
        groups,
    };
    verdict(Some(&fleet(&FILES)), &person, &Asked { route, attributes }, interactive)
}

/// The verdict in one line; a refusal by its code.
fn shown(verdict: Verdict) -> String {
    match verdict {
        Verdict::Here { by } => format!("here by {by}"),
        Verdict::Carry { to, cluster, aim, by } => {
            let aim = match aim {
                Aim::Read => "read".to_owned(),
                Aim::Interactive => "reach into".to_owned(),
                Aim::Dial(address) => format!("dial {} from", address.target()),
            };
            format!("{aim} {cluster} {} by {by}", to.path)
        }
        Verdict::Write { cluster } => format!("write {cluster}"),
        Verdict::Refuse(refused) => refused.status()["code"].to_string(),
    }
}

#[track_caller]
fn check(who: &str, table: &[(&str, &str)]) {
    for (request, expected) in table {
        assert_eq!(shown(judged(who, request, true)), *expected, "{who}: {request}");
    }
}

const SOCKETS: &str = "/apis/proxies.clusternet.io/v1alpha1/sockets";

#[test]
fn what_is_allowed_is_answered_here_or_by_the_cluster_that_the_path_means() {
    let by = "by ClusterRoleBinding ops";
    check(
        "ada",
        &[
            (
                "GET /clusters/oslo/api/v1/pods",
                &format!("read oslo /api/v1/pods {by}"),
            ),
            (
                &format!("GET {SOCKETS}/6a1f/proxy/direct/api/v1/pods"),
                &format!("read oslo /api/v1/pods {by}"),
            ),
            (
                &format!("GET {SOCKETS}/6a1f/proxy/https/kubernetes.default/api/v1/pods"),
                &format!("read oslo /api/v1/pods {by}"),
            ),
            (
                &format!("GET {SOCKETS}/oslo/proxy/http/10.0.0.1/metrics"),
                &format!("dial 10.0.0.1:80 from oslo /metrics {by}"),
            ),
            (&format!("GET {SOCKETS}/oslo/proxy/http/10.0.0.2/metrics"), "403"),
            (
                "GET /clusters/oslo/api/v1/namespaces/a/pods/p/exec",
                &format!("reach into oslo /api/v1/namespaces/a/pods/p/exec {by}"),
            ),
            ("GET /clusters/oslo/api/v1/secrets", "403"),
            ("GET /clusters/paris/api/v1/pods", "403"),
            ("DELETE /clusters/oslo/api/v1/namespaces/a/secrets/s", "write oslo"),
            ("POST /clusters/paris/api/v1/namespaces/a/pods", "write paris"),
            (
                "GET /apis/fleet.flotilla.dev/v1alpha1/managedclusters",
                &format!("here {by}"),
            ),
            (
                "DELETE /apis/fleet.flotilla.dev/v1alpha1/managedclusters/oslo",
                &format!("here {by}"),
            ),
            ("DELETE /apis/fleet.flotilla.dev/v1alpha1/subscriptions/a", "405"),
            ("POST /apis/fleet.flotilla.dev/v1alpha1/managedclusters", "405"),
            ("POST /reconcile", "405"),
            ("GET /apis/fleet.flotilla.dev/v1alpha1/subscriptions", "403"),
            (
                "GET /apis/fleet.flotilla.dev/v1alpha1/managedclusters/oslo/proxy",
                "403",
            ),
        ],
    );
    let exec = "GET /clusters/oslo/api/v1/namespaces/a/pods/p/exec";
    assert_eq!(shown(judged("ada", exec, false)), "403", "it is off at this hub");
    let person = Person {
        user: "ada".to_owned(),
        groups: Vec::new(),
    };
    for path in ["/apis", "/clusters/oslo/api"] {
        let asked = Asked {
            route: route::route(path).expect("a whole path"),
            attributes: access::attributes("GET", path, None).expect("a clear path"),
        };
        assert_eq!(
            shown(verdict(None, &person, &asked, true)),
            "403",
            "no revision yet: {path}"
        );
    }
}

/// Each pair differs in what is asked for alone: one is there, and the other is not.
#[test]
fn who_has_no_right_learns_neither_of_clusters_nor_of_what_is_declared() {
    let own = "fleet.flotilla.dev/v1alpha1";
    for (there, not_there) in [
        ("oslo", "rome"),
        // An id does not tell its cluster's name.
        ("6a1f", "0000"),
    ] {
        for request in [
            format!("GET {SOCKETS}/NAME/proxy/direct/api"),
            format!("DELETE {SOCKETS}/NAME/proxy/direct/api/v1/namespaces/a/pods/p"),
            format!("GET {SOCKETS}/NAME/proxy/http/10.0.0.1/"),
            "GET /clusters/NAME/api/v1/pods".to_owned(),
            "GET /clusters/NAME/api/v1/namespaces/a/pods/p/exec".to_owned(),
            "POST /clusters/NAME/api/v1/namespaces/a/pods".to_owned(),
            format!("DELETE /apis/{own}/managedclusters/NAME"),
            format!("PATCH /apis/{own}/managedclusters/NAME"),
            format!("PUT /apis/{own}/namespaces/NAME/subscriptions/a"),
            format!("GET /apis/{own}/managedclusters/NAME"),
            format!("GET /apis/{own}/managedclusters/NAME/proxy"),
        ] {
            // Nobody at all, and who has rights in one namespace of one cluster and none at the hub.
            for (who, there) in [("bob", there), ("sue", if there == "oslo" { "paris" } else { "7b2e" })] {
                let [first, second] = [there, not_there].map(|name| {
                    let verdict = judged(who, &request.replace("NAME", name), true);
                    let Verdict::Refuse(refused) = verdict else {
                        panic!("{who}, {request}: {verdict:?}")
                    };
                    refused.status().to_string().replace(name, "NAME")
                });
                assert_eq!(first, second, "{who}: {request}");
            }
        }
    }
}

#[test]
fn a_writer_is_told_of_what_they_may_read_alone() {
    let fleet = fleet(&FILES);
    let oslo = ClusterName::parse("oslo").expect("a valid cluster");
    let read = |who: &str, path: &str| {
        let person = Person {
            user: who.to_owned(),
            groups: Vec::new(),
        };
        let attributes = access::attributes("DELETE", path, None).expect("a clear path");
        as_read(&attributes).is_some_and(|read| may_read(&fleet, &person, &oslo, &read))
    };
    assert!(read("sue", "/api/v1/namespaces/shop/pods/web"));
    assert!(
        read("sue", "/api/v1/namespaces/shop/pods/web/status"),
        "the object is meant"
    );
    assert!(!read("sue", "/api/v1/namespaces/payments/pods/web"));
    assert!(!read("sue", "/api/v1/namespaces/shop/secrets/key"));
    assert!(!read("bob", "/api/v1/namespaces/shop/pods/web"));
    assert!(!read("sue", "/api/v1/namespaces/shop/pods"), "it names nothing");
}
