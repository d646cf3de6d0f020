//! Three clusters that the journeys of one test process share, one journey at a time.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;

use crate::{ControlPlane, Options};

/// The names of the shared clusters.
pub const NAMES: [&str; 3] = ["amsterdam", "bogota", "colombo"];

static POOL: Mutex<Vec<ControlPlane>> = Mutex::new(Vec::new());

/// Three clusters as new: whatever the journey before made is gone. Waits until no other test has them.
///
/// They have three nodes each, so that Deployments become ready.
#[track_caller]
pub fn three_clusters() -> Clusters {
    // A journey that failed leaves its clusters usable: they are wiped like any other's.
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if pool.is_empty() {
        *pool = ControlPlane::start_all(NAMES, Options::with_nodes(3));
    } else {
        thread::scope(|scope| {
            for cluster in pool.iter_mut() {
                scope.spawn(|| wipe(cluster));
            }
        });
    }
    Clusters { pool }
}

/// The shared clusters, for as long as one test has them. A failing test prints the ends of their logs.
#[derive(Debug)]
pub struct Clusters {
    pool: MutexGuard<'static, Vec<ControlPlane>>,
}

impl Deref for Clusters {
    type Target = [ControlPlane];

    fn deref(&self) -> &[ControlPlane] {
        &self.pool
    }
}

impl DerefMut for Clusters {
    fn deref_mut(&mut self) -> &mut [ControlPlane] {
        &mut self.pool
    }
}

impl Drop for Clusters {
    fn drop(&mut self) {
        if thread::panicking() {
            for cluster in self.iter() {
                println!("cluster {}:\n{}", cluster.name(), cluster.log_tails());
            }
        }
    }
}

/// Deletes all that no control plane makes by itself, and waits until it is gone.
fn wipe(cluster: &mut ControlPlane) {
    if !cluster.apiserver_runs() {
        cluster.start_apiserver();
    }
    let delete = |arguments: &[&str]| {
        let defaults = ["delete", "--ignore-not-found", "--wait=true", "--timeout=120s"];
        cluster.kubectl(&[&defaults, arguments].concat()).expect_ok();
    };
    // In one go, here and below: each kubectl asks the API server what kinds there are, before every journey.
    delete(&[
        "customresourcedefinitions,mutatingwebhookconfigurations,validatingwebhookconfigurations",
        "--all",
    ]);
    let made = cluster
        .names("", "namespace")
        .into_iter()
        .filter(|name| !name.starts_with("kube-") && name != "default");
    let made: Vec<_> = made.collect();
    if !made.is_empty() {
        let names: Vec<_> = made.iter().map(String::as_str).collect();
        delete(&[&["namespace"], &names[..]].concat());
    }
    let kinds = "deployments,statefulsets,daemonsets,replicasets,jobs,cronjobs,pods,services,configmaps,secrets,\
                 ingresses,networkpolicies,poddisruptionbudgets,horizontalpodautoscalers,persistentvolumeclaims,\
                 roles,rolebindings,leases";
    delete(&[kinds, "--namespace=default", "--all"]);
    let serviceaccounts = cluster
        .names("default", "serviceaccount")
        .into_iter()
        .filter(|name| name != "default");
    serviceaccounts.for_each(|name| delete(&["serviceaccount", "--namespace=default", &name]));
    delete(&[
        "clusterroles,clusterrolebindings",
        "--selector=!kubernetes.io/bootstrapping",
    ]);
    crate::eventually(crate::wait::LONG, "the namespace default is as new", || {
        match cluster.get("default", "pods")? {
            pods if pods["items"].as_array().is_some_and(Vec::is_empty) => Ok(()),
            pods => Err(names(&pods)),
        }
    });
}

fn names(list: &Value) -> String {
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    items
        .iter()
        .map(|item| item["metadata"]["name"].to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
