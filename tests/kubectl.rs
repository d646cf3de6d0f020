//! The hub's read-only API, judged by `kubectl`, and `flotilla get` and `status` beside it.

use std::time::Duration;

use flotilla_tests::flotilla::flotilla;
use flotilla_tests::{Flotilla, Output, Repository, eventually, parts, ports, scratch};

const LIMIT: Duration = Duration::from_secs(30);

const SUBSCRIPTION: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {name: web, namespace: shop}
spec:
  subscribers: [{clusterAffinity: {}}]
  feeds: [{path: 'feeds/**'}]
";

const CLUSTER: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {name: a, labels: {env: prod}}
spec: {kubeconfigContext: nowhere}
";

const FEED: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {word: one}
";

/// A hub whose one cluster is never reached: what it says of it needs no API server.
pub(crate) struct Hub {
    pub(crate) repository: Repository,
    pub(crate) server: String,
    hub: Option<Flotilla>,
    arguments: Vec<String>,
}

impl Hub {
    pub(crate) fn start() -> Self {
        let files = [
            ("subscriptions/web.yaml", SUBSCRIPTION),
            ("clusters/a.yaml", CLUSTER),
            ("feeds/web.yaml", FEED),
        ];
        let repository = Repository::with_files(&files);
        Self::follow(repository)
    }

    /// A hub of this repository, once it has released.
    pub(crate) fn follow(repository: Repository) -> Self {
        let address = || format!("127.0.0.1:{}", ports::free());
        let api = address();
        let bare = repository.bare().display().to_string();
        let key = scratch::folder("hub-key").join("hub.key").display().to_string();
        let arguments = [
            "--repository",
            &bare,
            "--key",
            &key,
            "--api",
            &api,
            "--listen",
            &address(),
            "--recovery-grace-seconds",
            "1",
        ];
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let hub = Self {
            repository,
            server: format!("http://{api}"),
            hub: Some(Flotilla::hub(&arguments)),
            arguments,
        };
        eventually(LIMIT, "the first release", || hub.fleet("{.status.sequence}", "1"));
        hub
    }

    /// Ends the hub as a crash would.
    pub(crate) fn kill(&mut self) {
        self.hub = None;
    }

    /// Starts it again where it was.
    pub(crate) fn restart(&mut self) {
        self.hub = Some(Flotilla::hub(&self.arguments));
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Output {
        Output::of(
            parts::command("kubectl")
                .args(["--server", &self.server])
                .args(arguments),
        )
    }

    pub(crate) fn flotilla(&self, arguments: &[&str]) -> Output {
        Output::of(flotilla().args(arguments).args(["--server", &self.server]))
    }

    /// Whether a field of the Fleet, as kubectl reads it, is this.
    fn fleet(&self, field: &str, expected: &str) -> Result<(), String> {
        let found = self
            .kubectl(&["get", "fleet", "fleet", "-o", &format!("jsonpath={field}")])
            .ok()?;
        if found == expected {
            Ok(())
        } else {
            Err(format!("{field} is {found:?}"))
        }
    }
}

#[test]
fn kubectl_finds_lists_and_describes_every_kind() {
    let hub = Hub::start();
    let kinds = hub.kubectl(&["api-resources", "-o", "name"]).expect_ok();
    for kind in [
        "fleets",
        "managedclusters",
        "subscriptions",
        "placements",
        "descriptions",
        "findings",
        "suspensions",
    ] {
        assert!(
            kinds.contains(&format!("{kind}.fleet.flotilla.dev")),
            "{kind} is missing in {kinds}"
        );
    }
    let table = hub.kubectl(&["get", "subscriptions", "-A"]).expect_ok();
    let head = hub.repository.head("main").unwrap();
    let revision = format!("main@sha1:{}", &head[..12]);
    let words: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let header = ["NAMESPACE", "NAME", "READY", "REVISION", "CLUSTERS", "AGE"];
    assert_eq!(words[0], header, "{table}");
    assert_eq!(words[1][..5], ["shop", "web", "Unknown", &revision, "0/1"], "{table}");
    // Git says when the commit that placed it was made, and so does the hub after any restart.
    let committed = hub.repository.git(&[
        "log",
        "-1",
        "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
        "--format=%cd",
        "main",
    ]);
    let created = [
        "get",
        "subscription",
        "web",
        "-n",
        "shop",
        "-o",
        "jsonpath={.metadata.creationTimestamp}",
    ];
    assert_eq!(hub.kubectl(&created).expect_ok(), committed);
    let wide = hub
        .kubectl(&["get", "mcls", "-A", "-o", "wide", "-l", "env=prod"])
        .expect_ok();
    assert!(wide.contains("MESSAGE") && wide.contains("kubeconfig"), "{wide}");
    let described = hub
        .kubectl(&["describe", "placement", "web.a", "-n", "shop"])
        .expect_ok();
    assert!(
        described.contains("SourceVerified") && described.contains("Healthy"),
        "{described}"
    );
    let yaml = hub
        .kubectl(&["get", "descriptions", "-n", "shop", "-o", "yaml"])
        .expect_ok();
    assert!(yaml.contains("/ConfigMap/shop/web") && !yaml.contains("word"), "{yaml}");
}

#[test]
fn kubectl_can_write_nothing_and_is_told_where_to() {
    let hub = Hub::start();
    for arguments in [
        &["delete", "subscription", "web", "-n", "shop"][..],
        &["label", "managedcluster", "a", "-n", "a", "env=test", "--overwrite"],
        &[
            "patch",
            "subscription",
            "web",
            "-n",
            "shop",
            "--type=merge",
            "-p",
            r#"{"spec":{"feeds":[]}}"#,
        ],
    ] {
        let output = hub.kubectl(arguments);
        assert_eq!(output.code(), Some(1), "{arguments:?}");
        assert!(
            output.stderr.contains("git push") && output.stderr.contains(".yaml:1"),
            "{}",
            output.stderr
        );
    }
    let missing = hub.kubectl(&["get", "subscription", "nope", "-n", "shop"]);
    assert!(
        missing
            .stderr
            .contains("subscriptions.fleet.flotilla.dev \"nope\" not found"),
        "{}",
        missing.stderr
    );
    let nowhere = hub.kubectl(&["get", "subscription", "web", "-n", "nowhere"]);
    assert!(
        nowhere.stderr.contains("namespaces \"nowhere\" not found"),
        "{}",
        nowhere.stderr
    );
}

#[test]
fn kubectl_sees_a_push_while_it_watches() {
    let hub = Hub::start();
    let head = hub
        .repository
        .push_files("two", &[("feeds/web.yaml", &FEED.replace("one", "two"))]);
    let revision = format!("main@sha1:{head}");
    let wait = format!("--for=jsonpath={{.spec.revision}}={revision}");
    let waited = hub.kubectl(&["wait", "description/web.default", "-n", "shop", &wait, "--timeout=30s"]);
    waited.expect_ok();
    eventually(LIMIT, "the second release", || hub.fleet("{.status.sequence}", "2"));
}

#[test]
fn get_and_status_tell_what_kubectl_tells() {
    let hub = Hub::start();
    // Clusters show no age, which may be another second by the second question.
    let ours = hub.flotilla(&["get", "managedclusters", "-o", "wide"]).expect_ok();
    let theirs = hub.kubectl(&["get", "managedclusters", "-A", "-o", "wide"]).expect_ok();
    assert_eq!(ours, theirs, "the same table");
    assert_eq!(
        hub.flotilla(&["get", "sub", "-o", "name"]).expect_ok(),
        "subscription.fleet.flotilla.dev/web\n"
    );
    assert_eq!(hub.flotilla(&["get", "sub/nope"]).code(), Some(1));
    assert_eq!(hub.flotilla(&["get", "pods"]).code(), Some(64));
    let status = hub.flotilla(&["status"]);
    assert_eq!(status.code(), Some(1), "one cluster is away");
    for part in [
        "Clusters: 0 of 1 connected",
        "shop/web",
        "Applied",
        "Findings: 0 errors",
    ] {
        assert!(
            status.stdout.contains(part),
            "{part:?} is missing in\n{}",
            status.stdout
        );
    }
    let nobody = Output::of(flotilla().args(["status", "--server", "unix:/nowhere/hub.sock"]));
    assert_eq!(nobody.code(), Some(69));
    assert!(nobody.stderr.contains("hint: "), "{}", nobody.stderr);
}
