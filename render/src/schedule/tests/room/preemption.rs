//! Room that a higher priority takes from a lower one.

use super::*;
use crate::capacity::NodeGroup;
use crate::schedule::{Placements, schedule};

/// A unit of the test fleet.
#[derive(Clone, Copy, Debug)]
struct Wish {
    name: &'static str,
    priority: i32,
    replicas: u64,
    cpu: &'static str,
    least: u64,
}

const LOW: Wish = Wish {
    name: "low",
    priority: 10,
    replicas: 6,
    cpu: "1",
    least: 0,
};

const HIGH: Wish = Wish {
    name: "high",
    priority: 100,
    replicas: 3,
    cpu: "1",
    least: 0,
};

fn unit_key(name: &str) -> UnitKey {
    UnitKey::new("team", name).expect("it is a valid unit")
}

fn wishes(list: &[Wish]) -> Fleet {
    let mut found = two(0);
    found.units.clear();
    found.spec.scheduling.preemption = true;
    for wish in list {
        let mut subscriber = subscriber(&[], None);
        subscriber.replicas.min = Some(wish.least).filter(|least| *least > 0);
        let mut to = subscription(DYNAMIC, vec![subscriber]);
        to.key = unit_key(wish.name);
        to.placing.priority = wish.priority;
        to.placing.preempts = true;
        let one = fleet(Vec::new(), to, deployment(wish.replicas, wish.cpu));
        found.units.extend(one.units);
    }
    found
}

/// Clusters of so many nodes with so many cores each, on which these units have pods; the rest is free.
fn with_pods(nodes: u64, cores: i64, wishes: &[(Wish, [u64; 2])]) -> Reports {
    let of_cluster = |index: usize| {
        let mut said = capacity(nodes, cores);
        let mut single: Vec<NodeGroup> = (0..nodes)
            .map(|_| NodeGroup {
                count: 1,
                ..said.nodes.0[0].clone()
            })
            .collect();
        for (place, (wish, placed)) in wishes.iter().enumerate() {
            let requests = Resources::from([
                ("cpu", 1_000 * wish.cpu.parse::<i64>().expect("whole cores")),
                ("pods", 1),
            ]);
            for _ in 0..placed[index] {
                let open = single
                    .iter_mut()
                    .max_by_key(|node| node.free.of("cpu"))
                    .expect("there are nodes");
                open.free.add(&requests, -1);
                *open.pods.entry(place).or_default() += 1;
            }
            said.workloads.push(WorkloadPods {
                unit: unit_key(wish.name),
                object: key(),
                replicas: placed[index],
                requests,
                scheduled: placed[index],
                unschedulable: 0,
            });
        }
        said.nodes = Nodes::grouped(single);
        said
    };
    reports(&[("a", of_cluster(0)), ("b", of_cluster(1))])
}

/// Placed as it is, and asking for just that.
fn had(list: &[(Wish, [u64; 2])]) -> BTreeMap<UnitKey, UnitPlacement> {
    let fleet = wishes(&list.iter().map(|(wish, _)| *wish).collect::<Vec<_>>());
    let asks = schedule(&fleet, &Reports::default(), &BTreeMap::new(), 0).0;
    let unit = |(wish, [a, b]): &(Wish, [u64; 2])| {
        let key = unit_key(wish.name);
        let asks = asks[&key].asks;
        (
            key,
            UnitPlacement {
                asks,
                ..placed(&[("a", *a), ("b", *b)])
            },
        )
    };
    list.iter().map(unit).collect()
}

fn of(found: &Placements, name: &str) -> Vec<u64> {
    shares(&found[&unit_key(name)])
}

fn said(found: &Placements, name: &str) -> Vec<String> {
    let findings = found[&unit_key(name)].findings.iter();
    findings
        .map(|finding| format!("{:?} {}: {}", finding.severity, finding.reason, finding.message))
        .collect()
}

/// As placements are published.
fn published(found: &Placements) -> BTreeMap<UnitKey, UnitPlacement> {
    let unit = |(key, scheduled): (&UnitKey, &Scheduled)| {
        let shares: Vec<_> = scheduled
            .assignments
            .iter()
            .map(|(name, assignment)| {
                (
                    name.as_str(),
                    assignment.replicas.get(&super::key()).copied().unwrap_or_default(),
                )
            })
            .collect();
        let unit = UnitPlacement {
            asks: scheduled.asks,
            unplaced: scheduled.unplaced.clone(),
            ..placed(&shares)
        };
        (key.clone(), unit)
    };
    found.iter().map(unit).collect()
}

#[test]
fn a_higher_priority_takes_what_it_lacks_from_the_lowest_and_both_say_so() {
    let middle = Wish {
        name: "middle",
        priority: 50,
        replicas: 2,
        ..LOW
    };
    let before = [(LOW, [4, 2]), (middle, [0, 2])];
    let known = with_pods(1, 4, &before);
    let fleet = wishes(&[LOW, HIGH, middle]);
    let (found, _) = schedule(&fleet, &known, &had(&before), 0);
    assert_eq!(of(&found, "high").iter().sum::<u64>(), 3);
    assert_eq!(of(&found, "middle"), [0, 2], "the lowest gives first");
    assert_eq!(of(&found, "low").iter().sum::<u64>(), 3);
    assert_eq!(
        found[&unit_key("low")].unplaced[&key()],
        Unplaced { replicas: 3, of: 6 }
    );
    let high = said(&found, "high");
    assert!(
        high[0].starts_with("Info Preempted: Deployment web takes the room of "),
        "{high:?}"
    );
    let low = said(&found, "low");
    let told =
        "Warning Preempted: 3 replicas of Deployment web leave a for team/high, whose priority is 100 and not 10";
    assert!(low.iter().any(|text| text == told), "{low:?}");
    let reasons = |name: &str| found[&unit_key(name)].assignments[&cluster_name("a")].reasons[1].clone();
    assert!(reasons("low").contains("had 4, "), "{}", reasons("low"));
    assert!(
        reasons("low").contains("gave 3 to team/high, whose priority is 100"),
        "{}",
        reasons("low")
    );
    assert!(
        reasons("high").contains("takes the room of 3 of team/low"),
        "{}",
        reasons("high")
    );
}

#[test]
fn what_loses_its_room_goes_where_there_is_some() {
    let before = [(LOW, [4, 0])];
    let mut known = with_pods(1, 4, &before);
    let fleet = |high: Wish| wishes(&[Wish { replicas: 4, ..LOW }, high]);
    // The high one may be on a alone.
    let mut bound = fleet(HIGH);
    let unit = bound.units.get_mut(&unit_key("high")).expect("it is there");
    let mut to = unit.subscription.as_ref().clone();
    to.subscribers[0].cluster_affinity = subscriber(&[("only", "a")], None).cluster_affinity;
    unit.subscription = Arc::new(to);
    bound.clusters.get_mut(&cluster_name("a")).expect("it is there").labels =
        BTreeMap::from([("only".to_owned(), "a".to_owned())]);
    let (found, _) = schedule(&bound, &known, &had(&before), 0);
    assert_eq!((of(&found, "high"), of(&found, "low")), (vec![3], vec![1, 3]));
    assert!(found[&unit_key("low")].unplaced.is_empty());
    // With room for all, nobody gives anything.
    known = with_pods(1, 8, &before);
    let (found, _) = schedule(&fleet(HIGH), &known, &had(&before), 0);
    assert_eq!(
        (of(&found, "low"), found[&unit_key("low")].findings.len()),
        (vec![4, 0], 0)
    );
}

#[test]
fn nothing_is_taken_where_it_makes_no_room() {
    // On each node two pods of one core; the high one asks for four cores on one node of two.
    let before = [(LOW, [4, 2])];
    let known = with_pods(2, 2, &before);
    let large = Wish {
        cpu: "4",
        replicas: 1,
        ..HIGH
    };
    let (found, _) = schedule(&wishes(&[LOW, large]), &known, &had(&before), 0);
    assert_eq!((of(&found, "high"), of(&found, "low")), (vec![0, 0], vec![4, 2]));
    // One of two cores finds room once a whole node is free: pods leave evenly.
    let wide = Wish { cpu: "2", ..large };
    let full = [(LOW, [4, 4])];
    let (found, _) = schedule(
        &wishes(&[Wish { replicas: 8, ..LOW }, wide]),
        &with_pods(2, 2, &full),
        &had(&full),
        0,
    );
    assert_eq!(of(&found, "high").iter().sum::<u64>(), 1);
    let mut low = of(&found, "low");
    low.sort_unstable();
    assert_eq!(low, [1, 4], "and no more than that");
}

#[test]
fn a_minimum_is_never_taken_and_neither_is_what_has_no_lower_priority() {
    let bounded = Wish { least: 3, ..LOW };
    let before = [(bounded, [3, 3])];
    let known = with_pods(1, 3, &before);
    let (found, _) = schedule(&wishes(&[bounded, HIGH]), &known, &had(&before), 0);
    assert_eq!((of(&found, "high"), of(&found, "low")), (vec![0, 0], vec![3, 3]));
    let equal = Wish { priority: 10, ..HIGH };
    let before = [(LOW, [3, 3])];
    let known = with_pods(1, 3, &before);
    let (found, _) = schedule(&wishes(&[LOW, equal]), &known, &had(&before), 0);
    assert_eq!(of(&found, "low"), [3, 3]);
}

#[test]
fn only_a_commit_that_asks_for_more_takes_anything_and_only_where_policy_allows() {
    let before = [(LOW, [3, 3])];
    let known = with_pods(1, 3, &before);
    let fleet = wishes(&[LOW, HIGH]);
    let mut forbidden = fleet.clone();
    forbidden.spec.scheduling.preemption = false;
    let (found, _) = schedule(&forbidden, &known, &had(&before), 0);
    assert_eq!(of(&found, "low"), [3, 3]);
    assert!(
        found[&unit_key("high")].findings[0]
            .hint
            .contains("spec.scheduling.preemption of the Fleet")
    );
    // A unit that waits for room since an older commit goes on waiting, whatever is reported.
    let mut waiting = had(&[(LOW, [3, 3]), (HIGH, [0, 0])]);
    let entry = Unplaced { replicas: 3, of: 3 };
    let high = waiting.get_mut(&unit_key("high")).expect("it is there");
    high.unplaced = BTreeMap::from([(key(), entry)]);
    let (found, _) = schedule(&fleet, &known, &waiting, 0);
    assert_eq!((of(&found, "high"), of(&found, "low")), (vec![0, 0], vec![3, 3]));
    // So does one of an older version, which did not note what was asked for.
    waiting.get_mut(&unit_key("high")).expect("it is there").asks = None;
    let (found, _) = schedule(&fleet, &known, &waiting, 0);
    assert_eq!(of(&found, "low"), [3, 3], "an upgrade takes nothing");
    // Neither does a plan of a revision that was decided on.
    let moves = Moves {
        decided: true,
        ..Moves::default()
    };
    let previous = had(&before);
    let context = Context::new(&fleet, &known, &previous, &moves, 0);
    let unit = &fleet.units[&unit_key("high")];
    let found = schedule_unit(&context, &mut Ledger::default(), &workloads_of(unit), unit);
    assert_eq!(shares(&found), [0, 0]);
}

#[test]
fn until_pods_are_gone_nobody_takes_their_room_back() {
    let before = [(LOW, [3, 3])];
    let known = with_pods(1, 3, &before);
    let fleet = wishes(&[LOW, HIGH]);
    let (first, _) = schedule(&fleet, &known, &had(&before), 0);
    let now = published(&first);
    // The cluster was told, and the pods of the low one are still going: those of the high one find no node.
    let mut told = with_pods(1, 3, &[(LOW, [3, 3]), (HIGH, [0, 0])]);
    for (name, report) in &mut told.clusters {
        let said = Arc::make_mut(&mut report.capacity);
        let share = |unit: &str| {
            first[&unit_key(unit)].assignments[name]
                .replicas
                .get(&key())
                .copied()
                .unwrap_or_default()
        };
        said.workloads[0].replicas = share("low");
        said.workloads[1].replicas = share("high");
    }
    for reports in [&known, &told] {
        let (again, _) = schedule(&fleet, reports, &now, 0);
        assert_eq!(published(&again), now);
    }
    let (again, _) = schedule(&fleet, &told, &now, 0);
    let reasons = again[&unit_key("low")]
        .assignments
        .values()
        .map(|found| found.reasons[1].clone());
    let waits = "no more: team/high, whose priority is 100, is served first";
    assert!(
        reasons.clone().any(|reason| reason.contains(waits)),
        "{:?}",
        reasons.collect::<Vec<_>>()
    );
}

proptest! {
    #[test]
    fn preemption_keeps_totals_and_minimums_and_a_second_plan_changes_nothing(
        cores in 1..9_i64,
        nodes in 1..4_u64,
        placed in (0..9_u64, 0..9_u64, 0..5_u64, 0..5_u64),
        wide in prop::bool::ANY,
        replicas in 1..20_u64,
        least in 0..3_u64,
    ) {
        // What is placed has room.
        let all = nodes * u64::try_from(cores).expect("it is positive");
        let low = [placed.0.min(all), placed.1.min(all)];
        let middle = [placed.2.min(all - low[0]), placed.3.min(all - low[1])];
        let low_wish = Wish { replicas: low.iter().sum(), least, ..LOW };
        let middle_wish = Wish { name: "middle", priority: 50, replicas: middle.iter().sum(), ..LOW };
        let high = Wish { replicas, cpu: if wide { "2" } else { "1" }, ..HIGH };
        let before = [(low_wish, low), (middle_wish, middle)];
        let known = with_pods(nodes, cores, &before);
        let previous = had(&before);
        let list = [low_wish, high, middle_wish];
        let (found, _) = schedule(&wishes(&list), &known, &previous, 0);
        for wish in list {
            let sum: u64 = of(&found, wish.name).iter().sum();
            let unplaced = found[&unit_key(wish.name)].unplaced.get(&key()).map_or(0, |it| it.replicas);
            prop_assert_eq!(sum + unplaced, wish.replicas, "{}", wish.name);
        }
        for (share, had) in of(&found, "low").into_iter().zip(low) {
            prop_assert!(share >= had.min(least), "{} of {}", share, had);
        }
        let (again, _) = schedule(&wishes(&list), &known, &published(&found), 0);
        prop_assert_eq!(published(&again), published(&found));
    }
}
