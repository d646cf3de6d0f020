//! A real `sshd` on loopback, with keys of its own, and an agent.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Child, Output, eventually, ports, scratch, wait};

/// Lets a key read and not write, in the words of the host that most people know.
const READ_ONLY: &str = r#"#!/bin/sh
case $SSH_ORIGINAL_COMMAND in
    "git-upload-pack "*) exec git-shell -c "$SSH_ORIGINAL_COMMAND" ;;
    *) echo "ERROR: The key you are authenticating with has been marked as read only." >&2; exit 1 ;;
esac
"#;

/// An `sshd` that lets the user of the tests in by keys.
#[derive(Debug)]
pub struct Ssh {
    port: u16,
    folder: PathBuf,
    _server: Child,
}

/// An `ssh-agent` with one key.
#[derive(Debug)]
pub struct Agent {
    socket: PathBuf,
    _agent: Child,
}

impl Ssh {
    /// Starts it. Its keys are `writer`, `reader` (read-only), and `stranger`, whom it does not know.
    pub fn start() -> Self {
        let (folder, port) = (scratch::folder("ssh"), ports::free());
        for name in ["host", "writer", "reader", "stranger"] {
            key(&folder.join(name));
        }
        let script = folder.join("read-only");
        fs::write(&script, READ_ONLY).expect("the scratch folder is writable");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let public = |name: &str| fs::read_to_string(folder.join(format!("{name}.pub"))).expect("just made");
        let authorized = format!(
            "{}restrict,command=\"{}\" {}",
            public("writer"),
            script.display(),
            public("reader")
        );
        fs::write(folder.join("authorized"), authorized).expect("the scratch folder is writable");
        let host = public("host");
        fs::write(folder.join("known_hosts"), format!("[127.0.0.1]:{port} {host}")).expect("writable");
        let path = |name: &str| folder.join(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             AcceptEnv GIT_PROTOCOL\nMaxStartups 100\nPerSourcePenalties no\n",
            path("host"),
            path("authorized"),
        );
        // Only from OpenSSH 9.8 on.
        let config = config.replace("PerSourcePenalties no\n", "");
        fs::write(folder.join("config"), config).expect("the scratch folder is writable");
        // Where it locks itself in, started by root; the Debian package makes it at boot only.
        let _there_or_not_root = fs::create_dir_all("/run/sshd");
        let mut command = Command::new(program());
        command.args(["-D", "-e", "-f", &path("config")]);
        let mut server = Child::start("sshd", &folder, &mut command);
        eventually(wait::LONG, "sshd listens", || {
            server.assert_running();
            TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())
        });
        Self {
            port,
            folder,
            _server: server,
        }
    }

    /// The URL of a repository on this disk.
    pub fn url(&self, repository: &Path) -> String {
        let user = Output::of(Command::new("id").arg("-un")).expect_ok();
        format!("ssh://{}@127.0.0.1:{}{}", user.trim(), self.port, repository.display())
    }

    /// A private key's file.
    pub fn key(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A file that knows its host key.
    pub fn known_hosts(&self) -> String {
        self.folder.join("known_hosts").display().to_string()
    }

    /// A file that knows another key for it.
    pub fn wrong_hosts(&self) -> String {
        let stranger = fs::read_to_string(self.folder.join("stranger.pub")).expect("just made");
        let file = self.folder.join("wrong_hosts");
        fs::write(&file, format!("[127.0.0.1]:{} {stranger}", self.port)).expect("writable");
        file.display().to_string()
    }

    /// An agent that has a key.
    pub fn agent(&self, key: &str) -> Agent {
        let socket = scratch::folder("agent").join("socket");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket);
        let agent = Child::start("ssh-agent", &self.folder, &mut command);
        eventually(wait::LONG, "the agent listens", || {
            socket.exists().then_some(()).ok_or_else(|| "no socket".to_owned())
        });
        let mut add = Command::new("ssh-add");
        add.env("SSH_AUTH_SOCK", &socket).arg("-q").arg(self.key(key));
        Output::of(&mut add).expect_ok();
        Agent { socket, _agent: agent }
    }
}

impl Agent {
    /// What `SSH_AUTH_SOCK` says.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

/// # Panics
/// If it is not installed: `apt-get install openssh-server`.
fn program() -> PathBuf {
    // It insists on being started by its whole path.
    let found = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].map(PathBuf::from);
    let found = found.into_iter().find(|path| path.exists());
    found.unwrap_or_else(|| panic!("sshd is missing: apt-get install openssh-server"))
}

/// The version of the installed one.
pub(crate) fn version() -> String {
    // It has no such option; told so, it says who it is.
    let said = Output::of(Command::new(program()).arg("-V"));
    let said = format!("{}{}", said.stdout, said.stderr);
    let word = said.split([',', ' ', '\n']).find(|word| word.starts_with("OpenSSH_"));
    word.unwrap_or_else(|| panic!("sshd names its version, but said: {said}"))
        .to_owned()
}

fn key(path: &Path) {
    let mut make = Command::new("ssh-keygen");
    make.args(["-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f"])
        .arg(path);
    Output::of(&mut make).expect_ok();
}
