//! The page docs/register-a-cluster.md, whose commands are run here as they stand there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use flotilla_tests::network::Relay;
use flotilla_tests::{
    Child, ControlPlane, Flotilla, Node, Options, Output, Repository, Site, eventually, flotilla::binary, parts, ports,
    scratch,
};
use serde_json::Value;

use super::sites::at;
use super::support::{FLEET, LIMIT, config_map, namespace, subscription};

/// The page's blocks of one language, in order.
fn blocks(language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/register-a-cluster.md");
    let page = fs::read_to_string(path).unwrap();
    let begin = format!("```{language}\n");
    let rest = page.split(&begin).skip(1);
    rest.map(|rest| rest.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

/// The block in which a command stands.
#[track_caller]
fn block(language: &str, words: &str) -> String {
    let found = blocks(language).into_iter().find(|block| block.contains(words));
    found.unwrap_or_else(|| panic!("the page has no {language} block with {words:?}"))
}

/// The machine of somebody who registers `paris`.
struct Desk {
    folder: PathBuf,
    hub: String,
    api: String,
    /// Where people ask.
    serve: String,
    /// Where the agent dials, and the relay there if its cluster is behind NAT.
    way: String,
    _relay: Option<Relay>,
    site: Option<Arc<Site>>,
    cluster: ControlPlane,
    repository: Repository,
    hub_process: Option<Flotilla>,
}

impl Desk {
    fn new() -> Self {
        Self::with(None)
    }

    /// The cluster and its agent are in a site that nobody can dial.
    fn behind_nat() -> Self {
        Self::with(Some(Arc::new(Site::new("paris"))))
    }

    fn with(site: Option<Arc<Site>>) -> Self {
        let options = Options {
            site: site.clone(),
            ..Options::default()
        };
        let cluster = ControlPlane::start("paris", options);
        let (folder, repository) = (scratch::folder("desk"), Repository::empty());
        symlink(repository.work(), folder.join("fleet")).unwrap();
        fs::copy(cluster.kubeconfig(), folder.join("paris.kubeconfig")).unwrap();
        repository.write("fleet.yaml", FLEET);
        repository.write("clusters/README.md", "");
        repository.write("access/README.md", "");
        repository.write("subscriptions/shop/web.yaml", subscription("shop", "web"));
        repository.write("feeds/web/web.yaml", config_map("default", "web", "one"));
        repository.commit("begin");
        repository.git(&["push", "--quiet", "--set-upstream", "origin", "main"]);
        let [hub, api, serve] = [ports::free(), ports::free(), ports::free()].map(|port| format!("127.0.0.1:{port}"));
        let relay = site.as_ref().map(|site| {
            let target = hub.parse().expect("it is an address");
            Relay::start(at(site.outside()), target)
        });
        let way = relay
            .as_ref()
            .map_or_else(|| hub.clone(), |relay| relay.address().to_string());
        let mut desk = Self {
            folder,
            hub,
            api,
            serve,
            way,
            _relay: relay,
            site,
            cluster,
            repository,
            hub_process: None,
        };
        desk.start_hub(&block("sh", "flotilla hub --repository"));
        desk
    }

    /// Starts the hub by a line of the page; the key is the one that a hub makes where it is started.
    fn start_hub(&mut self, line: &str) {
        self.hub_process = None;
        let path = |name: &str| self.folder.join(name).display().to_string();
        let line = line
            .replace("fleet.git", &self.repository.bare().display().to_string())
            .replace("people.csv", &path("people.csv"))
            .replace("0.0.0.0:7443", &self.hub)
            .replace("0.0.0.0:6443", &self.serve);
        let key = path("flotilla-hub.key");
        let words = line.split_whitespace().filter(|word| *word != "\\");
        let mut arguments: Vec<_> = words.skip(2).collect();
        arguments.extend(["--key", &key, "--api", &self.api]);
        self.hub_process = Some(Flotilla::hub(&arguments));
    }

    fn command(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        let flotilla = binary("flotilla");
        let path = [flotilla.parent().unwrap(), parts::folder()].map(|folder| folder.display().to_string());
        shell.env(
            "PATH",
            format!("{}:{}", path.join(":"), std::env::var("PATH").unwrap_or_default()),
        );
        shell.env("FLOTILLA_SERVER", format!("http://{}", self.api));
        shell.env("KUBECONFIG", self.folder.join("paris.kubeconfig"));
        for role in ["AUTHOR", "COMMITTER"] {
            shell
                .env(format!("GIT_{role}_NAME"), "Ada")
                .env(format!("GIT_{role}_EMAIL"), "ada@example.com");
        }
        let script = script
            .replace("hub.example.com:7443", &self.hub)
            .replace("hub.example.com:6443", &self.serve);
        shell.current_dir(&self.folder).args(["-ec", &script]);
        shell
    }

    #[track_caller]
    fn run(&self, script: &str) -> String {
        Output::of(&mut self.command(script)).expect_ok()
    }

    /// The page's own command, as a process that stays.
    fn agent(&self) -> Child {
        self.agent_that("--journal paris.journal")
    }

    /// The same with its journal elsewhere.
    fn agent_that(&self, journal: &str) -> Child {
        let key = block("sh", "hub_key=$(flotilla hub key");
        let command = block("sh", "flotilla agent --cluster").replace("--journal paris.journal", journal);
        let script = format!("{key}exec {command}").replace("hub.example.com:7443", &self.way);
        let mut command = self.command(&script);
        if let Some(site) = &self.site {
            command = site.command(&command);
            command.current_dir(&self.folder);
        }
        Child::start("agent", &self.folder, &mut command)
    }

    #[track_caller]
    fn until_text(&self, text: &str) {
        eventually(LIMIT, "the object is as the repository says", || {
            let found = self.cluster.get("default", "configmap/web")?;
            if found["data"]["text"] == text {
                Ok(())
            } else {
                Err(found.to_string())
            }
        });
    }

    /// Applies the page's deployment of the agent.
    #[track_caller]
    fn deploy(&self) {
        self.deploy_with("");
    }

    /// As [`Self::deploy`], with more flags of `flotilla agent join`.
    #[track_caller]
    fn deploy_with(&self, more: &str) {
        let join = |block: &str| block.replace("agent join", &format!("agent join {more}"));
        self.run(&join(&block("sh", "agent join")));
        fs::write(self.folder.join("rights.yaml"), block("yaml", "kind: ClusterRole")).unwrap();
        let key = block("sh", "hub_key=$(flotilla hub key");
        self.run(&format!("{key}{}", join(&block("sh", "kubectl apply -f agent.yaml"))));
        let files = ["fleet/clusters/paris.yaml", "paris.yaml"].map(|file| self.run(&format!("cat {file}")));
        assert!(files[1].contains("ed25519:"), "{}", files[1]);
        let keys = files.map(|file| file.lines().find(|line| line.contains("ed25519:")).map(str::to_owned));
        assert_eq!(keys[0], keys[1], "it is the same key");
    }

    /// No pod runs here; the agent runs beside the cluster, with the pod's own identity and rights.
    #[track_caller]
    fn become_the_pod(&self) {
        let token = self
            .cluster
            .kubectl(&["create", "token", "flotilla-agent", "--namespace=flotilla-system"])
            .expect_ok();
        let shown = self
            .cluster
            .kubectl(&["config", "view", "--raw", "-o", "json"])
            .expect_ok();
        let mut kubeconfig: Value = serde_json::from_str(&shown).unwrap();
        kubeconfig["users"][0]["user"] = serde_json::json!({"token": token.trim()});
        fs::write(self.folder.join("paris.kubeconfig"), kubeconfig.to_string()).unwrap();
    }
}

#[test]
fn the_page_registers_a_cluster_and_lets_it_go() {
    let desk = Desk::new();
    // An agent that is there before its file is told apart, in the words that the page quotes.
    desk.run("flotilla agent join --cluster paris --key paris.key");
    let early = desk.agent();
    let words = block("text", "The hub does not know").trim().to_owned();
    eventually(LIMIT, "the agent says what is missing", || {
        let log = early.log();
        log.contains(&words).then_some(()).ok_or(log)
    });
    drop(early);
    desk.run(&block("sh", "agent join"));
    let agent = desk.agent();
    desk.until_text("one");
    let look = block("sh", "flotilla status");
    let said = eventually(LIMIT, "all is ready", || Output::of(&mut desk.command(&look)).ok());
    assert!(said.contains("paris"), "{said}");
    desk.run(&block("sh", "let paris go"));
    eventually(LIMIT, "the agent is told", || {
        let log = agent.log();
        log.to_lowercase().contains("revoked").then_some(()).ok_or(log)
    });
    desk.until_text("one");
}

#[test]
fn the_pages_manifests_are_enough_for_an_agent_and_touch_no_other_namespace() {
    let desk = Desk::new();
    desk.deploy();
    // Whoever was given rights here is in the agent's own namespace.
    for kind in ["clusterrolebindings", "rolebindings"] {
        let all = ["get", kind, "--all-namespaces", "-o", "json"];
        let bindings: Value = serde_json::from_str(&desk.cluster.kubectl(&all).expect_ok()).unwrap();
        for binding in bindings["items"].as_array().unwrap() {
            for subject in binding["subjects"].as_array().into_iter().flatten() {
                let namespace = subject["namespace"].as_str().unwrap_or("kube-system");
                assert!(["flotilla-system", "kube-system"].contains(&namespace), "{binding}");
            }
        }
    }
    let secrets = desk.cluster.get("flotilla-system", "secrets").unwrap();
    let kinds: Vec<_> = secrets["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|secret| secret["type"].clone())
        .collect();
    assert_eq!(kinds, ["Opaque"], "the key alone, and no token that lasts");
    let deployment = desk
        .cluster
        .get("flotilla-system", "deployment/flotilla-agent")
        .unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], serde_json::json!(["flotilla", "agent"]));
    let help = Flotilla::run(&["agent", "--help"]).expect_ok();
    for variable in container["env"].as_array().unwrap() {
        let name = variable["name"].as_str().unwrap();
        assert!(
            help.contains(&format!("[env: {name}=")),
            "an agent reads {name}: {help}"
        );
    }

    desk.become_the_pod();
    let agent = desk.agent();
    desk.until_text("one");
    desk.repository.push_files(
        "change",
        &[("feeds/web/web.yaml", &config_map("default", "web", "two"))],
    );
    desk.until_text("two");
    assert!(!agent.log().to_lowercase().contains("forbidden"), "{}", agent.log());
    // What the cluster is, as far as its own API server says it.
    let get = "flotilla get managedclusters paris -n paris -o json";
    let shown = eventually(LIMIT, "the cluster's facts are shown", || {
        let shown = Output::of(&mut desk.command(get)).ok()?;
        let shown: Value = serde_json::from_str(&shown).map_err(|error| error.to_string())?;
        let status = shown["status"].clone();
        status["readyz"]
            .is_boolean()
            .then_some(status.clone())
            .ok_or(status.to_string())
    });
    assert!(shown["platform"].as_str().unwrap().starts_with("linux/"), "{shown}");
    assert_eq!(
        (&shown["healthz"], &shown["livez"]),
        (&true.into(), &true.into()),
        "{shown}"
    );
    assert!(
        shown["apiserverURL"].as_str().unwrap().starts_with("https://"),
        "{shown}"
    );
    assert!(
        shown["serviceCIDR"].is_string() && shown["lastObservedTime"].is_string(),
        "{shown}"
    );
    drop(agent);
    // What was bound goes with the file, and the cluster's own objects stay.
    let manifests = desk.folder.join("agent.yaml").display().to_string();
    let delete = ["delete", "--wait=false", "--ignore-not-found", "-f", &manifests];
    desk.cluster.kubectl(&delete).expect_ok();
    let bound = desk.cluster.names("", "clusterrolebindings");
    assert!(!bound.iter().any(|name| name.starts_with("flotilla-")), "{bound:?}");
}

/// Text that hardly compresses.
fn noise(bytes: usize) -> String {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

#[test]
fn an_agent_that_lost_its_hub_and_its_disk_keeps_enforcing_from_secrets_of_its_cluster() {
    let mut desk = Desk::new();
    desk.deploy();
    desk.become_the_pod();
    // One unit that no Secret could hold.
    for number in 0..4 {
        let file = format!("feeds/web/large-{number}.yaml");
        let large = config_map("default", &format!("large-{number}"), &noise(700 << 10));
        desk.repository.write(&file, large);
    }
    desk.repository.push_files("grow", &[]);
    let place = "--journal secret:flotilla-system/flotilla-journal";
    let parts = |desk: &Desk| {
        let names = desk.cluster.names("flotilla-system", "secrets");
        let parts = names.into_iter().filter(|name| name.starts_with("flotilla-journal"));
        parts.collect::<Vec<_>>()
    };
    let mut agent = desk.agent_that(place);
    let mut looks = Vec::new();
    let before = eventually(LIMIT, "all is applied and journalled", || {
        agent.assert_running();
        let names = desk.cluster.names("default", "configmaps");
        let is_there = |name: &str| names.iter().any(|found| found == name);
        looks.push(parts(&desk));
        // It is written after it began to be applied.
        let last = looks.iter().rev().take(10);
        let rests = looks.len() > 10 && last.clone().all(|look| Some(look) == looks.last());
        match looks.last() {
            Some(parts) if is_there("web") && is_there("large-3") && parts.len() > 4 && rests => Ok(parts.clone()),
            parts => Err(format!("{names:?} {parts:?} {}", agent.log_tail())),
        }
    });
    agent.kill();
    desk.hub_process = None;
    for made in ["paris.journal", "flotilla-paris.journal"] {
        assert!(!desk.folder.join(made).exists(), "nothing is on its disk");
    }
    desk.cluster
        .kubectl(&["delete", "configmap", "web", "large-2", "--namespace=default"])
        .expect_ok();
    let mut agent = desk.agent_that(place);
    desk.until_text("one");
    let change = r#"{"data": {"text": "by hand"}}"#;
    desk.cluster
        .kubectl(&[
            "patch",
            "configmap",
            "web",
            "--namespace=default",
            "--type=merge",
            "-p",
            change,
        ])
        .expect_ok();
    desk.until_text("one");
    eventually(LIMIT, "the large one is there again", || {
        agent.assert_running();
        let names = desk.cluster.names("default", "configmaps");
        let is_there = names.iter().any(|name| name == "large-2");
        is_there.then_some(()).ok_or(format!("{names:?}"))
    });
    assert_eq!(parts(&desk), before, "nothing was taken, and nothing else is kept");
    let log = agent.log();
    assert!(!log.to_lowercase().contains("forbidden"), "{log}");
    // What is damaged is named, and nobody takes it for empty.
    agent.kill();
    let damage = r#"{"data": {"head.json": "ew=="}}"#;
    desk.cluster
        .kubectl(&[
            "patch",
            "secret",
            "flotilla-journal",
            "--namespace=flotilla-system",
            "--type=merge",
            "-p",
            damage,
        ])
        .expect_ok();
    let mut agent = desk.agent_that(place);
    let status = agent.wait(LIMIT);
    let log = agent.log();
    assert!(
        !status.success() && log.contains("Secret flotilla-system/flotilla-journal is damaged"),
        "{log}"
    );
    desk.until_text("one");
}

#[test]
fn push_is_bounded_by_the_agents_own_rbac() {
    let desk = Desk::new();
    desk.deploy_with("--sync-mode push");
    desk.become_the_pod();
    let settings = desk.cluster.get("flotilla-system", "configmap/flotilla-agent").unwrap();
    let lent = settings["data"]["allow"]
        .as_str()
        .expect("it says what the agent lends");
    let flags = format!("--journal paris.journal --audit-log audit.log --allow {lent}");
    let mut agent = desk.agent_that(&flags);
    desk.until_text("one");
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: default, name: clerk}\n";
    let changed = config_map("default", "web", "two");
    let files = [("feeds/web/account.yaml", account), ("feeds/web/web.yaml", &changed)];
    desk.repository.push_files("ask for more", &files);
    // One object is more than the agent may write: it is told in the API server's own words, and the rest is applied.
    desk.until_text("two");
    eventually(LIMIT, "what was refused is told", || {
        let told = Output::of(&mut desk.command("flotilla status")).stdout;
        let is_told = told.contains("clerk") && told.contains("forbidden");
        is_told.then_some(()).ok_or(told)
    });
    assert!(!desk.cluster.has("default", "serviceaccount/clerk"));
    // It was the hub that applied, by streams on which the agent added its own credential.
    agent.terminate(LIMIT);
    let audit = fs::read_to_string(desk.folder.join("audit.log")).unwrap();
    assert!(audit.contains(r#""class":"push""#), "{audit}");
}

#[test]
fn the_page_leads_a_stranger_to_a_pods_log() {
    let mut desk = Desk::behind_nat();
    desk.run(&block("sh", "agent join"));
    let _agent = desk.agent();
    desk.until_text("one");
    // A pod that says something, of somebody who knows nothing of the fleet.
    desk.cluster.apply(&namespace("shop"));
    let node = Node::start(&desk.cluster, "scribe", "shop");
    node.say("hello from behind NAT");
    desk.run(&block("sh", "people.csv"));
    desk.start_hub(&block("sh", "--serve 0.0.0.0:6443"));
    fs::write(desk.folder.join("fleet/access/crew.yaml"), block("yaml", "name: crew")).unwrap();
    desk.run(&block("sh", "access/crew.yaml"));
    desk.run(&block("sh", "flotilla kubeconfig"));
    let read = block("sh", "logs teller");
    let said = eventually(LIMIT, "the log is read", || Output::of(&mut desk.command(&read)).ok());
    assert!(
        said.contains("teller") && said.contains("hello from behind NAT"),
        "{said}"
    );
}
