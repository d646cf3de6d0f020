//! The way that the README shows, command by command, with the repository that `flotilla init` writes.

use std::path::Path;
use std::process::Command;

use flotilla_tests::flotilla::flotilla;
use flotilla_tests::{ControlPlane, Flotilla, Options, Output, Repository, eventually, parts, ports, scratch, wait};

fn run(command: &mut Command) -> String {
    Output::of(command).expect_ok().trim().to_owned()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// What the template's Globalization and Localization say of this cluster.
fn differences_arrive(cluster: &ControlPlane) {
    eventually(wait::LONG, "the shop arrives", || {
        let web = cluster.get("shop", "deployment/web")?;
        let page = cluster.get("shop", "configmap/web-page")?;
        let seen = (web["spec"]["replicas"].as_u64(), page["data"]["index.html"].as_str());
        match seen {
            (Some(3), Some("<h1>Bienvenue</h1>\n")) => Ok(()),
            seen => Err(format!("{seen:?}")),
        }
    });
}

fn every_manifest_is_what_an_api_server_takes(cluster: &ControlPlane, work: &Path) {
    for folder in ["feeds", "access"] {
        let folder = text(&work.join(folder));
        let judged = cluster.kubectl(&["apply", "--dry-run=server", "--recursive", "--filename", &folder]);
        judged.expect_ok();
    }
}

#[test]
fn the_readmes_commands_bring_a_first_object_to_a_cluster() {
    let cluster = ControlPlane::start("paris", Options::default());
    let folder = scratch::folder("readme");
    let repository = Repository::empty();
    run(flotilla().arg("init").arg(repository.work()));
    let key = text(&folder.join("hub.key"));
    let hub_key = run(flotilla().args(["hub", "key", "--key", &key]));
    let agent_key = text(&folder.join("paris.key"));
    let join = ["agent", "join", "--cluster", "paris", "--key", &agent_key];
    let registration = run(flotilla().args(join).args(["--label", "environment=production"]));
    repository.write("clusters/paris.yaml", registration);
    repository.commit("begin the fleet");
    repository.push();

    let address = format!("127.0.0.1:{}", ports::free());
    let api = format!("127.0.0.1:{}", ports::free());
    let (bare, kubeconfig) = (text(repository.bare()), text(&cluster.kubeconfig()));
    let _hub = Flotilla::hub(&[
        "--repository",
        &bare,
        "--key",
        &key,
        "--listen",
        &address,
        "--api",
        &api,
    ]);
    let journal = text(&folder.join("journal"));
    let agent = [
        "--cluster",
        "paris",
        "--hub",
        &address,
        "--hub-key",
        &hub_key,
        "--key",
        &agent_key,
    ];
    let _agent = Flotilla::agent(&[&agent[..], &["--kubeconfig", &kubeconfig, "--journal", &journal]].concat());

    let greeting = |expected: &str| {
        eventually(wait::LONG, "the greeting arrives", || {
            let found = cluster.get("default", "configmap/hello")?;
            if found["data"]["greeting"] == expected {
                Ok(())
            } else {
                Err(found.to_string())
            }
        });
    };
    greeting("Hello from Git.");
    let file = "feeds/hello/hello.yaml";
    let changed = repository
        .read("main", file)
        .unwrap()
        .replace("Hello from Git.", "Hello again.");
    repository.push_files("greet again", &[(file, &changed)]);
    greeting("Hello again.");
    differences_arrive(&cluster);
    every_manifest_is_what_an_api_server_takes(&cluster, repository.work());

    let mut kubectl = parts::command("kubectl");
    kubectl.args([
        "--server",
        &format!("http://{api}"),
        "get",
        "subscriptions",
        "--all-namespaces",
    ]);
    let listed = run(kubectl.env("KUBECONFIG", "/dev/null"));
    assert!(listed.contains("hello"), "the hub answers kubectl: {listed}");
}
