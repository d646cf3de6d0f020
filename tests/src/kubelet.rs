//! A kubelet that has logs and nothing else: what an API server asks when somebody reads a pod's log.

use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::ControlPlane;

/// Between two lines of a log that is followed.
const PAUSE: Duration = Duration::from_millis(10);

/// Lines of a log that is not followed.
const LINES: usize = 3;

/// A kubelet on loopback. It ends with the test's process.
#[derive(Debug)]
pub struct Kubelet {
    port: u16,
}

impl Kubelet {
    /// Starts it. Every log says `line 0`, `line 1` and so on: three lines, or without an end where it is followed.
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
        let port = listener.local_addr().expect("it is bound").port();
        let config = config();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                thread::spawn(move || serve(socket, config));
            }
        });
        Self { port }
    }

    /// Makes the node `NAME` of a cluster this kubelet's.
    #[track_caller]
    pub fn join(&self, cluster: &ControlPlane, name: &str) {
        cluster.apply(&format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n"));
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }});
        let patch = [
            "patch",
            "node",
            name,
            "--subresource=status",
            "--type=merge",
            "-p",
            &status.to_string(),
        ];
        cluster.kubectl(&patch).expect_ok();
    }
}

fn config() -> Arc<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("ring makes a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring knows them")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key);
    Arc::new(config.expect("the key is the certificate's"))
}

/// Serves one request. Whoever asks may go away at any time.
fn serve(socket: TcpStream, config: Arc<ServerConfig>) {
    let Ok(session) = ServerConnection::new(config) else {
        return;
    };
    let mut reader = BufReader::new(StreamOwned::new(session, socket));
    let (mut first, mut line) = (String::new(), String::new());
    if reader.read_line(&mut first).is_err() {
        return;
    }
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
        line.clear();
    }
    let mut stream = reader.into_inner();
    let _gone = answer(&mut stream, &first);
    stream.conn.send_close_notify();
    let _gone = stream.flush();
}

fn answer(stream: &mut impl Write, request: &str) -> std::io::Result<()> {
    if !request.starts_with("GET /containerLogs/") {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n")?;
    let lines = if request.contains("follow=true") {
        usize::MAX
    } else {
        LINES
    };
    for number in 0..lines {
        stream.write_all(format!("line {number}\n").as_bytes())?;
        stream.flush()?;
        if lines > LINES {
            crate::wait::pause(PAUSE);
        }
    }
    Ok(())
}
