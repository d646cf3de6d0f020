//! HelmCharts whose chart stands in the repository.

use super::*;
use crate::describe::Content;
use crate::schedule::Divided;

const CHART: &str = "apiVersion: fleet.flotilla.dev/v1alpha1
kind: HelmChart
metadata: {name: web}
spec:
  path: feeds/charts/web
  targetNamespace: shop
";

const FEEDS: &str = "[{apiVersion: fleet.flotilla.dev/v1alpha1, kind: HelmChart, name: web}]";

const FILES: [(&str, &str); 7] = [
    (
        "feeds/charts/web/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    ),
    ("feeds/charts/web/values.yaml", "replicas: 1\n"),
    ("feeds/charts/web/.helmignore", "ci/\n"),
    ("feeds/charts/web/ci/test-values.yaml", "a: {\n"),
    (
        "feeds/charts/web/templates/web.yaml",
        "replicas: {{ .Values.replicas }}\n",
    ),
    (
        "feeds/charts/web/crds/thing.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-the-chart, labels: {app: web}}\n",
    ),
    (
        "feeds/charts/webby/Chart.yaml",
        "apiVersion: v2\nname: webby\nversion: 1.0.0\n",
    ),
];

fn source(feeds: &str, chart: &str, files: &[(&str, &str)]) -> SourceTree {
    let subscription = subscription(feeds);
    let mut all = tree(&[
        ("clusters/a.yaml", CLUSTER),
        ("subscriptions/app.yaml", &subscription),
        ("feeds/web.yaml", chart),
    ]);
    all.files.extend(tree(files).files);
    all
}

fn load_all(tree: &SourceTree) -> (Fleet, Vec<Finding>) {
    load(tree, &Previous::default())
}

#[test]
fn a_chart_folder_travels_with_its_helm_chart() {
    let (fleet, findings) = load_all(&source(FEEDS, CHART, &FILES));
    assert_eq!(shown(&findings), [] as [&str; 0]);
    let object = &unit(&fleet).base.objects[0];
    let chart = object.chart.as_ref().expect("its files are with it");
    let paths: Vec<_> = chart.iter().map(|(path, _)| path).collect();
    let expected = [
        ".helmignore",
        "Chart.yaml",
        "crds/thing.yaml",
        "templates/web.yaml",
        "values.yaml",
    ];
    assert_eq!(paths, expected, "what .helmignore leaves out stays behind");
    let description =
        crate::localize::localize(&unit(&fleet).base, &[], &Divided::none()).expect("nothing is overridden");
    let Content::Chart { object, files } = &description.objects[0].content else {
        unreachable!("it is a chart with files")
    };
    assert_eq!((&object["spec"]["path"], files), (&"feeds/charts/web".into(), chart));
}

#[test]
fn the_files_of_a_named_chart_are_no_manifests() {
    // Neither are its broken files anybody's mistake, nor its values in the way of the feed around it.
    let (fleet, findings) = load_all(&source(
        "[{path: feeds, exclude: ['feeds/charts/webby/**']}]",
        CHART,
        &FILES,
    ));
    assert_eq!(shown(&findings), [] as [&str; 0]);
    assert_eq!(names(unit(&fleet)), ["web"]);
    let by_label = "[{selector: {matchLabels: {app: web}}}]";
    let (fleet, _) = load_all(&source(by_label, CHART, &FILES));
    assert_eq!(reasons(&unit(&fleet).blocked), ["FeedMatchesNothing"]);
    // Without a HelmChart that names it, the folder is as every other.
    let (fleet, _) = load_all(&source(by_label, &config_map("one"), &FILES));
    assert_eq!(names(unit(&fleet)), ["of-the-chart"]);
}

#[test]
fn a_helm_chart_may_stand_inside_its_own_chart() {
    let mut files = FILES.to_vec();
    files.push(("feeds/charts/web/deliver.yaml", CHART));
    let (fleet, findings) = load_all(&source(FEEDS, &config_map("one"), &files));
    assert_eq!(shown(&findings), [] as [&str; 0]);
    assert_eq!(names(unit(&fleet)), ["web"]);
}

#[test]
fn a_template_changes_the_digest_of_its_unit_alone() {
    let (before, _) = load_all(&source(FEEDS, CHART, &FILES));
    let mut files = FILES;
    files[4].1 = "replicas: {{ .Values.replicas | int }}\n";
    let (after, _) = load_all(&source(FEEDS, CHART, &files));
    assert_ne!(unit(&before).base.digest, unit(&after).base.digest);
    files[4].1 = FILES[4].1;
    files[6].1 = "apiVersion: v2\nname: webby\nversion: 2.0.0\n";
    files[3].1 = "b: {\n";
    let (same, _) = load_all(&source(FEEDS, CHART, &files));
    assert_eq!(unit(&before).base.digest, unit(&same).base.digest);
}

#[test]
fn a_chart_that_did_not_change_is_read_once() {
    let tree = source(FEEDS, CHART, &FILES);
    let mut memo = LoadMemo::default();
    let charts = [0, 1].map(|_| {
        let (fleet, _) = load_with(&tree, &Previous::default(), &mut memo);
        unit(&fleet).base.objects[0]
            .chart
            .clone()
            .expect("its files are with it")
    });
    assert!(Arc::ptr_eq(&charts[0], &charts[1]));
}

#[track_caller]
fn check_refused(chart: &str, tree: SourceTree, expected: &[&str]) {
    let (fleet, findings) = load_all(&tree);
    assert_eq!(shown(&findings), expected, "{chart}");
    assert_eq!(
        unit(&fleet).blocked.len(),
        expected.len(),
        "and the unit keeps what it has"
    );
}

#[test]
fn a_folder_that_is_no_chart_holds_the_unit() {
    let missing = CHART.replace("feeds/charts/web", "feeds/charts/wen");
    check_refused(
        "no folder",
        // Nobody names this chart, so that its files are as all others: the broken one is left away.
        source(FEEDS, &missing, &FILES[..3]),
        &["feeds/web.yaml:5 Error ChartMissing spec.path"],
    );
    check_refused(
        "no Chart.yaml",
        source(FEEDS, CHART, &FILES[1..3]),
        &["feeds/web.yaml:5 Error ChartMissing spec.path"],
    );
    for text in [
        "apiVersion: v2\nname: web\n",
        "name: {\n",
        "apiVersion: v2\nname: web\nversion: 1.0.0\ntype: library\n",
    ] {
        let mut files = FILES;
        files[0].1 = text;
        check_refused(
            text,
            source(FEEDS, CHART, &files),
            &["feeds/web.yaml:5 Error ChartUnreadable spec.path"],
        );
    }
    let named = format!("{CHART}  chart: shop\n");
    check_refused(
        "another name",
        source(FEEDS, &named, &FILES),
        &["feeds/web.yaml:7 Error ChartNameDiffers spec.chart"],
    );
    let named = format!("{CHART}  chart: web\n");
    let (_, findings) = load_all(&source(FEEDS, &named, &FILES));
    assert_eq!(shown(&findings), [] as [&str; 0]);
}

#[test]
fn what_cannot_travel_holds_the_unit() {
    let large = SourceEntry::TooLarge(9 << 20);
    let lfs = SourceFile::from_bytes(&b"version https://git-lfs.github.com/spec/v1\n"[..]);
    for (entry, reason) in [
        (SourceEntry::Symlink("../values.yaml".into()), "ChartSymlink"),
        (SourceEntry::Submodule, "Submodule"),
        (SourceEntry::BadName, "BadName"),
        (SourceEntry::File(lfs), "LfsPointer"),
        (large, "ChartTooLarge"),
    ] {
        let mut tree = source(FEEDS, CHART, &FILES);
        tree.files
            .insert("feeds/charts/web/templates/other.yaml".into(), entry.clone());
        let expected = format!("feeds/web.yaml:5 Error {reason} spec.path");
        check_refused(reason, tree.clone(), &[&expected]);
        // Left out by the chart's own rules it is in nobody's way.
        let rules = SourceFile::from_bytes(&b"ci/\nother.yaml\n"[..]);
        tree.files
            .insert("feeds/charts/web/.helmignore".into(), SourceEntry::File(rules));
        let (_, findings) = load_all(&tree);
        assert_eq!(shown(&findings), [] as [&str; 0]);
    }
    let many = (0..crate::limits::CHART_FILES_MAX).map(|number| format!("feeds/charts/web/files/{number}"));
    let mut tree = source(FEEDS, CHART, &FILES);
    for path in many {
        tree.files
            .insert(path.into(), SourceEntry::File(SourceFile::from_bytes(&b""[..])));
    }
    check_refused("many", tree, &["feeds/web.yaml:5 Error ChartTooLarge spec.path"]);
    let mut files = FILES;
    files[2].1 = "charts/**\n";
    check_refused(
        "rules",
        source(FEEDS, CHART, &files),
        &["feeds/web.yaml:5 Error ChartUnreadable spec.path"],
    );
}

#[track_caller]
fn check_spec(spec: &str, expected: &[&str]) {
    let chart =
        format!("apiVersion: fleet.flotilla.dev/v1alpha1\nkind: HelmChart\nmetadata: {{name: web}}\nspec: {spec}\n");
    let (_, mut findings) = load_all(&source(FEEDS, &chart, &FILES[..3]));
    findings.retain(|finding| finding.reason != "FeedMatchesNothing");
    let shown: Vec<_> = findings
        .iter()
        .map(|finding| {
            format!(
                "{:?} {} {}: {}",
                finding.severity, finding.reason, finding.field, finding.message
            )
        })
        .collect();
    assert_eq!(shown, expected, "{spec}");
}

#[test]
fn a_chart_is_of_a_folder_or_of_a_repository() {
    check_spec("{path: feeds/charts/web, targetNamespace: a}", &[]);
    check_spec("{path: ./feeds/charts/web/, targetNamespace: a}", &[]);
    check_spec(
        "{path: feeds/charts/web, repo: 'https://x', targetNamespace: a}",
        &["Error FieldInvalid spec.repo: is for a chart of a repository, and path names a folder of this one"],
    );
    check_spec(
        "{targetNamespace: a}",
        &[
            "Error FieldMissing spec.chart: chart is missing",
            "Error FieldMissing spec.repo: repo is missing",
        ],
    );
    check_spec(
        "{path: ../web, targetNamespace: a}",
        &[
            "Error PathOutside spec.path: a path starts at the root of the repository, without a slash, and cannot leave it",
        ],
    );
    check_spec(
        "{path: 'feeds/charts/*', targetNamespace: a}",
        &["Error FieldInvalid spec.path: must be one folder, and not a glob"],
    );
}

#[test]
fn options_of_a_release_are_checked() {
    let fits = "values: {a: {b: null}}, releaseName: shop-web, historyMax: 3, crds: CreateReplace, timeoutSeconds: 9";
    check_spec(&format!("{{path: feeds/charts/web, targetNamespace: a, {fits}}}"), &[]);
    let wrong = |fields: &str, expected: &[&str]| {
        check_spec(
            &format!("{{path: feeds/charts/web, targetNamespace: a, {fields}}}"),
            expected,
        );
    };
    wrong(
        "values: [a]",
        &["Error FieldType spec.values: must be a map, not a list"],
    );
    wrong(
        "historyMax: 0",
        &["Error FieldInvalid spec.historyMax: must be from 1 to 100, not 0"],
    );
    wrong(
        "releaseName: Web",
        &[
            "Error FieldInvalid spec.releaseName: must be lower case letters, digits, - and ., at most 53, as Helm has them",
        ],
    );
    wrong(
        "crds: Skip, replaceCRDs: true",
        &["Error FieldInvalid spec.replaceCRDs: says it in other words than crds, which is there too"],
    );
    wrong(
        "skipCRDs: true, replaceCRDs: true",
        &["Warning NoEffect spec.replaceCRDs: is without effect beside skipCRDs"],
    );
    wrong(
        "overrides: e30=",
        &["Error NotSupported spec.overrides: is a field of HelmRelease"],
    );
    check_spec(
        "{repo: 'https://x', chart: a, version: 1.0.0, digest: abc, targetNamespace: a}",
        &["Error FieldInvalid spec.digest: must be sha256: and 64 hex digits"],
    );
}
