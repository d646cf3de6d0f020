//! What the house gives to other tools: definitions, schemas, a kubeconfig, a completion; each judged by the tool.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use flotilla_tests::flotilla::{binary, flotilla};
use flotilla_tests::{ControlPlane, Options, Output, eventually, parts, scratch};

use crate::architecture::sources;
use crate::kubectl::Hub;

const LIMIT: Duration = Duration::from_secs(60);

/// Every document of our group in the YAML blocks of a paper and in the template.
fn examples() -> Vec<(String, String)> {
    let paper = "docs/fleet-repository.md";
    let text = sources::read(paper);
    let blocks = text.split("```yaml\n").skip(1);
    let mut found: Vec<(String, String)> = blocks
        .filter_map(|block| block.split("```").next())
        .map(|block| (paper.to_owned(), block.to_owned()))
        .collect();
    let template = sources::files_named(".yaml").into_iter();
    let template = template.filter(|path| path.starts_with("fleet-repo-template/"));
    found.extend(template.map(|path| (path.clone(), sources::read(&path))));
    let documents = found.into_iter().flat_map(|(place, text)| {
        let documents: Vec<_> = text
            .split("\n---\n")
            .map(|text| (place.clone(), text.to_owned()))
            .collect();
        documents
    });
    // Kinds of Clusternet that we have too are read as ours: the forms are the same.
    let ours = |(_, text): &(String, String)| {
        text.contains("apiVersion: fleet.flotilla.dev/") || text.contains("apiVersion: apps.clusternet.io/")
    };
    documents
        .filter(ours)
        .map(|(place, text)| (place, text.replace("apps.clusternet.io/", "fleet.flotilla.dev/")))
        .collect()
}

#[test]
fn an_api_server_takes_the_definitions_and_judges_examples_by_them() {
    let cluster = ControlPlane::start("crds", Options::default());
    let folder = scratch::folder("crds");
    let file = folder.join("crds.yaml");
    fs::write(&file, Output::of(flotilla().arg("crds")).expect_ok()).expect("the folder is writable");
    let path = file.display().to_string();
    cluster.kubectl(&["apply", "--server-side", "-f", &path]).expect_ok();
    cluster
        .kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "-f", &path])
        .expect_ok();
    let explained = eventually(LIMIT, "the schema is served", || {
        cluster
            .kubectl(&["explain", "subscriptions.fleet.flotilla.dev.spec.feeds"])
            .ok()
    });
    assert!(explained.contains("selector"), "{explained}");

    let examples = examples();
    assert!(
        examples.len() > 5,
        "the paper and the template have examples: {examples:?}"
    );
    let dry_run = |text: &str| {
        let file = folder.join("example.yaml");
        fs::write(&file, text).expect("the folder is writable");
        cluster.kubectl(&[
            "apply",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            &file.display().to_string(),
        ])
    };
    for (place, text) in &examples {
        // An ellipsis stands for a key.
        let text = text.replace("ed25519:…", "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        for namespace in text.split("namespace: ").skip(1) {
            let name: String = namespace
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                .collect();
            // One that is there already is there.
            let _made = cluster.kubectl(&["create", "namespace", &name]);
        }
        let output = dry_run(&text);
        assert!(output.status.success(), "{place}: {}\n{text}", output.stderr);
    }
    let fleet =
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec: {approval: none}\n";
    dry_run(fleet).expect_ok();
    let unknown = dry_run(&fleet.replace("approval", "aproval"));
    assert!(unknown.stderr.contains("unknown field \"spec.aproval\""), "{unknown:?}");
    let wrong = dry_run(&fleet.replace("none", "maybe"));
    assert!(wrong.stderr.contains("Unsupported value"), "{wrong:?}");
}

#[test]
fn kubectl_explains_and_watches_the_hubs_kinds() {
    let hub = Hub::start();
    for (path, word) in [
        ("subscriptions", "which manifests go to which clusters"),
        ("subscriptions.spec.feeds.path", "Files by path or glob"),
        ("fleets.status.conditions.message", "A sentence for people"),
        ("managedclusters.spec.taints.effect", "NoExecute"),
        ("placements.spec", "reasons"),
        ("descriptions", "never what they say"),
        ("findings.spec.hint", "What to do about it"),
        ("suspensions.spec.until", "When it ends"),
        ("suspensions.status.holds", "Units on clusters"),
    ] {
        let text = hub.kubectl(&["explain", path]).expect_ok();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(word), "{path}: {text}");
    }
    let recursive = hub.kubectl(&["explain", "subscriptions", "--recursive"]).expect_ok();
    assert!(recursive.contains("matchExpressions"), "{recursive}");
    let mut command = parts::command("kubectl");
    command.args(["--server", &hub.server, "get", "subscriptions", "-A", "--watch"]);
    let watch = flotilla_tests::Child::start("kubectl", &scratch::folder("kubectl-watch"), &mut command);
    eventually(LIMIT, "the first row", || shows(&watch, "web"));
    let more = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata: {name: more, namespace: shop}\n\
                spec:\n  subscribers: [{clusterAffinity: {}}]\n  feeds: [{path: 'feeds/**'}]\n";
    hub.repository.push_files("more", &[("subscriptions/more.yaml", more)]);
    eventually(LIMIT, "the new row", || shows(&watch, "more"));
}

fn shows(watch: &flotilla_tests::Child, word: &str) -> Result<(), String> {
    if watch.log().contains(word) {
        Ok(())
    } else {
        Err(watch.log())
    }
}

#[test]
fn a_kubeconfig_leads_kubectl_to_the_hub() {
    let hub = Hub::start();
    let path = scratch::folder("kubeconfig").join("config");
    let shown = path.display().to_string();
    hub.flotilla(&["kubeconfig", "--output", &shown, "-n", "shop"])
        .expect_ok();
    let mode = fs::metadata(&path).expect("it was written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "for its owner alone");
    let names = Output::of(parts::command("kubectl").args(["--kubeconfig", &shown, "get", "sub", "-o", "name"]));
    assert_eq!(names.expect_ok(), "subscription.fleet.flotilla.dev/web\n");
    let again = hub.flotilla(&["kubeconfig", "--output", &shown]);
    assert_eq!(
        again.code(),
        Some(64),
        "a file that is there is not written over: {again:?}"
    );
    assert!(again.stderr.contains("KUBECONFIG="), "{again:?}");
    let socket = Output::of(flotilla().args(["kubeconfig", "--server", "unix:/run/hub.sock"]));
    assert_eq!((socket.code(), socket.stdout.as_str()), (Some(64), ""), "{socket:?}");
    assert!(socket.stderr.contains("--api 127.0.0.1"), "{socket:?}");
}

#[test]
fn bash_completes_our_words() {
    let script = "eval \"$(flotilla completion bash)\"
        complete_words() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _flotilla flotilla \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; echo \"${COMPREPLY[*]}\"; }
        complete_words flotilla exp
        complete_words flotilla get sub --out
        complete_words flotilla plan --output ''";
    let folder = binary("flotilla");
    let folder = folder.parent().expect("a binary is in a folder").display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let output = Output::of(Command::new("bash").args(["--norc", "-euc", script]).env("PATH", path));
    let words = output.expect_ok();
    let lines: Vec<_> = words.lines().collect();
    assert_eq!(lines, ["explain", "--output", "text json yaml markdown"], "{words}");
    for shell in ["zsh", "fish"] {
        let script = Output::of(flotilla().args(["completion", shell])).expect_ok();
        assert!(script.contains("explain"), "{shell}");
    }
}
