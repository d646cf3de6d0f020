//! What a person's `kubectl` pays for the way through hub and agent: lists, many callers, and one small request.
//!
//! The client is one and the same on both sides, both speak TLS to it, and it is the same person with the same roles: who is
//! directly at the API server, too, has to be judged by RBAC. Rounds of both sides take turns.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::task::JoinSet;

use super::throughput::median;
use crate::bench::{Figures, percentile};
use crate::{ControlPlane, Flotilla, Options, Repository, ports, scratch};

const CLUSTER: &str = "paris";
const NAMESPACE: &str = "bench";
const OBJECTS: usize = 1_000;
const LISTS: usize = 20;
const GETS: usize = 500;
const CALLERS: usize = 16;
const ROUNDS: usize = 5;
/// Of one round of many callers.
const ROUND: Duration = Duration::from_secs(2);
/// Nothing takes this long, unless it never ends.
const LIMIT: Duration = Duration::from_secs(60);
/// How often it is looked whether the way is open.
const LOOK: Duration = Duration::from_millis(50);

/// The agent's user at the API server.
const AGENT: &str = "agent";
const TOKEN: &str = "a-token-of-a-bench";

/// Whom `access/` names, as the cluster knows it.
const PERSON: &str = "flotilla:reader";

const ACCESS: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: reader
rules:
  - apiGroups: ['']
    resources: [configmaps]
    verbs: [get, list]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: reader
subjects:
  - kind: User
    apiGroup: rbac.authorization.k8s.io
    name: reader
roleRef:
  kind: ClusterRole
  apiGroup: rbac.authorization.k8s.io
  name: reader
";

pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let users = Options::default().user(AGENT, &["system:masters"]).user(PERSON, &[]);
    let cluster = ControlPlane::start("tunnel", users);
    cluster.kubectl(&["create", "namespace", NAMESPACE]).expect_ok();
    let objects = (0..OBJECTS).map(|number| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: object-{number}, namespace: {NAMESPACE}}}\n\
             data: {{value: \"{number}\"}}\n"
        )
    });
    cluster.apply(&objects.collect::<Vec<_>>().join("---\n"));
    let way = Way::open(&cluster)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let through = until_open(&way.kubeconfig).await.with_context(|| way.logs())?;
        let direct = client(&cluster.kubeconfig_of(PERSON)).await?;
        lists(&direct, &through, figures).await?;
        many_callers(&direct, &through, figures).await?;
        gets(&direct, &through, figures).await
    })
}

/// A hub with a door for people, and the cluster's agent.
struct Way {
    kubeconfig: std::path::PathBuf,
    hub: Flotilla,
    agent: Flotilla,
    _repository: Repository,
}

impl Way {
    fn open(cluster: &ControlPlane) -> anyhow::Result<Self> {
        let folder = scratch::folder("tunnel");
        let text = |name: &str| folder.join(name).display().to_string();
        let (hub_key, agent_key) = (text("hub.key"), text("agent.key"));
        let hub_public = Flotilla::run(&["hub", "key", "--key", &hub_key]).expect_ok();
        let joined = Flotilla::run(&["agent", "join", "--cluster", CLUSTER, "--key", &agent_key]).expect_ok();
        let repository = Repository::empty();
        let fleet = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: fleet\n";
        let files = [
            ("fleet.yaml", fleet),
            ("access/reader.yaml", ACCESS),
            ("clusters/paris.yaml", &joined),
        ];
        repository.push_files("A fleet", &files);
        fs::write(text("people.csv"), format!("{TOKEN},reader,1\n"))?;
        let (agents, people) = (ports::free(), ports::free());
        let at = |port: u16| format!("127.0.0.1:{port}");
        let hub = Flotilla::hub(
            &[
                ["--repository", &repository.bare().display().to_string()],
                ["--key", &hub_key],
                ["--listen", &at(agents)],
                ["--api", &at(ports::free())],
                ["--serve", &at(people)],
                ["--serve-name", "127.0.0.1"],
                ["--token-file", &text("people.csv")],
            ]
            .concat(),
        );
        let agent = Flotilla::agent(
            &[
                ["--cluster", CLUSTER],
                ["--hub", &at(agents)],
                ["--hub-key", hub_public.trim()],
                ["--key", &agent_key],
                ["--journal", &text("journal")],
                ["--kubeconfig", &cluster.kubeconfig_of(AGENT).display().to_string()],
            ]
            .concat(),
        );
        let kubeconfig = folder.join("people.kubeconfig");
        let server = format!("https://{}/clusters/{CLUSTER}", at(people));
        let named = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: there\ncontexts: [{{name: there, context: {{cluster: there, \
             user: reader}}}}]\nclusters: [{{name: there, cluster: {{server: '{server}', certificate-authority: \
             '{}'}}}}]\nusers: [{{name: reader, user: {{token: {TOKEN}}}}}]\n",
            text("hub-ca.crt")
        );
        fs::write(&kubeconfig, named)?;
        Ok(Self {
            kubeconfig,
            hub,
            agent,
            _repository: repository,
        })
    }

    fn logs(&self) -> String {
        [&self.hub, &self.agent].map(|part| part.log_tail()).concat()
    }
}

async fn client(kubeconfig: &Path) -> anyhow::Result<Client> {
    let _provider_was_set_before = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

fn list() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

async fn ask(client: &Client, path: &str) -> anyhow::Result<Duration> {
    let started = Instant::now();
    client.request_text(http::Request::get(path).body(Vec::new())?).await?;
    Ok(started.elapsed())
}

/// The certificate of the hub, the tunnel and the cluster's roles come one after the other.
async fn until_open(kubeconfig: &Path) -> anyhow::Result<Client> {
    let opened = async {
        loop {
            if let Ok(client) = client(kubeconfig).await
                && ask(&client, &list()).await.is_ok()
            {
                return client;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let opened = tokio::time::timeout(LIMIT, opened).await;
    opened.context("a person's request is not answered")
}

async fn lists(direct: &Client, through: &Client, figures: &mut Figures) -> anyhow::Result<()> {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for _ in 0..LISTS {
        here.push(ask(direct, &list()).await?);
        there.push(ask(through, &list()).await?);
    }
    let p50 = |times: &mut [Duration]| percentile(times, 0.5).context("there were lists");
    let (here, there) = (p50(&mut here)?, p50(&mut there)?);
    figures.print_ms("kubectl_list_direct_p50", here)?;
    figures.print(
        "kubectl_list_vs_direct",
        there.as_secs_f64() / here.as_secs_f64(),
        "ratio",
    )
}

async fn many_callers(direct: &Client, through: &Client, figures: &mut Figures) -> anyhow::Result<()> {
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let here = answers(direct).await?;
        let there = answers(through).await?;
        ratios.push(there as f64 / here as f64);
        rates.push(here as f64 / ROUND.as_secs_f64());
    }
    figures.print(
        "parallel_gets_direct",
        median(rates).context("there were rounds")?,
        "1/s",
    )?;
    let ratio = median(ratios).context("there were rounds")?;
    figures.print("parallel_gets_vs_direct", ratio, "ratio")
}

/// How many GETs the callers of one round get answered.
async fn answers(client: &Client) -> anyhow::Result<usize> {
    let (started, mut callers) = (Instant::now(), JoinSet::new());
    let path = Arc::new(list());
    for caller in 0..CALLERS {
        let (client, path) = (client.clone(), Arc::clone(&path));
        callers.spawn(async move {
            let mut answered = 0;
            while started.elapsed() < ROUND {
                ask(
                    &client,
                    &format!("{path}/object-{}", (caller * 61 + answered) % OBJECTS),
                )
                .await?;
                answered += 1;
            }
            anyhow::Ok(answered)
        });
    }
    let mut answered = 0;
    while let Some(caller) = callers.join_next().await {
        answered += caller??;
    }
    Ok(answered)
}

async fn gets(direct: &Client, through: &Client, figures: &mut Figures) -> anyhow::Result<()> {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for number in 0..GETS {
        let path = format!("{}/object-{}", list(), number % OBJECTS);
        here.push(ask(direct, &path).await?);
        there.push(ask(through, &path).await?);
    }
    let p50 = |times: &mut [Duration]| percentile(times, 0.5).context("there were requests");
    let added = p50(&mut there)?.as_secs_f64() - p50(&mut here)?.as_secs_f64();
    figures.print("one_get_added_p50", added * 1_000.0, "ms")
}
