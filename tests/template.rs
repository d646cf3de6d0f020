//! The repository that `flotilla init` writes: what people begin with is sound.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flotilla_tests::flotilla::flotilla;
use flotilla_tests::{Flotilla, Output, Repository, scratch};
use serde_json::Value;

fn template() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleet-repo-template")
}

/// Every file below a folder, with its path from there; Git's own are left out.
fn files(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            match path.is_dir() {
                true if name == ".git" => {}
                true => waiting.push(path),
                false => found.push((name, fs::read_to_string(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

/// A repository that begins with the template and these clusters (name, environment), pushed.
fn begun(clusters: &[(&str, &str)]) -> Repository {
    let repository = Repository::empty();
    Output::of(flotilla().arg("init").arg(repository.work())).expect_ok();
    let keys = scratch::folder("keys");
    for (cluster, environment) in clusters {
        let key = keys.join(cluster).display().to_string();
        let label = format!("environment={environment}");
        let join = ["agent", "join", "--cluster", cluster, "--key", &key, "--label", &label];
        repository.write(&format!("clusters/{cluster}.yaml"), Flotilla::run(&join).expect_ok());
    }
    repository.commit("begin the fleet");
    repository.push();
    repository
}

const TWO: [(&str, &str); 2] = [("paris", "production"), ("lyon", "staging")];

fn plan(repository: &Repository) -> (Option<i32>, Value) {
    let work = repository.work().display().to_string();
    let output = Flotilla::run(&["plan", "--repository", &work, "-o", "json"]);
    let shown = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.code(), shown)
}

#[test]
fn init_writes_the_whole_template_and_overwrites_nothing() {
    let folder = scratch::folder("init");
    let init = || Output::of(flotilla().arg("init").arg(&folder));
    init().expect_ok();
    assert_eq!(files(&folder), files(&template()));
    let again = init();
    assert_eq!(again.code(), Some(1), "{again:?}");
    assert!(again.stderr.contains("nothing was written"), "{again:?}");
}

#[test]
fn the_template_has_no_finding_before_and_after_clusters_are_registered() {
    let (code, shown) = plan(&begun(&[]));
    assert_eq!(code, Some(0), "without a cluster nothing changes: {shown:#}");
    assert_eq!(shown["findings"], Value::Array(Vec::new()));
    let (code, shown) = plan(&begun(&TWO));
    assert_eq!(code, Some(1), "it brings something to each: {shown:#}");
    assert_eq!(shown["findings"], Value::Array(Vec::new()));
    let units = shown["units"].as_array().unwrap();
    let brings = |unit: &Value| {
        format!(
            "{}: {}",
            unit["unit"].as_str().unwrap(),
            unit["groups"].as_array().unwrap().len()
        )
    };
    let brought: Vec<_> = units.iter().map(brings).collect();
    assert_eq!(
        brought,
        ["flotilla-access/da794895: 1", "platform/hello: 1", "shop/web: 2"],
        "the environments differ in shop/web alone, and both are told who reads there"
    );
}

/// The commands of the workflow, in order.
fn commands(workflow: &str) -> Vec<&str> {
    workflow
        .lines()
        .filter_map(|line| line.trim().strip_prefix("run: "))
        .collect()
}

/// Runs the workflow's commands in a fresh clone, as a pull request's check does: the commit is checked out, not
/// the branch.
fn check(repository: &Repository) -> Output {
    let clone = scratch::folder("clone");
    let git = |arguments: &[&str]| {
        Output::of(Command::new("git").current_dir(&clone).args(arguments)).expect_ok();
    };
    git(&["clone", "--quiet", &repository.bare().display().to_string(), "."]);
    git(&["checkout", "--quiet", "--detach", "origin/main"]);
    git(&["branch", "--quiet", "--delete", "main"]);
    let workflow = fs::read_to_string(clone.join(".github/workflows/plan.yaml")).unwrap();
    let commands = commands(&workflow);
    assert!(commands.contains(&"sh ci/plan"), "{commands:?}");
    let flotilla = PathBuf::from(flotilla().get_program());
    let path = format!(
        "{}:{}",
        flotilla.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let script = commands.join("\n");
    Output::of(
        Command::new("sh")
            .current_dir(&clone)
            .env("PATH", path)
            .args(["-e", "-c", &script]),
    )
}

#[test]
fn the_templates_check_shows_what_changes_and_fails_on_what_is_wrong() {
    let repository = begun(&TWO);
    let good = check(&repository);
    assert_eq!(good.code(), Some(0), "that something changes is no failure: {good:?}");
    assert!(good.stdout.contains("### Fleet plan"), "it is Markdown: {good:?}");
    assert!(good.stdout.contains("Deployment shop/web"), "{good:?}");
    let file = "localizations/paris/web.yaml";
    let broken = repository
        .read("main", file)
        .unwrap()
        .replace("name: web-page", "name: web-pages");
    repository.push_files("mistype", &[(file, &broken)]);
    let bad = check(&repository);
    assert_eq!(bad.code(), Some(2), "{bad:?}");
    assert!(
        bad.stdout.contains(file),
        "what is wrong is in the summary too: {bad:?}"
    );
}
