use super::*;
use crate::name::UnitKey;
use crate::yaml;

const RBAC: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader, labels: {rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}
rules:
  - {apiGroups: ['', apps], resources: [pods, pods/log, deployments], verbs: [get, list, watch, delete]}
  - {apiGroups: [''], resources: [configmaps], verbs: [update]}
  - {apiGroups: ['*'], resources: ['*'], verbs: ['*'], resourceNames: [web]}
  - {apiGroups: [''], resources: [pods/exec], verbs: [create]}
  - {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: settings, namespace: shop}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everywhere}
subjects: [{kind: Group, name: sre}, {kind: User, name: ada@example.com}]
roleRef: {kind: ClusterRole, name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: shop, namespace: shop, annotations: {fleet.flotilla.dev/clusters: 'env in (staging)'}}
subjects: [{kind: Group, name: shop}]
roleRef: {kind: ClusterRole, name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: settings, namespace: shop, annotations: {fleet.flotilla.dev/clusters: env=staging}}
subjects: [{kind: Group, name: shop}]
roleRef: {kind: Role, name: settings}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: view, namespace: shop, annotations: {fleet.flotilla.dev/clusters: env=staging}}
subjects: [{kind: Group, name: shop}]
roleRef: {kind: ClusterRole, name: view}
";

/// Every projected unit with its objects, as YAML.
fn projected(fleet: &Fleet) -> String {
    let mut text = String::new();
    for (key, unit) in fleet
        .units
        .iter()
        .filter(|(key, _)| key.namespace() == "flotilla-access")
    {
        let clusters = unit.subscription.subscribers[0].cluster_affinity.as_ref().unwrap();
        text.push_str(&format!("# {key} for {}\n", serde_json::to_string(clusters).unwrap()));
        for object in &unit.base.objects {
            text.push_str(&format!(
                "# {}:{}\n{}---\n",
                object.file,
                object.line,
                yaml::write(&object.value)
            ));
        }
    }
    text
}

fn units(fleet: &Fleet) -> Vec<String> {
    fleet.units.keys().map(ToString::to_string).collect()
}

#[test]
fn each_selector_of_bindings_is_a_unit_whose_names_are_our_own_and_whose_rules_read() {
    let (fleet, _) = loaded(&[("access/a.yaml", RBAC)]);
    assert_eq!(projected(&fleet), include_str!("projected.yaml"));
}

#[test]
fn a_fleet_without_bindings_has_no_unit_that_nobody_declared() {
    let roles_alone = RBAC.split_once("---").unwrap().0;
    for files in [&[][..], &[("access/a.yaml", roles_alone)], &[("feeds/a.yaml", RBAC)]] {
        let (fleet, _) = loaded(files);
        assert_eq!(units(&fleet), Vec::<String>::new());
    }
}

#[test]
fn nobody_declares_a_unit_where_the_projected_ones_stand() {
    let text = subscription("[{path: feeds}]").replace("namespace: team", "namespace: flotilla-access");
    check(
        &[("s.yaml", &text), ("feeds/a.yaml", &config_map("a"))],
        &["s.yaml:3 Error FieldInvalid metadata.namespace"],
    );
}

#[test]
fn no_override_changes_what_clusters_are_told() {
    let text = "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Globalization
metadata: {name: more}
spec:
  feed: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: 'flotilla:reader'}
  overrides: [{name: all, type: MergePatch, value: 'rules: []'}]
";
    let (fleet, findings) = loaded(&[("access/a.yaml", RBAC), ("globalizations/a.yaml", text)]);
    assert!(shown(&findings).contains(&"globalizations/a.yaml:5 Error FieldInvalid spec.feed.name".to_owned()));
    assert!(fleet.overrides.is_empty());
}

/// What holds the unit for all clusters.
fn held(files: &[(&str, &str)], previous: &Previous) -> Option<Vec<String>> {
    let (fleet, _) = load(&tree(files), previous);
    let unit = fleet.units.get(&UnitKey::new("flotilla-access", "all").unwrap())?;
    Some(reasons(&unit.blocked).into_iter().map(str::to_owned).collect())
}

#[test]
fn what_is_not_known_of_access_holds_what_clusters_were_told() {
    let none = Previous::default();
    let held = |files: &[(&str, &str)], previous| held(files, previous);
    assert_eq!(held(&[("access/a.yaml", RBAC)], &none), Some(vec![]));
    let unread = [("access/a.yaml", RBAC), ("access/b.yaml", "a: {")];
    assert_eq!(held(&unread, &none), Some(vec!["AccessUnreadable".to_owned()]));
    let elsewhere = [("access/a.yaml", RBAC), ("feeds/b.yaml", "a: {")];
    assert_eq!(held(&elsewhere, &none), Some(vec![]));
    let twice = [("access/a.yaml", RBAC), ("access/b.yaml", RBAC)];
    assert!(held(&twice, &none).is_some_and(|held| held.contains(&"DeclaredTwice".to_owned())));
}

#[test]
fn a_right_that_may_have_moved_into_an_unreadable_file_is_gone_at_the_hub_and_stays_in_clusters() {
    let mut previous = Previous::default();
    previous
        .vanished
        .insert("access/a.yaml".into(), SourceFile::from_bytes(RBAC.as_bytes()));
    let (fleet, findings) = load(&tree(&[("access/b.yaml", "a: {")]), &previous);
    assert!(fleet.access.bindings.is_empty());
    assert!(reasons(&findings).contains(&"RemovalHeld"));
    assert_eq!(units(&fleet).len(), 2);
    assert!(
        fleet
            .units
            .values()
            .all(|unit| reasons(&unit.blocked) == ["AccessUnreadable"])
    );
    let (fleet, _) = load(&tree(&[]), &Previous::default());
    assert!(
        fleet.units.is_empty(),
        "and nothing is kept where nothing is unreadable"
    );
}
