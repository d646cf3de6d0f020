//! What a Secret holds is in its envelope and nowhere else.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::layout::{description_files, placement_file};
use render::load::load;
use render::plan::{Plan, Reports, changes, deltas, plan};
use render::{Finding, Memo, Previous, Published, Revision, Snapshot, SourceTree};

/// The values, plain and in base64, that must not appear.
const VALUES: [&str; 4] = [
    "hunter2-first",
    "aHVudGVyMi1maXJzdA==",
    "hunter2-second",
    "aHVudGVyMi1zZWNvbmQ=",
];

const CLUSTER: &str = "
apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {name: paris}
";

const SUBSCRIPTION: &str = "
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {namespace: shop, name: web}
spec:
  subscribers: [{clusterAffinity: {}}]
  feeds: [{path: feeds/**}]
";

const ENCRYPTED: &str = "
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: sealed}
data: {password: 'ENC[AES256_GCM,data:AA==,type:str]'}
sops: {mac: 'ENC[AES256_GCM,data:AA==,type:str]'}
";

fn fleet_yaml(policy: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {{name: fleet}}\nspec: {{plaintextSecrets: {policy}}}\n"
    )
}

fn secret(password: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{namespace: shop, name: open}}\nstringData: {{password: {password}}}\n"
    )
}

fn planned(files: &[(&str, String)]) -> (Plan, Vec<Finding>) {
    let revision = Revision::parse("1234567890123456789012345678901234567890").unwrap();
    let files = files.iter().map(|(path, text)| (*path, text.as_str()));
    let common = [
        ("clusters.yaml", CLUSTER),
        ("web.yaml", SUBSCRIPTION),
        ("feeds/sealed.yaml", ENCRYPTED),
    ];
    let tree = SourceTree::from_files(revision.clone(), files.chain(common));
    let (fleet, mut findings) = load(&tree, &Previous::default());
    let snapshot = Snapshot {
        revision,
        fleet: Arc::new(fleet),
        reports: Reports::default(),
        moves: Default::default(),
        chart_previews: render::chart::Previews::default(),
        previous: Arc::new(Published::default()),
        now: 1_700_000_000,
    };
    let plan = plan(&snapshot, &mut Memo::default());
    findings.extend(plan.findings.iter().cloned());
    (plan, findings)
}

#[track_caller]
fn check_tells_nothing(what: &str, said: &str) {
    let told = VALUES.into_iter().find(|value| said.contains(value));
    assert!(told.is_none(), "{what} tells {}: {said}", told.unwrap_or_default());
}

/// Where a plaintext Secret is refused, its unit is held and its value is nowhere, not even in the reason.
#[test]
fn no_secret_leaves_its_envelope() {
    let (refused, findings) = planned(&[
        ("fleet.yaml", fleet_yaml("refuse")),
        ("feeds/open.yaml", secret(VALUES[0])),
    ]);
    assert!(!findings.is_empty(), "a plaintext Secret is refused with a reason");
    assert!(refused.contents.is_empty(), "and nothing of its unit is rendered");
    check_tells_nothing("a finding", &format!("{findings:?}"));

    let allowed = |password: &str| {
        planned(&[
            ("fleet.yaml", fleet_yaml("warn")),
            ("feeds/open.yaml", secret(password)),
        ])
    };
    let ((first, findings), (second, _)) = (allowed(VALUES[0]), allowed(VALUES[2]));
    check_tells_nothing("a warning", &format!("{findings:?}"));
    for (unit, placement) in &second.units {
        check_tells_nothing("a placement", &placement_file(unit, placement).1);
    }
    let delta = deltas(&first.units, &second.units);
    assert_eq!(delta.len(), 1, "the changed value is a change");
    check_tells_nothing("a delta", &format!("{delta:?}"));
    let (from, to) = (first.contents.values().next(), second.contents.values().next());
    let changed = changes(from.map(Arc::as_ref), to.map(Arc::as_ref));
    assert_eq!(changed.len(), 1, "of one object");
    check_tells_nothing("a change", &serde_json::to_string(&changed).unwrap());

    let files: BTreeMap<_, _> = to
        .map(|content| description_files(content))
        .unwrap()
        .into_iter()
        .collect();
    let sealed = files
        .values()
        .find(|bytes| bytes.starts_with(ENCRYPTED.trim_start().as_bytes()) || **bytes == *ENCRYPTED.as_bytes());
    assert!(
        sealed.is_some(),
        "what arrived encrypted travels as its own bytes: {:?}",
        files.keys()
    );
}

#[test]
fn a_broken_file_is_told_without_its_values() {
    let whole = secret(VALUES[0]);
    let broken = [
        whole.replace("password: hunter2-first}", "password: hunter2-first"),
        whole.replace("{password: hunter2-first}", "hunter2-first"),
        whole.replace("{password: hunter2-first}", "[hunter2-first]"),
        whole.replace("password: hunter2-first", "password: *hunter2-first"),
        whole.replace("password: hunter2-first", "password: !!int hunter2-first"),
        whole.replace("password: hunter2-first", "password: \t\"hunter2-first"),
    ];
    for text in broken {
        let (_, findings) = planned(&[("fleet.yaml", fleet_yaml("warn")), ("feeds/open.yaml", text.clone())]);
        check_tells_nothing(&format!("a finding about {text:?}"), &format!("{findings:?}"));
    }
}
