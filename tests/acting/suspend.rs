//! `suspend` and `resume`: which file they write, and whose files they leave alone.

use super::Work;

#[test]
fn what_is_suspended_and_resumed_is_as_before() {
    let work = Work::new();
    let until = ["--until", "2026-12-01T10:00:00+01:00"];
    for target in [
        &["shop/web"][..],
        &["--cluster", "oslo"],
        &["shop/web", "--cluster", "oslo"],
    ] {
        let tree = work.git(&["rev-parse", "HEAD^{tree}"]);
        work.run(&[&["suspend"], target, &until].concat()).expect_ok();
        assert_ne!(work.git(&["rev-parse", "HEAD^{tree}"]), tree);
        let plan = work.run(&["plan", "-o", "json"]);
        assert!(
            plan.stdout.contains("\"findings\": []"),
            "the hub will read it: {plan:?}"
        );
        work.run(&[&["resume"], target].concat()).expect_ok();
        assert_eq!(work.git(&["rev-parse", "HEAD^{tree}"]), tree, "nothing is left of it");
    }
    assert_eq!(
        work.git(&["log", "--format=%s", "-2"]),
        "Resume shop/web on oslo\nSuspend shop/web on oslo"
    );
}

#[test]
fn the_file_says_what_is_held_why_and_until_when() {
    let work = Work::new();
    work.run(&[
        "suspend",
        "shop/web",
        "--reason",
        "fair",
        "--until",
        "2026-12-01T10:00:00+01:00",
    ])
    .expect_ok();
    let expected = "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Suspension
metadata:
  name: unit.shop.web
spec:
  reason: fair
  subscription:
    name: web
    namespace: shop
  until: \"2026-12-01T09:00:00Z\"
";
    assert_eq!(
        work.git(&["show", "HEAD:policies/suspend-shop-web.yaml"]) + "\n",
        expected
    );
}

#[test]
fn suspending_again_changes_the_reason_or_nothing() {
    let work = Work::new();
    work.run(&["suspend", "shop/web", "--reason", "fair"]).expect_ok();
    let head = work.head();
    let again = work.run(&["suspend", "shop/web", "--reason", "fair"]);
    assert!(
        again
            .stderr
            .contains("suspended already, by policies/suspend-shop-web.yaml:1 (fair)"),
        "{again:?}"
    );
    assert_eq!(again.code(), Some(0));
    assert_eq!(work.head(), head);
    work.run(&["suspend", "shop/web", "--reason", "audit"]).expect_ok();
    assert_eq!(work.changed(), ["M policies/suspend-shop-web.yaml"]);
}

#[test]
fn what_does_not_exist_cannot_be_suspended_nor_what_is_not_resumed() {
    let work = Work::new();
    work.refuses(
        &["suspend", "shop/wbe"],
        "there is no Subscription shop/wbe; there are: shop/web",
    );
    work.refuses(
        &["suspend", "--cluster", "paris"],
        "there is no cluster paris; there are: oslo",
    );
    work.refuses(&["resume", "shop/web"], "shop/web is not suspended by itself");
    work.run(&["suspend", "--cluster", "oslo", "--reason", "repair"])
        .expect_ok();
    work.refuses(&["resume", "shop/web"], "policies/suspend-cluster-oslo.yaml:1 (repair)");
    let usage = work.run(&["suspend"]);
    assert_eq!(usage.code(), Some(64), "{usage:?}");
}

#[test]
fn a_file_with_more_in_it_is_left_to_the_person() {
    let work = Work::new();
    let own = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Suspension\nmetadata: {name: mine}\n\
               spec: {subscription: {namespace: shop, name: web}}\n---\n";
    work.repository.write(
        "policies/all.yaml",
        format!(
            "{own}{}",
            own.replace("mine", "other")
                .replace("name: web", "name: api")
                .trim_end_matches("---\n")
        ),
    );
    work.repository.commit("Suspend by hand");
    work.refuses(
        &["resume", "shop/web"],
        "policies/all.yaml:1 holds other declarations as well",
    );
}

#[test]
fn two_units_whose_names_join_alike_have_a_file_each() {
    let work = Work::new();
    for (namespace, name) in [("a-b", "c"), ("a", "b-c")] {
        let text = super::FILES[2].1.replace(
            "namespace: shop, name: web",
            &format!("namespace: {namespace}, name: {name}"),
        );
        work.repository.write(&format!("subscriptions/{namespace}.yaml"), text);
    }
    work.repository.commit("Subscribe twice");
    work.run(&["suspend", "a-b/c"]).expect_ok();
    work.run(&["suspend", "a/b-c"]).expect_ok();
    assert_eq!(work.git(&["ls-files", "policies"]).lines().count(), 2);
    work.run(&["resume", "a-b/c"]).expect_ok();
    let left = work.git(&["ls-files", "policies"]);
    assert!(
        work.git(&["show", &format!("HEAD:{left}")]).contains("name: b-c"),
        "the right one is left"
    );
}

#[test]
fn a_single_object_is_suspended_by_kind_and_name_and_resumed_without_a_trace() {
    let work = Work::new();
    let tree = work.git(&["rev-parse", "HEAD^{tree}"]);
    let object = ["--object", "configmap/greeting", "-n", "shop"];
    work.run(&[&["suspend"], &object[..], &["--reason", "audit"]].concat())
        .expect_ok();
    let expected = "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Suspension
metadata:
  name: object.configmap.shop.greeting
spec:
  objects:
  - apiVersion: v1
    kind: ConfigMap
    name: greeting
    namespace: shop
  reason: audit
";
    assert_eq!(
        work.git(&["show", "HEAD:policies/suspend-configmap-greeting.yaml"]) + "\n",
        expected
    );
    let plan = work.run(&["plan", "-o", "json"]);
    assert!(plan.stdout.contains("\"findings\": []"), "{plan:?}");
    work.run(&[&["resume"], &object[..]].concat()).expect_ok();
    assert_eq!(work.git(&["rev-parse", "HEAD^{tree}"]), tree, "nothing is left of it");
    assert_eq!(
        work.git(&["log", "--format=%s", "-2"]),
        "Resume ConfigMap shop/greeting\nSuspend ConfigMap shop/greeting"
    );
    let none = work.run(&["suspend", "--object", "ConfigMap/none", "-n", "shop"]);
    assert!(
        none.stderr.contains("no Subscription delivers ConfigMap shop/none"),
        "{none:?}"
    );
    let wrong = work.run(&["suspend", "--object", "none"]);
    assert_eq!(wrong.code(), Some(64), "{wrong:?}");
}
