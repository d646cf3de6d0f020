//! Two hubs over one remote: whoever of them dies at whatever step, every cluster gets what was pushed, once.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flotilla_tests::{Flotilla, eventually, pool, ports};
use serde_json::Value;

use super::support::{Fleet, GREETING, LIMIT, config_map};

/// Stops a push of a ref by a hub, says which processes are waiting, and goes on or refuses as a file says.
const HOOK: &str = r#"#!/bin/sh
here="$(dirname "$0")"
[ -e "$here/stop-at" ] || exit 0
grep -q "$(cat "$here/stop-at")" || exit 0
mkdir "$here/stopping" 2>/dev/null || exit 0
process=$PPID
while [ "$process" -gt 1 ]; do
    echo "$process"
    process=$(cut -d' ' -f4 "/proc/$process/stat")
done > "$here/stopped.part"
mv "$here/stopped.part" "$here/stopped"
while [ ! -e "$here/then" ]; do sleep 0.05; done
[ "$(cat "$here/then")" = go ]
"#;

/// The second hub, and where it is.
struct Second {
    process: Option<Flotilla>,
    key_file: String,
    key: String,
    listen: String,
    peers: String,
    api: String,
    copy: String,
}

/// A fleet with two hubs: the agents of amsterdam and bogota know the first, and that of colombo the second.
struct Two {
    fleet: Fleet,
    second: Second,
    first_peers: String,
    first_copy: String,
}

impl Two {
    fn start() -> Self {
        let fleet = Fleet::prepare();
        let key_file = fleet.folder().join("second.key").display().to_string();
        let key = Flotilla::run(&["hub", "key", "--key", &key_file]).expect_ok();
        let free = || format!("127.0.0.1:{}", ports::free());
        let copy = |name: &str| fleet.folder().join(name).display().to_string();
        let second = Second {
            process: None,
            key_file,
            key: key.trim().to_owned(),
            listen: free(),
            peers: free(),
            api: free(),
            copy: copy("second.git"),
        };
        let (first_peers, first_copy) = (free(), copy("first.git"));
        let mut two = Self {
            fleet,
            second,
            first_peers,
            first_copy,
        };
        two.start_first();
        two.start_second();
        two.fleet.start_agent("amsterdam");
        two.fleet.start_agent("bogota");
        let hub = (two.second.listen.clone(), two.second.key.clone());
        two.fleet.start_agent_at("colombo", (&hub.0, &hub.1), &[]);
        two.fleet.open_for_use();
        two
    }

    fn url(&self) -> String {
        format!("file://{}", self.fleet.repository.bare().display())
    }

    fn start_first(&mut self) {
        let peer = format!("wss://{}={}", self.second.peers, self.second.key);
        let more = [
            "--copy",
            &self.first_copy,
            "--poll-seconds",
            "1",
            "--peer",
            &peer,
            "--listen-peers",
        ];
        let url = self.url();
        self.fleet
            .start_hub_of(&url, &[&more[..], &[&self.first_peers]].concat());
    }

    fn start_second(&mut self) {
        let peer = format!("wss://{}={}", self.first_peers, self.fleet.hub_key());
        let Second {
            key_file,
            listen,
            peers,
            api,
            copy,
            ..
        } = &self.second;
        let arguments = [
            "--repository",
            &self.url(),
            "--key",
            key_file,
            "--listen",
            listen,
            "--api",
            api,
            "--copy",
            copy,
            "--poll-seconds",
            "1",
            "--peer",
            &peer,
            "--listen-peers",
            peers,
        ];
        self.second.process = Some(Flotilla::hub(&arguments));
    }

    /// Kills the hub among whose processes these are, and starts it again. Whether it was the first.
    fn kill(&mut self, waiting: &BTreeSet<u32>) -> bool {
        let is_first = waiting.contains(&self.fleet.hub().id());
        if is_first {
            self.fleet.kill_hub();
        } else {
            let second = self.second.process.take().expect("it runs");
            assert!(waiting.contains(&second.id()), "one of the hubs waits");
        }
        is_first
    }

    fn hooks(&self) -> PathBuf {
        self.fleet.repository.bare().join("hooks")
    }

    /// Which clusters a hub says are connected.
    fn connected(&self, api: &str) -> Result<usize, String> {
        let listed = Flotilla::run(&["get", "clusters", "--server", api, "-o", "json"]);
        let listed = listed.ok()?;
        let listed: Value = serde_json::from_str(&listed).map_err(|error| error.to_string())?;
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        let is_ready = |item: &&Value| {
            let conditions = item["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions
                .iter()
                .any(|it| it["type"] == "Ready" && it["status"] == "True")
        };
        Ok(items.iter().filter(is_ready).count())
    }
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

#[test]
fn either_hub_may_be_killed_at_any_step_of_a_decision_and_nothing_is_lost_or_decided_twice() {
    let mut two = Two::start();
    for api in [two.fleet.api(), format!("http://{}", two.second.api)] {
        eventually(LIMIT, "both hubs know of every cluster", || {
            match two.connected(&api)? {
                3 => Ok(()),
                other => Err(format!("{other} are connected to {api}")),
            }
        });
    }
    let hooks = two.hooks();
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("pre-receive"), HOOK).unwrap();
    fs::set_permissions(hooks.join("pre-receive"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut pushed = 0;
    for step in ["flotilla/rendered", "flotilla/released"] {
        for outcome in ["go", "refuse"] {
            for name in ["then", "stopped"] {
                let _none = fs::remove_file(hooks.join(name));
            }
            let _none = fs::remove_dir(hooks.join("stopping"));
            fs::write(hooks.join("stop-at"), step).unwrap();
            pushed += 1;
            let text = format!("hello {pushed}");
            let file = config_map(GREETING.0, GREETING.1, &text);
            two.fleet.push("Greet otherwise", &[("feeds/web/greeting.yaml", &file)]);
            let waiting = eventually(LIMIT, "a hub pushes", || read(&hooks.join("stopped")));
            let waiting = waiting.lines().filter_map(|line| line.parse().ok()).collect();
            let was_first = two.kill(&waiting);
            fs::remove_file(hooks.join("stop-at")).unwrap();
            fs::write(hooks.join("then"), outcome).unwrap();
            // Whoever is left goes on alone, for the clusters that know it.
            let left: &[&str] = if was_first {
                &["colombo"]
            } else {
                &["amsterdam", "bogota"]
            };
            two.fleet.until_text(left, GREETING, &text);
            if was_first {
                two.start_first()
            } else {
                two.start_second()
            }
            two.fleet.until_text(&pool::NAMES, GREETING, &text);
        }
    }
    let repository = &two.fleet.repository;
    repository.git_bare(&["fsck", "--strict"]).expect_ok();
    let lines = |reference: &str, form: &str| -> Vec<String> {
        let log = repository.git_bare(&["log", "--reverse", &format!("--format={form}"), reference]);
        log.expect_ok().lines().map(str::to_owned).collect()
    };
    let parents = lines("flotilla/released", "%P");
    assert!(
        parents.iter().skip(1).all(|parents| parents.split(' ').count() == 1),
        "it is a line"
    );
    for (at, subject) in lines("flotilla/released", "%s").iter().enumerate() {
        let sequence = format!("Release {} ", at + 1);
        assert!(
            subject.starts_with(&sequence),
            "no sequence is left out or there twice: {subject}"
        );
    }
    let rendered = lines("flotilla/rendered", "%s");
    let each: BTreeSet<_> = rendered.iter().collect();
    assert_eq!(each.len(), rendered.len(), "each push is decided on once: {rendered:?}");
    let logs = two.fleet.logs() + &two.second.process.as_ref().expect("it runs").log();
    for alarm in ["Envelope was refused", "Refused envelope", "put back"] {
        assert!(!logs.contains(alarm), "{alarm}\n{logs}");
    }
}
