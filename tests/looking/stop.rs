//! A normal stop: nobody is alarmed by it.

use std::fs;
use std::time::Duration;

use flotilla_tests::{Child, Flotilla, Repository, eventually, ports, scratch};

const LIMIT: Duration = Duration::from_secs(60);

/// Nobody answers there: how a tunnel ends needs no API server.
const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: a, user: {}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
";

fn shows(child: &Child, word: &str) -> Result<(), String> {
    if child.log().contains(word) {
        Ok(())
    } else {
        Err(child.log())
    }
}

#[test]
fn a_normal_stop_is_told_as_such_on_both_sides() {
    let folder = scratch::folder("stop");
    let path = |name: &str| folder.join(name).display().to_string();
    fs::write(folder.join("kubeconfig"), KUBECONFIG).expect("the folder is writable");
    let file = Flotilla::run(&["agent", "join", "--cluster", "a", "--key", &path("a.key")]).expect_ok();
    let repository = Repository::with_files(&[("clusters/a.yaml", &file)]);
    let hub_key = Flotilla::run(&["hub", "key", "--key", &path("hub.key")]).expect_ok();
    let [listen, api] = [0; 2].map(|_| format!("127.0.0.1:{}", ports::free()));
    let bare = repository.bare().display().to_string();
    let hub = [
        "--repository",
        &bare,
        "--key",
        &path("hub.key"),
        "--listen",
        &listen,
        "--api",
        &api,
    ];
    let agent_key = path("a.key");
    let (kubeconfig, journal) = (path("kubeconfig"), path("journal"));
    let agent = [
        "--cluster",
        "a",
        "--key",
        &agent_key,
        "--hub",
        &listen,
        "--hub-key",
        hub_key.trim(),
        "--kubeconfig",
        &kubeconfig,
        "--journal",
        &journal,
    ];
    let mut hub = Flotilla::hub(&hub);
    let agent = Flotilla::agent(&agent);
    eventually(LIMIT, "the agent is told something", || shows(&agent, "Took envelope"));
    let status = hub.terminate(LIMIT);
    assert!(status.success(), "{status}: {}", hub.log());
    eventually(LIMIT, "the agent knows that the hub is gone", || {
        shows(&agent, "Could not connect to hub")
    });
    assert!(hub.log().contains("the hub is ending"), "{}", hub.log());
    for word in ["close_notify", "stream failed", "Lost deliver stream"] {
        assert!(!agent.log().contains(word), "{word} in {}", agent.log());
        assert!(!hub.log().contains(word), "{word} in {}", hub.log());
    }
}
