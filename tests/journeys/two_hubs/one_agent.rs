//! An agent with two hubs: people ask either, and one may die.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use flotilla_tests::{Flotilla, Output, eventually, parts, ports};
use serde_json::Value;

use super::super::support::{GREETING, LIMIT, config_map};
use super::pair::Two;

pub(super) const ACCESS: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
  - {apiGroups: [''], resources: [configmaps, namespaces], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada}]
";

/// How long a key that was taken away may keep its tunnel, from when its hub has seen the commit.
const REVOKED_WITHIN: Duration = Duration::from_secs(5);

/// Answers that go on after a hub died: more than a connection has on its way.
const ANSWERS: u32 = 10;

/// Lets each hub serve people, and names where agents reach it; the URLs for people.
pub(super) fn serve_people(two: &mut Two) -> [String; 2] {
    let folder = two.fleet.folder().to_owned();
    let path = |name: &str| folder.join(name).display().to_string();
    for (name, content) in [
        ("tokens.csv", "long-token-of-ada,ada,1\nlong-token-of-bob,bob,2\n"),
        ("ada.token", "long-token-of-ada"),
        ("bob.token", "long-token-of-bob"),
    ] {
        fs::write(folder.join(name), content).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let agents = [two.fleet.hub_address(), two.second.listen.clone()];
    let people = [(); 2].map(|()| format!("127.0.0.1:{}", ports::free()));
    for (at, hub) in ["first", "second"].iter().enumerate() {
        let advertised = format!("wss://{}", agents[at]);
        let arguments = [
            ["--serve", &people[at]],
            ["--token-file", &path("tokens.csv")],
            ["--audit-log", &path(&format!("{hub}.audit"))],
            ["--advertise", &advertised],
            ["--server-id", hub],
        ];
        two.more[at] = arguments.concat().into_iter().map(str::to_owned).collect();
    }
    people.map(|people| format!("https://{people}"))
}

/// A person with a kubeconfig for each hub.
#[derive(Clone)]
pub(super) struct Person {
    folder: std::path::PathBuf,
    name: &'static str,
}

impl Person {
    pub(super) fn new(two: &Two, name: &'static str, people: &[String; 2]) -> Self {
        let folder = two.fleet.folder().to_owned();
        let path = |name: &str| folder.join(name).display().to_string();
        for ((hub, ca), url) in [("first", "hub-ca.crt"), ("second", "second-ca.crt")]
            .into_iter()
            .zip(people)
        {
            let (ca, token, output) = (
                path(ca),
                path(&format!("{name}.token")),
                path(&format!("{name}.{hub}.kubeconfig")),
            );
            let arguments = [
                ["--hub", url],
                ["--ca", &ca],
                ["--token-file", &token],
                ["--output", &output],
                ["--cluster", "amsterdam"],
                ["--cluster", "colombo"],
            ];
            Flotilla::run(&[&["kubeconfig"], &arguments.concat()[..]].concat()).expect_ok();
        }
        Self { folder, name }
    }

    /// What `cluster` says of the greeting, asked at a hub.
    pub(super) fn greeting(&self, hub: &str, cluster: &str) -> Output {
        self.greeting_within("30s", hub, cluster)
    }

    fn greeting_within(&self, seconds: &str, hub: &str, cluster: &str) -> Output {
        let kubeconfig = self.folder.join(format!("{}.{hub}.kubeconfig", self.name));
        let mut command = parts::command("kubectl");
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--cache-dir")
            .arg(self.folder.join("cache"))
            .args(["--context", cluster, "--request-timeout", seconds, "-n", GREETING.0])
            .args(["get", "configmap", GREETING.1, "-o", "jsonpath={.data.text}"]);
        Output::of(&mut command)
    }
}

/// Waits until a hub has logged a line with all of these words so often.
pub(super) fn until_logged(two: &mut Two, hub: usize, words: &[&str], times: usize) {
    eventually(LIMIT, &format!("hub {hub} logs {words:?}"), || {
        let log = two.logs()[hub].clone();
        let lines = log.lines().filter(|line| words.iter().all(|word| line.contains(word)));
        let found = lines.count();
        (found >= times).then_some(()).ok_or(format!("{found} times in {log}"))
    });
}

fn audited(two: &Two, hub: &str) -> Vec<Value> {
    let text = fs::read_to_string(two.fleet.folder().join(format!("{hub}.audit"))).unwrap();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Which commit a hub accepted last.
fn accepted(api: &str) -> Result<String, String> {
    let text = Flotilla::run(&["get", "fleets", "fleet", "-o", "json", "--server", api]).ok()?;
    let shown: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(shown["status"]["accepted"].to_string())
}

#[test]
fn an_agent_with_two_hubs_loses_one_and_no_request() {
    let mut two = Two::prepare();
    let people = serve_people(&mut two);
    two.fleet
        .repository
        .push_files("Let ada read", &[("access/ops.yaml", ACCESS)]);
    two.start_first();
    two.start_second();
    for hub in [0, 1] {
        until_logged(&mut two, hub, &["Heard from another hub."], 1);
    }
    // One agent knows the first hub and hears there of the second; the other one was given the second alone, twice.
    // Both know the keys of the hubs that they have.
    let (hub, key) = (two.second.listen.clone(), two.second.key.clone());
    two.fleet.start_agent_with("amsterdam", &["--hub-key", &key]);
    let again = hub.replace("127.0.0.1", "localhost");
    two.fleet.start_agent_at("colombo", (&hub, &key), &["--hub", &again]);
    two.fleet.start_agent("bogota");
    two.fleet.open_for_use();
    let there = ["Agent connected.", "cluster=amsterdam"];
    until_logged(&mut two, 0, &there, 1);
    until_logged(&mut two, 1, &there, 1);

    let (ada, bob) = (Person::new(&two, "ada", &people), Person::new(&two, "bob", &people));
    for hub in ["first", "second"] {
        for cluster in ["amsterdam", "colombo"] {
            eventually(LIMIT, &format!("{cluster} answers at the {hub}"), || {
                let said = ada.greeting(hub, cluster).ok()?;
                (said == "hello").then_some(()).ok_or(said)
            });
            assert!(bob.greeting(hub, cluster).ok().is_err(), "bob may read nothing");
        }
    }
    // The first hub has no tunnel to colombo, so that it was one hop; each hub wrote it down, under one id.
    let second = audited(&two, "second");
    let hops: Vec<_> = second.iter().filter(|line| line.get("peer").is_some()).collect();
    let asked_at_first = audited(&two, "first");
    let is_joined = |hop: &&&Value| {
        asked_at_first
            .iter()
            .any(|line| line["requestId"] == hop["requestId"] && line["user"] == hop["user"])
    };
    let hop = hops.iter().find(is_joined).expect("a hop is in both logs");
    assert_eq!(
        (&hop["cluster"], &hop["user"], &hop["peer"], &hop["code"]),
        (
            &"colombo".into(),
            &"ada".into(),
            &two.fleet.hub_key().into(),
            &200.into()
        )
    );
    assert!(
        hops.iter().all(|hop| hop["user"] == "ada"),
        "what the first hub refuses does not come here"
    );

    // The first hub dies while people ask the second one.
    let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let asking = {
        let (ada, stop, answers) = (ada.clone(), Arc::clone(&stop), Arc::clone(&answers));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for cluster in ["amsterdam", "colombo"] {
                    ada.greeting("second", cluster).ok()?;
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok::<_, String>(())
        })
    };
    let answered = |more: u32| {
        let goal = answers.load(Ordering::Relaxed) + more;
        eventually(LIMIT, "people are answered", || match answers.load(Ordering::Relaxed) {
            count if count >= goal || asking.is_finished() => Ok(()),
            count => Err(format!("{count} of {goal} answers")),
        });
    };
    answered(2);
    two.fleet.kill_hub();
    answered(ANSWERS);
    let file = config_map(GREETING.0, GREETING.1, "one hub is enough");
    two.fleet.push("Say so", &[("feeds/web/greeting.yaml", &file)]);
    two.fleet
        .until_text(&["amsterdam", "colombo"], GREETING, "one hub is enough");
    stop.store(true, Ordering::Relaxed);
    asking.join().unwrap().expect("no request is lost");
    let log = two.second.process.as_ref().expect("it runs").log();
    let dials = log.lines().filter(|line| there.iter().all(|word| line.contains(word)));
    assert_eq!(
        dials.count(),
        1,
        "the tunnel to the other hub is the one that was there"
    );

    // It comes back, and with it the agent's tunnel to it. Then the agent's key is taken away.
    two.start_first();
    until_logged(&mut two, 0, &there, 1);
    let other = Flotilla::run(&[
        "hub",
        "key",
        "--key",
        &two.fleet.folder().join("other.key").display().to_string(),
    ]);
    let (registered, other) = (two.fleet.join("amsterdam"), other.expect_ok());
    let key = registered
        .lines()
        .find_map(|line| line.split("ed25519:").nth(1))
        .expect("the file has a key");
    let key = key
        .split(|letter: char| !letter.is_ascii_alphanumeric() && !"+/=-_".contains(letter))
        .next()
        .unwrap();
    let replaced = registered.replace(&format!("ed25519:{key}"), other.trim());
    assert_ne!(registered, replaced);
    let commit = two.fleet.push(
        "Take the key of amsterdam away",
        &[("clusters/amsterdam.yaml", &replaced)],
    );
    for (hub, api) in two.apis().into_iter().enumerate() {
        eventually(LIMIT, "the hub has seen it", || {
            let accepted = accepted(&api)?;
            accepted.contains(&commit).then_some(()).ok_or(accepted)
        });
        let gone = ["Agent disconnected.", "cluster=amsterdam", "names this key no more"];
        eventually(REVOKED_WITHIN, "the tunnel is gone", || {
            let log = two.logs()[hub].clone();
            let is_gone = log.lines().any(|line| gone.iter().all(|word| line.contains(word)));
            is_gone.then_some(()).ok_or(log)
        });
    }
    for hub in ["first", "second"] {
        // A cluster that was there a moment ago is waited for, by kubectl too.
        let refused = ada.greeting_within("2s", hub, "amsterdam").ok();
        assert!(refused.is_err(), "nobody answers for it at the {hub}: {refused:?}");
        assert!(ada.greeting(hub, "colombo").ok().is_ok(), "others stay");
    }
}
