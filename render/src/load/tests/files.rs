use super::*;

#[test]
fn other_yaml_in_the_repository_is_nobodys_business() {
    let compose = "services: {web: {image: x}}\n";
    check(
        &[
            ("docker-compose.yaml", compose),
            ("a/values.yml", "x: 1\n"),
            ("package.json", "{\"name\": \"x\"}"),
        ],
        &[],
    );
    check(
        &[("kind.yaml", "apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\n")],
        &[],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_its_line() {
    check(
        &[("a.yaml", "a: {b\n"), ("b.yaml", "a: 1\na: 2\n")],
        &["a.yaml:1 Error NotYaml", "b.yaml:2 Error NotYaml"],
    );
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    check(&[("a.yaml", pointer)], &["a.yaml:1 Error LfsPointer"]);
    let (fleet, _) = loaded(&[("z.yaml", "{"), ("a.json", "{"), ("ok.yaml", "a: 1\n")]);
    assert_eq!(fleet.unreadable, ["a.json".into(), "z.yaml".into()]);
}

#[test]
fn bytes_that_are_no_text_are_named() {
    let mut tree = tree(&[]);
    for (path, bytes) in [("a.yaml", &b"\xff\xfea\0"[..]), ("b.yaml", b"x: 1\ny: \xfc\n")] {
        let entry = SourceEntry::File(SourceFile::from_bytes(bytes));
        tree.files.insert(path.into(), entry);
    }
    let (_, findings) = load(&tree, &Previous::default());
    assert_eq!(shown(&findings), ["a.yaml:1 Error NotText", "b.yaml:2 Error NotText"]);
}

#[test]
fn a_name_that_is_no_path_is_an_error_and_not_skipped() {
    let mut tree = tree(&[]);
    tree.files.insert("a%FF.yaml%".into(), SourceEntry::BadName);
    let (fleet, findings) = load(&tree, &Previous::default());
    assert_eq!(shown(&findings), ["a%FF.yaml%:0 Error BadName"]);
    assert_eq!(fleet.unreadable.len(), 1);
}

#[test]
fn a_file_may_fill_the_limit_and_not_more() {
    let line = "# padding that is only a comment and costs little to read\n";
    let text = line.repeat(crate::limits::FILE_BYTES_MAX / line.len());
    check(&[("a.yaml", &text)], &[]);
    check(&[("a.yaml", &text.repeat(2))], &["a.yaml:0 Error FileTooLarge"]);
}

#[test]
fn findings_of_one_file_are_limited_and_the_worst_are_kept() {
    let mut text = String::new();
    for index in 0..30 {
        text.push_str(&format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{index}}}\nnum: 1e{index}\n"
        ));
    }
    text.push_str("---\napiVersion: fleet.flotilla.dev/v1alpha1\nkind: Unknown\n");
    let (_, findings) = loaded(&[("a.yaml", &text)]);
    assert_eq!(findings.len(), crate::limits::FINDINGS_PER_FILE_MAX + 1);
    assert!(findings.iter().any(|finding| finding.is_error()));
    assert_eq!(findings[0].message, "and 11 more findings in this file");
}

#[test]
fn kinds_are_told_apart_by_group() {
    let document =
        |api_version: &str, kind: &str| format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n");
    check(
        &[("a.yaml", &document("fleet.flotilla.dev/v1alpha1", "Budget"))],
        &["a.yaml:1 Error UnknownKind"],
    );
    check(
        &[("a.yaml", &document("fleet.flotilla.dev/v2", "Fleet"))],
        &["a.yaml:1 Error UnknownKind"],
    );
    for kind in ["Base", "Description", "HelmRelease", "Manifest", "FeedInventory"] {
        check(
            &[("a.yaml", &document("apps.clusternet.io/v1alpha1", kind))],
            &["a.yaml:1 Warning UnusedKind"],
        );
    }
    let request = document("clusters.clusternet.io/v1beta1", "ClusterRegistrationRequest");
    check(&[("a.yaml", &request)], &["a.yaml:1 Warning UnusedKind"]);
    let request = format!("{request}\nspec: {{clusterName: paris, syncMode: Dual, parentURL: x}}\n");
    let (_, findings) = loaded(&[("a.yaml", &request)]);
    let said = format!("{} {}", findings[0].message, findings[0].hint);
    for words in [
        "takes spec.clusterName as metadata.name, spec.syncMode as spec.syncMode, and leaves metadata, spec.parentURL (not known)",
        "flotilla agent join --request a.yaml makes a key and prints the ManagedCluster",
        "clusters/paris.yaml",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    check(&[("a.yaml", &document("apps/v1", "Subscriber"))], &[]);
    check(
        &[("a.yaml", &document("apps/v1", "Subscription"))],
        &["a.yaml:1 Warning NoDeclaration"],
    );
}

#[test]
fn declaring_one_thing_twice_names_both_places() {
    let (_, findings) = loaded(&[("a.yaml", CLUSTER), ("b.yaml", CLUSTER)]);
    assert_eq!(shown(&findings), ["b.yaml:1 Error DeclaredTwice"]);
    assert!(findings[0].message.contains("a.yaml:1"), "{}", findings[0]);
    let (subscription, map) = (subscription("[{path: f}]"), config_map("x"));
    let (fleet, _) = loaded(&[("a.yaml", &subscription), ("b.yaml", &subscription), ("f/x.yaml", &map)]);
    assert_eq!(reasons(&unit(&fleet).blocked), ["DeclaredTwice"]);
}
