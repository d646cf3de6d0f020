//! Two hubs over one remote, and a fleet.

use std::collections::BTreeSet;

use flotilla_tests::{Flotilla, ports};
use serde_json::Value;

use super::super::support::Fleet;

/// The second hub, and where it is.
pub(super) struct Second {
    pub(super) process: Option<Flotilla>,
    key_file: String,
    pub(super) key: String,
    pub(super) listen: String,
    peers: String,
    api: String,
    copy: String,
}

/// A fleet with two hubs.
pub(super) struct Two {
    pub(super) fleet: Fleet,
    pub(super) second: Second,
    first_peers: String,
    first_copy: String,
    /// More arguments of each.
    pub(super) more: [Vec<String>; 2],
    /// Where the second one finds the repository, if not where it is.
    pub(super) second_url: Option<String>,
}

impl Two {
    /// With nothing running.
    pub(super) fn prepare() -> Self {
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
        Self {
            fleet,
            second,
            first_peers,
            first_copy,
            more: Default::default(),
            second_url: None,
        }
    }

    /// Both hubs run; the agents of amsterdam and bogota know the first, and that of colombo the second.
    pub(super) fn start() -> Self {
        let mut two = Self::prepare();
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

    pub(super) fn start_first(&mut self) {
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
        let of_test = self.more[0].iter().map(String::as_str).collect::<Vec<_>>();
        self.fleet
            .start_hub_of(&url, &[&more[..], &[&self.first_peers], &of_test].concat());
    }

    pub(super) fn start_second(&mut self) {
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
            &self.second_url.clone().unwrap_or_else(|| self.url()),
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
        let of_test = self.more[1].iter().map(String::as_str).collect::<Vec<_>>();
        self.second.process = Some(Flotilla::hub(&[&arguments[..], &of_test].concat()));
    }

    /// Kills the hub among whose processes these are, and starts it again. Whether it was the first.
    pub(super) fn kill(&mut self, waiting: &BTreeSet<u32>) -> bool {
        let is_first = waiting.contains(&self.fleet.hub().id());
        if is_first {
            self.fleet.kill_hub();
        } else {
            let second = self.second.process.take().expect("it runs");
            assert!(waiting.contains(&second.id()), "one of the hubs waits");
        }
        is_first
    }

    /// Where each hub's read-only API answers.
    pub(super) fn apis(&self) -> [String; 2] {
        [self.fleet.api(), format!("http://{}", self.second.api)]
    }

    /// What each hub has logged.
    pub(super) fn logs(&mut self) -> [String; 2] {
        let second = self.second.process.as_ref().map(|hub| hub.log());
        [self.fleet.hub().log(), second.unwrap_or_default()]
    }

    /// Which clusters a hub says are connected.
    pub(super) fn connected(&self, api: &str) -> Result<usize, String> {
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
