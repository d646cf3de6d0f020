use super::*;
use std::sync::Arc;

const BROKEN: &str = "apiVersion: v1\n kind: {\n";

fn file(text: &str) -> SourceFile {
    SourceFile::from_bytes(text.as_bytes())
}

fn last_good(path: &str, text: &str) -> Previous {
    let mut previous = Previous::default();
    previous.last_good.insert(path.into(), file(text));
    previous
}

fn never_good(path: &str) -> Previous {
    Previous {
        new_files: vec![path.into()],
        ..Previous::default()
    }
}

fn held(files: &[(&str, &str)], previous: &Previous) -> Vec<String> {
    let (fleet, _) = load(&tree(files), previous);
    shown(&unit(&fleet).blocked)
}

#[test]
fn a_unit_with_a_broken_file_is_held_and_its_neighbour_is_not() {
    let (glob, good, other) = (
        subscription("[{path: feeds/app}]"),
        config_map("good"),
        config_map("other"),
    );
    let neighbour = subscription("[{path: feeds/other}]").replace("name: app", "name: other");
    let files = [
        ("s.yaml", glob.as_str()),
        ("t.yaml", &neighbour),
        ("feeds/app/good.yaml", &good),
        ("feeds/app/x.yaml", BROKEN),
        ("feeds/other/o.yaml", &other),
    ];
    let previous = last_good("feeds/app/x.yaml", &config_map("x"));
    let (fleet, findings) = load(&tree(&files), &previous);
    assert_eq!(fleet.unreadable, [Arc::from("feeds/app/x.yaml")]);
    assert_eq!(names(unit(&fleet)), ["good", "x"], "the last good content stands in");
    assert_eq!(reasons(&unit(&fleet).blocked), ["FeedUnreadable"]);
    assert!(fleet.units[&UnitKey::new("team", "other").unwrap()].blocked.is_empty());
    assert!(reasons(&findings).contains(&"NotYaml"));
}

#[test]
fn a_new_broken_file_holds_whoever_could_select_it() {
    let x = config_map("x");
    let blocked = |feeds: &str| {
        let text = subscription(feeds);
        held(
            &[("s.yaml", &text), ("a/x.yaml", &x), ("b/new.yaml", BROKEN)],
            &never_good("b/new.yaml"),
        )
        .len()
    };
    assert_eq!(blocked("[{path: '**'}]"), 1);
    assert_eq!(blocked("[{path: b}, {path: a}]"), 1);
    assert_eq!(blocked("[{selector: {matchLabels: {app: x}}}]"), 1);
    assert_eq!(blocked("[{path: a}]"), 0);
    assert_eq!(blocked("[{path: '**', exclude: [b]}]"), 0);
    assert_eq!(blocked("[{apiVersion: v1, kind: ConfigMap, name: x}]"), 0);
}

#[test]
fn an_unreadable_file_is_not_an_empty_one_even_before_its_past_is_known() {
    let text = subscription("[{path: a}]");
    let x = config_map("x");
    let blocked = held(
        &[("s.yaml", &text), ("a/x.yaml", &x), ("a/y.yaml", BROKEN)],
        &Previous::default(),
    );
    assert_eq!(blocked.len(), 1);
}

#[test]
fn broken_declarations_keep_what_they_said() {
    let wrong = format!("{CLUSTER}spec: {{syncMode: Both}}\n");
    let good = format!("{CLUSTER}spec: {{syncMode: Pull}}\n");
    for broken in [BROKEN, &wrong] {
        let (fleet, _) = load(&tree(&[("c.yaml", broken)]), &last_good("c.yaml", &good));
        assert_eq!(fleet.unreadable, [Arc::from("c.yaml")]);
        let cluster = fleet.clusters.values().next().unwrap();
        assert_eq!(cluster.sync_mode, crate::model::SyncMode::Pull);
        let (fleet, _) = load(&tree(&[("c.yaml", broken)]), &Previous::default());
        assert!(fleet.clusters.is_empty());
    }
}

#[test]
fn a_broken_declaration_does_not_hold_back_its_file() {
    let other = CLUSTER.replace("name: a", "name: b");
    let now = format!("{CLUSTER}spec: {{syncMode: Both}}\n---\n{other}");
    let (fleet, _) = load(&tree(&[("c.yaml", &now)]), &last_good("c.yaml", CLUSTER));
    let names: Vec<_> = fleet.clusters.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["a", "b"], "the broken one as it was, the new one as it is");
}

#[test]
fn a_subscription_with_errors_stays_a_unit() {
    let text = subscription("[{path: a}]").replace("  feeds", "  color: red\n  feeds");
    let (fleet, _) = loaded(&[("s.yaml", &text), ("a/x.yaml", &config_map("x"))]);
    assert_eq!(reasons(&unit(&fleet).blocked), ["UnknownField"]);
    assert!(
        fleet.unreadable.is_empty(),
        "its errors hold the unit, and nothing else"
    );
}

#[test]
fn a_misspelt_kind_or_version_removes_nothing() {
    let good = format!("{}---\n{CLUSTER}", subscription("[{path: a}]"));
    for (wrong, from) in [
        ("Subscripton", "Subscription"),
        ("ManagedClusterx", "ManagedCluster"),
        ("v1alpha2", "v1alpha1"),
    ] {
        let now = good.replace(from, wrong);
        let files = [("s.yaml", now.as_str()), ("a/x.yaml", &config_map("x"))];
        let (fleet, findings) = load(&tree(&files), &last_good("s.yaml", &good));
        assert_eq!(names(unit(&fleet)), ["x"], "{wrong}");
        assert_eq!(fleet.clusters.len(), 1, "{wrong}");
        assert!(reasons(&findings).contains(&"UnknownKind"), "{wrong}: {findings:?}");
        assert_eq!(fleet.unreadable, [Arc::from("s.yaml")], "its past is looked up");
    }
}

/// A Subscription whose head was changed: the unit stays, and a person is told the head that is right.
#[track_caller]
fn check_head(path: &str, head: &str, reason: &str) {
    let good = subscription("[{path: a}]");
    let now = good.replace("apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription", head);
    assert_ne!(now, good);
    let files = [(path, now.as_str()), ("a/x.yaml", &config_map("x"))];
    let (fleet, findings) = load(&tree(&files), &last_good(path, &good));
    assert_eq!(fleet.unreadable, [Arc::from(path)], "its past is looked up: {head}");
    assert_eq!(names(unit(&fleet)), ["x"], "{head}");
    let error = findings
        .iter()
        .find(|finding| finding.reason == reason && finding.is_error());
    let error = error.unwrap_or_else(|| panic!("{head}: {findings:?}"));
    assert!(
        error.hint.contains("apiVersion") || error.hint.contains("did you mean Subscription of "),
        "{error:?}"
    );
    assert!(!error.hint.contains("clusters.clusternet.io"), "{error:?}");
}

#[test]
fn a_wrong_head_of_a_declaration_removes_nothing() {
    let path = "subscriptions/team/app.yaml";
    for version in [
        "flotilla.dev/v1alpha1",
        "v1alpha1",
        "policy.flotilla.dev/v1alpha1",
        "apps.clusternet.io/v1beta1",
        "clusters.clusternet.io/v1beta1",
        "clusters.clusternet.io/v1alpha1",
        "operators.coreos.com/v1alpha1",
    ] {
        check_head(
            path,
            &format!("apiVersion: {version}\nkind: Subscription"),
            "UnknownKind",
        );
    }
    for version in ["flotilla.dev/v1alpha1", "v1alpha1", "apps.clusternet.io/v1beta1"] {
        check_head(
            "s.yaml",
            &format!("apiVersion: {version}\nkind: Subscription"),
            "UnknownKind",
        );
    }
    for head in [
        "apiversion: fleet.flotilla.dev/v1alpha1\nkind: Subscription",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind:",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ''",
        "apiVersion:\nkind: Subscription",
    ] {
        check_head(path, head, "NotAnObject");
    }
}

#[test]
fn another_projects_kind_of_the_same_name_is_an_object_and_told_where_nobody_delivers_it() {
    let other =
        "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {namespace: team, name: app}\n";
    let text = subscription("[{path: a}]");
    let (fleet, findings) = loaded(&[("s.yaml", &text), ("a/x.yaml", other)]);
    assert_eq!(names(unit(&fleet)), ["app"]);
    assert_eq!(reasons(&findings), [] as [&str; 0]);
    let (_, findings) = loaded(&[("s.yaml", &text), ("a/x.yaml", &config_map("x")), ("b/o.yaml", other)]);
    assert_eq!(shown(&findings), ["b/o.yaml:1 Warning NoDeclaration"]);
}

#[test]
fn a_broken_override_holds_whoever_it_would_change() {
    let text = subscription("[{path: a}]");
    let broken = "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Globalization
metadata: {name: g}
spec:
  feed: {apiVersion: v1, kind: ConfigMap, name: x}
  overrides: [{type: Wrong, value: x}]
";
    let x = config_map("x");
    let files = [("s.yaml", text.as_str()), ("a/x.yaml", &x), ("g.yaml", broken)];
    assert_eq!(held(&files, &Previous::default()), ["g.yaml:6 Error OverrideUnusable"]);
    let good = broken.replace("Wrong, value: x", "MergePatch, value: '{}'");
    assert_eq!(held(&files, &last_good("g.yaml", &good)), [] as [&str; 0]);
}

#[test]
fn what_vanished_beside_a_broken_file_is_kept() {
    let glob = subscription("[{path: a}]");
    let mut previous = never_good("b/new.yaml");
    previous
        .vanished
        .insert("a/gone.yaml".into(), file(&config_map("gone")));
    previous.vanished.insert("clusters/a.yaml".into(), file(CLUSTER));
    let x = config_map("x");
    let files = [("s.yaml", glob.as_str()), ("a/x.yaml", &x), ("b/new.yaml", BROKEN)];
    let (fleet, findings) = load(&tree(&files), &previous);
    assert_eq!(names(unit(&fleet)), ["x", "gone"]);
    assert!(unit(&fleet).blocked.is_empty(), "it is as if the file were there");
    assert_eq!(fleet.clusters.len(), 1);
    assert_eq!(reasons(&findings), ["RemovalHeld", "NotYaml", "RemovalHeld"]);
}

#[test]
fn what_only_moved_is_not_kept_twice() {
    let glob = subscription("[{path: a}]");
    let mut previous = never_good("b/new.yaml");
    previous.vanished.insert("a/old.yaml".into(), file(&config_map("x")));
    let x = config_map("x");
    let files = [("s.yaml", glob.as_str()), ("a/x.yaml", &x), ("b/new.yaml", BROKEN)];
    let (fleet, findings) = load(&tree(&files), &previous);
    assert_eq!(names(unit(&fleet)), ["x"]);
    assert_eq!(reasons(&findings), ["NotYaml"]);
    assert!(unit(&fleet).blocked.is_empty());
}

#[test]
fn what_can_stand_in_is_what_reads_without_errors_of_declarations() {
    assert!(is_readable("a.yaml", &file(CLUSTER)));
    assert!(is_readable("a.yaml", &file("any: yaml\n")));
    assert!(!is_readable("a.yaml", &file(BROKEN)));
    assert!(!is_readable(
        "a.yaml",
        &file(&format!("{CLUSTER}spec: {{syncMode: Both}}\n"))
    ));
}
