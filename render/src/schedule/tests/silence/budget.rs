//! Clusters that are silent and keep what they have.

use super::*;

#[test]
fn many_clusters_that_fall_silent_together_are_the_hubs_own_trouble() {
    let names: Vec<String> = (0..100).map(|index| format!("c{index:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (silent, budget, moves) in [(30, 1, false), (51, 99, false), (30, 30, true)] {
        let mut world = World::new(&names, everywhere(DYNAMIC), 200);
        world.fleet.spec.scheduling.failover = Some(policy(budget));
        for (index, name) in names.iter().take(silent).enumerate() {
            world.silent(name, 100_000 + i64::try_from(index).expect("it is small"));
        }
        let planned = world.at(100_000 + AFTER + 60);
        let expected = if moves { vec![] } else { vec!["ManyClustersSilent"] };
        assert_eq!(reasons_of(&planned), expected, "{silent} silent, budget {budget}");
        assert_eq!(world.decisions > 1, moves);
    }
}

#[test]
fn the_alarm_names_how_many_and_ends_when_they_are_heard_of() {
    let mut world = World::new(&["a", "b", "c"], everywhere(DYNAMIC), 9);
    world.silent("b", 100_000);
    world.silent("c", 100_010);
    let planned = world.at(100_400);
    assert_eq!(
        planned.findings[0].message,
        "2 of 3 clusters fell silent within 300 s: the hub itself seems cut off, and nothing is moved away from them"
    );
    let names: Vec<_> = planned.findings[0]
        .cluster
        .iter()
        .chain(&planned.findings[0].also_on)
        .collect();
    assert_eq!(names.len(), 2);
    assert_eq!(planned.again_at, Some(100_460), "it is looked again meanwhile");
    world.heard("b", 100_430);
    let planned = world.at(100_460);
    assert_eq!((planned.findings, world.lost()), (vec![], vec!["c"]));
}

#[test]
fn no_more_clusters_are_lost_in_a_while_than_the_budget_allows() {
    let mut world = World::new(&["a", "b", "c", "d"], everywhere(DYNAMIC), 8);
    world.silent("c", 100_000);
    world.at(100_300);
    assert_eq!(world.lost(), ["c"]);
    world.silent("d", 100_700);
    let planned = world.at(101_000);
    assert_eq!((world.lost(), reasons_of(&planned)), (vec!["c"], vec!["FailoverWaits"]));
    assert_eq!(
        planned.findings[0].message,
        "cluster d is silent since 1970-01-02T03:58:20Z, and as many were moved away from within 3600 s as the budget \
         allows (1)"
    );
    world.at(100_300 + PER - 1);
    assert_eq!(world.lost(), ["c"]);
    world.at(100_300 + PER);
    assert_eq!(world.lost(), ["c", "d"]);
}

#[test]
fn the_budget_remembers_a_loss_though_the_cluster_is_back_and_has_its_share() {
    for scheduling in [DYNAMIC, STATIC] {
        let mut world = World::new(&["a", "b", "c", "d"], everywhere(scheduling), 8);
        world.silent("c", 100_000);
        world.at(100_300);
        world.heard("c", 100_400);
        world.now = 100_400 + RETURN;
        world.scale(16);
        let has = |world: &World, name| world.shares().iter().any(|(of, share)| *of == name && *share > 0);
        assert!(has(&world, "c") && has(&world, "d"), "{:?}", world.shares());
        world.silent("d", 101_100);
        let planned = world.at(100_300 + PER - 1);
        assert_eq!(reasons_of(&planned), ["FailoverWaits"], "{scheduling:?}");
        assert!(has(&world, "d"), "{:?}", world.shares());
        world.at(100_300 + PER);
        assert!(!has(&world, "d"), "{:?}", world.shares());
        assert_eq!(world.lost(), ["d"], "what counts no more is forgotten");
    }
}

#[test]
fn what_one_unit_lost_another_loses_by_the_same_budget() {
    let mut world = World::new(&["a", "b", "c"], everywhere(DYNAMIC), 9);
    let mut patient = world.fleet.units.values().next().expect("it has a unit").clone();
    let mut subscription = patient.subscription.as_ref().clone();
    subscription.key = UnitKey::new("default", "patient").expect("it is a valid unit");
    subscription.tolerations = vec![tolerating("fleet.flotilla.dev/unreachable", Some(1_000))];
    patient.subscription = Arc::new(subscription.clone());
    world.fleet.units.insert(subscription.key.clone(), patient);
    world.commit();
    world.silent("c", 100_000);
    let has_c = |world: &World| -> Vec<bool> {
        let units = world.published.units.values();
        units
            .map(|unit| unit.clusters.contains_key(&cluster_name("c")))
            .collect()
    };
    let planned = world.at(100_300);
    assert_eq!((has_c(&world), planned.again_at), (vec![true, false], Some(101_000)));
    world.at(101_000);
    assert_eq!(has_c(&world), [false, false]);
}

#[test]
fn a_toleration_of_being_unreachable_overrides_how_long() {
    for (seconds, moves_at) in [
        (Some(0), Some(1)),
        (Some(20), Some(20)),
        (Some(900), Some(900)),
        (None, None),
    ] {
        let mut world = World::new(&["a", "b", "c"], everywhere(DYNAMIC), 9);
        let toleration = tolerating("fleet.flotilla.dev/unreachable", seconds);
        world.subscribe(|subscription| subscription.tolerations = vec![toleration]);
        world.silent("c", 100_000);
        world.at(100_000 + moves_at.unwrap_or(900_000) - 1);
        assert_eq!(world.decisions > 1, moves_at == Some(1), "{seconds:?}");
        world.at(100_000 + moves_at.unwrap_or(900_000));
        assert_eq!(world.decisions > 1, moves_at.is_some(), "{seconds:?}");
    }
}
