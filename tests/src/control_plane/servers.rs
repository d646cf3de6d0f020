//! The processes of one cluster, and their flags.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Options, User, files};
use crate::etcd::Etcd;
use crate::{Child, parts, ports};

/// What a cloud would have to be there for, and what kubeadm alone needs.
const CONTROLLERS: &str = "--controllers=*,-cloud-node-lifecycle-controller,-service-lb-controller,-node-route-controller,-node-ipam-controller";

#[derive(Debug)]
pub(super) struct Servers {
    folder: PathBuf,
    address: Ipv4Addr,
    port: u16,
    options: Options,
    users: Vec<User>,
    apiserver: Option<Child>,
    others: Vec<Child>,
}

impl Servers {
    pub(super) fn start_apiserver(folder: &Path, options: Options) -> Self {
        let mut users = vec![User::administrator()];
        users.extend(options.users.iter().cloned());
        files::write_tokens(&folder.join("tokens.csv"), &users);
        files::write_service_account_key(&folder.join("service-account.key"), &folder.join("service-account.pub"));
        let port = ports::free();
        let mut servers = Self {
            folder: folder.to_owned(),
            address: Ipv4Addr::LOCALHOST,
            port,
            options,
            users,
            apiserver: None,
            others: Vec::new(),
        };
        servers.restart_apiserver();
        servers
    }

    pub(super) fn restart_apiserver(&mut self) {
        let path = |name: &str| self.folder.join(name).display().to_string();
        // The folder's name is this process's own and says which cluster it is.
        let prefix = self.folder.display();
        let mut command = parts::command("kube-apiserver");
        command
            .arg(format!("--etcd-servers={}", self.etcd()))
            .arg(format!("--etcd-prefix={prefix}"))
            .arg(format!("--secure-port={}", self.port))
            .arg(format!("--bind-address={}", self.address))
            .arg("--advertise-address=127.0.0.1")
            .args([
                "--endpoint-reconciler-type=none",
                "--service-cluster-ip-range=10.0.0.0/16",
            ])
            .arg(format!("--cert-dir={}", path("certificates")))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!("--service-account-key-file={}", path("service-account.pub")))
            .arg(format!(
                "--service-account-signing-key-file={}",
                path("service-account.key")
            ))
            .arg(format!("--token-auth-file={}", path("tokens.csv")))
            .arg("--authorization-mode=RBAC")
            // Pods need no account here, and the controller that makes the default one takes its time.
            .arg("--disable-admission-plugins=ServiceAccount")
            .args(&self.options.apiserver_flags);
        self.apiserver = Some(Child::start("kube-apiserver", &self.folder, &mut self.placed(command)));
    }

    fn etcd(&self) -> String {
        match self.options.site {
            Some(_) => format!("unix://{}", Etcd::shared().socket().display()),
            None => Etcd::shared().url().to_owned(),
        }
    }

    /// A command, to be run where the cluster is.
    pub(super) fn placed(&self, command: Command) -> Command {
        match &self.options.site {
            Some(site) => site.command(&command),
            None => command,
        }
    }

    pub(super) fn stop_apiserver(&mut self) {
        self.apiserver = None;
    }

    /// As after a move to another machine: another port, and a certificate that nobody has seen.
    pub(super) fn move_apiserver(&mut self) {
        self.stop_apiserver();
        fs::remove_dir_all(self.folder.join("certificates")).expect("an API server that ran has certificates");
        self.port = ports::free();
        self.restart_apiserver();
    }

    /// As after a move to another machine whose administrators took the certificate along.
    pub(super) fn move_apiserver_to(&mut self, address: Ipv4Addr) {
        self.stop_apiserver();
        self.address = address;
        self.restart_apiserver();
    }

    pub(super) fn apiserver_runs(&self) -> bool {
        self.apiserver.is_some()
    }

    /// Starts what the options ask for beside the API server, and returns how many nodes there shall be.
    pub(super) fn start_others(&mut self) -> usize {
        if self.options.controller_manager {
            let key = self.folder.join("service-account.key");
            self.start("kube-controller-manager", |command| {
                command.args([
                    "--leader-elect=false",
                    "--use-service-account-credentials=false",
                    "--secure-port=0",
                ]);
                command
                    .arg(CONTROLLERS)
                    .arg("--service-account-private-key-file")
                    .arg(key);
            });
        }
        if self.options.nodes > 0 {
            self.start("kube-scheduler", |command| {
                command.args(["--leader-elect=false", "--secure-port=0"]);
            });
            self.start("kwok", |command| {
                // Without leases of its own the node lifecycle controller calls the nodes lost after 40 s.
                command.args(["--manage-all-nodes", "--node-lease-duration-seconds=40"]);
            });
        }
        self.options.nodes
    }

    fn start(&mut self, name: &str, flags: impl FnOnce(&mut Command)) {
        let mut command = parts::command(name);
        // kwok reads settings from the home folder; the user's are not the tests'.
        command
            .env("HOME", &self.folder)
            .arg("--kubeconfig")
            .arg(self.folder.join("admin.kubeconfig"));
        flags(&mut command);
        self.others
            .push(Child::start(name, &self.folder, &mut self.placed(command)));
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}:{}", self.address, self.port)
    }

    /// Writes a kubeconfig for each user once the API server has made its certificate.
    pub(super) fn write_kubeconfigs(&self, cluster: &str) -> Result<(), String> {
        let certificate = self.folder.join("certificates/apiserver.crt");
        let certificate = fs::read(certificate).map_err(|error| format!("no certificate yet: {error}"))?;
        let server_name = (self.address != Ipv4Addr::LOCALHOST).then_some("kubernetes");
        for user in &self.users {
            let path = self.folder.join(format!("{}.kubeconfig", user.name));
            files::write_kubeconfig(&path, cluster, (&self.url(), server_name), &certificate, user);
        }
        Ok(())
    }

    #[track_caller]
    pub(super) fn assert_running(&mut self) {
        self.apiserver
            .iter_mut()
            .chain(&mut self.others)
            .for_each(Child::assert_running);
    }

    pub(super) fn log_tails(&self) -> String {
        self.apiserver.iter().chain(&self.others).map(Child::log_tail).collect()
    }
}
