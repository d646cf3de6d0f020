//! What many clusters cost, and what they must not cost each other.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use flotilla_tests::{eventually, wait};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::ListParams;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::support::*;

/// Name and version of every object of a kind in a cluster.
fn versions<K>(fleet: &Fleet, cluster: &str) -> BTreeMap<String, String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let _in_runtime = fleet.runtime.enter();
    let api: Api<K> = Api::all(fleet.clusters[cluster].client());
    let list = fleet.runtime.block_on(api.list(&ListParams::default())).unwrap();
    let name = |object: &K| {
        let meta = object.meta();
        let namespace = meta.namespace.clone().unwrap_or_default();
        (
            format!("{namespace}/{}", meta.name.clone().unwrap_or_default()),
            meta.resource_version.clone().unwrap_or_default(),
        )
    };
    list.iter().map(name).collect()
}

/// The version at which a cluster as a whole stands: every write makes it one higher.
fn writes(fleet: &Fleet, cluster: &str) -> u64 {
    let _in_runtime = fleet.runtime.enter();
    let api: Api<Namespace> = Api::all(fleet.clusters[cluster].client());
    let list = fleet.runtime.block_on(api.list(&ListParams::default())).unwrap();
    list.metadata
        .resource_version
        .and_then(|version| version.parse().ok())
        .expect("versions are numbers here")
}

#[test]
fn agents_that_restart_leave_one_registration_record() {
    let (clusters, restarts) = (long_or(200, 4), long_or(50, 6));
    let mut fleet = Fleet::start(clusters);
    let files = [
        ("subscriptions/web.yaml", subscription("web")),
        ("feeds/web/web.yaml", config_map("web", "one")),
    ];
    fleet.push("greet", &files.each_ref().map(|(path, text)| (*path, text.as_str())));
    fleet.until_text_everywhere("web", "one");
    fleet.until_settled();
    let commits = |fleet: &Fleet| ["flotilla/rendered", "flotilla/released"].map(|name| fleet.repository.commits(name));
    let before = commits(&fleet);
    let names: Vec<_> = fleet.clusters.keys().cloned().collect();
    let shards: Vec<_> = names.iter().map(|name| versions::<ConfigMap>(&fleet, name)).collect();
    for _ in 0..restarts {
        names.iter().for_each(|name| fleet.start_agent(name));
    }
    fleet.until("every agent is back", |state| {
        let there = state.clusters.values().filter(|known| known.epoch.is_some()).count();
        if there == clusters {
            Ok(())
        } else {
            Err(format!("{there} of {clusters}"))
        }
    });
    fleet.until_settled();
    assert_eq!(
        fleet.state().clusters.len(),
        clusters,
        "the hub knows each cluster once"
    );
    assert_eq!(commits(&fleet), before, "an agent's restart is no decision");
    for (name, before) in names.iter().zip(shards) {
        let leases: Vec<_> = versions::<Lease>(&fleet, name).into_keys().collect();
        assert_eq!(leases.len(), 1, "{name}: {leases:?}");
        assert_eq!(
            versions::<ConfigMap>(&fleet, name),
            before,
            "{name}: nothing was written again"
        );
    }
}

#[test]
fn an_idle_fleet_writes_nothing_but_its_leases() {
    let (clusters, units) = (long_or(20, 3), long_or(50, 5));
    let idle = Duration::from_secs(if is_long() { 600 } else { 12 });
    let fleet = Fleet::start(clusters);
    for unit in 0..units {
        fleet.repository.write(
            &format!("subscriptions/{unit}.yaml"),
            subscription(&format!("unit-{unit}")),
        );
        fleet.repository.write(
            &format!("feeds/unit-{unit}/object.yaml"),
            config_map(&format!("unit-{unit}"), "one"),
        );
    }
    fleet.push("fill", &[]);
    fleet.until_text_everywhere(&format!("unit-{}", units - 1), "one");
    fleet.until_settled();
    // Health is looked at once more after an object was applied; then all is known.
    let (mut heard, mut since) = (fleet.heard(), Instant::now());
    eventually(LIMIT, "the hub hears nothing more", || {
        if fleet.heard() != heard {
            (heard, since) = (fleet.heard(), Instant::now());
        }
        if since.elapsed() > Duration::from_secs(2) {
            Ok(())
        } else {
            Err("it still hears".to_owned())
        }
    });
    let refs = fleet.repository.git_bare(&["for-each-ref"]).expect_ok();
    let names: Vec<_> = fleet.clusters.keys().cloned().collect();
    let objects: Vec<_> = names.iter().map(|name| versions::<ConfigMap>(&fleet, name)).collect();
    let written: Vec<_> = names.iter().map(|name| writes(&fleet, name)).collect();
    let begun = Instant::now();
    wait::throughout(idle, "an idle fleet stays as it is", || {
        let polls = begun.elapsed().as_secs() / 10 + 1;
        // Refs are looked at every ten seconds, which is no write and no report.
        if fleet.heard() > heard + 4 * polls {
            Err(format!("heard {} times", fleet.heard() - heard))
        } else {
            Ok(())
        }
    });
    assert_eq!(
        fleet.repository.git_bare(&["for-each-ref"]).expect_ok(),
        refs,
        "no commit"
    );
    for ((name, before), written) in names.iter().zip(objects).zip(written) {
        assert_eq!(
            versions::<ConfigMap>(&fleet, name),
            before,
            "{name}: no object was written"
        );
        let renewals = begun.elapsed().as_secs() / 5 + 2;
        let now = writes(&fleet, name) - written;
        assert!(
            now <= renewals,
            "{name}: {now} writes, and the Lease is renewed every five seconds"
        );
    }
}

#[test]
fn a_new_cluster_is_served_while_many_sync() {
    let (clusters, units) = (long_or(1_000, 12), long_or(50, 20));
    let mut fleet = Fleet::start(clusters);
    for unit in 0..units {
        fleet.repository.write(
            &format!("subscriptions/{unit}.yaml"),
            subscription(&format!("unit-{unit}")),
        );
        fleet.repository.write(
            &format!("feeds/unit-{unit}/object.yaml"),
            config_map(&format!("unit-{unit}"), "one"),
        );
    }
    fleet.register("late");
    // One push brings work for everybody, and the new cluster.
    fleet.push("fill, and register one more", &[]);
    // An agent that dials before its file is known is refused, and comes back after a minute.
    fleet.until("the new file is known", |state| {
        let known = state
            .fleet
            .as_ref()
            .is_some_and(|fleet| fleet.clusters.keys().any(|name| name.as_str() == "late"));
        if known { Ok(()) } else { Err("not yet".to_owned()) }
    });
    let begun = Instant::now();
    fleet.start_agent("late");
    fleet.until_text("late", "unit-0", "one");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(60), "the new cluster waited {took:?}");
    fleet.until_text_everywhere(&format!("unit-{}", units - 1), "one");
    fleet.until_settled();
}

#[test]
fn a_cluster_that_was_away_for_three_releases_is_given_the_last_alone() {
    let mut fleet = Fleet::start(2);
    let deployment = |replicas: u64| {
        format!(
            "apiVersion: apps/v1
kind: Deployment
metadata: {{namespace: default, name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: 'registry.example/web:1'}}]}}
"
        )
    };
    fleet.push(
        "serve",
        &[
            ("subscriptions/web.yaml", &subscription("web")),
            ("feeds/web/web.yaml", &deployment(1)),
        ],
    );
    let found = |fleet: &Fleet, cluster: &str| {
        let _in_runtime = fleet.runtime.enter();
        let api: Api<Deployment> = Api::namespaced(fleet.clusters[cluster].client(), "default");
        let found = fleet.runtime.block_on(api.get_opt("web")).unwrap()?;
        Some((found.spec?.replicas?, found.metadata.generation?))
    };
    let until = |fleet: &Fleet, cluster: &str, replicas: i32| {
        eventually(wait::LONG, "it has so many replicas", || match found(fleet, cluster) {
            Some((now, generation)) if now == replicas => Ok(generation),
            other => Err(format!("{other:?}")),
        })
    };
    let first = until(&fleet, "site-1", 1);
    fleet.until_settled();
    fleet.stop_agent("site-1");
    for replicas in [2, 3, 4] {
        fleet.push("serve more", &[("feeds/web/web.yaml", &deployment(replicas))]);
        until(&fleet, "site-2", i32::try_from(replicas).unwrap());
    }
    fleet.start_agent("site-1");
    let last = until(&fleet, "site-1", 4);
    assert_eq!(
        last,
        first + 1,
        "it was written once, and not for each of three releases"
    );
}
