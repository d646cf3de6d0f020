//! Taints that take away what is there, at once or after a while, and the minute between two moves.

use super::*;

#[test]
fn a_taint_that_is_tolerated_for_a_while_evicts_after_that() {
    for scheduling in [DYNAMIC, STATIC, Scheduling::Replication] {
        let mut world = World::new(&["a", "b"], everywhere(scheduling), 4);
        world.subscribe(|subscription| subscription.tolerations = vec![tolerating("drain", Some(120))]);
        world.taint("b", Some(TaintEffect::NoExecute));
        let planned = world.commit();
        assert_eq!(planned.again_at, Some(100_120), "{scheduling:?}");
        let leaves_at = |world: &World| world.unit().clusters[&cluster_name("b")].leaves_at;
        assert_eq!(leaves_at(&world), Some(100_120));
        let said = "it leaves at 1970-01-02T03:48:40Z, since taint drain:NoExecute is tolerated for 120 s";
        assert!(world.reasons("b").contains(said), "{}", world.reasons("b"));
        world.at(100_119);
        assert_eq!(
            (world.decisions, leaves_at(&world)),
            (2, Some(100_120)),
            "the time is not put off"
        );
        world.at(100_120);
        assert!(
            !world.unit().clusters.contains_key(&cluster_name("b")),
            "{scheduling:?}"
        );
        assert_eq!(world.shares().iter().map(|(_, share)| share).sum::<u64>() % 4, 0);
    }
}

#[test]
fn a_taint_that_goes_before_its_time_leaves_nothing_behind() {
    let mut world = World::new(&["a", "b"], everywhere(DYNAMIC), 4);
    world.subscribe(|subscription| subscription.tolerations = vec![tolerating("drain", Some(120))]);
    world.taint("b", Some(TaintEffect::NoExecute));
    world.commit();
    world.taint("b", None);
    let planned = world.commit();
    assert_eq!((world.shares(), planned.again_at), (vec![("a", 2), ("b", 2)], None));
    assert!(
        world
            .unit()
            .clusters
            .values()
            .all(|placement| placement.leaves_at.is_none())
    );
    world.at(900_000);
    assert_eq!(world.shares(), [("a", 2), ("b", 2)]);
}

#[test]
fn nothing_new_comes_to_a_cluster_that_is_to_be_left() {
    let mut world = World::new(&["a", "b"], everywhere(STATIC), 4);
    world.subscribe(|subscription| subscription.tolerations = vec![tolerating("drain", Some(120))]);
    world.taint("b", Some(TaintEffect::NoExecute));
    world.scale(10);
    assert_eq!(world.shares(), [("a", 8), ("b", 2)]);
}

#[test]
fn what_an_evicted_cluster_has_stays_there_while_no_other_has_room() {
    let mut world = World::new(&["a", "b"], everywhere(DYNAMIC), 8);
    let a = world.reports.clusters.get_mut(&cluster_name("a")).expect("it reported");
    a.capacity = Arc::new(capacity(1, 5));
    world.taint("b", Some(TaintEffect::NoExecute));
    let planned = world.commit();
    assert_eq!(
        (world.shares(), reasons_of(&planned)),
        (vec![("a", 5), ("b", 3)], vec!["NowhereElse"])
    );
    assert_eq!(world.lost(), [""; 0], "it is not silent");
    // As far as bounds go too.
    let mut world = World::new(&["a", "b"], everywhere(STATIC), 8);
    world.subscribe(|subscription| {
        let bounds = Bounds {
            min: None,
            max: Some(6),
        };
        subscription.subscribers[0].replicas = bounds;
    });
    world.taint("b", Some(TaintEffect::NoExecute));
    world.commit();
    assert_eq!(world.shares(), [("a", 6), ("b", 2)]);
}

#[test]
fn what_moved_just_now_stays_for_a_minute_but_for_a_commit() {
    let mut world = World::new(&["a", "b", "c"], everywhere(DYNAMIC), 9);
    world.fleet.spec.scheduling.failover = Some(policy(2));
    world.silent("c", 100_000);
    world.at(100_300);
    world.silent("b", 100_010);
    let planned = world.at(100_310);
    assert_eq!((world.decisions, planned.again_at), (2, Some(100_360)));
    world.scale(12);
    assert_eq!(
        (world.decisions, world.lost()),
        (3, vec!["b", "c"]),
        "a commit waits for nothing"
    );
    assert_eq!(world.unit().moved_at, Some(100_300));
    let mut world = World::new(&["a", "b"], everywhere(DYNAMIC), 9);
    Arc::make_mut(&mut world.published)
        .units
        .values_mut()
        .for_each(|unit| unit.moved_at = Some(900_000));
    world.silent("b", 100_000);
    world.at(100_300);
    assert_eq!(world.lost(), ["b"], "a clock that was put back makes nobody wait");
}
