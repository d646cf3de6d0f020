//! Case helm-004: values mean what they mean to Helm, whatever they passed through on their way.
//!
//! Each case is a list of values: those of the HelmChart, then of steps of type Helm, one after the other. The chart is
//! rendered twice by the real helm: with each of them as a file of its own, and with what came through the
//! repository, the overrides and the wire. Both texts must be the same. The one number that comes out in another form is
//! -0.0, which is 0 in every manifest that we read.

use std::fs;
use std::path::{Path, PathBuf};

use flotilla_tests::{Output, parts, scratch};
use render::chart::{ChartFiles, ChartOrder};
use render::describe::{Content, Description};
use render::load::load;
use render::localize::localize;
use render::schedule::Divided;
use render::{Previous, Revision, SourceTree, UnitKey};
use serde_json::json;

/// A chart with three subcharts: one under two names, with a condition, and one by tags.
const CHART: [(&str, &str); 9] = [
    (
        "Chart.yaml",
        "apiVersion: v2
name: shop
version: 1.0.0
dependencies:
- {name: sub, version: 0.1.0, condition: sub.enabled}
- {name: sub, version: 0.1.0, alias: front, condition: front.enabled, tags: [web]}
- {name: tagged, version: 0.1.0, tags: [extra], import-values: [data, {child: inner, parent: taken}]}
",
    ),
    (
        "values.yaml",
        "x: default
on: {flag: true}
nested: {a: 1, b: {c: 2, d: [1, 2]}}
global: {env: prod, deep: {g: 1}}
sub: {securityContext: {runAsUser: 1000}, own: {p: parent}}
front: {enabled: true, name: front}
",
    ),
    ("templates/all.yaml", TEMPLATE),
    ("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 0.1.0\n"),
    (
        "charts/sub/values.yaml",
        "securityContext: {runAsUser: 472, fsGroup: 1}\nlist: [a, b]\nown: {q: child}\nglobal: {ofSub: 1}\n",
    ),
    ("charts/sub/templates/all.yaml", TEMPLATE),
    (
        "charts/tagged/Chart.yaml",
        "apiVersion: v2\nname: tagged\nversion: 0.1.0\n",
    ),
    (
        "charts/tagged/values.yaml",
        "exports: {data: {exported: {e: 1, f: 2}}}\ninner: {i: 1, j: {k: 2}}\nplain: true\n",
    ),
    ("charts/tagged/templates/all.yaml", TEMPLATE),
];

/// Every value with its type, as templates see it.
const TEMPLATE: &str = "all: {{ toJson .Values }}
types: {{ range $key, $value := .Values }}{{ $key }}={{ kindOf $value }},{{ end }}
plain: {{ .Values.x }} {{ .Values.number }}
";

/// What it is about, and the values.
const CASES: [(&str, &[&str]); 64] = [
    ("nothing", &["{}"]),
    ("a value", &["{x: mine}"]),
    ("null takes a default away", &["{x: null}"]),
    ("null of what is not there", &["{absent: null}"]),
    ("null, level two", &["{nested: {a: null}}"]),
    ("null, level three", &["{nested: {b: {c: null}}}"]),
    ("null of a whole map", &["{nested: null}"]),
    ("null of an inner map", &["{nested: {b: null}}"]),
    ("null of a list", &["{nested: {b: {d: null}}}"]),
    ("null inside a list", &["{nested: {b: {d: [null, 1]}}}"]),
    ("null inside a map of a list", &["{items: [{a: null, b: 1}]}"]),
    ("null in a later file", &["{x: one}", "{x: null}"]),
    ("null in an earlier file", &["{x: null}", "{x: two}"]),
    ("null twice", &["{x: null}", "{x: null}"]),
    ("null between", &["{x: one}", "{x: null}", "{x: three}"]),
    (
        "null of what only a file has",
        &["{mine: {a: 1, b: 2}}", "{mine: {a: null}}"],
    ),
    ("null of a file's map", &["{mine: {a: 1}}", "{mine: null}"]),
    ("null of a map, then a map", &["{nested: null}", "{nested: {z: 1}}"]),
    (
        "null over a default and a file, level two",
        &["{nested: {a: 9}}", "{nested: {a: null}}"],
    ),
    (
        "null over a default and a file, level three",
        &["{nested: {b: {c: 9}}}", "{nested: {b: {c: null}}}"],
    ),
    ("maps merge", &["{nested: {a: 9}}", "{nested: {b: {c: 8}}}"]),
    (
        "lists are replaced",
        &["{nested: {b: {d: [9]}}}", "{nested: {b: {d: [8, 7]}}}"],
    ),
    ("an empty list", &["{nested: {b: {d: []}}}"]),
    ("an empty map changes nothing", &["{nested: {}}"]),
    ("an empty map over a value", &["{x: {}}"]),
    ("a map over a value", &["{x: {y: 1}}"]),
    ("a value over a map", &["{nested: 1}"]),
    ("a value over a map, then a map", &["{nested: 1}", "{nested: {a: 2}}"]),
    ("a list over a map", &["{nested: [1]}"]),
    ("false over true", &["{on: {flag: false}}"]),
    ("empty text over a value", &["{x: ''}"]),
    ("zero over a value", &["{x: 0}"]),
    ("a subchart's default", &["{sub: {securityContext: {runAsUser: 1}}}"]),
    ("null for a subchart", &["{sub: {securityContext: {runAsUser: null}}}"]),
    (
        "null for what only the subchart has",
        &["{sub: {securityContext: {fsGroup: null}}}"],
    ),
    ("null for a subchart's map", &["{sub: {securityContext: null}}"]),
    ("null for a subchart's list", &["{sub: {list: null}}"]),
    ("null for all of a subchart", &["{sub: null}"]),
    (
        "null for a subchart in a later file",
        &["{sub: {list: [z]}}", "{sub: {list: null}}"],
    ),
    ("null for a map that parent and subchart have", &["{sub: {own: null}}"]),
    ("null for the parent's key of it", &["{sub: {own: {p: null}}}"]),
    ("null for the subchart's key of it", &["{sub: {own: {q: null}}}"]),
    ("a condition off", &["{front: {enabled: false}}"]),
    (
        "a condition off, then on",
        &["{front: {enabled: false}}", "{front: {enabled: true}}"],
    ),
    ("a condition null", &["{front: {enabled: null}}"]),
    ("a condition that is text", &["{front: {enabled: 'false'}}"]),
    (
        "a condition where there is none by default",
        &["{sub: {enabled: false}}"],
    ),
    ("a tag off, and the condition first", &["{tags: {web: false}}"]),
    ("a tag off", &["{tags: {extra: false}}"]),
    ("a tag null", &["{tags: {extra: null}}"]),
    ("tags off, then null", &["{tags: {extra: false}}", "{tags: null}"]),
    (
        "an alias has its own values",
        &["{front: {list: [f]}, sub: {list: [s]}}"],
    ),
    (
        "null under an alias",
        &["{front: {securityContext: {runAsUser: null}, name: null}}"],
    ),
    ("an imported value", &["{exported: {e: 9}, taken: {i: 9}}"]),
    ("null of an imported value", &["{exported: {e: null}}"]),
    ("null of an imported map", &["{taken: {j: null}}"]),
    ("null where it is imported from", &["{tagged: {inner: {i: null}}}"]),
    ("a global", &["{global: {env: test, deep: {g: 2, h: 3}}}"]),
    ("null of a global", &["{global: {env: null}}"]),
    ("null of a global of a subchart", &["{global: {ofSub: null}}"]),
    (
        "null of a global, level two, in a later file",
        &["{global: {deep: {g: 5}}}", "{global: {deep: {g: null}}}"],
    ),
    ("a global under a subchart", &["{sub: {global: {env: inner}}}"]),
    (
        "numbers, booleans and texts that look like them",
        &[
            "{number: 1000000, x: 1.0, a: 1e3, b: '1e3', c: 0x10, d: '0x10', e: 010, f: yes, g: 'yes', h: on, i: 1_000, \
           j: 9007199254740993, k: -0.5, l: 1.50, m: .5, n: 2001-01-01, o: 1:30, p: ~, q: '~', r: 'null', s: 0o17, t: 0b11}",
        ],
    ),
    (
        "characters that YAML treats in its own way",
        &[
            "{number: \"a\\u2028b\\u0085c\\u00a0d\\ufeffe\\tf\\u007f\\U0001F600\", x: \"line\\nline \\n\", a: \"'\\\"\\\\\", b: '#x: y', 'c.d/e': {'1': a, 'true': b}}",
        ],
    ),
];

#[test]
fn values_mean_what_they_mean_to_helm() {
    let folder = scratch::folder("helm-values");
    let chart = folder.join("chart");
    for (path, text) in CHART {
        let file = chart.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let mut differing = Vec::new();
    for (number, (about, values)) in CASES.iter().enumerate() {
        let files: Vec<PathBuf> = values
            .iter()
            .enumerate()
            .map(|(index, text)| {
                let file = folder.join(format!("{number}-{index}.yaml"));
                fs::write(&file, text).unwrap();
                file
            })
            .collect();
        let expected = rendered(&chart, &files);
        let ours = folder.join(format!("{number}.json"));
        fs::write(&ours, through_the_house(values)).unwrap();
        let found = rendered(&chart, &[ours]);
        if expected != found {
            differing.push(format!("## {about}\nhelm:\n{expected}\nours:\n{found}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// What helm makes of the chart, or what it says against it.
fn rendered(chart: &Path, values: &[PathBuf]) -> String {
    let mut helm = parts::command("helm");
    helm.args(["template", "shop"]).arg(chart);
    for file in values {
        helm.arg("--values").arg(file);
    }
    let output = Output::of(&mut helm);
    if output.status.success() {
        output.stdout
    } else {
        output.stderr
    }
}

/// The values that helm is given for a HelmChart with these, and steps of type Helm with the others.
fn through_the_house(values: &[&str]) -> String {
    let (first, steps) = values.split_first().unwrap();
    let chart = format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: HelmChart\nmetadata: {{name: shop}}\n\
         spec:\n  path: feeds/chart\n  targetNamespace: shop\n  values: {first}\n"
    );
    let overrides: Vec<_> = steps
        .iter()
        .map(|value| json!({"type": "Helm", "value": value}))
        .collect();
    let feed = json!({"apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "HelmChart", "name": "shop"});
    let globalization = json!({
        "apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "Globalization", "metadata": {"name": "values"},
        "spec": {"feed": feed, "overrides": overrides},
    });
    let subscription = json!({
        "apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "Subscription",
        "metadata": {"namespace": "shop", "name": "shop"},
        "spec": {"subscribers": [{"clusterAffinity": {}}], "feeds": [feed]},
    });
    let mut files = vec![
        ("feeds/shop.yaml".to_owned(), chart),
        ("globalizations/values.yaml".to_owned(), globalization.to_string()),
        ("subscriptions/shop.yaml".to_owned(), subscription.to_string()),
    ];
    files.extend(CHART.map(|(path, text)| (format!("feeds/chart/{path}"), text.to_owned())));
    let revision = Revision::parse("0".repeat(40)).unwrap();
    let tree = SourceTree::from_files(revision, files);
    let (fleet, findings) = load(&tree, &Previous::default());
    let errors: Vec<_> = findings.iter().filter(|finding| finding.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let unit = &fleet.units[&UnitKey::new("shop", "shop").unwrap()];
    let overrides: Vec<_> = fleet.overrides.iter().collect();
    let described = localize(&unit.base, &overrides, &Divided::none()).unwrap();
    // As an agent reads it.
    let received = Description::from_json(&described.to_json(), described.digest).unwrap();
    let Content::Chart { object, files } = &received.objects[0].content else {
        panic!("the chart travels with its files");
    };
    assert_eq!(ChartFiles::iter(files).count(), CHART.len());
    ChartOrder::of(object).unwrap().values_text()
}
