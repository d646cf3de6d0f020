//! Who asks a hub's door, and the kubectl that each of them has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flotilla_tests::{Child, Flotilla, Output, parts, ports};

/// Whom the hub knows: ada reads, eve reaches into containers as well, bob has no right at all. Nobody is known to it as
/// `nobody`.
const TOKENS: &str =
    "long-token-of-ada,ada,1,\"ops\"\nlong-token-of-eve,eve,3,\"crew\"\nlong-token-of-bob,bob,2,\"guests\"\n";

/// What `access/` says of them.
pub(in super::super) const ACCESS: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
  - {apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}
  - {nonResourceURLs: ['/dial/*'], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: crew}
rules:
  - {apiGroups: [''], resources: [pods, pods/log], verbs: [get, list, watch]}
  - {apiGroups: [''], resources: [pods/exec, pods/portforward], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: ops}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crew}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crew}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: crew}]
";

/// The folder of people who ask one hub.
pub(in super::super) struct Callers {
    folder: PathBuf,
    serve: String,
}

impl Callers {
    /// In the folder where the hub has its key `hub.key`.
    pub(in super::super) fn new(folder: &Path) -> Self {
        fs::write(folder.join("tokens.csv"), TOKENS).unwrap();
        for who in ["ada", "eve", "bob", "nobody"] {
            fs::write(folder.join(format!("{who}.token")), format!("long-token-of-{who}")).unwrap();
        }
        Self {
            folder: folder.to_owned(),
            serve: format!("127.0.0.1:{}", ports::free()),
        }
    }

    /// What a hub is started with, so that it answers them.
    pub(in super::super) fn hub_flags(&self) -> [String; 4] {
        ["--serve", &self.serve, "--token-file", &self.path("tokens.csv")].map(str::to_owned)
    }

    /// Where they ask.
    pub(in super::super) fn url(&self) -> String {
        format!("https://{}", self.serve)
    }

    pub(in super::super) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Writes a kubeconfig for each of them, with contexts for these clusters.
    #[track_caller]
    pub(in super::super) fn write_kubeconfigs(&self, clusters: &[&str]) {
        for who in ["ada", "eve", "bob", "nobody"] {
            let token = self.path(&format!("{who}.token"));
            let named = clusters.iter().flat_map(|cluster| ["--cluster", cluster]);
            let login: Vec<_> = ["--token-file", &token].into_iter().chain(named).collect();
            self.write_kubeconfig(who, &login);
        }
    }

    /// Writes `NAME.kubeconfig`, as people do.
    #[track_caller]
    pub(in super::super) fn write_kubeconfig(&self, name: &str, login: &[&str]) {
        let (url, ca, output) = (
            self.url(),
            self.path("hub-ca.crt"),
            self.path(&format!("{name}.kubeconfig")),
        );
        let own = ["kubeconfig", "--hub", &url, "--ca", &ca, "--output", &output];
        Flotilla::run(&[&own, login].concat()).expect_ok();
    }

    /// kubectl of somebody, against a context.
    pub(in super::super) fn command(&self, who: &str, context: &str) -> Command {
        let mut command = parts::command("kubectl");
        command
            .args(["--kubeconfig", &self.path(&format!("{who}.kubeconfig"))])
            .args(["--cache-dir", &self.path("cache")])
            .args(["--context", context])
            .env("EDITOR", "sed -i s/hello/bye/");
        command
    }

    /// Runs it to its end.
    pub(in super::super) fn kubectl(&self, who: &str, context: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(who, context);
        Output::of(command.arg("--request-timeout=30s").args(arguments))
    }

    /// Starts what goes on until it is ended.
    pub(in super::super) fn follow(&self, name: &str, who: &str, context: &str, arguments: &[&str]) -> Child {
        Child::start(name, &self.folder, self.command(who, context).args(arguments))
    }
}
