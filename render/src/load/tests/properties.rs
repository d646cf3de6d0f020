use super::*;
use proptest::prelude::*;

/// Small files that meet each other in every way: same names, same folders, broken ones, moved ones.
fn any_text() -> impl Strategy<Value = String> {
    let feeds = prop::sample::select(vec![
        "[{path: '**'}]",
        "[{path: a}, {path: b/*.yaml, exclude: [b/z.yaml]}]",
        "[{selector: {matchLabels: {app: x}}}]",
        "[{apiVersion: v1, kind: ConfigMap, name: x}]",
        "[{apiVersion: v1, kind: ConfigMap, name: y, namespace: shop}, {path: ../x}]",
    ]);
    let name = prop::sample::select(vec!["x", "y", "z"]);
    prop_oneof![
        name.clone().prop_map(config_map),
        name.clone()
            .prop_map(|name| CLUSTER.replace("name: a", &format!("name: {name}"))),
        (feeds, name.clone())
            .prop_map(|(feeds, name)| subscription(feeds).replace("name: app", &format!("name: {name}"))),
        (name.clone(), name).prop_map(|(a, b)| format!("{}---\n{}", config_map(a), config_map(b))),
        Just("apiVersion: fleet.flotilla.dev/v1alpha1\nkind: HelmChart\nmetadata: {name: x}\nspec: {path: a, targetNamespace: y}\n".to_owned()),
        Just("apiVersion: v2\nname: x\nversion: 1.0.0\n".to_owned()),
        Just("a: {\n".to_owned()),
        Just("values: 1e3\n".to_owned()),
        Just(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {name: x}\nspec: {a: b}\n"
                .to_owned()
        ),
    ]
}

type Files = std::collections::BTreeMap<String, String>;

fn any_files() -> impl Strategy<Value = Files> {
    let folder = prop::sample::select(vec!["", "a/", "b/", "a/.h/"]);
    let name = prop::sample::select(vec!["x.yaml", "y.yaml", "z.yaml", "Chart.yaml"]);
    let path = (folder, name).prop_map(|(folder, name)| format!("{folder}{name}"));
    prop::collection::btree_map(path, any_text(), 0..8)
}

fn source(files: &Files) -> SourceTree {
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    tree(&files)
}

fn previous(last_good: &Files, vanished: &Files) -> Previous {
    let convert = |files: &Files| {
        let entry = |(path, text): (&String, &String)| (path.as_str().into(), SourceFile::from_bytes(text.as_bytes()));
        files.iter().map(entry).collect()
    };
    Previous {
        last_good: convert(last_good),
        new_files: Vec::new(),
        vanished: convert(vanished),
    }
}

proptest! {
    #[test]
    fn a_memo_never_changes_a_byte(first in any_files(), second in any_files(), last_good in any_files(), vanished in any_files()) {
        let previous = previous(&last_good, &vanished);
        let mut memo = LoadMemo::default();
        for files in [&first, &second, &first] {
            let tree = source(files);
            let with = load_with(&tree, &previous, &mut memo);
            let without = load(&tree, &previous);
            prop_assert_eq!(format!("{with:?}"), format!("{without:?}"));
            // Debug tells no values.
            prop_assert_eq!(&with.0.overrides, &without.0.overrides);
            for (with, without) in with.0.units.values().zip(without.0.units.values()) {
                prop_assert_eq!(&with.base.objects, &without.base.objects);
            }
        }
    }

    #[test]
    fn files_arrive_in_any_order(files in any_files()) {
        let forward = source(&files);
        let mut backward = tree(&[]);
        backward.files.extend(forward.files.iter().rev().map(|(path, entry)| (path.clone(), entry.clone())));
        let previous = Previous::default();
        prop_assert_eq!(format!("{:?}", load(&forward, &previous)), format!("{:?}", load(&backward, &previous)));
    }

    #[test]
    fn no_bytes_stop_a_load(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "[-a-c: {}\n]{0,60}") {
        let head = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata: {name: app}\nspec:\n ";
        let mut tree = tree(&[("t.yaml", &format!("{head} {text}"))]);
        tree.files.insert("b.yaml".into(), SourceEntry::File(SourceFile::from_bytes(bytes)));
        load(&tree, &Previous::default());
    }
}
