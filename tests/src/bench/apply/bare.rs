//! What any applier is measured by: a loop that applies and does nothing else.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::Value;

/// As many connections as our applier uses.
const CONNECTIONS: usize = 8;

/// Applies ConfigMaps of one namespace as fast as that many connections do; how long it took.
pub(super) async fn apply(kubeconfig: &Path, namespace: &str, objects: Vec<Value>) -> anyhow::Result<Duration> {
    let client = reconciler::apply::ApiServer::from_kubeconfig(kubeconfig, None)
        .await?
        .client;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind);
    let left = Arc::new(Mutex::new(VecDeque::from(objects)));
    let started = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (api, left) = (api.clone(), Arc::clone(&left));
        workers.spawn(async move {
            let params = PatchParams::apply("bare-loop");
            loop {
                let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some(object) = next else { return Ok(()) };
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                api.patch(name, &params, &Patch::Apply(&object)).await?;
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        let done: kube::Result<()> = worker?;
        done?;
    }
    Ok(started.elapsed())
}
