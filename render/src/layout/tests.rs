//! The form of a decision as files: what is written is read back.

use proptest::prelude::*;

use super::*;
use crate::published::tests::{entry, placement, revision};
use crate::published::{Cause, RENDER_VERSION};

fn object(value: Value) -> DescribedObject {
    let key = key_of(&value).expect("the object names itself");
    DescribedObject {
        key,
        content: Content::Plain {
            object: Arc::new(value),
        },
        provenance: Vec::new(),
    }
}

fn unit() -> UnitKey {
    "shop/web".parse().expect("a valid unit")
}

#[test]
fn a_decision_reads_back_from_its_files() {
    let published = Published {
        record: Some(ReleaseRecord {
            cause: Cause::SourceCommit,
            source: revision(),
            sequence: Some(3),
            rendered: Some(revision()),
            departed: Default::default(),
            orphaned: Default::default(),
            render_version: RENDER_VERSION,
        }),
        units: BTreeMap::from([(
            unit(),
            placement(&[entry("a", "default", "1"), entry("b", "0123abcd", "2")]),
        )]),
    };
    let mut files = vec![release_file(published.record.as_ref().expect("set above"))];
    files.extend(
        published
            .units
            .iter()
            .map(|(unit, placement)| placement_file(unit, placement)),
    );
    let read = read(files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())));
    assert_eq!(read.expect("what was written is readable"), published);
}

#[test]
fn a_content_reads_back_with_its_digest() {
    let description = Description::new(vec![
        object(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "x"},
            "data": {"yes": "on", "number": "012", "text": "a\nb\n"}}),
        ),
        object(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "system:odd_name"}, "rules": []}),
        ),
        // A field of that name alone encrypts nothing.
        object(json!({"apiVersion": "example.dev/v1", "kind": "Editor", "metadata": {"name": "e"}, "sops": {}})),
    ])
    .expect("the keys differ");
    let files = description_files(&description);
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ClusterRole.rbac.authorization.k8s.io_system%3Aodd%5Fname.yaml",
            "ConfigMap_x_a.yaml",
            "Editor.example.dev_e.yaml",
        ]
    );
    let read = description_from_files(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    assert_eq!(read.expect("what was written is readable"), description);
}

fn chart(files: BTreeMap<Arc<str>, Arc<[u8]>>) -> DescribedObject {
    let chart = object(
        json!({"apiVersion": FLEET_API_VERSION, "kind": "HelmChart", "metadata": {"name": "web"},
        "spec": {"path": "feeds/charts/web", "targetNamespace": "shop", "values": {"a": null}}}),
    );
    let Content::Plain { object } = chart.content else {
        unreachable!("it was made so")
    };
    DescribedObject {
        key: chart.key,
        content: Content::Chart {
            object,
            files: Arc::new(ChartFiles::new(files).expect("it is a chart")),
        },
        provenance: Vec::new(),
    }
}

#[test]
fn the_files_of_a_chart_stand_readable_beside_it() {
    let files = [
        ("Chart.yaml", "name: web\n"),
        ("templates/a.yaml", "{{ x }}\n"),
        ("values.yaml", ""),
    ];
    let files = files.map(|(path, text)| (Arc::from(path), Arc::from(text.as_bytes())));
    let files = description_files(&Description::new(vec![chart(files.into())]).expect("one key"));
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    let stem = "HelmChart.fleet.flotilla.dev_web";
    let expected = [
        ".chart/Chart.yaml",
        ".chart/templates/a.yaml",
        ".chart/values.yaml",
        ".yaml",
    ];
    assert_eq!(names, expected.map(|name| format!("{stem}{name}")));
    assert_eq!(files[1].1, b"{{ x }}\n");
    let without_folder = [(files[3].0.as_str(), files[3].1.as_slice())];
    assert!(
        matches!(description_from_files(without_folder), Err(LayoutError::Chart { .. })),
        "half a chart is none"
    );
}

proptest! {
    #[test]
    fn a_chart_reads_back_whatever_its_files_are(
        files in prop::collection::btree_map("[a-cA-C._-]{1,3}(/[a-c. ]{1,3}){0,2}", prop::collection::vec(any::<u8>(), 0..20), 0..8)
    ) {
        let mut files: BTreeMap<Arc<str>, Arc<[u8]>> =
            files.into_iter().map(|(path, bytes)| (Arc::from(path), Arc::from(bytes))).collect();
        files.insert("Chart.yaml".into(), Arc::from(&b"name: web\n"[..]));
        prop_assume!(ChartFiles::new(files.clone()).is_ok());
        let beside = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
        let description = Description::new(vec![chart(files), beside]).expect("the keys differ");
        let files = description_files(&description);
        let read = description_from_files(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
        prop_assert_eq!(&read.expect("what was written is readable"), &description);
        let read = Description::from_json(&description.to_json(), description.digest);
        prop_assert_eq!(&read.expect("what travels is readable"), &description);
    }
}

#[test]
fn how_a_content_is_applied_stands_in_a_file_of_its_own() {
    let apply = ApplyPolicy {
        depends_on: vec![crate::model::Dependency {
            unit: unit(),
            clusters: crate::model::DependencyClusters::All,
        }],
        timeout_seconds: Some(90),
        ..ApplyPolicy::default()
    };
    let object = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
    let description = Description::governed(vec![object], apply).expect("one key");
    let files = description_files(&description);
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ConfigMap_a.yaml", "apply.yaml"]);
    let read = description_from_files(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    assert_eq!(read.expect("what was written is readable"), description);
}

#[test]
fn an_encrypted_document_keeps_its_bytes_and_carries_its_overrides() {
    let original = "apiVersion: v1\nkind:   Secret\nmetadata: {name: s}\nsops: {mac: x}\n# end\n";
    let key = ObjectKey::new("v1", "Secret", "", "s");
    let step = CarriedStep {
        step_type: "MergePatch".to_owned(),
        value: json!({"data": {"a": null}}),
        field_path: None,
        field_format: None,
    };
    let content = Content::Encrypted {
        key: key.clone(),
        original: original.into(),
        overrides: vec![step],
    };
    let description = Description::new(vec![DescribedObject {
        key,
        content,
        provenance: Vec::new(),
    }])
    .expect("one key");
    let files = description_files(&description);
    assert!(files.iter().any(|(_, bytes)| bytes == original.as_bytes()), "{files:?}");
    let read = description_from_files(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    assert_eq!(read.expect("what was written is readable"), description);
}

#[test]
fn long_names_stay_apart_and_short_enough() {
    let key = |end: &str| ObjectKey::new("v1", "ConfigMap", &"n".repeat(63), &format!("{}{end}", "a".repeat(240)));
    let (one, other) = (file_stem(&key("1")), file_stem(&key("2")));
    assert_ne!(one, other);
    assert!(one.len() <= FILE_NAME_BYTES_MAX, "{one}");
}

#[test]
fn a_placement_with_an_undefined_variant_is_refused() {
    let mut broken = placement(&[entry("a", "default", "1")]);
    broken.variants.clear();
    let (path, text) = placement_file(&unit(), &broken);
    assert!(matches!(
        read_placement(&path, text.as_bytes()),
        Err(LayoutError::Variant { .. })
    ));
}
