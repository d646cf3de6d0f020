//! Kinds that a push brings along, and replicas that are shared out.

use flotilla_tests::pool;

use super::support::*;

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.example}
spec:
  group: harbour.example
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {sails: {type: integer}}}}
";

/// Named so that it comes before its definition and its namespace wherever files are sorted.
const BOAT: &str = "\
apiVersion: harbour.example/v1
kind: Boat
metadata: {namespace: harbour, name: argo}
spec: {sails: 2}
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: harbour, name: crew}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: crew}}
  template:
    metadata: {labels: {app: crew}}
    spec: {containers: [{name: sailor, image: sailor.example/sailor:1}]}
";

const SUBSCRIPTION: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {namespace: sea, name: harbour}
spec:
  schedulingStrategy: Dividing
  dividingScheduling: {type: Static}
  subscribers:
    - {clusterAffinity: {matchLabels: {place: amsterdam}}, weight: 1}
    - {clusterAffinity: {matchLabels: {place: bogota}}, weight: 2}
    - {clusterAffinity: {matchLabels: {place: colombo}}, weight: 3}
  feeds: [{path: 'feeds/harbour/**'}]
";

#[test]
fn one_push_brings_a_definition_its_object_and_divided_replicas_that_become_ready() {
    let fleet = Fleet::start();
    let crew = |replicas: &str| DEPLOYMENT.replace("REPLICAS", replicas);
    fleet.push(
        "Open the harbour",
        &[
            ("subscriptions/sea/harbour.yaml", SUBSCRIPTION),
            ("feeds/harbour/a-boat.yaml", BOAT),
            ("feeds/harbour/crew.yaml", &crew("7")),
            ("feeds/harbour/definition.yaml", DEFINITION),
            ("feeds/harbour/namespace.yaml", &namespace("harbour")),
        ],
    );
    for cluster in pool::NAMES {
        fleet.until_field(cluster, ("harbour", "boats.harbour.example/argo"), "/spec/sails", 2);
    }
    // 7 by 1 : 2 : 3 is 1 1/6, 2 2/6 and 3 3/6; the largest rest gets the one that is left.
    until_ready(&fleet, [1, 2, 4]);
    fleet.push("Hire", &[("feeds/harbour/crew.yaml", &crew("12"))]);
    until_ready(&fleet, [2, 4, 6]);
    assert_verified(&fleet.repository);
}

#[track_caller]
fn until_ready(fleet: &Fleet, replicas: [u64; 3]) {
    for (cluster, replicas) in pool::NAMES.into_iter().zip(replicas) {
        let crew = ("harbour", "deployment/crew");
        fleet.until_field(cluster, crew, "/spec/replicas", replicas);
        fleet.until_field(cluster, crew, "/status/readyReplicas", replicas);
    }
}

#[test]
fn an_object_without_its_definition_waits_and_the_others_come() {
    let fleet = Fleet::start();
    fleet.push(
        "Forget the definition",
        &[
            ("subscriptions/sea/harbour.yaml", &subscription("sea", "harbour")),
            ("feeds/harbour/a-boat.yaml", BOAT),
            ("feeds/harbour/log.yaml", &config_map("harbour", "log", "calm")),
            ("feeds/harbour/namespace.yaml", &namespace("harbour")),
        ],
    );
    fleet.until_text(&pool::NAMES, ("harbour", "log"), "calm");
    fleet.push("Add the definition", &[("feeds/harbour/definition.yaml", DEFINITION)]);
    for cluster in pool::NAMES {
        fleet.until_field(cluster, ("harbour", "boats.harbour.example/argo"), "/spec/sails", 2);
    }
}
