//! The in-memory API server on a socket, for agents in processes of their own.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use flotilla_tests::scratch;
use harness::ApiServer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A served API server, for as long as the test lasts.
pub(super) struct Served {
    pub(super) server: ApiServer,
    /// A client without a socket.
    pub(super) client: kube::Client,
    pub(super) runtime: tokio::runtime::Runtime,
    address: SocketAddr,
}

impl Served {
    pub(super) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime starts");
        let server = ApiServer::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let client = runtime.block_on(async { server.client() });
        let serving = server.clone();
        runtime.spawn(async move { serving.serve(listener, CancellationToken::new()).await });
        Self {
            server,
            client,
            runtime,
            address,
        }
    }

    /// A kubeconfig of a caller with such a credential.
    pub(super) fn kubeconfig(&self, user: &Value) -> PathBuf {
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "served",
            "clusters": [{"name": "served", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "served", "user": user}],
            "contexts": [{"name": "served", "context": {"cluster": "served", "user": "served"}}]});
        let path = scratch::folder("served").join("kubeconfig");
        fs::write(&path, kubeconfig.to_string()).expect("the scratch folder is writable");
        path
    }
}
