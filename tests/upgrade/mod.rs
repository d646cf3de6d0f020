//! A new version of Flotilla over a repository that did not change.
//!
//! `fleet/` is a small fleet repository; `rendered/` is what the version that began it made of it, file by
//! file, digests included. Whoever changes a byte of `rendered/` makes every hub in the world write one
//! commit, and every agent look at every object, on its next upgrade; `UPDATE_GOLDEN=1` does so.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use render::layout::{description_files, placement_file, read_placement, unit_folder};
use render::load::load;
use render::plan::{Plan, Reports, plan};
use render::{Memo, Previous, Published, Revision, Severity, Snapshot, SourceTree};

type Files = BTreeMap<String, Vec<u8>>;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("upgrade").join(name)
}

/// Every file below a folder, by its path from there.
fn read(root: &Path) -> Files {
    let mut files = Files::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

/// Plans the fleet as a hub does whose `rendered` says `previous`.
fn planned(previous: Published) -> Plan {
    let revision = Revision::parse("1234567890123456789012345678901234567890").unwrap();
    let tree = SourceTree::from_files(revision.clone(), read(&folder("fleet")));
    let (fleet, mut findings) = load(&tree, &Previous::default());
    let snapshot = Snapshot {
        revision,
        fleet: Arc::new(fleet),
        reports: Reports::default(),
        moves: Default::default(),
        chart_previews: render::chart::Previews::default(),
        previous: Arc::new(previous),
        now: 1_700_000_000,
    };
    let plan = plan(&snapshot, &mut Memo::default());
    findings.extend(plan.findings.iter().cloned());
    findings.retain(|finding| finding.severity == Severity::Error);
    assert!(findings.is_empty(), "the fleet is without errors: {findings:#?}");
    plan
}

/// The plan as files of a commit.
fn rendered(plan: &Plan) -> Files {
    let mut files = Files::new();
    for (unit, placement) in &plan.units {
        let (path, text) = placement_file(unit, placement);
        files.insert(path, text.into_bytes());
        for (name, variant) in &placement.variants {
            let content = &plan.contents[&variant.digest];
            let content = description_files(content).into_iter();
            files.extend(content.map(|(file, bytes)| (format!("{}/{file}", unit_folder(unit, name)), bytes)));
        }
    }
    files
}

#[test]
fn an_upgrade_writes_nothing() {
    let first = planned(Published::default());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        for (path, bytes) in &rendered(&first) {
            let path = folder("rendered").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
    let golden = read(&folder("rendered"));
    let placements = golden.iter().filter_map(|(path, bytes)| {
        let unit = path.strip_prefix("placements/")?.strip_suffix(".yaml")?;
        Some((unit.parse().unwrap(), read_placement(path, bytes).unwrap()))
    });
    let published = Published {
        record: None,
        units: placements.collect(),
    };
    let files = rendered(&planned(published));
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&files), names(&golden), "an upgrade adds and removes no file");
    for (path, bytes) in &files {
        let (now, then) = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(&golden[path]));
        assert_eq!(now, then, "an upgrade changes no byte of {path}");
    }
    let published = Published {
        record: None,
        units: first.units.clone(),
    };
    assert_eq!(
        planned(published).units,
        first.units,
        "what stands is decided again as it stands"
    );
}
