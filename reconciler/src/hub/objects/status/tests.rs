use std::sync::Arc;

use render::describe::Description;

use super::*;
use crate::hub::objects::content::{Place, contents};
use crate::hub::observe::fixture::{World, unit};
use crate::wire::{Health, UnitState};

fn told(world: &World) -> BTreeMap<Id, Told> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}});
    let object = render::describe::DescribedObject {
        key: render::describe::key_of(&object).expect("it names itself"),
        content: render::describe::Content::Plain {
            object: Arc::new(object),
        },
        provenance: Vec::new(),
    };
    let description = Description::new(vec![object]).expect("one object");
    let place = Place {
        digest: &description.digest,
        folder: "units/shop/web/default",
    };
    let contents = Arc::new(contents(&description, &Default::default(), place));
    let pairs = ["a", "b"].map(|name| ((unit("shop/web"), name.to_owned()), Arc::clone(&contents)));
    statuses(&Observation::new(&world.state), &BTreeMap::from(pairs))
}

fn world() -> World {
    let mut world = World::new();
    world.push('1', &["a", "b"], &["a", "b"]);
    for name in ["a", "b"] {
        world.connect(name);
        world.report(name, UnitState::Applied, Health::Current);
    }
    world
}

#[track_caller]
fn phase_on(world: &World, cluster: &str, expected: &str) {
    let told = told(world);
    let found = told
        .iter()
        .find(|(id, _)| id.kind == Kind::Description && id.namespace == cluster);
    let (_, told) = found.expect("the cluster has a Description");
    assert_eq!(told.status["phase"], expected, "{told:?}");
}

#[test]
fn a_description_says_how_its_unit_fares_on_its_cluster() {
    let mut world = world();
    phase_on(&world, "a", "Success");
    world.report("a", UnitState::Failed, Health::Failed);
    phase_on(&world, "a", "Failure");
    phase_on(&world, "b", "Success");
    world.report("a", UnitState::Applying, Health::InProgress);
    phase_on(&world, "a", "Pending");
}

#[test]
fn a_subscription_counts_its_clusters_and_those_that_are_ready() {
    let mut world = world();
    world.report("a", UnitState::Failed, Health::Failed);
    let status = &told(&world)[&subscription_id(&unit("shop/web"))].status;
    assert_eq!(
        *status,
        json!({"bindingClusters": ["a/a", "b/b"], "desiredReleases": 2, "completedReleases": 1})
    );
}

#[test]
fn a_cluster_that_was_not_heard_yet_is_known_as_such() {
    let mut world = World::new();
    world.push('1', &["a", "b"], &["a", "b"]);
    world.connect("a");
    world.report("a", UnitState::Applied, Health::Current);
    let told = told(&world);
    let cluster = |name: &str| &told[&Id::new(Kind::ManagedCluster, name, name)];
    assert!(cluster("a").heard);
    assert!(!cluster("b").heard);
    assert!(
        !told[&subscription_id(&unit("shop/web"))].heard,
        "one of its clusters is silent"
    );
    assert_eq!(cluster("a").status["k8sVersion"], "v1.36.1");
}

#[test]
fn a_condition_keeps_its_time_while_it_says_the_same() {
    let says = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "message": "new"}]});
    let live =
        json!({"conditions": [{"type": "Ready", "status": "True", "message": "old", "lastTransitionTime": "t1"}]});
    let time = |status: &str| with_times(&says(status), &live, "t2")["conditions"][0]["lastTransitionTime"].clone();
    assert_eq!(time("True"), "t1");
    assert_eq!(time("False"), "t2");
    let first = with_times(&says("True"), &Value::Null, "t2");
    assert_eq!(first["conditions"][0]["lastTransitionTime"], "t2");
}
