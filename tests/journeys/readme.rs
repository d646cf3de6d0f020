//! The way that the README shows, command by command, as it stands there.

use std::fs;
use std::path::Path;
use std::process::Command;

use flotilla_tests::{ControlPlane, Options, Output, flotilla::binary, parts, ports, scratch};

fn paper(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

/// The commands below a heading of the README.
#[track_caller]
fn commands(heading: &str) -> String {
    let readme = paper("README.md");
    let section = readme.split("\n## ").find(|section| section.starts_with(heading));
    let block = section.and_then(|section| section.split("```sh\n").nth(1)?.split("```").next());
    block
        .unwrap_or_else(|| panic!("the README has commands below {heading:?}"))
        .to_owned()
}

#[test]
fn the_readmes_first_two_commands_are_there() {
    assert_eq!(commands("Try it"), "cargo demo\n");
    // What it runs is what the journey `demo` runs.
    let alias = "demo = \"run -p flotilla-harness --bin flotilla-demo\"";
    assert!(paper(".cargo/config.toml").lines().any(|line| line == alias));
    let program = commands("Test it");
    assert!(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(program.trim())
            .is_file()
    );
}

#[test]
fn the_readmes_commands_bring_a_first_object_to_a_cluster() {
    let cluster = ControlPlane::start("paris", Options::default());
    let home = scratch::folder("readme");
    fs::create_dir(home.join(".kube")).unwrap();
    fs::copy(cluster.kubeconfig(), home.join(".kube/config")).unwrap();
    let [listen, api] = [(); 2].map(|()| format!("127.0.0.1:{}", ports::free()));
    let script = commands("Run it on clusters you have");
    let (build, rest) = script.split_once('\n').unwrap();
    assert!(
        build.starts_with("cargo build --release"),
        "the tests have built it already: {build}"
    );
    // Fixed ports may be in use here, and whatever the script leaves running ends with it.
    let script = format!("trap 'kill $!' EXIT\n{}", rest.replace("127.0.0.1:7070", &api));
    let mut shell = Command::new("sh");
    let flotilla = binary("flotilla");
    let path = [flotilla.parent().unwrap(), parts::folder()].map(|folder| folder.display().to_string());
    shell.env(
        "PATH",
        format!("{}:{}", path.join(":"), std::env::var("PATH").unwrap_or_default()),
    );
    shell.env("HOME", &home).env_remove("KUBECONFIG");
    shell.env("FLOTILLA_LISTEN", listen).env("FLOTILLA_API", &api);
    for role in ["AUTHOR", "COMMITTER"] {
        shell
            .env(format!("GIT_{role}_NAME"), "Ada")
            .env(format!("GIT_{role}_EMAIL"), "ada@example.com");
    }
    let said = Output::of(shell.current_dir(&home).args(["-ec", &script])).expect_ok();
    assert!(
        said.contains("hello"),
        "the cluster has it, and the hub answers kubectl: {said}"
    );
    let found = cluster.get("default", "configmap/hello").unwrap();
    assert_eq!(found["data"]["greeting"], "Hello from Git.");
}
