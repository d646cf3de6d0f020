//! One etcd for all clusters of a test process; each cluster has its own prefix in it.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{Child, eventually, parts, ports, scratch, wait};

/// A running etcd.
#[derive(Debug)]
pub struct Etcd {
    url: String,
    socket: PathBuf,
    _child: Child,
}

impl Etcd {
    /// The process's etcd, started when it is first asked for.
    pub fn shared() -> &'static Self {
        static ETCD: OnceLock<Etcd> = OnceLock::new();
        ETCD.get_or_init(Self::start)
    }

    /// Where clients connect.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same for those in another network of this machine.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    fn start() -> Self {
        let folder = scratch::folder("etcd");
        let (port, peer_port) = (ports::free(), ports::free());
        let (url, peer_url) = (
            format!("http://127.0.0.1:{port}"),
            format!("http://127.0.0.1:{peer_port}"),
        );
        let socket = folder.join("socket");
        let listen = format!("{url},unix://{}", socket.display());
        let mut command = parts::command("etcd");
        command
            .arg("--data-dir")
            .arg(folder.join("data"))
            .args(["--listen-client-urls", &listen, "--advertise-client-urls", &url])
            .args([
                "--listen-peer-urls",
                &peer_url,
                "--initial-advertise-peer-urls",
                &peer_url,
            ])
            .args(["--initial-cluster", &format!("default={peer_url}")])
            // The data lives as long as the test does.
            .args(["--unsafe-no-fsync", "--log-level", "warn"]);
        let mut child = Child::start("etcd", &folder, &mut command);
        eventually(wait::LONG, "etcd listens", || {
            child.assert_running();
            TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())
        });
        Self {
            url,
            socket,
            _child: child,
        }
    }
}
