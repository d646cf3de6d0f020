//! Manifests that people really deploy, unchanged, in three real clusters, with an override for each of them.

use flotilla_tests::pool;

use super::support::Fleet;
use crate::inputs::with_inputs;

/// A unit of what is below `feeds/NAME/`, without what would not be a manifest.
fn unit(name: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {{namespace: shop, name: {name}}}
spec:
  subscribers: [{{clusterAffinity: {{}}}}]
  feeds: [{{path: 'feeds/{name}/*.yaml', exclude: ['feeds/{name}/kustomization.yaml']}}]
"
    )
}

/// For every cluster a Localization that gives the Deployment a label and so many replicas.
fn localizations(deployment: &str) -> Vec<(String, String)> {
    let of = |(index, cluster): (usize, &str)| {
        let text = format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Localization
metadata: {{namespace: {cluster}, name: {deployment}}}
spec:
  feed: {{apiVersion: apps/v1, kind: Deployment, name: {deployment}}}
  overrides:
    - {{name: place, type: MergePatch, value: '{{\"metadata\": {{\"labels\": {{\"place\": \"{cluster}\"}}}}}}'}}
    - {{name: size, type: JSONPatch, value: '[{{\"op\": \"add\", \"path\": \"/spec/replicas\", \"value\": {}}}]'}}
",
            index + 1
        );
        (format!("localizations/{cluster}/{deployment}.yaml"), text)
    };
    pool::NAMES.into_iter().enumerate().map(of).collect()
}

/// Puts a unit with its Localizations into the work clone.
fn write_unit(fleet: &Fleet, name: &str, localized: &str) {
    fleet
        .repository
        .write(&format!("subscriptions/{name}.yaml"), unit(name));
    for (path, text) in localizations(localized) {
        fleet.repository.write(&path, text);
    }
}

/// Waits until every cluster has its own form of the Deployment, with all its pods.
#[track_caller]
fn until_localized(fleet: &Fleet, deployment: &str) {
    let resource = format!("deployment/{deployment}");
    for (index, cluster) in pool::NAMES.into_iter().enumerate() {
        let object = ("default", resource.as_str());
        fleet.until_field(cluster, object, "/metadata/labels/place", cluster);
        fleet.until_field(cluster, object, "/status/availableReplicas", index + 1);
    }
}

#[test]
fn what_people_really_deploy_reaches_three_clusters_localized() {
    with_inputs(3, |inputs| {
        let fleet = Fleet::start();
        let manifests = inputs.join("microservices-demo/release/kubernetes-manifests.yaml");
        let boutique = std::fs::read(manifests).unwrap();
        fleet
            .repository
            .write("feeds/boutique/kubernetes-manifests.yaml", boutique);
        fleet
            .repository
            .copy(&inputs.join("podinfo/kustomize"), "feeds/podinfo");
        write_unit(&fleet, "boutique", "frontend");
        write_unit(&fleet, "podinfo", "podinfo");
        fleet.push("Open a boutique", &[]);
        until_localized(&fleet, "frontend");
        until_localized(&fleet, "podinfo");
        for cluster in fleet.clusters.iter() {
            let deployments = cluster.names("default", "deployment");
            assert_eq!(
                deployments.len(),
                13,
                "twelve of the boutique, and podinfo: {deployments:?}"
            );
            assert_eq!(cluster.names("default", "horizontalpodautoscaler"), ["podinfo"]);
        }

        // The guestbook has a frontend too: another Deployment under the same name, so the first leaves.
        fleet.repository.remove("subscriptions/boutique.yaml");
        fleet.push("Close the boutique", &[]);
        fleet.until_gone(&pool::NAMES, "default", "deployment/frontend");
        fleet
            .repository
            .copy(&inputs.join("kubernetes-examples/web/guestbook"), "feeds/guestbook");
        write_unit(&fleet, "guestbook", "redis-replica");
        fleet.push("Open a guestbook", &[]);
        until_localized(&fleet, "redis-replica");
        until_localized(&fleet, "podinfo");
        for cluster in fleet.clusters.iter() {
            let deployments = cluster.names("default", "deployment");
            assert_eq!(deployments, ["frontend", "podinfo", "redis-master", "redis-replica"]);
        }
    });
}
