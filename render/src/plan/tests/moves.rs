//! What a unit asked for is written down, looked for when it asks for it again, and takes part in what is remembered.

use super::*;
use crate::capacity::{Resources, WorkloadPods};
use crate::fixture::{capacity, reports};
use crate::layout::placement_file;
use crate::model::{Dividing, Strategy};
use crate::schedule::Rebalance;

/// A Deployment over three clusters by their room.
fn web(replicas: u64) -> (UnitKey, Unit) {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [
            {"name": "web", "resources": {"requests": {"cpu": "1"}}}]}}}});
    let (key, mut unit) = unit("shop/web", vec![manifest(deployment)]);
    let mut divided = unit.subscription.as_ref().clone();
    divided.scheduling = Scheduling::Dividing(Dividing::Dynamic(Strategy::Spread));
    unit.subscription = Arc::new(divided);
    (key, unit)
}

/// So many cores in each cluster.
fn with_room(mut snapshot: Snapshot, cores: [i64; 3]) -> Snapshot {
    let said = ["a", "b", "c"].into_iter().zip(cores);
    let said: Vec<_> = said.map(|(name, cores)| (name, capacity(1, cores))).collect();
    snapshot.reports.clusters.extend(reports(&said).clusters);
    snapshot
}

fn at(digit: char, replicas: u64, cores: [i64; 3], previous: &Plan) -> Snapshot {
    with_room(snapshot(digit, vec![web(replicas)], Vec::new(), previous), cores)
}

fn key() -> UnitKey {
    "shop/web".parse().expect("a valid unit")
}

fn shares(plan: &Plan) -> Vec<u64> {
    let clusters = plan.units[&key()].clusters.values();
    clusters.map(|placement| placement.replicas.values().sum()).collect()
}

#[test]
fn a_revert_asks_for_what_was_and_is_placed_so_again() {
    let first = planned(&at('1', 4, [2, 2, 2], &Plan::default()));
    let second = planned(&at('2', 8, [2, 9, 2], &first));
    assert_eq!((shares(&first), shares(&second)), (vec![2, 1, 1], vec![2, 5, 1]));
    let mut reverted = at('3', 4, [9, 9, 9], &second);
    let usual = planned(&reverted);
    assert_ne!(
        shares(&usual),
        shares(&first),
        "without memory, each loses in proportion"
    );
    let asked = first.units[&key()].asks.expect("its placement is a choice");
    assert_eq!(usual.recalls, BTreeMap::from([(key(), asked)]));
    reverted.moves.remembered.insert(key(), first.units[&key()].clone());
    let restored = planned(&reverted);
    assert_eq!(shares(&restored), shares(&first));
    assert_eq!(restored.units[&key()].asks, Some(asked));
    // A plan on the outcome looks for nothing, and changes nothing.
    let again = planned(&at('3', 4, [9, 9, 9], &restored));
    assert_eq!((&again.units, again.recalls.len()), (&restored.units, 0));
}

#[test]
fn where_nothing_moves_a_file_keeps_its_bytes() {
    let mut first = planned(&at('1', 4, [4, 4, 4], &Plan::default()));
    let file = |plan: &Plan| placement_file(&key(), &plan.units[&key()]).1;
    assert!(file(&first).contains("\nasks: sha256:"), "{}", file(&first));
    // As a version wrote it that knew of no such thing.
    first.units.get_mut(&key()).expect("it is placed").asks = None;
    let next = planned(&at('2', 4, [4, 4, 4], &first));
    assert_eq!(file(&next), file(&first), "an equal decision writes nothing");
    assert!(next.recalls.is_empty(), "what nobody noted is not looked for");
    // What is only of another priority moves nothing either.
    let mut other = at('3', 4, [4, 4, 4], &planned(&at('1', 4, [4, 4, 4], &Plan::default())));
    let before = file(&planned(&other));
    let fleet = Arc::make_mut(&mut other.fleet);
    let unit = fleet.units.get_mut(&key()).expect("it is there");
    Arc::make_mut(&mut unit.subscription).placing.priority = 7;
    let next = planned(&other);
    assert_eq!((file(&next), next.recalls.len()), (before, 1));
}

#[test]
fn replication_everywhere_notes_nothing_that_an_upgrade_would_write() {
    let plan = planned(&snapshot(
        '1',
        vec![unit("shop/web", vec![config_map("web", "1")])],
        Vec::new(),
        &Plan::default(),
    ));
    assert_eq!((plan.units[&key()].asks, plan.recalls.len()), (None, 0));
}

/// The same on every cluster's first core of three, as pods that are there.
fn with_pods_of_web(mut snapshot: Snapshot) -> Snapshot {
    for report in snapshot.reports.clusters.values_mut() {
        let said = Arc::make_mut(&mut report.capacity);
        let requests = Resources::from([("cpu", 1_000), ("pods", 1)]);
        said.nodes.0[0].free.add(&requests, -1);
        said.nodes.0[0].pods = BTreeMap::from([(0, 1)]);
        said.workloads = vec![WorkloadPods {
            unit: key(),
            object: ObjectKey::new("apps/v1", "Deployment", "shop", "web"),
            replicas: 1,
            requests,
            scheduled: 1,
            unschedulable: 0,
        }];
    }
    snapshot
}

#[test]
fn a_memo_never_answers_for_what_gives_way() {
    let memo = &mut Memo::default();
    let first = planned(&at('1', 3, [1, 1, 1], &Plan::default()));
    assert_eq!(shares(&first), [1, 1, 1]);
    let full = with_pods_of_web(at('2', 3, [1, 1, 1], &first));
    assert_eq!(plan(&full, memo).units, first.units);
    let mut next = full.clone();
    let fleet = Arc::make_mut(&mut next.fleet);
    fleet.spec.scheduling.preemption = true;
    let (_, mut unit) = web(2);
    let mut high = unit.subscription.as_ref().clone();
    high.key = "shop/urgent".parse().expect("a valid unit");
    (high.placing.priority, high.placing.preempts) = (100, true);
    unit.subscription = Arc::new(high.clone());
    fleet.units.insert(high.key.clone(), unit);
    let moved = plan(&next, memo);
    assert_eq!(moved, planned(&next));
    assert_eq!(shares(&moved).iter().sum::<u64>(), 1, "two of three gave way");
    assert!(moved.by_room.contains(&key()), "and come back when there is room");
    assert_eq!(
        plan(&full, memo).units,
        first.units,
        "and not for what gives way no more"
    );
}

#[test]
fn a_memo_never_answers_for_another_word() {
    let memo = &mut Memo::default();
    let first = planned(&at('1', 4, [4, 4, 4], &Plan::default()));
    let mut next = at('2', 4, [9, 1, 1], &first);
    let unmoved = plan(&next, memo);
    assert_eq!((&unmoved.units, unmoved.rebalanced.len()), (&first.units, 0));
    next.moves.rebalance.insert(key(), Rebalance::All);
    let moved = plan(&next, memo);
    assert_eq!(moved, planned(&next));
    assert_eq!(moved.rebalanced, BTreeSet::from([key()]));
    assert_ne!(shares(&moved), shares(&unmoved));
    next.moves.rebalance.clear();
    assert_eq!(plan(&next, memo), unmoved);
}

#[test]
fn a_memo_never_answers_for_another_word_of_the_fleet() {
    let memo = &mut Memo::default();
    let may_take = |snapshot: &mut Snapshot, is_allowed: bool| {
        let fleet = Arc::make_mut(&mut snapshot.fleet);
        fleet.spec.scheduling.preemption = is_allowed;
        let unit = fleet.units.get_mut(&key()).expect("it is there");
        Arc::make_mut(&mut unit.subscription).placing.preempts = true;
    };
    let mut first = at('1', 4, [4, 4, 4], &Plan::default());
    may_take(&mut first, false);
    let mut next = at('2', 4, [4, 4, 4], &planned(&first));
    may_take(&mut next, false);
    assert_eq!(plan(&next, memo).recalls.len(), 0);
    may_take(&mut next, true);
    let allowed = plan(&next, memo);
    assert_eq!(allowed, planned(&next));
    assert_eq!(allowed.recalls.len(), 1, "it asks for something else now");
}
