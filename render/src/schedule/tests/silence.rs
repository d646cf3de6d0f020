//! Clusters that are silent: who loses what. Beside it: who is not moved away from (`budget`), what their return does
//! (`back`), taints that are tolerated for a while (`leaving`), and such as only keep out what is new (`cordoned`).

mod back;
mod budget;
mod cordoned;
mod leaving;

use super::room::{DYNAMIC, everywhere, key};
use super::*;
use crate::fixture::{capacity, deployment, reports};
use crate::model::{Bounds, Choice, Failover, Subscription};
use crate::name::UnitKey;
use crate::plan::{Memo, Plan, Snapshot, deltas, plan, stamp_moves};
use crate::published::{Lost, Published};

const AFTER: i64 = 300;
const RETURN: i64 = 600;
const PER: i64 = 3_600;

/// One unit, and a hub that writes what it decides.
struct World {
    fleet: Fleet,
    reports: Reports,
    published: Arc<Published>,
    memo: Memo,
    now: i64,
    /// Decisions that changed something.
    decisions: u32,
}

fn policy(clusters_max: u64) -> Failover {
    let seconds = |seconds: i64| u64::try_from(seconds).expect("it is positive");
    Failover {
        after_seconds: seconds(AFTER),
        clusters_max,
        per_seconds: seconds(PER),
        return_seconds: seconds(RETURN),
    }
}

impl World {
    /// These clusters, each with room for 20 replicas and heard of since long ago.
    fn new(clusters: &[&str], subscription: Subscription, replicas: u64) -> Self {
        let declared = clusters.iter().map(|name| cluster(name, &[]));
        let mut fleet = fleet(declared, subscription, deployment(replicas, "1"));
        fleet.spec.scheduling.failover = Some(policy(1));
        let rooms: Vec<_> = clusters.iter().map(|name| (*name, capacity(5, 4))).collect();
        let mut world = Self {
            fleet,
            reports: reports(&rooms),
            published: Arc::default(),
            memo: Memo::default(),
            now: 100_000,
            decisions: 0,
        };
        for name in clusters {
            world.heard(name, 0);
        }
        world.commit();
        world
    }

    fn heard(&mut self, name: &str, since: i64) {
        let presence = Presence::HeardSince(since);
        self.reports.presence.insert(cluster_name(name), presence);
        if let Some(report) = self.reports.clusters.get_mut(&cluster_name(name)) {
            report.doubt = None;
        }
    }

    fn silent(&mut self, name: &str, since: i64) {
        let presence = Presence::SilentSince(since);
        self.reports.presence.insert(cluster_name(name), presence);
        if let Some(report) = self.reports.clusters.get_mut(&cluster_name(name)) {
            report.doubt = Some("it is not heard of".to_owned());
        }
    }

    /// As many replicas from now on.
    fn scale(&mut self, replicas: u64) -> Plan {
        let unit = self.fleet.units.values_mut().next().expect("it has a unit");
        unit.base = Arc::new(deployment(replicas, "1"));
        self.commit()
    }

    /// Changes what the unit's Subscription says.
    fn subscribe(&mut self, change: impl FnOnce(&mut Subscription)) {
        let unit = self.fleet.units.values_mut().next().expect("it has a unit");
        change(Arc::make_mut(&mut unit.subscription));
    }

    fn taint(&mut self, name: &str, effect: Option<TaintEffect>) {
        let found = self.fleet.clusters.get_mut(&cluster_name(name)).expect("it is there");
        found.taints = effect
            .map(|effect| tainted(name, &[], effect).taints)
            .unwrap_or_default();
    }

    /// A decision that a source commit asks for.
    fn commit(&mut self) -> Plan {
        self.decide(false)
    }

    /// A decision at a time.
    fn at(&mut self, now: i64) -> Plan {
        self.now = now;
        self.decide(true)
    }

    fn decide(&mut self, unasked: bool) -> Plan {
        let snapshot = Snapshot {
            revision: self.fleet.revision.clone(),
            fleet: Arc::new(self.fleet.clone()),
            reports: self.reports.clone(),
            moves: Moves {
                decided: unasked,
                ..Moves::default()
            },
            chart_previews: Default::default(),
            previous: Arc::clone(&self.published),
            now: self.now,
        };
        let planned = plan(&snapshot, &mut self.memo);
        assert_eq!(
            planned,
            plan(&snapshot, &mut Memo::default()),
            "what is remembered changes nothing"
        );
        assert!(planned.again_at.is_none_or(|at| at > self.now), "{planned:?}");
        let leaves = |units: &BTreeMap<UnitKey, UnitPlacement>| -> Vec<_> {
            let clusters = units.values().flat_map(|unit| &unit.clusters);
            clusters
                .map(|(name, placement)| (name.clone(), placement.leaves_at))
                .collect()
        };
        let changes = !deltas(&self.published.units, &planned.units).is_empty()
            || leaves(&self.published.units) != leaves(&planned.units);
        if changes {
            self.decisions += 1;
            let mut units = planned.units.clone();
            if unasked {
                stamp_moves(&self.published.units, &mut units, self.now);
            }
            self.published = Arc::new(Published { record: None, units });
        }
        planned
    }

    fn unit(&self) -> &UnitPlacement {
        self.published.units.values().next().expect("it is placed")
    }

    fn shares(&self) -> Vec<(&str, u64)> {
        let share = |placement: &Placement| placement.replicas.get(&key()).copied().unwrap_or_default();
        let clusters = self.unit().clusters.iter();
        clusters
            .map(|(name, placement)| (name.as_str(), share(placement)))
            .collect()
    }

    fn lost(&self) -> Vec<&str> {
        self.unit().lost.keys().map(ClusterName::as_str).collect()
    }

    /// Why a cluster has what it has, in today's words.
    fn explained(&self, name: &str) -> String {
        let (placements, _) = schedule(&self.fleet, &self.reports, &self.published.units, self.now);
        let unit = placements.values().next().expect("it is placed");
        unit.assignments[&cluster_name(name)].reasons.join("; ")
    }

    fn reasons(&self, name: &str) -> String {
        self.unit().clusters[&cluster_name(name)].reasons.join("; ")
    }
}

fn reasons_of(plan: &Plan) -> Vec<&str> {
    plan.findings.iter().map(|finding| finding.reason.as_str()).collect()
}

fn tolerating(key: &str, seconds: Option<i64>) -> Toleration {
    Toleration {
        key: key.to_owned(),
        operator: Some("Exists".to_owned()),
        value: String::new(),
        effect: Some(TaintEffect::NoExecute),
        toleration_seconds: seconds,
    }
}

fn choosing(max: u64) -> Subscription {
    let mut subscription = everywhere(Scheduling::Replication);
    subscription.placing.clusters = Choice {
        max: Some(max),
        ..Choice::default()
    };
    subscription
}

#[test]
fn the_others_take_over_what_a_lost_cluster_had_and_say_from_whom() {
    for scheduling in [DYNAMIC, STATIC] {
        let mut world = World::new(&["a", "b", "c"], everywhere(scheduling), 9);
        assert_eq!(world.shares(), [("a", 3), ("b", 3), ("c", 3)]);
        world.silent("c", 100_000);
        let planned = world.at(100_000 + AFTER - 1);
        assert_eq!((world.decisions, planned.again_at), (1, Some(100_000 + AFTER)));
        let planned = world.at(100_000 + AFTER);
        assert_eq!(planned.findings, [], "{scheduling:?}");
        let shares = world.shares();
        let (names, replicas): (Vec<_>, Vec<u64>) = shares.into_iter().unzip();
        assert_eq!((names, replicas.iter().sum::<u64>()), (vec!["a", "b"], 9));
        assert!(replicas.iter().all(|share| *share >= 4), "{replicas:?}");
        let lost = Lost {
            since: 100_000,
            at: 100_300,
            keeps: false,
            returned: false,
        };
        assert_eq!(world.unit().lost, BTreeMap::from([(cluster_name("c"), lost)]));
        assert_eq!(world.unit().moved_at, Some(100_300));
        let said = [world.reasons("a"), world.reasons("b")];
        let of_c = "of c, which is silent since 1970-01-02T03:46:40Z";
        assert!(
            said.iter()
                .all(|text| text.contains("takes over") && text.contains(of_c)),
            "{said:?}"
        );
        let (placements, _) = schedule(&world.fleet, &world.reports, &world.published.units, world.now);
        let left_out = placements.values().flat_map(|unit| &unit.left_out);
        let left_out: Vec<_> = left_out.map(|(name, left_out)| (name.as_str(), left_out.by)).collect();
        assert_eq!(left_out, [("c", ChoiceRule::Failover)], "who asks is told why");
        world.at(200_000);
        assert_eq!(world.decisions, 2, "and that is all");
    }
}

#[test]
fn without_a_policy_nothing_moves_and_weights_are_peoples_word() {
    for scheduling in [DYNAMIC, STATIC] {
        let mut world = World::new(&["a", "b", "c"], everywhere(scheduling), 9);
        world.fleet.spec.scheduling.failover = None;
        world.silent("c", 100_000);
        let planned = world.at(900_000);
        assert_eq!((world.decisions, planned.again_at), (1, None));
        world.scale(18);
        let of_c = world.shares()[2].1;
        assert_eq!(
            of_c,
            if scheduling == STATIC { 6 } else { 3 },
            "no room is known of it by then"
        );
    }
}

#[test]
fn a_unit_that_every_matching_cluster_has_stays_as_it_is() {
    let mut world = World::new(&["a", "b", "c"], everywhere(Scheduling::Replication), 2);
    world.silent("c", 100_000);
    let planned = world.at(900_000);
    assert_eq!((world.decisions, planned.findings), (1, vec![]));
    assert_eq!(world.unit().clusters.len(), 3);
}

#[test]
fn another_cluster_is_chosen_in_place_of_a_lost_one() {
    let mut world = World::new(&["a", "b", "c"], choosing(2), 2);
    let taken: Vec<ClusterName> = world.unit().clusters.keys().cloned().collect();
    world.silent(taken[0].as_str(), 100_000);
    world.at(100_000 + AFTER);
    let now: Vec<&ClusterName> = world.unit().clusters.keys().collect();
    assert!(now.len() == 2 && !now.contains(&&taken[0]), "{now:?}");
    // Once it is back for good it is a candidate, and nothing moves for it.
    world.heard(taken[0].as_str(), 101_000);
    world.at(101_000 + RETURN);
    assert_eq!(world.decisions, 2);
}

#[test]
fn where_no_other_cluster_can_be_chosen_the_copy_stays_and_is_told() {
    let mut world = World::new(&["a", "b"], choosing(2), 2);
    world.silent("a", 100_000);
    let planned = world.at(100_000 + AFTER);
    assert_eq!((world.decisions, reasons_of(&planned)), (1, vec!["NowhereElse"]));
    assert_eq!(
        planned.findings[0].message,
        "the unit stays on cluster a, which is silent since 1970-01-02T03:46:40Z: no other cluster takes it over"
    );
    // With all of them lost likewise.
    let mut world = World::new(&["a"], everywhere(DYNAMIC), 2);
    world.fleet.clusters.insert(cluster_name("z"), cluster("z", &[]));
    world.heard("z", 0);
    world.subscribe(|subscription| subscription.subscribers = vec![subscriber(&[("only", "a")], None)]);
    world.silent("a", 100_000);
    world.at(100_000 + AFTER);
    assert_eq!(world.shares(), [("a", 2)]);
}

#[test]
fn what_finds_no_room_elsewhere_stays_on_the_lost_cluster_in_numbers() {
    let mut world = World::new(&["a", "b"], everywhere(DYNAMIC), 8);
    let a = world.reports.clusters.get_mut(&cluster_name("a")).expect("it reported");
    a.capacity = Arc::new(capacity(1, 6));
    world.silent("b", 100_000);
    let planned = world.at(100_000 + AFTER);
    assert_eq!((world.shares(), world.lost()), (vec![("a", 6), ("b", 2)], vec!["b"]));
    assert_eq!(reasons_of(&planned), ["NowhereElse"]);
    assert_eq!(
        planned.findings[0].message,
        "2 of 4 replicas of Deployment web stay on cluster b, which is silent since 1970-01-02T03:46:40Z: no other \
         cluster takes it over"
    );
    assert!(
        planned.units.values().all(|unit| unit.unplaced.is_empty()),
        "they have a place"
    );
    assert!(!planned.by_room.is_empty(), "and other room decides again");
    let a = world.reports.clusters.get_mut(&cluster_name("a")).expect("it reported");
    a.capacity = Arc::new(capacity(1, 7));
    world.at(101_000);
    assert_eq!(world.shares(), [("a", 7), ("b", 1)]);
    // With fewer wanted, the dead cluster's go first.
    world.scale(7);
    assert_eq!(world.shares(), [("a", 7)]);
}

#[test]
fn where_weights_leave_nobody_the_lost_cluster_keeps_all() {
    let subscribers = vec![
        subscriber(&[("area", "1")], Some(0)),
        subscriber(&[("area", "2")], Some(1)),
    ];
    let mut world = World::new(&["a", "b"], everywhere(STATIC), 4);
    for (name, area) in [("a", "1"), ("b", "2")] {
        world
            .fleet
            .clusters
            .insert(cluster_name(name), cluster(name, &[("area", area)]));
    }
    world.subscribe(|subscription| subscription.subscribers = subscribers);
    world.commit();
    assert_eq!(world.shares(), [("a", 0), ("b", 4)]);
    world.silent("b", 100_000);
    let planned = world.at(100_000 + AFTER);
    assert_eq!(world.shares(), [("a", 0), ("b", 4)]);
    assert!(
        planned.findings.iter().all(|finding| !finding.is_error()),
        "{:?}",
        planned.findings
    );
}
