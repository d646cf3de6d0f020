//! One of two hubs is told to end: what people have under way goes on, by whichever of the two it goes.
//!
//! Paris has a tunnel to the first hub alone, so that the second one asks it by a hop; rome has one to each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use flotilla_tests::{Child, ControlPlane, Flotilla, Kubelet, Options, Repository, eventually, ports, scratch};

use super::super::people::{ACCESS, Callers};
use super::super::support::{FLEET, LIMIT};

/// Answers of each who asks one thing after another: half of them before a hub is told to end.
const ANSWERS: u32 = 50;

/// One request of kubectl's.
const GET: [&str; 3] = ["get", "--raw", "/api/v1/namespaces/default"];

/// What kubectl says of a hub that has ended.
const ENDED: [&str; 2] = ["connection refused", "was refused"];

/// A hub, and the people who ask it.
struct Hub {
    name: &'static str,
    callers: Arc<Callers>,
    key: String,
    listen: String,
    peers: String,
    api: String,
    process: Option<Flotilla>,
}

impl Hub {
    fn prepare(folder: &std::path::Path, name: &'static str) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        let callers = Callers::new(&folder);
        let key = Flotilla::run(&["hub", "key", "--key", &callers.path("hub.key")]).expect_ok();
        let free = || format!("127.0.0.1:{}", ports::free());
        Self {
            name,
            callers: Arc::new(callers),
            key: key.trim().to_owned(),
            listen: free(),
            peers: free(),
            api: free(),
            process: None,
        }
    }

    fn start(&mut self, repository: &Repository, other: &Self) {
        let own = [
            ["--repository", &repository.bare().display().to_string()],
            ["--key", &self.callers.path("hub.key")],
            ["--listen", &self.listen],
            ["--listen-peers", &self.peers],
            ["--peer", &format!("wss://{}={}", other.peers, other.key)],
            ["--server-id", self.name],
            ["--audit-log", &self.callers.path("audit.log")],
            ["--api", &self.api],
        ];
        let door = self.callers.hub_flags();
        let own = own.iter().flatten().copied();
        let arguments: Vec<_> = own.chain(door.iter().map(String::as_str)).collect();
        self.process = Some(Flotilla::hub(&arguments));
    }

    fn process(&mut self) -> &mut Flotilla {
        self.process.as_mut().expect("it was started")
    }

    /// Waits until it answers for a cluster.
    #[track_caller]
    fn until_it_answers_for(&self, cluster: &str) {
        eventually(LIMIT, &format!("{cluster} answers at the {} hub", self.name), || {
            self.callers.kubectl("ada", cluster, &GET).ok()
        });
    }

    /// Follows the log of paris' pod.
    #[track_caller]
    fn follow(&self, name: &str) -> Child {
        let log = self
            .callers
            .follow(name, "ada", "paris", &["logs", "-f", "teller", "-n", "default"]);
        eventually(LIMIT, "the log begins", || {
            let text = log.log();
            text.contains("line 5\n").then_some(()).ok_or(text)
        });
        log
    }
}

/// Somebody who asks one thing after another.
struct Asking {
    answers: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    /// When each was asked that was not answered, and what was said instead.
    asking: JoinHandle<Vec<(Instant, String)>>,
}

impl Asking {
    fn begin(hub: &Hub, cluster: &'static str) -> Self {
        let (answers, stop) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let asking = {
            let (callers, answers, stop) = (Arc::clone(&hub.callers), Arc::clone(&answers), Arc::clone(&stop));
            thread::spawn(move || {
                let mut unanswered = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let asked = Instant::now();
                    match callers.kubectl("ada", cluster, &GET).ok() {
                        Ok(_) => drop(answers.fetch_add(1, Ordering::Relaxed)),
                        Err(said) if ENDED.iter().any(|ended| said.contains(ended)) => {
                            unanswered.push((asked, said));
                            break;
                        }
                        Err(said) => unanswered.push((asked, said)),
                    }
                }
                unanswered
            })
        };
        Self { answers, stop, asking }
    }

    /// Waits until it has so many answers more.
    #[track_caller]
    fn until(&self, more: u32) {
        let goal = self.answers.load(Ordering::Relaxed) + more;
        eventually(LIMIT, "people are answered", || {
            match self.answers.load(Ordering::Relaxed) {
                count if count >= goal || self.asking.is_finished() => Ok(()),
                count => Err(format!("{count} of {goal} answers")),
            }
        });
    }

    /// What was not answered.
    fn end(self) -> Vec<(Instant, String)> {
        self.stop.store(true, Ordering::Relaxed);
        self.asking.join().expect("it goes on")
    }
}

/// The lines of a log that is followed: nothing is missing. How many there are.
#[track_caller]
fn lines(log: &Child) -> usize {
    let text = log.log();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for (number, line) in whole.lines().enumerate() {
        assert_eq!(line, format!("line {number}"), "of {}", log.log_tail());
    }
    whole.lines().count()
}

/// Tells a hub to end while people ask, and sees that what they have under way goes on until they end it.
#[track_caller]
fn end(hub: &mut Hub, logs: Vec<Child>, (lasting, at_it): (Asking, Asking)) {
    for asking in [&lasting, &at_it] {
        asking.until(ANSWERS / 2);
    }
    let told = Instant::now();
    hub.process().signal("TERM");
    lasting.until(ANSWERS / 2);
    for log in &logs {
        let seen = lines(log);
        eventually(LIMIT, "a log goes on", || match lines(log) {
            now if now > seen + 100 => Ok(()),
            now => Err(format!("{now} lines after {seen}: {}", log.log_tail())),
        });
    }
    hub.process().assert_running();
    let lost = lasting.end();
    assert!(lost.is_empty(), "at the other hub nothing is lost: {lost:?}");
    // It takes new ones for a moment, and is not there any more after that.
    for (asked, said) in at_it.end() {
        let is_refused = ENDED.iter().any(|ended| said.contains(ended));
        assert!(
            asked > told && is_refused,
            "asked {:?} after: {said}",
            asked.checked_duration_since(told)
        );
    }
    drop(logs);
    let ended = hub.process().wait(LIMIT);
    assert!(ended.success(), "{ended}: {}", hub.process().log_tail());
    hub.process = None;
}

#[test]
fn a_hub_that_is_told_to_end_cuts_off_no_log_and_loses_no_request_by_whichever_way_they_go() {
    let clusters = ControlPlane::start_all(["paris", "rome"], Options::default());
    let (folder, repository) = (scratch::folder("ending"), Repository::empty());
    let path = |name: &str| folder.join(name).display().to_string();
    let [mut first, mut second] = ["first", "second"].map(|name| Hub::prepare(&folder, name));
    let join = |name: &str| {
        let key = path(&format!("{name}.key"));
        Flotilla::run(&["agent", "join", "--cluster", name, "--key", &key]).expect_ok()
    };
    repository.push_files(
        "begin",
        &[
            ("fleet.yaml", FLEET),
            ("clusters/paris.yaml", &join("paris")),
            ("clusters/rome.yaml", &join("rome")),
            ("access/ops.yaml", ACCESS),
        ],
    );
    first.start(&repository, &second);
    second.start(&repository, &first);
    let agent = |cluster: &ControlPlane, hubs: &[&Hub]| {
        let name = cluster.name();
        let own = [
            ["--cluster", name],
            ["--key", &path(&format!("{name}.key"))],
            ["--journal", &path(&format!("{name}.journal"))],
            ["--kubeconfig", &cluster.kubeconfig().display().to_string()],
        ];
        let hubs = hubs
            .iter()
            .flat_map(|hub| ["--hub", &hub.listen, "--hub-key", &hub.key]);
        Flotilla::agent(&own.iter().flatten().copied().chain(hubs).collect::<Vec<_>>())
    };
    let _agents = [agent(&clusters[0], &[&first]), agent(&clusters[1], &[&first, &second])];
    for hub in [&first, &second] {
        let ca = hub.callers.path("hub-ca.crt");
        eventually(LIMIT, "the hub has a certificate", || {
            std::fs::metadata(&ca).map_err(|error| error.to_string())
        });
        hub.callers.write_kubeconfigs(&["paris", "rome"]);
        hub.until_it_answers_for("paris");
        hub.until_it_answers_for("rome");
    }
    Kubelet::start().join(&clusters[0], "scribe");
    clusters[0].apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {namespace: default, name: teller}\n\
         spec: {nodeName: scribe, containers: [{name: teller, image: teller.example/teller:1}]}\n",
    );
    let running = [
        "patch",
        "pod",
        "teller",
        "-n",
        "default",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    let running = [&running[..], &[r#"{"status": {"phase": "Running"}}"#]].concat();
    clusters[0].kubectl(&running).expect_ok();

    // The hub that holds the tunnel: for who asks it, and for who asks the other one.
    let logs = vec![first.follow("own"), second.follow("by-a-hop")];
    let asking = (Asking::begin(&second, "rome"), Asking::begin(&first, "rome"));
    end(&mut first, logs, asking);
    let away = second
        .callers
        .kubectl("ada", "paris", &["--request-timeout=2s", "get", "ns"]);
    assert!(away.ok().is_err(), "paris knows no other hub");

    // The hub that is asked, and has no tunnel of its own.
    first.start(&repository, &second);
    first.until_it_answers_for("paris");
    second.until_it_answers_for("paris");
    let logs = vec![second.follow("by-the-other")];
    let asking = (Asking::begin(&first, "paris"), Asking::begin(&second, "paris"));
    end(&mut second, logs, asking);
}
