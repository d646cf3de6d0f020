//! What units and objects need of each other.

use super::*;

/// A Subscription of one folder with its dependencies, as flow YAML.
fn depending(name: &str, needs: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {{name: {name}, namespace: team}}
spec:
  subscribers: [{{clusterAffinity: {{}}}}]
  feeds: [{{path: feeds/{name}/**}}]
  dependsOn: {needs}
"
    )
}

fn object(name: &str, needs: &str) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: shop
  annotations:
    fleet.flotilla.dev/depends-on: {needs}
"
    )
}

/// A fleet of units, each with one object of its own name: (unit, dependencies, its object's dependencies).
fn fleet(units: &[(&str, &str, &str)]) -> (Fleet, Vec<Finding>) {
    let mut files = vec![("c.yaml".to_owned(), CLUSTER.to_owned())];
    for (name, units, objects) in units {
        files.push((format!("{name}.yaml"), depending(name, units)));
        files.push((format!("feeds/{name}/o.yaml"), object(name, objects)));
    }
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    loaded(&files)
}

/// `file:line message`, and the unit that it holds.
#[track_caller]
fn check(units: &[(&str, &str, &str)], expected: &[&str]) {
    let (fleet, findings) = fleet(units);
    let told: Vec<_> = findings
        .iter()
        .map(|finding| format!("{}:{} {}", finding.file, finding.line, finding.message))
        .collect();
    assert_eq!(told, expected, "{findings:#?}");
    for finding in findings.iter().filter(|finding| finding.is_error()) {
        let unit = finding.unit.as_ref().expect("an Error holds a unit");
        assert!(fleet.units[unit].blocked.contains(finding), "{unit} is held");
    }
    let named = |key: &UnitKey| {
        findings
            .iter()
            .any(|finding| finding.is_error() && finding.unit.as_ref() == Some(key))
    };
    for (key, unit) in &fleet.units {
        assert!(unit.blocked.is_empty() || named(key), "{key} is held without a reason");
    }
}

#[test]
fn a_cycle_of_units_names_the_whole_way_at_each_member_and_others_go_on() {
    let circle = |way: &str| format!("dependencies go in a circle: {way}");
    check(
        &[
            ("a", "[{name: b}]", "''"),
            ("b", "[{name: c, clusters: All}]", "''"),
            ("c", "[{name: d}, {name: a}]", "''"),
            ("d", "[]", "''"),
            ("e", "[{name: a}]", "''"),
        ],
        &[
            &format!("a.yaml:7 {}", circle("team/a -> team/b -> team/c -> team/a")),
            &format!("b.yaml:7 {}", circle("team/b -> team/c -> team/a -> team/b")),
            &format!("c.yaml:7 {}", circle("team/c -> team/a -> team/b -> team/c")),
        ],
    );
}

#[test]
fn a_dependency_that_is_not_there_holds_its_unit_alone() {
    check(
        &[
            ("web", "[{name: bsae}, {namespace: infra, name: x}]", "''"),
            ("base", "[]", "''"),
        ],
        &[
            "web.yaml:7 dependency team/bsae not found",
            "web.yaml:7 dependency infra/x not found",
        ],
    );
    let (_, findings) = fleet(&[("web", "[{name: bsae}]", "''"), ("base", "[]", "''")]);
    assert_eq!(findings[0].hint, "did you mean team/base?");
}

#[test]
fn a_cycle_of_objects_is_found_within_a_unit_and_across_units() {
    check(
        &[("a", "[]", "/ConfigMap/shop/a")],
        &["feeds/a/o.yaml:7 dependencies go in a circle: ConfigMap shop/a -> ConfigMap shop/a"],
    );
    check(
        &[
            ("a", "[]", "/ConfigMap/shop/b"),
            ("b", "[]", "/ConfigMap/shop/a"),
            ("c", "[]", "/ConfigMap/shop/a"),
        ],
        &[
            "feeds/a/o.yaml:7 dependencies go in a circle: ConfigMap shop/a -> ConfigMap shop/b -> ConfigMap shop/a",
            "feeds/b/o.yaml:7 dependencies go in a circle: ConfigMap shop/b -> ConfigMap shop/a -> ConfigMap shop/b",
        ],
    );
}

#[test]
fn a_cycle_of_units_and_objects_together_is_found() {
    check(
        &[("a", "[]", "/ConfigMap/shop/b"), ("b", "[{name: a}]", "''")],
        &[
            "b.yaml:7 dependencies go in a circle: team/b -> team/a -> ConfigMap shop/a -> ConfigMap shop/b -> team/b",
            "feeds/a/o.yaml:7 dependencies go in a circle: ConfigMap shop/a -> ConfigMap shop/b -> team/b -> team/a -> ConfigMap shop/a",
        ],
    );
}

#[test]
fn an_object_that_names_nothing_says_so() {
    check(
        &[("web", "[]", "/ConfigMap/shop/bsae"), ("base", "[]", "''")],
        &["feeds/web/o.yaml:7 no unit delivers ConfigMap shop/bsae, so it is not waited for"],
    );
    check(
        &[("web", "[]", "Deployment/base")],
        &["feeds/web/o.yaml:7 \"Deployment/base\" names no object"],
    );
    let (_, findings) = fleet(&[("web", "[]", "/ConfigMap/shop/bsae"), ("base", "[]", "''")]);
    assert_eq!(
        (findings[0].hint.as_str(), findings[0].is_error()),
        ("did you mean /ConfigMap/shop/base?", false)
    );
}

#[test]
fn a_helm_chart_is_named_as_any_object_in_the_group_that_declares_it() {
    for api_version in ["fleet.flotilla.dev/v1alpha1", "apps.clusternet.io/v1alpha1"] {
        let group = api_version.split('/').next().expect("a group");
        let chart = format!(
            "apiVersion: {api_version}
kind: HelmChart
metadata: {{name: cache, namespace: shop}}
spec: {{repo: 'https://charts.example.org', chart: redis, version: 1.2.3, targetNamespace: shop}}
"
        );
        let files = [
            ("c.yaml".to_owned(), CLUSTER.to_owned()),
            ("web.yaml".to_owned(), depending("web", "[]")),
            (
                "feeds/web/o.yaml".to_owned(),
                object("web", &format!("{group}/HelmChart/shop/cache")),
            ),
            ("base.yaml".to_owned(), depending("base", "[]")),
            ("feeds/base/chart.yaml".to_owned(), chart),
        ];
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let (_, findings) = loaded(&files);
        assert!(findings.is_empty(), "{group}: {findings:#?}");
    }
}
