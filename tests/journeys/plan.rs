//! `flotilla plan` beside a running hub: what it prints and how it ends.

use flotilla_tests::{Flotilla, Output, Repository, eventually, ports, scratch};
use serde_json::Value;

use super::support::*;

const CLUSTER: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {name: oslo}
";

/// A pushed fleet with a cluster that nobody serves, and one unit for it.
fn repository() -> Repository {
    Repository::with_files(&[
        ("fleet.yaml", FLEET),
        ("clusters/oslo.yaml", CLUSTER),
        ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
        ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
    ])
}

/// Runs a hub until it has released the pushed commit.
fn release(repository: &Repository) {
    let key = scratch::folder("hub-key").join("hub.key").display().to_string();
    let [listen, api] = [0; 2].map(|_| format!("127.0.0.1:{}", ports::free()));
    let bare = repository.bare().display().to_string();
    // Nobody is asked what it holds: there is no cluster behind the file.
    let grace = ["--recovery-grace-seconds", "0"];
    let own = ["--repository", &bare, "--key", &key, "--listen", &listen, "--api", &api];
    let _hub = Flotilla::hub(&[&own[..], &grace].concat());
    eventually(LIMIT, "the hub releases", || {
        repository
            .head("flotilla/released")
            .ok_or_else(|| "nothing yet".to_owned())
    });
}

fn plan(folder: &std::path::Path, more: &[&str]) -> Output {
    let folder = folder.display().to_string();
    Flotilla::run(&[&["plan", "--repository", &folder], more].concat())
}

#[track_caller]
fn check(output: &Output, code: i32, words: &[&str]) {
    let all = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(output.code(), Some(code), "{all}");
    for word in words {
        assert!(all.contains(word), "{word:?} is not in:\n{all}");
    }
}

#[track_caller]
fn json(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_plan_tells_by_its_exit_code_whether_something_changes() {
    let repository = repository();
    let (bare, work) = (repository.bare(), repository.work());
    check(
        &plan(bare, &[]),
        1,
        &["Plan from nothing", "+ on oslo", "+ ConfigMap shop/greeting"],
    );
    release(&repository);
    check(&plan(bare, &[]), 0, &["Nothing changes."]);
    // A clone that was not fetched since knows of nothing that the hub wrote.
    check(&plan(work, &[]), 1, &["Plan from nothing"]);
    repository.git(&["fetch", "--quiet"]);
    check(&plan(work, &[]), 0, &["Nothing changes."]);

    repository.write("feeds/web/greeting.yaml", config_map("shop", "greeting", "hi"));
    repository.commit("Be brief");
    check(
        &plan(work, &[]),
        1,
        &[
            "shop/web",
            "~ on oslo",
            "~ ConfigMap shop/greeting",
            r#"/data/text: "hello" -> "hi""#,
            "1 unit changes on 1 cluster.",
        ],
    );
    check(&plan(work, &["--to", "HEAD~1"]), 0, &["Nothing changes."]);
    check(
        &plan(work, &["--from", "HEAD", "--to", "HEAD~1"]),
        1,
        &[r#""hi" -> "hello""#],
    );
    check(&plan(bare, &[]), 0, &["Nothing changes."]);
}

#[test]
fn a_plan_as_json_is_one_object_on_stdout_alone() {
    let repository = repository();
    release(&repository);
    repository.git(&["fetch", "--quiet"]);
    let unchanged = plan(repository.work(), &["-o", "json"]);
    assert_eq!(json(&unchanged)["units"], Value::Array(Vec::new()), "{unchanged:?}");
    repository.write("feeds/web/greeting.yaml", config_map("shop", "greeting", "hi"));
    let commit = repository.commit("Be brief");
    let output = plan(repository.work(), &["-o", "json"]);
    check(&output, 1, &[]);
    let shown = json(&output);
    assert_eq!(shown["to"], *commit, "{shown:#}");
    assert_eq!(shown["findings"], Value::Array(Vec::new()), "{shown:#}");
    assert_eq!(shown["units"][0]["unit"], "shop/web", "{shown:#}");
    assert_eq!(shown["units"][0]["groups"][0]["clusters"][0], "oslo", "{shown:#}");
    let object = &shown["units"][0]["groups"][0]["objects"][0];
    assert!(object.to_string().contains("greeting"), "{shown:#}");
}

#[test]
fn a_plan_of_something_wrong_says_where_and_ends_with_two() {
    let repository = repository();
    release(&repository);
    repository.git(&["fetch", "--quiet"]);
    repository.write("feeds/web/greeting.yaml", "kind: [\n");
    repository.commit("Break the greeting");
    let text = plan(repository.work(), &[]);
    check(&text, 2, &["feeds/web/greeting.yaml:"]);
    assert!(
        text.stderr.contains("feeds/web/greeting.yaml:"),
        "findings go to stderr: {text:?}"
    );
    let shown = json(&plan(repository.work(), &["-o", "json"]));
    assert_eq!(shown["findings"][0]["file"], "feeds/web/greeting.yaml", "{shown:#}");
    assert_eq!(
        shown["units"],
        Value::Array(Vec::new()),
        "a held unit changes nothing: {shown:#}"
    );

    let failed = plan(repository.work(), &["--to", "nowhere", "-o", "json"]);
    check(&failed, 2, &[]);
    assert!(
        json(&failed)["error"]
            .as_str()
            .is_some_and(|error| error.contains("nowhere")),
        "{failed:?}"
    );

    check(
        &plan(repository.work(), &["--to", "nowhere"]),
        2,
        &["error: ", "nowhere"],
    );
    check(&plan(&repository.work().join("nowhere"), &[]), 2, &["error: "]);
    check(&plan(repository.work(), &["--no-such-flag"]), 64, &[]);
}

#[test]
fn a_removal_is_a_difference_and_is_told_first() {
    let repository = repository();
    release(&repository);
    repository.git(&["fetch", "--quiet"]);
    repository.write("feeds/web/other.yaml", config_map("shop", "other", "x"));
    repository.remove("feeds/web/greeting.yaml");
    repository.commit("Say nothing");
    let output = plan(repository.work(), &[]);
    check(
        &output,
        1,
        &[
            "1 object is removed",
            "- shop/web: ConfigMap shop/greeting",
            "~ on oslo",
            "- ConfigMap shop/greeting",
        ],
    );
    let removed = output.stdout.find("Removed").unwrap();
    assert!(removed < output.stdout.find("~ on oslo").unwrap(), "{output:?}");
    let shown = json(&plan(repository.work(), &["-o", "json"]));
    assert_eq!(shown["summary"]["removedObjects"], 1, "{shown:#}");
    check(
        &plan(repository.work(), &["-o", "markdown"]),
        1,
        &[
            "#### Removed",
            "<details><summary><b>shop/web</b>",
            "-     ConfigMap shop/greeting",
        ],
    );
    // Only a terminal is coloured, unless it is asked for.
    assert!(!output.stdout.contains('\u{1b}'), "{output:?}");
    check(&plan(repository.work(), &["--color", "always"]), 1, &["\u{1b}[31m"]);
}
