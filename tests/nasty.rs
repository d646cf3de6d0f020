//! What loading says about YAML that people really have: hard files with their expected verdicts, and
//! Clusternet's own examples.

use std::collections::BTreeMap;
use std::path::Path;

use flotilla_tests::{Output, parts};
use render::fleet::{Fleet, Unit};
use render::name::{Revision, UnitKey};
use render::{Finding, Previous, SourceTree, load, yaml};
use serde_json::Value;

use crate::inputs::with_inputs;

type Files = BTreeMap<String, Vec<u8>>;

/// Every file below a folder, by its path from there.
fn files(root: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
    files
}

fn loaded(files: Files) -> (Fleet, Vec<Finding>) {
    let tree = SourceTree::from_files(Revision::parse("0".repeat(40)).unwrap(), files);
    load::load(&tree, &Previous::default())
}

/// A repository whose one Subscription, `team/app`, delivers the files of `feeds/`.
fn delivering(name: &str, bytes: Vec<u8>, exclude: &str) -> (Unit, Vec<Finding>) {
    let subscription = format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {{name: app, namespace: team}}
spec:
  subscribers: [{{clusterAffinity: {{}}}}]
  feeds: [{{path: feeds/**, exclude: [{exclude}]}}]
"
    );
    let files = [
        ("app.yaml".to_owned(), subscription.into_bytes()),
        (name.to_owned(), bytes),
    ];
    let (mut fleet, findings) = loaded(files.into());
    (
        fleet.units.remove(&UnitKey::new("team", "app").unwrap()).unwrap(),
        findings,
    )
}

/// What ours is where a file's verdict only asks for a stated rule.
const DOCUMENTED: [(&str, &str); 4] = [
    ("34-int-keys.yaml", "ok"),            // a scalar key becomes its text, as in kubectl
    ("37-tags.yaml", "ok"),                // core tags decide, as in kubectl
    ("59-generate-name.yaml", "error"),    // a unit must know what it delivered
    ("74-json-trailing-comma.json", "ok"), // what is no JSON is read as YAML's flow style
];

fn verdict<'e>(file: &str, expected: &'e Value) -> &'e str {
    let verdict = expected["verdict"].as_str().unwrap();
    if verdict != "documented" {
        return verdict;
    }
    let ours = DOCUMENTED.iter().find(|(name, _)| *name == file);
    ours.unwrap_or_else(|| panic!("{file} needs a stated rule")).1
}

#[track_caller]
fn check_verdict(folder: &Path, expected: &Value) {
    let file = expected["file"].as_str().unwrap();
    let bytes = std::fs::read(folder.join(file)).unwrap();
    let started = std::time::Instant::now();
    let (unit, findings) = delivering(&format!("feeds/{file}"), bytes, "");
    assert!(started.elapsed().as_secs() < 10, "{file} costs no time");
    let count = unit.base.objects.len();
    let found = format!("{file}: {count} objects, {:#?}", unit.blocked);
    let wanted = expected["objects"]
        .as_u64()
        .and_then(|count| usize::try_from(count).ok());
    let is_refused = !unit.blocked.is_empty();
    let is_whole = wanted.is_none_or(|wanted| wanted == count) && (!is_refused || count == 0);
    match verdict(file, expected) {
        // What an API server must refuse is delivered whole, for it to judge.
        "ok" | "apply-error" => assert!(is_whole, "{found}"),
        "error" => assert!(is_refused, "{found}"),
        "ok-or-error" => assert!(is_whole || is_refused, "{found}"),
        other => panic!("{file} has the verdict {other}, which no rule here meets"),
    }
    if is_refused {
        let pointed = findings
            .iter()
            .any(|finding| finding.is_error() && !finding.file.is_empty());
        assert!(pointed, "an error says where it is: {found}");
    }
    for object in &unit.base.objects {
        let written = yaml::write(&object.value);
        let back = yaml::read(&written).map(|documents| documents[0].value.clone());
        assert_eq!(back.as_ref(), Ok(&*object.value), "{file} reads back as it was written");
    }
}

#[test]
fn every_nasty_file_gets_its_expected_verdict() {
    with_inputs(52, |root| {
        let folder = root.join("nasty");
        let expected = std::fs::read_to_string(folder.join("EXPECTED.jsonl")).unwrap();
        for line in expected.lines() {
            check_verdict(&folder, &serde_json::from_str(line).unwrap());
        }
    });
}

/// The objects of a file as kubectl reads them.
fn by_kubectl(file: &Path) -> Vec<Value> {
    let mut command = parts::command("kubectl");
    command
        .args(["annotate", "--local", "read-by=kubectl", "-o", "json", "-f"])
        .arg(file);
    let said = Output::of(&mut command).expect_ok();
    let objects = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
    let mut objects: Vec<_> = objects.map(Result::unwrap).collect();
    if let [list] = objects.as_slice()
        && list["kind"] == "List"
    {
        objects = list["items"].as_array().unwrap().clone();
    }
    for object in &mut objects {
        let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.remove("read-by");
        if annotations.is_empty() {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
    }
    objects
}

/// Files that kubectl reads otherwise, each with the reason why ours is right.
const OTHER_THAN_KUBECTL: [&str; 5] = [
    "16-utf16le.yaml",        // ours refuses UTF-16 in plain words
    "17-utf16be.yaml",        // likewise
    "33-integers.yaml",       // kubectl makes a float of what only fits an unsigned integer
    "45-server-fields.yaml",  // kubectl does not show managedFields
    "82-nel-line-break.yaml", // YAML 1.1 folds NEL to a blank, and YAML 1.2 keeps the character
];

#[test]
fn values_are_those_that_kubectl_reads() {
    with_inputs(30, |root| {
        let folder = root.join("nasty");
        let expected = std::fs::read_to_string(folder.join("EXPECTED.jsonl")).unwrap();
        let mut other = Vec::new();
        for line in expected.lines() {
            let expected: Value = serde_json::from_str(line).unwrap();
            let file = expected["file"].as_str().unwrap().to_owned();
            if expected["kubectl_rc"] != 0 || verdict(&file, &expected) == "error" {
                continue;
            }
            let bytes = std::fs::read(folder.join(&file)).unwrap();
            let (unit, _) = delivering(&format!("feeds/{file}"), bytes, "");
            let ours = unit.base.objects.iter().map(|object| (*object.value).clone());
            if ours.collect::<Vec<_>>() != by_kubectl(&folder.join(&file)) {
                other.push(file);
            }
        }
        assert_eq!(other, OTHER_THAN_KUBECTL);
    });
}

#[test]
fn manifests_that_people_deploy_load_whole() {
    let release = "microservices-demo/release/kubernetes-manifests.yaml";
    with_inputs(3, |root| {
        let bytes = std::fs::read(root.join(release)).unwrap();
        let (unit, findings) = delivering("feeds/release.yaml", bytes, "");
        assert!(unit.blocked.is_empty(), "{:#?}", unit.blocked);
        assert!(unit.base.objects.len() > 30, "{} objects", unit.base.objects.len());
        assert!(findings.is_empty(), "{findings:#?}");
        for (name, bytes) in files(&root.join("podinfo/kustomize")) {
            let (unit, _) = delivering(&format!("feeds/{name}"), bytes, "'**/kustomization.yaml'");
            let is_excluded = name == "kustomization.yaml";
            assert_eq!(unit.blocked.is_empty(), !is_excluded, "{name}: {:#?}", unit.blocked);
        }
        for (name, bytes) in files(&root.join("kubernetes-examples")) {
            let (unit, _) = delivering(&format!("feeds/{name}"), bytes, "");
            // Beside manifests lie programs and their settings, which are no objects.
            let expected = |reason: &str| matches!(reason, "FeedMatchesNothing" | "NotAnObject");
            assert!(
                unit.blocked.iter().all(|finding| expected(&finding.reason)),
                "{name}: {:#?}",
                unit.blocked
            );
            let is_guestbook = name.contains("guestbook/") && name.ends_with(".yaml");
            assert!(!is_guestbook || !unit.base.objects.is_empty(), "{name} is a manifest");
        }
    });
}

/// A cluster that carries the ids and the namespace that the examples leave to be filled in.
const CLUSTER: &str = "apiVersion: clusters.clusternet.io/v1beta1
kind: ManagedCluster
metadata: {name: us-west, namespace: clusternet-5l82l, labels: {node.clusternet.io/sample-key: sample-value}}
spec: {clusterId: dc91021d-2361-4f6d-a404-7c33b9e01118, clusterType: StandardCluster, syncMode: Dual}
";

#[track_caller]
fn check_example(root: &Path, folder: &str, errors: &[&str]) {
    let mut files = files(&root.join("clusternet/examples").join(folder));
    files.insert("clusters/us-west.yaml".to_owned(), CLUSTER.as_bytes().to_vec());
    let (_, findings) = loaded(files);
    let found: Vec<_> = findings
        .iter()
        .filter(|finding| finding.is_error())
        .map(|finding| format!("{} {}", finding.reason, finding.field))
        .collect();
    assert_eq!(found, errors, "{folder}: {findings:#?}");
}

#[test]
fn clusternets_examples_load_or_are_refused_by_name() {
    with_inputs(8, |root| {
        for folder in [
            "oci",
            "replication-scheduling",
            "scheduling-with-mcs-api",
            "scheduling-with-nfd/day0",
            "scheduling-with-nfd/day1",
            "static-dividing-scheduling",
            "dynamic-dividing-scheduling",
            "scheduling-group",
        ] {
            check_example(root, folder, &[]);
        }
        check_example(root, "fieldpatch", &["FeedMatchesNothing spec.feeds[0]"]);
    });
}
