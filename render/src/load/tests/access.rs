use super::*;
use crate::access::ScopedName;

const API: &str = "apiVersion: rbac.authorization.k8s.io/v1\n";

const READER: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [''], resources: [pods], verbs: [get, list, watch]}]
";

/// A binding of the group `shop` to `reader`; `more` stands in its metadata.
fn binding(name: &str, more: &str) -> String {
    format!(
        "{API}kind: ClusterRoleBinding\nmetadata: {{name: {name}{more}}}\nsubjects: [{{kind: Group, name: shop}}]\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}}\n"
    )
}

fn both(roles: &str, bindings: &str) -> String {
    format!("{roles}---\n{bindings}")
}

fn bound(fleet: &Fleet) -> Vec<&str> {
    fleet.access.bindings.keys().map(|key| key.name.as_str()).collect()
}

#[test]
fn roles_and_bindings_below_access_grant_and_those_elsewhere_do_not() {
    let text = both(READER, &binding("b", ""));
    let (fleet, findings) = loaded(&[("access/team/a.yaml", &text)]);
    assert_eq!(shown(&findings), Vec::<String>::new());
    assert_eq!(bound(&fleet), ["b"]);
    assert!(fleet.access.roles.contains_key(&ScopedName::new("", "reader")));
    for elsewhere in ["feeds/a.yaml", "a.yaml", "policies/a.yaml", "feeds/access/a.yaml"] {
        let (fleet, _) = loaded(&[(elsewhere, &text)]);
        assert_eq!(*fleet.access, crate::access::Access::default(), "{elsewhere}");
    }
    let list = format!("{API}kind: ClusterRoleList\nitems: [{{metadata: {{name: r}}, rules: []}}]\n");
    let (fleet, _) = loaded(&[("access/a.yaml", &list)]);
    assert!(fleet.access.roles.contains_key(&ScopedName::new("", "r")));
}

#[test]
fn what_stands_below_access_reaches_no_feed() {
    let text = both(READER, &binding("b", ""));
    let feed =
        subscription("[{path: '**'}, {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: reader}]");
    let (fleet, findings) = loaded(&[
        ("s.yaml", &feed),
        ("access/a.yaml", &text),
        ("feeds/x.yaml", &config_map("x")),
    ]);
    assert_eq!(names(unit(&fleet)), ["x"]);
    assert_eq!(reasons(&findings), ["FeedMatchesNothing"]);
}

#[test]
fn what_has_no_effect_or_cannot_work_is_said_where_it_stands() {
    let role = |rest: &str| format!("{API}kind: ClusterRole\nmetadata: {{name: reader}}\n{rest}\n");
    let about_role = |rest: &str, expected: &[&str]| {
        check(&[("access/a.yaml", &both(&role(rest), &binding("b", "")))], expected);
    };
    about_role(
        "rules:\n- {apiGroups: [''], resources: [pods], verbs: [gett, create]}",
        &[
            "access/a.yaml:5 Warning NoEffect rules[0].verbs[0]",
            "access/a.yaml:5 Warning NoEffect rules[0].verbs[1]",
        ],
    );
    about_role(
        "rules: [{apiGroups: [''], resources: [pods/exec], verbs: [create]}]",
        &[],
    );
    about_role(
        "rules: [{apiGroups: [''], resources: [nodes/proxy, services/proxy], verbs: [create]}]",
        &["access/a.yaml:4 Warning NoEffect rules[0].resources[0]"],
    );
    about_role(
        "rules: [{apiGroups: [v1, apps/v1], resources: [Pods, pods/*], verbs: [get]}]",
        &[
            "access/a.yaml:4 Warning NoEffect rules[0].apiGroups[0]",
            "access/a.yaml:4 Warning NoEffect rules[0].apiGroups[1]",
            "access/a.yaml:4 Warning NoEffect rules[0].resources[0]",
            "access/a.yaml:4 Warning NoEffect rules[0].resources[1]",
        ],
    );
    // A role with an error is none, so that its binding gives nothing either.
    for (rest, expected) in [
        (
            "rules: [{verbs: [get], verb: [get], resources: [a], apiGroups: ['']}]",
            "UnknownField rules[0].verb",
        ),
        (
            "rules: [{verbs: [get], apiGroups: ['']}]",
            "FieldMissing rules[0].resources",
        ),
        (
            "rules: [{resources: [a], apiGroups: ['']}]",
            "FieldMissing rules[0].verbs",
        ),
        (
            "rules: [{resources: [a], verbs: [get]}]",
            "FieldMissing rules[0].apiGroups",
        ),
        (
            "rules: [{resources: [a], apiGroups: [''], verbs: [get], nonResourceURLs: [/x]}]",
            "FieldInvalid rules[0].nonResourceURLs",
        ),
        (
            "aggregationRule: {}\nrules: [{nonResourceURLs: [/x], verbs: [get]}]",
            "NotSupported aggregationRule",
        ),
    ] {
        let bindings = binding("b", "");
        let (fleet, findings) = loaded(&[("access/a.yaml", &role(rest)), ("access/b.yaml", &bindings)]);
        let expected = [
            format!("access/a.yaml:4 Error {expected}"),
            "access/b.yaml:5 Error RoleNotFound roleRef.name".to_owned(),
        ];
        assert_eq!(shown(&findings), expected, "{rest}");
        assert!(bound(&fleet).is_empty());
    }
}

#[test]
fn a_binding_that_cannot_be_taken_gives_nobody_anything() {
    let text = |subjects: &str, reference: &str| {
        format!("{API}kind: ClusterRoleBinding\nmetadata: {{name: b}}\nsubjects: {subjects}\nroleRef: {reference}\n")
    };
    let group = "[{kind: Group, name: shop}]";
    let reader = "{kind: ClusterRole, name: reader}";
    for (subjects, reference, expected) in [
        (
            "[{kind: ServiceAccount, name: a, namespace: b}]",
            reader,
            "NotSupported subjects[0].kind",
        ),
        (
            "[{kind: User, name: 'system:admin'}]",
            reader,
            "FieldInvalid subjects[0].name",
        ),
        (
            "[{kind: Group, name: 'flotilla:shop'}]",
            reader,
            "FieldInvalid subjects[0].name",
        ),
        ("[{kind: Grup, name: a}]", reader, "FieldInvalid subjects[0].kind"),
        (
            "[{kind: User, name: a, namespace: b}]",
            reader,
            "FieldInvalid subjects[0].namespace",
        ),
        (
            "[{kind: User, name: a, uid: b}]",
            reader,
            "UnknownField subjects[0].uid",
        ),
        ("[{kind: User}]", reader, "FieldMissing subjects[0].name"),
        (group, "{kind: ClusterRole, name: raeder}", "RoleNotFound roleRef.name"),
        (group, "{kind: Role, name: reader}", "FieldInvalid roleRef.kind"),
        (
            group,
            "{kind: ClusterRole, name: reader, apiGroup: v1}",
            "FieldInvalid roleRef.apiGroup",
        ),
        (group, "{name: reader}", "FieldMissing roleRef.kind"),
    ] {
        let (fleet, findings) = loaded(&[("access/a.yaml", READER), ("access/b.yaml", &text(subjects, reference))]);
        assert_eq!(bound(&fleet), Vec::<&str>::new(), "{subjects} {reference}");
        let found = shown(&findings);
        assert!(
            found.contains(&format!(
                "access/b.yaml:{} Error {expected}",
                if expected.contains("role") { 5 } else { 4 }
            )),
            "{found:?}"
        );
    }
    let (fleet, findings) = loaded(&[("access/a.yaml", READER), ("access/b.yaml", &text("[]", reader))]);
    assert_eq!(shown(&findings), ["access/b.yaml:4 Warning NoEffect subjects"]);
    assert_eq!(bound(&fleet), ["b"]);
}

#[test]
fn a_name_that_no_api_server_could_take_is_an_error_where_it_stands() {
    let role = |name: &str| READER.replace("name: reader", &format!("name: '{name}'"));
    for name in [
        "a/b",
        "../../../api/v1/secrets",
        "a%2fb",
        "a?b",
        "a#b",
        "a b",
        "a\\b",
        "..",
    ] {
        let (fleet, findings) = loaded(&[("access/a.yaml", &role(name))]);
        assert_eq!(
            shown(&findings),
            ["access/a.yaml:3 Error FieldInvalid metadata.name"],
            "{name}"
        );
        assert!(fleet.access.roles.is_empty(), "{name}");
    }
    for name in ["reader", "team:shop_reader.v2", "Reader"] {
        let (fleet, _) = loaded(&[("access/a.yaml", &role(name))]);
        assert!(fleet.access.roles.contains_key(&ScopedName::new("", name)), "{name}");
    }
    for namespace in ["Shop_X", "a/b", "..", "-a"] {
        let text = binding("b", &format!(", namespace: '{namespace}'")).replace("ClusterRoleBinding", "RoleBinding");
        let (fleet, findings) = loaded(&[("access/a.yaml", READER), ("access/b.yaml", &text)]);
        let found = shown(&findings);
        assert!(
            found.contains(&"access/b.yaml:3 Error FieldInvalid metadata.namespace".to_owned()),
            "{namespace}: {found:?}"
        );
        assert_eq!(bound(&fleet), [""; 0], "{namespace}");
    }
}

#[test]
fn a_subject_that_nobody_can_log_in_as_is_told() {
    for name in ["ann ", " shop", "zo\u{eb}"] {
        let text = binding("b", "").replace("name: shop", &format!("name: '{name}'"));
        let (_, findings) = loaded(&[("access/a.yaml", READER), ("access/b.yaml", &text)]);
        assert_eq!(
            shown(&findings),
            ["access/b.yaml:4 Warning NoEffect subjects[0].name"],
            "{name}"
        );
    }
}

#[test]
fn the_clusters_of_a_binding_are_a_selector_or_an_error_and_never_all_by_mistake() {
    let with = |text: &str| {
        binding(
            "b",
            &format!(", annotations: {{fleet.flotilla.dev/clusters: '{text}'}}"),
        )
    };
    let cluster = format!("{CLUSTER}spec: {{}}\n").replace("name: a", "name: a, labels: {env: staging}");
    let load = |text: &str| {
        let text = with(text);
        let (fleet, findings) = loaded(&[
            ("access/a.yaml", READER),
            ("access/b.yaml", &text),
            ("clusters/a.yaml", &cluster),
        ]);
        (bound(&fleet).len(), shown(&findings))
    };
    let field = "metadata.annotations.fleet.flotilla.dev/clusters";
    assert_eq!(load("env in (staging)"), (1, vec![]));
    assert_eq!(
        load("env=prod"),
        (1, vec![format!("access/b.yaml:3 Warning SelectsNothing {field}")])
    );
    for wrong in ["", "env=", "env=a b", "-x=y", "env in (a"] {
        let (bound, findings) = load(wrong);
        if wrong == "env=" {
            assert_eq!(bound, 1, "an empty value is one");
            continue;
        }
        assert_eq!(bound, 0, "{wrong:?}");
        assert!(
            findings.contains(&format!("access/b.yaml:3 Error FieldInvalid {field}")),
            "{findings:?}"
        );
    }
}

#[test]
fn nothing_loosens_by_being_broken_and_what_is_removed_is_gone() {
    let narrow = both(
        READER,
        &binding("b", ", annotations: {fleet.flotilla.dev/clusters: env=staging}"),
    );
    let mut previous = Previous::default();
    previous
        .last_good
        .insert("access/a.yaml".into(), SourceFile::from_bytes(narrow.as_bytes()));
    let is_narrow = |fleet: &Fleet| {
        let binding = &fleet.access.bindings[&ScopedName::new("", "b")];
        binding.clusters.is_some()
    };
    let wrong = narrow.replace("env=staging", "env in (");
    let no_kind = narrow.replace("kind: ClusterRoleBinding\n", "");
    let other_kind = narrow.replace("kind: ClusterRoleBinding", "kind: ClusterRolBinding");
    for broken in ["a: {", &wrong, &no_kind, &other_kind] {
        let (fleet, findings) = load(&tree(&[("access/a.yaml", broken)]), &previous);
        assert!(is_narrow(&fleet), "{broken}");
        assert!(findings.iter().any(Finding::is_error), "{broken}");
        let (fleet, _) = load(&tree(&[("access/a.yaml", broken)]), &Previous::default());
        assert_eq!(bound(&fleet), Vec::<&str>::new(), "a new file gives nothing");
    }
    // Gone beside a file that cannot be read: a manifest would be kept.
    let mut previous = Previous::default();
    previous
        .vanished
        .insert("access/a.yaml".into(), SourceFile::from_bytes(narrow.as_bytes()));
    let (fleet, _) = load(&tree(&[("access/c.yaml", "a: {")]), &previous);
    assert_eq!(bound(&fleet), Vec::<&str>::new());
}

#[test]
fn of_a_binding_that_is_declared_twice_neither_counts() {
    let narrow = binding("b", ", annotations: {fleet.flotilla.dev/clusters: env=staging}");
    let (fleet, findings) = loaded(&[
        ("access/a.yaml", READER),
        ("access/b.yaml", &binding("b", "")),
        ("access/c.yaml", &narrow),
    ]);
    assert_eq!(bound(&fleet), Vec::<&str>::new());
    assert!(shown(&findings).contains(&"access/c.yaml:1 Error DeclaredTwice".to_owned()));
}

#[test]
fn other_kinds_below_access_are_said() {
    check(
        &[("access/a.yaml", &config_map("a"))],
        &["access/a.yaml:1 Error NotAccess"],
    );
    let old = READER.replace("/v1\n", "/v1beta1\n");
    check(&[("access/a.yaml", &old)], &["access/a.yaml:1 Error NotAccess"]);
    check(&[("access/a.yaml", "a: b\n")], &["access/a.yaml:1 Error NotAnObject"]);
    // Declarations of the fleet are found by what they are.
    check(&[("access/a.yaml", CLUSTER)], &[]);
}
