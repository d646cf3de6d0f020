//! Simulations of a clone with a record of what clusters said.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use clap::Parser as _;

use super::*;

#[derive(clap::Parser)]
struct Alone {
    #[command(flatten)]
    arguments: SimulateArguments,
}

fn parsed(folder: &Path, more: &[&str]) -> Result<SimulateArguments, clap::Error> {
    let (repository, record) = (
        folder.display().to_string(),
        folder.join("capacity.json").display().to_string(),
    );
    let own = ["simulate", "--repository", &repository, "--reports", &record];
    Alone::try_parse_from([&own[..], more].concat()).map(|alone| alone.arguments)
}

/// Clusters amsterdam and bogota have room for eight replicas each, and twelve are asked for.
fn harbour() -> io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let cluster = |name: &str| {
        format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {{name: {name}, labels: {{sea: north}}}}\n"
        )
    };
    let amounts = json!({ "cpu": 4_000, "memory": 1_u64 << 40, "pods": 110 });
    let capacity = json!({ "version": 1, "nodes": [{ "count": 2, "allocatable": amounts, "free": amounts }] });
    let report = json!({ "capacity": capacity, "at": 1_700_000_000 });
    let files = [
        ("amsterdam.yaml", cluster("amsterdam")),
        ("bogota.yaml", cluster("bogota")),
        (
            "crew.yaml",
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata: {name: crew, namespace: sea}\nspec:\n  \
             schedulingStrategy: Dividing\n  dividingScheduling: {type: Dynamic, dynamicDividing: {strategy: Spread}}\n  \
             subscribers: [{clusterAffinity: {matchLabels: {sea: north}}}]\n  feeds: [{path: 'feeds/**'}]\n"
                .to_owned(),
        ),
        (
            "feeds/crew.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: crew, namespace: sea}\nspec:\n  replicas: 12\n  \
             template: {spec: {containers: [{name: crew, resources: {requests: {cpu: 1}}}]}}\n"
                .to_owned(),
        ),
        ("capacity.json", json!({ "clusters": { "amsterdam": report, "bogota": report } }).to_string()),
    ];
    fs::create_dir_all(folder.path().join("feeds"))?;
    for (path, text) in files {
        fs::write(folder.path().join(path), text)?;
    }
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"])?;
    commit(folder.path())?;
    Ok(folder)
}

fn commit(folder: &Path) -> io::Result<()> {
    for arguments in [
        &["add", "--all"][..],
        &[
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.com",
            "commit",
            "--quiet",
            "--message",
            "one",
        ],
    ] {
        git(folder, arguments)?;
    }
    Ok(())
}

fn git(folder: &Path, arguments: &[&str]) -> io::Result<()> {
    let done = Command::new("git").current_dir(folder).args(arguments).status()?;
    assert!(done.success(), "{arguments:?}");
    Ok(())
}

#[test]
fn a_simulation_reads_well_and_says_whether_anything_differs() {
    let folder = harbour().expect("git starts");
    let told = |more: &[&str]| {
        let arguments = parsed(folder.path(), more).expect("the arguments are right");
        let supposed = arguments.supposed().expect("they can be read");
        let simulation = simulated(&arguments, &supposed).expect("all of it is there");
        (text::text(&simulation), run(&arguments))
    };
    let (text, code) = told(&["--without-cluster", "bogota", "--scale", "sea/crew=+1"]);
    let expected = "\
1 unit differs, on 2 clusters.

sea/crew
  ~ on amsterdam
      Deployment sea/crew: 6 -> 8
        matches subscriber 1 (sea=north)
        replicas of Deployment crew: 8 of 13, had 6, has room for 8
  - on bogota
      Deployment sea/crew: 6 -> none
        the cluster is lost
  ~ unplaced of Deployment sea/crew: none -> 5 of 13

";
    assert!(text.starts_with(expected), "{text}");
    let finding = &text[expected.len()..];
    assert!(
        finding.starts_with("crew.yaml:1: warning: ") && finding.contains("unplaced 5 of 13"),
        "{finding}"
    );
    assert_eq!(code, ExitCode::from(1));
    let (text, code) = told(&[
        "--label",
        "bogota",
        "depth=40",
        "--taint",
        "bogota",
        "calm:PreferNoSchedule",
    ]);
    assert_eq!((text.as_str(), code), ("Nothing differs.\n", ExitCode::SUCCESS));
}

#[test]
fn what_would_be_wrong_alone_is_a_difference() {
    let folder = harbour().expect("git starts");
    let path = folder.path().join("crew.yaml");
    let text = fs::read_to_string(&path).expect("it is there");
    fs::write(&path, text + "  clusters: {min: 2}\n").expect("it is writable");
    commit(folder.path()).expect("git starts");
    let arguments = parsed(folder.path(), &["--label", "bogota", "sea=south"]).expect("the arguments are right");
    let supposed = arguments.supposed().expect("they can be read");
    let simulation = simulated(&arguments, &supposed).expect("all of it is there");
    assert_eq!(simulation.units, [], "too few match, so that all stays where it is");
    let text = text::text(&simulation);
    assert!(
        text.starts_with("No unit differs, but more would be wrong.\n\ncrew.yaml:1: warning: "),
        "{text}"
    );
    assert_eq!(run(&arguments), ExitCode::from(1));
}

#[test]
fn wrong_words_are_wrong_usage_and_what_is_not_there_is_an_error() {
    let folder = harbour().expect("git starts");
    let code = |more: &[&str]| run(&parsed(folder.path(), more).expect("clap takes them"));
    for more in [
        &["--taint", "bogota", "full:NoExecutes"][..],
        &["--label", "bogota", "depth"],
        &["--scale", "crew=3"],
        &["--without-cluster", "Bogota!"],
    ] {
        assert_eq!(code(more), exit::usage(), "{more:?}");
    }
    for more in [
        &["--without-cluster", "bogata"][..],
        &["--label", "paris", "depth=40"],
        &["--taint", "bogota", "full-"],
        &["--scale", "sea/crow=3"],
        &["--scale", "sea/crew/Job/crew=3"],
        &["--without-cluster", "bogota", "--revision", "nowhere"],
    ] {
        assert_eq!(code(more), ExitCode::from(exit::PLAN_ERROR), "{more:?}");
    }
    assert!(parsed(folder.path(), &[]).is_err(), "nothing is supposed");
    assert!(
        parsed(folder.path(), &["--label", "bogota"]).is_err(),
        "a cluster without a label"
    );
    fs::write(folder.path().join("capacity.json"), "{}").expect("it is writable");
    assert_eq!(
        code(&["--without-cluster", "bogota"]),
        ExitCode::from(exit::PLAN_ERROR),
        "no record is not no room"
    );
}
