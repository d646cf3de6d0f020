//! What a cluster is: asked of its API server once a minute, told in the report.
//!
//! What an API server does not answer, or an applier may not ask, is left out and keeps nothing else from being told.
//! Nodes and what they have left are `capacity`'s.

pub mod cidr;

use std::sync::Arc;

use http::Request;
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::cidr::Sources;
use super::ApplyReport;
use super::request::bounded;
use crate::limits::FACTS_LOOK;
use crate::wire::Facts;

/// Pods of a control plane that kubeadm made, or who does as it does.
const CONTROL_PLANE: &str = "/api/v1/namespaces/kube-system/pods?limit=20&labelSelector=\
                             component%20in%20%28kube-apiserver%2Ckube-controller-manager%29";

/// What the API server says of its own ranges, from Kubernetes 1.33 on.
const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs?limit=20";

/// Some nodes: each has its part of the pods' addresses.
const NODES: &str = "/api/v1/nodes?limit=100";

/// Asks until shutdown.
pub(super) async fn follow(
    client: Client,
    api_server: Option<String>,
    report: watch::Sender<ApplyReport>,
    shutdown: CancellationToken,
) {
    loop {
        let facts = Arc::new(Facts {
            api_server: api_server.clone().unwrap_or_default(),
            ..ask(&client).await
        });
        report.send_if_modified(|report| {
            let changed = report.facts.as_ref() != Some(&facts);
            report.facts = Some(facts);
            changed
        });
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(FACTS_LOOK) => {}
        }
    }
}

async fn ask(client: &Client) -> Facts {
    let version = value(client, "/version").await;
    let platform = version.as_ref().and_then(|version| version["platform"].as_str());
    let pods = items(client, CONTROL_PLANE).await;
    let ranges = items(client, RANGES).await;
    let mut sources = Sources {
        pods: &pods,
        service_cidrs: &ranges,
        nodes: &[],
    };
    let (service_cidrs, mut pod_cidrs) = (sources.services(), sources.pods());
    let nodes;
    if pod_cidrs.is_empty() {
        nodes = items(client, NODES).await;
        sources.nodes = &nodes;
        pod_cidrs = sources.pods();
    }
    Facts {
        platform: platform.unwrap_or_default().to_owned(),
        api_server: String::new(),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        pod_cidrs,
        service_cidrs,
        healthz: is_well(client, "/healthz").await,
        livez: is_well(client, "/livez").await,
        readyz: is_well(client, "/readyz").await,
    }
}

fn get(path: &str) -> Option<Request<Vec<u8>>> {
    Request::get(path).body(Vec::new()).ok()
}

/// What is answered; nothing where it is refused or no answer comes.
async fn value(client: &Client, path: &str) -> Option<Value> {
    bounded(client.request::<Value>(get(path)?)).await.ok()
}

async fn items(client: &Client, path: &str) -> Vec<Value> {
    let listed = value(client, path).await;
    let items = listed.and_then(|mut list| Some(std::mem::take(list["items"].as_array_mut()?)));
    items.unwrap_or_default()
}

/// Whether an address says that all is well; `None` where it may not be asked, or nobody answers.
async fn is_well(client: &Client, path: &str) -> Option<bool> {
    match bounded(client.request_text(get(path)?)).await {
        Ok(_) => Some(true),
        // 500 and 503 are answers: something is not well.
        Err(error) => error.code().filter(|code| *code >= 500).map(|_| false),
    }
}
