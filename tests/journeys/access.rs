//! Who may read what, from a push to the clusters' own RBAC.

use flotilla_tests::{Flotilla, eventually, pool};

use super::support::*;

const ROLES: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [''], resources: [configmaps], verbs: ['*']}]
";

const EVERYWHERE: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
subjects: [{kind: Group, name: sre}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
";

const SOMEWHERE: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: shop
  namespace: shop
  annotations: {fleet.flotilla.dev/clusters: place in (bogota)}
subjects: [{kind: User, name: ada}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
";

/// Waits until a cluster's own RBAC answers whether an impersonated person may do something.
#[track_caller]
fn until_may(fleet: &Fleet, cluster: &str, wish: &[&str], person: &[&str], expected: bool) {
    let question = [&["auth", "can-i"], wish, person].concat();
    eventually(LIMIT, &format!("{question:?} of {cluster} is {expected}"), || {
        let answer = fleet.cluster(cluster).kubectl(&question);
        match answer.stdout.trim() {
            "yes" if expected => Ok(()),
            "no" if !expected => Ok(()),
            _ => Err(format!("{answer:?}")),
        }
    });
}

const SRE: [&str; 2] = ["--as=flotilla:someone", "--as-group=flotilla:sre"];
const ADA: [&str; 1] = ["--as=flotilla:ada"];
const IN_SHOP: [&str; 4] = ["list", "configmaps", "-n", "shop"];
const IN_OFFICE: [&str; 4] = ["list", "configmaps", "-n", "office"];

#[test]
fn what_access_says_is_in_the_clusters_that_it_is_for_under_names_of_our_own_and_leaves_with_its_file() {
    let fleet = Fleet::start_in_use();
    let files = [
        ("access/roles.yaml", ROLES),
        ("access/sre.yaml", EVERYWHERE),
        ("access/shop.yaml", SOMEWHERE),
    ];
    fleet.push("Let people read", &files);
    for cluster in pool::NAMES {
        until_may(&fleet, cluster, &IN_OFFICE, &SRE, true);
        let in_shop = cluster == "bogota";
        until_may(&fleet, cluster, &IN_SHOP, &ADA, in_shop);
        until_may(&fleet, cluster, &IN_OFFICE, &ADA, false);
        // A role of all verbs reads, and nothing else.
        until_may(&fleet, cluster, &["delete", "configmaps", "-n", "office"], &SRE, false);
        // Without the prefix nobody is meant.
        until_may(&fleet, cluster, &IN_OFFICE, &["--as=x", "--as-group=sre"], false);
    }
    let shown = Flotilla::run(&["get", "subscriptions", "--server", &fleet.api()]).expect_ok();
    assert!(shown.contains("flotilla-access"), "{shown}");
    let explained = Flotilla::run(&["explain", "flotilla-access/all", "--server", &fleet.api()]).expect_ok();
    assert!(explained.contains("bogota"), "{explained}");
    assert_verified(&fleet.repository);

    // Another role for a binding cannot be written over the old: it is made anew.
    fleet.push(
        "Let sre see",
        &[("access/sre.yaml", &EVERYWHERE.replace("name: reader}", "name: view}"))],
    );
    for cluster in pool::NAMES {
        until_may(&fleet, cluster, &["list", "pods", "-n", "office"], &SRE, true);
        until_may(&fleet, cluster, &["list", "secrets", "-n", "office"], &SRE, false);
    }

    fleet.repository.remove("access/sre.yaml");
    fleet.repository.remove("access/shop.yaml");
    fleet.repository.commit("Nobody reads");
    fleet.repository.push();
    for cluster in pool::NAMES {
        until_may(&fleet, cluster, &IN_OFFICE, &SRE, false);
        until_may(&fleet, cluster, &IN_SHOP, &ADA, false);
        fleet.until_gone(&[cluster], "default", "clusterrole/flotilla:reader");
        fleet.until_gone(&[cluster], "shop", "rolebinding/flotilla:shop");
    }
    assert_verified(&fleet.repository);
}

#[test]
fn a_binding_for_a_namespace_that_is_not_there_waits_for_it_and_is_told() {
    let fleet = Fleet::start();
    let binding = SOMEWHERE.replace("namespace: shop", "namespace: later");
    fleet.push(
        "Let ada read what comes later",
        &[("access/roles.yaml", ROLES), ("access/later.yaml", &binding)],
    );
    let wish = ["list", "configmaps", "-n", "later"];
    eventually(LIMIT, "it is told that the binding is not there", || {
        let told = Flotilla::run(&["status", "--server", &fleet.api()]).stdout;
        let is_told = told.contains("flotilla-access/") && told.contains("1 of 2 objects are applied");
        if is_told { Ok(()) } else { Err(told) }
    });
    until_may(&fleet, "bogota", &wish, &ADA, false);
    fleet.push(
        "Make it",
        &[
            ("subscriptions/later.yaml", &subscription("sea", "later")),
            ("feeds/later/namespace.yaml", &namespace("later")),
        ],
    );
    until_may(&fleet, "bogota", &wish, &ADA, true);
}
