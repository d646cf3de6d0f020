//! What reads: every verb of kubectl that only looks, by each way to log in.

use std::fs;

use flotilla_tests::git_host::Gitea;
use flotilla_tests::{ControlPlane, Output, eventually};
use serde_json::Value;

use super::super::support::{LIMIT, config_map};
use super::office::Office;

/// Metrics as metrics-server serves them, by definitions of their kinds.
const METRICS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pods.metrics.k8s.io, annotations: {api-approved.kubernetes.io: 'unapproved, for a test'}}
spec:
  group: metrics.k8s.io
  scope: Namespaced
  names: {plural: pods, singular: podmetrics, kind: PodMetrics, listKind: PodMetricsList}
  versions:
    - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

const POD_METRICS: &str = "\
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {namespace: shop, name: teller}
timestamp: '2026-01-01T00:00:00Z'
window: 30s
containers: [{name: teller, usage: {cpu: 7m, memory: 12Mi}}]
";

#[track_caller]
pub(super) fn says(output: Output, words: &[&str]) -> String {
    let text = output.expect_ok();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
    text
}

/// Gives pod `shop/teller` figures for `kubectl top`.
#[track_caller]
pub(super) fn measure(cluster: &ControlPlane) {
    cluster.apply(METRICS);
    let file = cluster.folder().join("metrics.yaml");
    fs::write(&file, POD_METRICS).unwrap();
    eventually(LIMIT, "metrics are served", || {
        cluster.kubectl(&["apply", "-f", &file.display().to_string()]).ok()
    });
}

/// What reads, once: ConfigMap `shop/greeting` says `hello`, and pod `shop/teller` on node `scribe` three lines.
#[track_caller]
pub(super) fn ask_everything(ada: impl Fn(&[&str]) -> Output) {
    says(ada(&["get", "configmaps", "-n", "shop"]), &["NAME", "greeting"]);
    says(ada(&["get", "configmaps", "-A"]), &["NAMESPACE", "shop", "greeting"]);
    says(
        ada(&["get", "pods", "-n", "shop", "-o", "wide"]),
        &["NODE", "teller", "scribe"],
    );
    says(
        ada(&["get", "configmap", "greeting", "-n", "shop", "-o", "yaml"]),
        &["text: hello"],
    );
    says(
        ada(&["describe", "pod", "teller", "-n", "shop"]),
        &["Node:", "scribe", "Events:"],
    );
    assert_eq!(
        says(ada(&["logs", "teller", "-n", "shop"]), &[]),
        "line 0\nline 1\nline 2\n"
    );
    says(ada(&["top", "pods", "-n", "shop"]), &["teller", "7m", "12Mi"]);
    says(ada(&["explain", "deployment.spec.replicas"]), &["replicas <integer>"]);
    says(ada(&["api-resources"]), &["deployments", "configmaps"]);
    says(ada(&["version"]), &["Server Version: v1."]);
    assert_eq!(says(ada(&["auth", "can-i", "get", "pods"]), &[]).trim(), "yes");
    assert_eq!(ada(&["auth", "can-i", "create", "pods"]).stdout.trim(), "no");
    says(ada(&["auth", "whoami"]), &["flotilla:ada", "flotilla:ops"]);
}

#[test]
fn kubectl_reads_a_cluster_behind_its_agent() {
    let office = Office::open(&[]);
    office.pod_with_a_log();
    measure(&office.cluster);
    ask_everything(|arguments| office.kubectl("ada", arguments));
    // Ada may read everything, but for what is the agent's own.
    office.cluster.apply("apiVersion: v1\nkind: Secret\nmetadata: {namespace: flotilla-system, name: flotilla-agent}\nstringData: {key: MARK-7f3}\n");
    for (ask, words) in [
        (
            &["get", "secret", "flotilla-agent", "-n", "flotilla-system", "-o", "yaml"][..],
            "whatever access/ says",
        ),
        (
            &["get", "secrets", "-n", "flotilla-system", "--watch"],
            "whatever access/ says",
        ),
        (&["get", "secrets", "-A", "-o", "yaml"], "one namespace at a time"),
    ] {
        let refused = office.kubectl("ada", ask);
        assert!(
            refused.code() == Some(1) && refused.stderr.contains(words),
            "{refused:?}"
        );
        let mark = ["MARK-7f3", "TUFSSy03ZjM"]
            .iter()
            .any(|mark| refused.stdout.contains(mark));
        assert!(!mark, "{refused:?}");
    }
    office.kubectl("ada", &["get", "secrets", "-n", "shop"]).expect_ok();
    office
        .kubectl("ada", &["get", "pods", "-n", "flotilla-system"])
        .expect_ok();
    // A watch tells what changes meanwhile.
    let watch = office.follow("watch", &["get", "configmaps", "-n", "shop", "--watch", "-o", "name"]);
    office
        .repository
        .push_files("More", &[("feeds/web/more.yaml", &config_map("shop", "more", "x"))]);
    eventually(LIMIT, "the watch tells of the new one", || {
        let log = watch.log();
        log.contains("configmap/more").then_some(()).ok_or(log)
    });
    // The hub's own API at the context of the fleet.
    says(
        office.kubectl_at("flotilla", &["get", "managedclusters", "-A"]),
        &["paris", "rome"],
    );
    let can_i = |verb: &str| {
        office.kubectl_at(
            "flotilla",
            &["auth", "can-i", verb, "managedclusters.fleet.flotilla.dev", "-A"],
        )
    };
    assert_eq!(says(can_i("list"), &[]).trim(), "yes");
    let no = can_i("delete").stdout;
    assert!(no.starts_with("no - ") && no.contains("changes are commits"), "{no}");
    says(
        office.kubectl_at("flotilla", &["auth", "can-i", "--list"]),
        &["[get list watch]"],
    );
    says(office.kubectl_at("flotilla", &["auth", "whoami"]), &["ada"]);
    let rome = office.kubectl_at("rome", &["get", "pods"]);
    // While kubectl discovers kinds, it looks at an answer's code alone.
    assert!(rome.stderr.contains("(ServiceUnavailable)"), "{rome:?}");
    // Who has no right, and who has no login.
    let bob = office.kubectl("bob", &["get", "pods", "-A"]);
    assert!(bob.code() == Some(1) && bob.stderr.contains("Forbidden"), "{bob:?}");
    let nobody = office.kubectl("nobody", &["get", "pods", "-A"]);
    assert!(nobody.stderr.contains("You must be logged in"), "{nobody:?}");
    assert!(!office.hub_log().contains("token-of"), "no token is in the log");
}

#[test]
fn people_log_in_with_certificates_and_every_request_is_audited() {
    let people = Authority::new();
    let folder = flotilla_tests::scratch::folder("people");
    let path = |name: &str| folder.join(name).display().to_string();
    people.write(&folder, "ca.crt");
    people.person(&folder, "liv", "ops");
    people.person(&folder, "root", "system:masters");
    let office = Office::open(&["--client-ca", &path("ca.crt"), "--audit-log", &path("audit.log")]);
    for who in ["liv", "root"] {
        let (certificate, key) = (path(&format!("{who}.crt")), path(&format!("{who}.key")));
        let login = [
            "--client-certificate",
            &certificate,
            "--client-key",
            &key,
            "--cluster",
            "paris",
        ];
        office.write_kubeconfig(who, &login);
    }
    says(
        office.kubectl("liv", &["auth", "whoami"]),
        &["flotilla:liv", "flotilla:ops"],
    );
    let root = office.kubectl("root", &["get", "--raw", "/version"]);
    assert!(
        root.stderr.contains("\"root\" may ask no cluster"),
        "nobody is of a group of Kubernetes' own: {root:?}"
    );
    says(
        office.kubectl("ada", &["get", "configmap", "greeting", "-n", "shop"]),
        &["greeting"],
    );
    let impersonating = office.kubectl("ada", &["get", "pods", "--as", "admin"]);
    assert!(impersonating.stderr.contains("Forbidden"), "{impersonating:?}");
    eventually(LIMIT, "each request has its line", || {
        let log = fs::read_to_string(folder.join("audit.log")).map_err(|error| error.to_string())?;
        let lines: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line is JSON"))
            .collect();
        let is_it = |line: &&Value| {
            line["user"] == "ada"
                && line["resource"] == "configmaps"
                && line["name"] == "greeting"
                && line["code"] == 200
        };
        let line = lines.iter().find(is_it).ok_or_else(|| log.clone())?;
        assert_eq!(
            (&line["cluster"], &line["verb"], &line["class"]),
            (&"paris".into(), &"get".into(), &"read".into())
        );
        assert!(line["bytesDown"].as_u64() > Some(0) && !log.contains("hello"), "{log}");
        Ok::<_, String>(())
    });
}

#[test]
fn people_log_in_with_the_id_tokens_of_a_real_gitea() {
    let gitea = Gitea::start();
    let application = gitea.application("ops");
    let issuer = gitea.issuer();
    let office = Office::open(&[
        "--oidc-issuer",
        &issuer,
        "--oidc-client-id",
        &application.0,
        "--oidc-username-claim",
        "preferred_username",
        "--oidc-groups-claim",
        "groups",
        "--oidc-username-prefix",
        "-",
        "--oidc-groups-prefix",
        "-",
    ]);
    // A program of ada's prints her token, as the plugins of browsers do.
    let credential = serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": gitea.id_token(&application)},
    });
    fs::write(office.folder.join("credential.json"), credential.to_string()).unwrap();
    let file = office.path("credential.json");
    office.write_kubeconfig("git", &["--exec", "cat", "--exec-arg", &file, "--cluster", "paris"]);
    says(
        office.kubectl("git", &["auth", "whoami"]),
        &["flotilla:ada", "flotilla:ops"],
    );
    says(
        office.kubectl("git", &["get", "configmaps", "-n", "shop"]),
        &["greeting"],
    );
    // A token that was changed.
    let other = serde_json::to_string(&credential).unwrap().replace("eyJ", "eyK");
    fs::write(office.folder.join("credential.json"), other).unwrap();
    let refused = office.kubectl("git", &["get", "configmaps", "-n", "shop"]);
    assert!(refused.stderr.contains("You must be logged in"), "{refused:?}");
}

/// Who signs people's certificates.
struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().expect("ring makes a key");
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "people");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("it signs itself").pem();
        Self {
            issuer: rcgen::Issuer::new(params, key),
            pem,
        }
    }

    fn write(&self, folder: &std::path::Path, name: &str) {
        fs::write(folder.join(name), &self.pem).unwrap();
    }

    fn person(&self, folder: &std::path::Path, name: &str, group: &str) {
        let key = rcgen::KeyPair::generate().expect("ring makes a key");
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).expect("it signs");
        fs::write(folder.join(format!("{name}.crt")), certificate.pem()).unwrap();
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}
