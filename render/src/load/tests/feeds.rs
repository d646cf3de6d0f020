use super::*;
use std::sync::Arc;

fn repository<'a>(feeds: &'a str, more: &[(&'a str, &'a str)]) -> (Fleet, Vec<Finding>) {
    let subscription = subscription(feeds);
    let mut files = vec![
        ("clusters/a.yaml", CLUSTER),
        ("subscriptions/app.yaml", subscription.as_str()),
    ];
    files.extend_from_slice(more);
    loaded(&files)
}

#[track_caller]
fn delivers(feeds: &str, more: &[(&str, &str)], expected: &[&str]) {
    let (fleet, findings) = repository(feeds, more);
    assert_eq!(names(unit(&fleet)), expected, "{findings:#?}");
    assert!(unit(&fleet).blocked.is_empty(), "{:#?}", unit(&fleet).blocked);
}

#[track_caller]
fn held(feeds: &str, more: &[(&str, &str)], expected: &[&str]) {
    let (fleet, findings) = repository(feeds, more);
    assert_eq!(shown(&unit(&fleet).blocked), expected, "{findings:#?}");
    for finding in &unit(&fleet).blocked {
        assert!(
            findings.contains(finding),
            "what holds a unit is found too: {finding:#?}"
        );
        assert_eq!(finding.unit, Some(UnitKey::new("team", "app").unwrap()));
    }
}

#[test]
fn an_exact_feed_finds_its_object_wherever_it_stands() {
    let (one, two) = (config_map("one"), config_map("two"));
    let both = format!("{one}---\n{two}");
    let feed =
        "[{apiVersion: v1, kind: ConfigMap, namespace: shop, name: two}, {apiVersion: v1, kind: ConfigMap, name: one}]";
    delivers(feed, &[("deep/er/any.yml", &both)], &["two", "one"]);
}

#[test]
fn what_the_hub_rendered_is_found_in_source_and_not_read() {
    let one = config_map("one");
    let release = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Release\ncause: mergedProposal\n";
    let placement = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Placement\n";
    let files = [
        ("feeds/one.yaml", one.as_str()),
        ("release.yaml", release),
        ("placements/shop/app.yaml", placement),
        ("units/team/app/default/ConfigMap_shop_one.yaml", &one),
    ];
    let feed = "[{apiVersion: v1, kind: ConfigMap, namespace: shop, name: one}]";
    delivers(feed, &files, &["one"]);
    let (_, findings) = repository(feed, &files);
    assert_eq!(shown(&findings), ["release.yaml:1 Error RenderedInSource"]);
    // A folder of that name alone is anybody's.
    delivers("[{path: 'units/**'}]", &files[3..], &["one"]);
}

#[test]
fn an_exact_feed_that_finds_nothing_or_two_holds_the_unit() {
    let one = config_map("one");
    let elsewhere = one.replace("shop", "other");
    let feed =
        "\n  - {apiVersion: v1, kind: ConfigMap, name: one}\n  - {apiVersion: v1, kind: ConfigMap, name: absent}";
    held(
        feed,
        &[("a.yaml", &one), ("b.yaml", &elsewhere)],
        &[
            "subscriptions/app.yaml:7 Error FeedAmbiguous spec.feeds[0]",
            "subscriptions/app.yaml:8 Error FeedMatchesNothing spec.feeds[1]",
        ],
    );
    let wrong_namespace = "[{apiVersion: v1, kind: ConfigMap, namespace: nowhere, name: one}]";
    let (fleet, _) = repository(wrong_namespace, &[("a.yaml", &one)]);
    let hint = &unit(&fleet).blocked[0].hint;
    assert!(
        hint.contains("a.yaml:1") && hint.contains("\"shop\""),
        "the hint names what is near: {hint}"
    );
}

#[test]
fn the_version_of_an_exact_feed_need_not_be_the_manifests() {
    let object = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n";
    let (fleet, findings) = repository(
        "[{apiVersion: apps/v1beta1, kind: Deployment, name: d}]",
        &[("d.yaml", object)],
    );
    assert_eq!(names(unit(&fleet)), ["d"]);
    assert_eq!(reasons(&findings), ["FeedVersionDiffers"]);
}

#[test]
fn paths_and_globs_select_files_and_exclude_leaves_out() {
    let (a, b, c, d) = (config_map("a"), config_map("b"), config_map("c"), config_map("d"));
    let files = [
        ("feeds/app/a.yaml", a.as_str()),
        ("feeds/app/sub/b.yml", b.as_str()),
        ("feeds/app-2/c.json.yaml", c.as_str()),
        ("feeds/app/README.md", "{not yaml"),
        ("d.yaml", d.as_str()),
    ];
    delivers("[{path: feeds/app}]", &files, &["a", "b"]);
    delivers("[{path: feeds/app/}]", &files, &["a", "b"]);
    delivers("[{path: feeds/app/**}]", &files, &["a", "b"]);
    delivers("[{path: './feeds/app/*.yaml'}]", &files, &["a"]);
    delivers("[{path: feeds/*/*.yaml}]", &files, &["c", "a"]);
    delivers("[{path: 'feeds/**/*.y{,a}ml'}]", &files, &["c", "a", "b"]);
    delivers("[{path: feeds/app/a.yaml}]", &files, &["a"]);
    delivers("[{path: feeds/**, exclude: [feeds/app/sub]}]", &files, &["c", "a"]);
    delivers("[{path: feeds/app/a.yaml}, {path: feeds/**}]", &files, &["a", "c", "b"]);
    delivers("[{path: '**', exclude: ['feeds/**']}]", &files, &["d"]);
}

#[test]
fn a_path_cannot_leave_the_repository() {
    for path in ["/etc", "../x", "a/../../x", "~/x", "C:/x"] {
        let feeds = format!("[{{path: '{path}'}}]");
        held(
            &feeds,
            &[],
            &["subscriptions/app.yaml:6 Error PathOutside spec.feeds[0].path"],
        );
    }
    held(
        "[{path: 'a//b'}]",
        &[],
        &["subscriptions/app.yaml:6 Error FieldInvalid spec.feeds[0].path"],
    );
    held(
        "[{path: 'a/[b'}]",
        &[],
        &["subscriptions/app.yaml:6 Error FieldInvalid spec.feeds[0].path"],
    );
}

#[test]
fn a_path_without_objects_holds_the_unit() {
    let expected = ["subscriptions/app.yaml:6 Error FeedMatchesNothing spec.feeds[0]"];
    held("[{path: feeds/new}]", &[], &expected);
    held("[{path: feeds/new}]", &[("feeds/new/README.md", "x")], &expected);
    held(
        "[{path: feeds/new}]",
        &[("feeds/new/empty.yaml", "# nothing\n---\n")],
        &expected,
    );
}

#[test]
fn a_selector_finds_objects_by_label() {
    let (a, b) = (config_map("a"), config_map("b"));
    let files = [("x/a.yaml", a.as_str()), ("b.yaml", b.as_str())];
    delivers("[{selector: {matchLabels: {app: a}}}]", &files, &["a"]);
    delivers(
        "[{selector: {matchExpressions: [{key: app, operator: Exists}]}}]",
        &files,
        &["b", "a"],
    );
    delivers(
        "[{selector: {matchLabels: {app: b}}, kind: ConfigMap, namespace: shop}]",
        &files,
        &["b"],
    );
    let nothing = ["subscriptions/app.yaml:6 Error FeedMatchesNothing spec.feeds[0]"];
    held("[{selector: {matchLabels: {app: b}}, kind: Secret}]", &files, &nothing);
    let empty = ["subscriptions/app.yaml:6 Error FieldInvalid spec.feeds[0].selector"];
    let (fleet, _) = repository("[{selector: {}}]", &files);
    assert_eq!(shown(&unit(&fleet).blocked)[..1], empty);
}

#[test]
fn what_is_no_object_holds_a_unit_that_selects_it_and_nobody_else() {
    let good = config_map("good");
    let values = "image: {tag: x}\n";
    let files = [("feeds/good.yaml", good.as_str()), ("feeds/values.yaml", values)];
    held("[{path: feeds}]", &files, &["feeds/values.yaml:1 Error NotAnObject"]);
    delivers("[{path: feeds, exclude: ['**/values.yaml']}]", &files, &["good"]);
    delivers("[{apiVersion: v1, kind: ConfigMap, name: good}]", &files, &["good"]);
}

#[track_caller]
fn refused(document: &str, expected: &str) {
    held("[{path: feeds}]", &[("feeds/x.yaml", document)], &[expected]);
}

#[test]
fn documents_that_name_no_object_are_refused_with_their_line() {
    refused(
        "# c\n---\napiVersion: v1\nkind: 7\n",
        "feeds/x.yaml:3 Error NotAnObject",
    );
    refused(
        "kind: ConfigMap\nmetadata: {name: x}\n",
        "feeds/x.yaml:1 Error NotAnObject",
    );
    refused("just text\n", "feeds/x.yaml:1 Error NotAnObject");
    refused("- a\n", "feeds/x.yaml:1 Error NotAnObject");
    refused(
        "apiVersion: v1\nkind: ConfigMap\n",
        "feeds/x.yaml:1 Error NameMissing metadata.name",
    );
    refused(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 12}\n",
        "feeds/x.yaml:1 Error NameInvalid metadata.name",
    );
    for name in [
        "..",
        "a/b",
        "a?force=true",
        "a%2fstatus",
        "a#b",
        "a b",
        "\\e[31m",
        "caf\u{e9}",
    ] {
        refused(
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"{name}\"}}\n"),
            "feeds/x.yaml:1 Error NameInvalid metadata.name",
        );
    }
    for head in [
        "apiVersion: v1\nkind: \"A\\eB\"",
        "apiVersion: a/b/c\nkind: A",
        "apiVersion: \"v1?\"\nkind: A",
    ] {
        refused(
            &format!("{head}\nmetadata: {{name: x}}\n"),
            "feeds/x.yaml:1 Error NotAnObject",
        );
    }
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: once-}\n";
    refused(job, "feeds/x.yaml:1 Error GenerateName metadata.generateName");
}

#[test]
fn errors_of_one_unit_are_counted_beyond_a_limit() {
    let text = "kind: x\n---\n".repeat(500);
    let (fleet, _) = repository("[{path: feeds}]", &[("feeds/x.yaml", &text)]);
    let blocked = &unit(&fleet).blocked;
    assert_eq!(blocked.len(), crate::limits::FINDINGS_PER_FILE_MAX + 1);
    assert_eq!(blocked.last().unwrap().message, "and 480 more errors of this unit");
}

#[test]
fn one_object_twice_in_a_unit_is_refused_in_whatever_versions() {
    let old = "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, namespace: d}\n";
    let both = format!("{old}---\n{}", old.replace("v1", "v2"));
    let expected = ["subscriptions/app.yaml:6 Error ObjectTwice spec.feeds[0]"];
    held("[{path: feeds}]", &[("feeds/x.yaml", &both)], &expected);
    held(
        "[{path: feeds}]",
        &[("feeds/x.yaml", old), ("feeds/y.yaml", old)],
        &expected,
    );
}

#[test]
fn two_units_may_deliver_what_one_may_not() {
    let one = config_map("one");
    let (fleet, _) = repository(
        "[{path: feeds/a}]",
        &[("feeds/a/x.yaml", &one), ("feeds/b/x.yaml", &one)],
    );
    assert!(unit(&fleet).blocked.is_empty());
}

#[test]
fn a_kustomization_is_never_applied() {
    let (good, text) = (config_map("good"), "resources: [good.yaml]\n");
    let files = [("feeds/good.yaml", good.as_str()), ("feeds/kustomization.yaml", text)];
    held(
        "[{path: feeds}]",
        &files,
        &["subscriptions/app.yaml:6 Error Kustomization spec.feeds[0]"],
    );
    delivers(
        "[{path: feeds, exclude: [feeds/kustomization.yaml]}]",
        &files,
        &["good"],
    );
}

#[test]
fn templates_of_a_chart_are_no_manifests() {
    let good = config_map("good");
    let files = [
        ("feeds/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        (
            "feeds/web/templates/d.yaml",
            "{{- if .Values.on }}\nkind: x\n{{- end }}\n",
        ),
        ("feeds/good.yaml", good.as_str()),
    ];
    delivers("[{path: feeds/*.yaml}]", &files, &["good"]);
    held(
        "[{path: feeds, exclude: ['**/Chart.yaml']}]",
        &files,
        &["subscriptions/app.yaml:6 Error ChartInFeed spec.feeds[0]"],
    );
}

#[test]
fn rules_that_cannot_be_read_hold_the_units_of_their_folder() {
    let of = |name: &str, path: &str| {
        subscription(&format!("[{{path: '{path}'}}]"))
            .replace("name: app, namespace: team", &format!("name: {name}, namespace: team"))
    };
    let (held, free) = (of("held", "a/**"), of("free", "b/**"));
    let (x, y) = (config_map("one"), config_map("two"));
    let files = [
        ("s1.yaml", held.as_str()),
        ("s2.yaml", &free),
        ("a/x.yaml", &x),
        ("b/y.yaml", &y),
    ];
    let mut tree = tree(&files);
    tree.files
        .insert("a/.flotillaignore".into(), SourceEntry::Symlink("../rules".into()));
    let (fleet, findings) = load(&tree, &Previous::default());
    let blocked: Vec<bool> = fleet.units.values().map(|unit| !unit.blocked.is_empty()).collect();
    assert_eq!(blocked, [false, true], "free, held: {findings:#?}");
    assert!(
        findings.iter().any(|finding| finding.reason == "IgnoreRulesUnreadable"),
        "{findings:#?}"
    );
}

#[test]
fn ignore_files_leave_out_as_git_does() {
    let (a, b) = (config_map("a"), config_map("b"));
    let files = [
        (".flotillaignore", "*.tmpl.yaml\n/feeds/old/\n!keep.tmpl.yaml\n"),
        ("feeds/a.yaml", a.as_str()),
        ("feeds/x.tmpl.yaml", "{{ bad"),
        ("feeds/old/y.yaml", "{{ bad"),
        ("feeds/keep.tmpl.yaml", b.as_str()),
        ("feeds/sub/.flotillaignore", "z.yaml\n"),
        ("feeds/sub/z.yaml", "{{ bad"),
    ];
    delivers("[{path: feeds}]", &files, &["a", "b"]);
    assert!(loaded(&files).0.unreadable.is_empty(), "what is left out is not read");
}

#[test]
fn hidden_folders_are_read_only_where_a_feed_names_them() {
    let (a, b) = (config_map("a"), config_map("b"));
    let files = [
        ("feeds/.hidden/a.yaml", a.as_str()),
        ("feeds/b.yaml", b.as_str()),
        (".github/ci.yaml", "{{ bad"),
    ];
    delivers("[{path: feeds}]", &files, &["b"]);
    delivers("[{path: feeds/.hidden/**}]", &files, &["a"]);
    delivers("[{path: 'feeds/.hid*/*.yaml'}]", &files, &["a"]);
}

#[test]
fn lists_are_taken_apart_and_their_items_inherit() {
    let list = "apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: l1}
- apiVersion: v1
  kind: List
  items: [{apiVersion: v1, kind: Secret, metadata: {name: l2}}]
- apiVersion: v1
  kind: ConfigMapList
  items:
  - metadata: {name: l3}
";
    delivers("[{path: feeds}]", &[("feeds/x.yaml", list)], &["l1", "l2", "l3"]);
    let (fleet, _) = repository("[{path: feeds}]", &[("feeds/x.yaml", list)]);
    let last = &unit(&fleet).base.objects[2];
    assert_eq!(
        (last.key.kind.as_str(), last.api_version.as_str(), last.line),
        ("ConfigMap", "v1", 13)
    );
    assert_eq!(last.value["kind"], "ConfigMap");
}

#[test]
fn encrypted_documents_keep_their_own_text() {
    let secret = "# kept\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  k: ENC[AES256_GCM,data:x]\nsops:\n  mac: ENC[y]\n";
    let text = format!("{}---\n{secret}---\n{}", config_map("a"), config_map("b"));
    let (fleet, _) = repository("[{path: feeds}]", &[("feeds/x.yaml", &text)]);
    let object = &unit(&fleet).base.objects[1];
    assert_eq!(object.original.as_deref(), Some(secret));
    assert_eq!(object.value.get("data"), None, "nothing but what identifies it is read");
    assert_eq!(unit(&fleet).base.objects[0].original, None);
}

#[test]
fn numbers_that_may_be_text_are_warned_of_without_showing_secrets() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels:\n    tag: 706798e8\n";
    let (_, findings) = repository("[{path: feeds}]", &[("feeds/x.yaml", pod)]);
    assert_eq!(
        shown(&findings),
        ["feeds/x.yaml:6 Warning UnquotedNumber metadata.labels.tag"]
    );
    assert!(findings[0].message.contains("706798e8"), "{}", findings[0]);
    let secret = pod.replace("Pod", "Secret");
    let (_, findings) = repository("[{path: feeds}]", &[("feeds/x.yaml", &secret)]);
    assert!(!findings[0].message.contains("706798"), "{}", findings[0]);
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n  stringData: {pin: 1e5}\n";
    let (_, findings) = repository("[{path: feeds}]", &[("feeds/x.yaml", list)]);
    assert_eq!(reasons(&findings), ["UnquotedNumber"]);
    assert!(!findings[0].message.contains("1e5"), "{}", findings[0]);
}

#[test]
fn an_encrypted_object_inside_a_list_holds_the_unit() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n  sops: {mac: x}\n";
    let (fleet, _) = repository("[{path: feeds}]", &[("feeds/x.yaml", list)]);
    assert_eq!(reasons(&unit(&fleet).blocked), ["NotAnObject"]);
}

#[test]
fn a_chart_is_delivered_as_any_other_object() {
    let chart = "apiVersion: apps.clusternet.io/v1alpha1\nkind: HelmChart\nmetadata: {name: mysql}\nspec: {repo: 'https://x', chart: mysql, targetNamespace: abc}\n";
    let feeds = "[{apiVersion: apps.clusternet.io/v1alpha1, kind: HelmChart, name: mysql}]";
    let (fleet, findings) = repository(feeds, &[("c.yaml", chart)]);
    assert_eq!(names(unit(&fleet)), ["mysql"]);
    assert_eq!(findings, []);
    let wrong = chart.replace("targetNamespace", "namespace");
    let (fleet, findings) = repository(feeds, &[("c.yaml", &wrong)]);
    assert_eq!(reasons(&unit(&fleet).blocked), ["FeedMatchesNothing"]);
    let fields: Vec<_> = findings.iter().map(|finding| finding.field.as_str()).collect();
    assert_eq!(fields, ["spec.namespace", "spec.targetNamespace", "spec.feeds[0]"]);
}

#[track_caller]
fn with_entries(feeds: &str, files: &[(&str, &str)], entries: &[(&str, SourceEntry)]) -> (Fleet, Vec<Finding>) {
    let subscription = subscription(feeds);
    let mut tree = tree(&[("clusters/a.yaml", CLUSTER), ("subscriptions/app.yaml", &subscription)]);
    tree.files.extend(super::tree(files).files);
    tree.files
        .extend(entries.iter().map(|(path, entry)| (Arc::from(*path), entry.clone())));
    load(&tree, &Previous::default())
}

fn link(target: &str) -> SourceEntry {
    SourceEntry::Symlink(target.into())
}

#[test]
fn symlinks_are_followed_inside_the_repository_only() {
    let one = config_map("one");
    let files = [("shared/one.yaml", one.as_str())];
    let (fleet, _) = with_entries(
        "[{path: feeds}]",
        &files,
        &[("feeds/x.yaml", link("../shared/one.yaml"))],
    );
    assert_eq!(names(unit(&fleet)), ["one"]);
    let by_folder = [("link", link("shared")), ("feeds/x.yaml", link("../link/one.yaml"))];
    let (fleet, _) = with_entries("[{path: feeds}]", &files, &by_folder);
    assert_eq!(names(unit(&fleet)), ["one"]);
    for (target, reason) in [
        ("/etc/passwd", "SymlinkOutside"),
        ("../../x.yaml", "SymlinkOutside"),
        ("nowhere.yaml", "SymlinkDangling"),
        ("x.yaml", "SymlinkLoop"),
        ("../shared", "SymlinkToFolder"),
    ] {
        let (fleet, _) = with_entries("[{path: feeds}]", &files, &[("feeds/x.yaml", link(target))]);
        assert!(
            reasons(&unit(&fleet).blocked).contains(&reason),
            "{target}: {:?}",
            unit(&fleet).blocked
        );
        assert_eq!(
            fleet.unreadable,
            [Arc::from("feeds/x.yaml")],
            "what it was stands in for it"
        );
    }
}

#[test]
fn submodules_and_large_files_hold_the_unit() {
    let one = config_map("one");
    let files = [("feeds/one.yaml", one.as_str())];
    let (fleet, _) = with_entries("[{path: feeds}]", &files, &[("feeds/sub", SourceEntry::Submodule)]);
    assert_eq!(reasons(&unit(&fleet).blocked), ["Submodule"]);
    let (fleet, findings) = with_entries(
        "[{path: feeds}]",
        &files,
        &[("feeds/big.yaml", SourceEntry::TooLarge(9 << 20))],
    );
    assert_eq!(reasons(&unit(&fleet).blocked), ["FeedUnreadable"]);
    assert!(reasons(&findings).contains(&"FileTooLarge"));
}
