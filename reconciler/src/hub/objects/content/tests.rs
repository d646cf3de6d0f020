use render::describe::DescribedObject;

use super::*;

const FOLDER: &str = "units/shop/web/default";

fn described(key: ObjectKey, content: Content) -> DescribedObject {
    DescribedObject {
        key,
        content,
        provenance: Vec::new(),
    }
}

fn plain(value: Value) -> DescribedObject {
    let key = render::describe::key_of(&value).expect("the object names itself");
    let object = Arc::new(value);
    described(key, Content::Plain { object })
}

fn config_map(name: &str, bytes: usize) -> DescribedObject {
    plain(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"},
        "data": {"text": "x".repeat(bytes)}}),
    )
}

fn of(objects: Vec<DescribedObject>) -> Contents {
    let description = Description::new(objects).expect("the keys differ");
    let place = Place {
        digest: &description.digest,
        folder: FOLDER,
    };
    contents(&description, &Default::default(), place)
}

/// What a part says, manifest by manifest.
fn said(part: &Part) -> Vec<String> {
    let raw = part.spec["raw"].as_array().expect("a part has manifests").iter();
    let decoded = raw.map(|raw| STANDARD.decode(raw.as_str().unwrap_or_default()).expect("it is base64"));
    decoded
        .map(|bytes| String::from_utf8(bytes).expect("it is text"))
        .collect()
}

#[test]
fn small_contents_are_one_description_with_every_manifest_in_order() {
    let contents = of(vec![config_map("b", 1), config_map("a", 1)]);
    assert_eq!(contents.parts.len(), 1);
    let part = &contents.parts[0];
    assert_eq!((part.deployer, part.index, part.referenced), (Deployer::Generic, 0, 0));
    let names: Vec<_> = contents.feeds.iter().map(|feed| feed["name"].as_str()).collect();
    assert_eq!(names, [Some("a"), Some("b")]);
    assert!(said(part)[0].contains(r#""name":"a""#), "{:?}", said(part));
}

#[test]
fn a_large_content_is_split_and_nothing_of_it_is_lost() {
    let third = OBJECT_RAW_BYTES_MAX / 4 * 3 / 3;
    let objects: Vec<_> = (0..7).map(|number| config_map(&format!("c{number}"), third)).collect();
    let contents = of(objects);
    let counts: Vec<_> = contents.parts.iter().map(|part| said(part).len()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 7, "{counts:?}");
    assert!(counts.len() > 2, "{counts:?}");
    for (index, part) in contents.parts.iter().enumerate() {
        let bytes = part.spec.to_string().len();
        assert!(bytes < OBJECT_RAW_BYTES_MAX + 1_024, "part {index} has {bytes} bytes");
        assert_eq!((part.index, part.referenced), (index, 0));
    }
}

#[test]
fn a_manifest_that_is_too_large_is_referenced_by_digest_and_path() {
    let contents = of(vec![config_map("huge", OBJECT_RAW_BYTES_MAX), config_map("small", 1)]);
    assert_eq!(contents.parts.len(), 1);
    let part = &contents.parts[0];
    assert_eq!(part.referenced, 1);
    let huge = &said(part)[0];
    assert!(huge.len() < 1_024, "{huge}");
    assert!(
        huge.contains("units/shop/web/default/ConfigMap_shop_huge.yaml"),
        "{huge}"
    );
    assert!(huge.contains("sha256:"), "{huge}");
    assert!(said(part)[1].contains(r#""text":"x""#));
}

#[test]
fn no_value_of_a_secret_comes_into_a_description() {
    let secret = plain(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":\"hunter2\"}"}},
        "stringData": {"password": "hunter2"}}),
    );
    let contents = of(vec![secret]);
    let all = format!("{:?} {:?}", said(&contents.parts[0]), contents.feeds);
    assert!(!all.contains("hunter2"), "{all}");
    assert!(all.contains("units/shop/web/default/Secret_shop_s.yaml"), "{all}");
    assert_eq!(contents.parts[0].referenced, 1);
}

#[test]
fn an_encrypted_document_is_its_original_bytes_without_what_it_carries() {
    let original = "apiVersion: v1\nkind:   Secret\nmetadata: {name: s}\nstringData:\n  a: ENC[x]\nsops: {mac: x}\n";
    let key = ObjectKey::new("v1", "Secret", "", "s");
    let step = render::describe::CarriedStep {
        step_type: "MergePatch".to_owned(),
        value: json!({"stringData": {"b": "hunter2"}}),
        field_path: None,
        field_format: None,
    };
    let content = Content::Encrypted {
        key: key.clone(),
        original: original.into(),
        overrides: vec![step],
    };
    let contents = of(vec![described(key, content)]);
    assert_eq!(said(&contents.parts[0]), [original]);
    assert_eq!(contents.feeds[0]["apiVersion"], "v1");
}

#[test]
fn a_chart_is_a_description_of_its_own_with_its_values() {
    let chart = plain(json!({"apiVersion": "apps.clusternet.io/v1alpha1", "kind": "HelmChart",
        "metadata": {"name": "mysql", "namespace": "shop"}, "spec": {"chart": "mysql", "values": {"a": 1}}}));
    let contents = of(vec![chart, config_map("a", 1)]);
    let deployers: Vec<_> = contents.parts.iter().map(|part| part.deployer).collect();
    assert_eq!(deployers, [Deployer::Generic, Deployer::Helm]);
    let helm = &contents.parts[1];
    assert_eq!(said(helm), [r#"{"a":1}"#]);
    assert_eq!(helm.spec["charts"], json!([{"namespace": "shop", "name": "mysql"}]));
    assert_eq!(helm.spec["chartRaw"].as_array().map(Vec::len), Some(1));
}

#[test]
fn replicas_that_are_divided_are_put_in() {
    let deployment = plain(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 6}}));
    let replicas = [(deployment.key.clone(), 2)].into();
    let description = Description::new(vec![deployment]).expect("one key");
    let place = Place {
        digest: &description.digest,
        folder: FOLDER,
    };
    let contents = contents(&description, &replicas, place);
    assert!(said(&contents.parts[0])[0].contains(r#""replicas":2"#));
}

#[test]
fn a_long_list_of_feeds_is_cut_and_counted() {
    let many = (0..OBJECT_FEEDS_MAX + 3).map(|number| json!({"name": number.to_string()}));
    let (feeds, more) = bounded(many.collect());
    assert_eq!((feeds.len(), more), (OBJECT_FEEDS_MAX, 3));
}
