//! A small fleet of simulated clusters, and what may happen to it.

use proptest::prelude::*;

use crate::capacity::{Capacity, NodeGroup, Nodes, Resources, WorkloadPods};
use crate::fixture::{capacity, deployment};
use crate::model::{self, Failover, SpreadConstraint, Unsatisfiable};
use crate::plan::{Memo, Snapshot, plan, stamp_moves};
use crate::published::Published;
use crate::schedule::tests::room::{DYNAMIC, key};
use crate::schedule::{Presence, Rebalance, Report};

use super::*;

pub(super) const CLUSTERS: [(&str, &str, &str); 4] = [
    ("a", "north", "gold"),
    ("b", "north", "silver"),
    ("c", "south", "gold"),
    ("d", "south", "silver"),
];
pub(super) const UNITS: [&str; 3] = ["x", "y", "z"];
pub(super) const AFTER: i64 = 300;
pub(super) const BINPACK: Scheduling = Scheduling::Dividing(Dividing::Dynamic(model::Strategy::Binpack));

/// How a unit is declared.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) scheduling: Scheduling,
    pub(super) replicas: u64,
    pub(super) bounds: Bounds,
    /// The tier that it goes to; both without.
    pub(super) tier: Option<&'static str>,
    pub(super) clusters_max: Option<u64>,
    pub(super) skew: Option<(u64, bool)>,
    pub(super) priority: i32,
    pub(super) preempts: bool,
    pub(super) compatible: bool,
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Scale(usize, u64),
    Least(usize, Option<u64>),
    Most(usize, Option<u64>),
    Tier(usize, Option<&'static str>),
    Choose(usize, Option<u64>),
    Label(usize, &'static str),
    Taint(usize, Option<TaintEffect>),
    Preemption(bool),
    Rebalance(usize, Rebalance),
    Empty,
    /// A cluster says what it has; so much of it is somebody else's.
    Report(usize, u64),
    Silent(usize),
    Returns(usize),
    Waits(i64),
    Restart,
}

impl Event {
    pub(super) fn is_commit(&self) -> bool {
        !matches!(
            self,
            Self::Report(..) | Self::Silent(_) | Self::Returns(_) | Self::Waits(_) | Self::Restart
        )
    }
}

pub(super) fn wish() -> impl Strategy<Value = Wish> {
    let scheduling =
        prop_oneof![4 => Just(DYNAMIC), 2 => Just(BINPACK), 2 => Just(STATIC), 1 => Just(Scheduling::Replication)];
    let bounds = (
        prop::option::weighted(0.3, 0..4_u64),
        prop::option::weighted(0.3, 4..9_u64),
    );
    let tier = prop::option::weighted(0.3, prop_oneof![Just("gold"), Just("silver")]);
    let clusters_max = prop::option::weighted(0.3, 1..4_u64);
    let skew = prop::option::weighted(0.2, (0..3_u64, any::<bool>()));
    (
        scheduling,
        0..24_u64,
        bounds,
        tier,
        clusters_max,
        skew,
        0..3_i32,
        any::<bool>(),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(scheduling, replicas, (min, max), tier, clusters_max, skew, priority, preempts, compatible)| Wish {
                scheduling,
                replicas,
                bounds: Bounds { min, max },
                tier,
                clusters_max,
                skew,
                priority,
                preempts,
                compatible,
            },
        )
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    let unit = 0..UNITS.len();
    let cluster = 0..CLUSTERS.len();
    let tier = || prop_oneof![Just("gold"), Just("silver")];
    let effect = prop_oneof![Just(TaintEffect::NoSchedule), Just(TaintEffect::NoExecute)];
    prop_oneof![
        4 => (unit.clone(), 0..24_u64).prop_map(|(unit, to)| Event::Scale(unit, to)),
        1 => (unit.clone(), prop::option::of(0..4_u64)).prop_map(|(unit, min)| Event::Least(unit, min)),
        1 => (unit.clone(), prop::option::of(4..9_u64)).prop_map(|(unit, max)| Event::Most(unit, max)),
        1 => (unit.clone(), prop::option::of(tier())).prop_map(|(unit, tier)| Event::Tier(unit, tier)),
        1 => (unit.clone(), prop::option::of(1..4_u64)).prop_map(|(unit, max)| Event::Choose(unit, max)),
        1 => (cluster.clone(), tier()).prop_map(|(cluster, tier)| Event::Label(cluster, tier)),
        2 => (cluster.clone(), prop::option::of(effect)).prop_map(|(cluster, effect)| Event::Taint(cluster, effect)),
        1 => any::<bool>().prop_map(Event::Preemption),
        1 => (unit, prop_oneof![Just(Rebalance::All), Just(Rebalance::Pending)])
            .prop_map(|(unit, what)| Event::Rebalance(unit, what)),
        1 => Just(Event::Empty),
        4 => (cluster.clone(), 0..12_u64).prop_map(|(cluster, foreign)| Event::Report(cluster, foreign)),
        2 => cluster.clone().prop_map(Event::Silent),
        2 => cluster.prop_map(Event::Returns),
        3 => prop_oneof![Just(1), Just(61), Just(AFTER), Just(700)].prop_map(Event::Waits),
        1 => Just(Event::Restart),
    ]
}

/// A cluster of two nodes, and what it was told when it reported last.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) cores: u64,
    pub(super) foreign: u64,
}

pub(super) struct World {
    pub(super) fleet: Fleet,
    pub(super) sites: Vec<Site>,
    pub(super) reports: Reports,
    pub(super) published: Arc<Published>,
    /// What units were released with, by what they asked for.
    pub(super) history: BTreeMap<(UnitKey, Digest), UnitPlacement>,
    pub(super) memo: Memo,
    pub(super) sequence: u64,
    pub(super) now: i64,
    /// When a decision that no commit caused moved a unit last.
    pub(super) moved: BTreeMap<UnitKey, i64>,
}

pub(super) fn unit_key(place: usize) -> UnitKey {
    UnitKey::new("team", UNITS[place]).expect("it is a valid unit")
}

pub(super) fn named(place: usize) -> ClusterName {
    cluster_name(CLUSTERS[place].0)
}

pub(super) fn subscribers(tier: Option<&str>, bounds: Bounds) -> Vec<Subscriber> {
    let pairs: Vec<_> = tier.map(|tier| ("tier", tier)).into_iter().collect();
    let mut subscriber = subscriber(&pairs, None);
    subscriber.replicas = bounds;
    vec![subscriber]
}

impl World {
    pub(super) fn new(wishes: &[Wish], cores: &[u64], failover: bool, preemption: bool) -> Self {
        let clusters = CLUSTERS.map(|(name, zone, tier)| cluster(name, &[("zone", zone), ("tier", tier)]));
        let mut all = fleet(clusters, subscription(DYNAMIC, Vec::new()), Base::empty());
        all.units.clear();
        all.spec.scheduling.preemption = preemption;
        all.spec.scheduling.failover = failover.then_some(Failover {
            after_seconds: 300,
            clusters_max: 1,
            per_seconds: 3_600,
            return_seconds: 600,
        });
        for (place, wish) in wishes.iter().enumerate() {
            let mut to = subscription(wish.scheduling, subscribers(wish.tier, wish.bounds));
            to.key = unit_key(place);
            to.placing.priority = wish.priority;
            to.placing.preempts = wish.preempts;
            to.placing.clusters.max = wish.clusters_max;
            if wish.compatible {
                to.placing.policy = model::SchedulingPolicy::Clusternet;
                to.subscribers = subscribers(wish.tier, Bounds::default());
            }
            to.placing.clusters.spread = wish
                .skew
                .map(|(max, hard)| SpreadConstraint {
                    topology_key: "zone".to_owned(),
                    min_groups: None,
                    max_groups: None,
                    max_skew: Some(max),
                    when_unsatisfiable: if hard {
                        Unsatisfiable::DoNotSchedule
                    } else {
                        Unsatisfiable::ScheduleAnyway
                    },
                })
                .into_iter()
                .collect();
            all.units
                .extend(fleet(Vec::new(), to, deployment(wish.replicas, "1")).units);
        }
        let mut world = Self {
            fleet: all,
            sites: cores
                .iter()
                .map(|cores| Site {
                    cores: *cores,
                    foreign: 0,
                })
                .collect(),
            reports: Reports {
                sequence: Some(0),
                ..Reports::default()
            },
            published: Arc::default(),
            history: BTreeMap::new(),
            memo: Memo::default(),
            sequence: 0,
            now: 100_000,
            moved: BTreeMap::new(),
        };
        for place in 0..CLUSTERS.len() {
            world.heard(place, 0);
            world.report(place);
        }
        world
    }

    pub(super) fn is_silent(&self, place: usize) -> bool {
        matches!(self.reports.presence[&named(place)], Presence::SilentSince(_))
    }

    pub(super) fn heard(&mut self, place: usize, since: i64) {
        self.reports.presence.insert(named(place), Presence::HeardSince(since));
    }

    /// What a cluster says, with what it is told by now: pods of others first, then those of the units on the node
    /// that has most left.
    pub(super) fn report(&mut self, place: usize) {
        let Site { cores, foreign } = self.sites[place];
        let mut said: Capacity = capacity(1, 0);
        let one = said.nodes.0[0].clone();
        let mut nodes: Vec<NodeGroup> = [cores - cores / 2, cores / 2]
            .map(|cores| {
                let all = one
                    .allocatable
                    .clone()
                    .with("cpu", i64::try_from(cores * 1_000).expect("it is small"));
                NodeGroup {
                    count: 1,
                    allocatable: all.clone(),
                    free: all,
                    ..NodeGroup::default()
                }
            })
            .into();
        let requests = Resources::from([("cpu", 1_000), ("pods", 1)]);
        let mut put = |workload: Option<usize>| {
            let open = nodes
                .iter_mut()
                .max_by_key(|node| node.free.of("cpu"))
                .expect("there are two");
            let fits = open.free.of("cpu") >= 1_000;
            if fits {
                open.free.add(&requests, -1);
                if let Some(workload) = workload {
                    *open.pods.entry(workload).or_default() += 1;
                }
            }
            fits
        };
        for _ in 0..foreign {
            put(None);
        }
        let mut workloads = Vec::new();
        for (unit, placement) in &self.published.units {
            let Some(placement) = placement.clusters.get(&named(place)) else {
                continue;
            };
            let replicas = placement
                .replicas
                .get(&key())
                .copied()
                .unwrap_or_else(|| self.desired(unit));
            let index = workloads.len();
            let scheduled = (0..replicas).filter(|_| put(Some(index))).count() as u64;
            workloads.push(WorkloadPods {
                unit: unit.clone(),
                object: key(),
                replicas,
                requests: requests.clone(),
                scheduled,
                unschedulable: replicas - scheduled,
            });
        }
        said.nodes = Nodes::grouped(nodes);
        said.workloads = workloads;
        said.sequence = Some(self.sequence);
        said.check().expect("it can be believed");
        let report = Report {
            capacity: Arc::new(said),
            at: self.now,
            doubt: None,
        };
        self.reports.clusters.insert(named(place), report);
    }

    pub(super) fn desired(&self, unit: &UnitKey) -> u64 {
        let value = &self.fleet.units[unit].base.objects.first().expect("it has one").value;
        value
            .pointer("/spec/replicas")
            .and_then(Value::as_u64)
            .expect("it has replicas")
    }

    pub(super) fn change(&mut self, place: usize, change: impl FnOnce(&mut model::Subscription)) {
        let unit = self.fleet.units.get_mut(&unit_key(place)).expect("it is there");
        change(Arc::make_mut(&mut unit.subscription));
    }

    /// Takes in what happens, and gives the word that a commit has.
    pub(super) fn take(&mut self, event: &Event) -> Moves {
        let mut moves = Moves::default();
        match *event {
            Event::Scale(place, replicas) => {
                let unit = self.fleet.units.get_mut(&unit_key(place)).expect("it is there");
                unit.base = Arc::new(deployment(replicas, "1"));
            }
            Event::Least(place, min) => self.change(place, |to| {
                if to.placing.policy == model::SchedulingPolicy::Flotilla {
                    to.subscribers[0].replicas.min = min;
                }
            }),
            Event::Most(place, max) => self.change(place, |to| {
                if to.placing.policy == model::SchedulingPolicy::Flotilla {
                    to.subscribers[0].replicas.max = max;
                }
            }),
            Event::Tier(place, tier) => self.change(place, |to| {
                to.subscribers = subscribers(tier, to.subscribers[0].replicas);
            }),
            Event::Choose(place, max) => self.change(place, |to| to.placing.clusters.max = max),
            Event::Label(place, tier) => {
                let found = self.fleet.clusters.get_mut(&named(place)).expect("it is there");
                found.labels.insert("tier".to_owned(), tier.to_owned());
            }
            Event::Taint(place, effect) => {
                let found = self.fleet.clusters.get_mut(&named(place)).expect("it is there");
                found.taints = effect
                    .map(|effect| tainted("a", &[], effect).taints)
                    .unwrap_or_default();
            }
            Event::Preemption(allowed) => self.fleet.spec.scheduling.preemption = allowed,
            Event::Rebalance(place, what) => {
                moves.rebalance.insert(unit_key(place), what);
            }
            Event::Report(place, foreign) => {
                self.sites[place].foreign = foreign;
                if !self.is_silent(place) {
                    self.report(place);
                }
            }
            Event::Silent(place) => {
                if !self.is_silent(place) {
                    self.reports
                        .presence
                        .insert(named(place), Presence::SilentSince(self.now));
                    let report = self.reports.clusters.get_mut(&named(place)).expect("it reported");
                    report.doubt = Some("it is not heard of".to_owned());
                }
            }
            Event::Returns(place) => {
                if self.is_silent(place) {
                    self.heard(place, self.now);
                    self.report(place);
                }
            }
            Event::Waits(seconds) => self.now += seconds,
            Event::Restart => self.memo = Memo::default(),
            Event::Empty => {}
        }
        moves
    }

    pub(super) fn snapshot(&self, moves: Moves) -> Snapshot {
        Snapshot {
            revision: self.fleet.revision.clone(),
            fleet: Arc::new(self.fleet.clone()),
            reports: self.reports.clone(),
            moves,
            chart_previews: Default::default(),
            previous: Arc::clone(&self.published),
            now: self.now,
        }
    }

    /// Plans as the hub does: once more where it remembers a placement.
    pub(super) fn plan(&mut self, mut moves: Moves) -> Plan {
        let mut found = self.planned(&moves);
        let remembered = found.recalls.iter().filter_map(|(unit, asks)| {
            let before = self.history.get(&(unit.clone(), *asks))?;
            Some((unit.clone(), before.clone()))
        });
        moves.remembered = remembered.collect();
        if !moves.remembered.is_empty() {
            found = self.planned(&moves);
        }
        found
    }

    pub(super) fn planned(&mut self, moves: &Moves) -> Plan {
        let snapshot = self.snapshot(moves.clone());
        let mut memo = std::mem::take(&mut self.memo);
        let found = plan(&snapshot, &mut memo);
        self.memo = memo;
        assert!(
            found == plan(&snapshot, &mut Memo::default()),
            "what is remembered changes nothing"
        );
        let mut turned = snapshot;
        for report in turned.reports.clusters.values_mut() {
            let nodes = &mut Arc::make_mut(&mut report.capacity).nodes;
            *nodes = Nodes::grouped(nodes.0.drain(..).rev());
        }
        assert!(found == plan(&turned, &mut Memo::default()), "nodes have no order");
        found
    }

    pub(super) fn publish(&mut self, found: &Plan, unasked: bool) {
        let mut units = found.units.clone();
        if unasked {
            stamp_moves(&self.published.units, &mut units, self.now);
        }
        if self.published.units == units {
            return;
        }
        for (unit, placement) in &units {
            if let Some(asks) = placement.asks {
                self.history.insert((unit.clone(), asks), placement.clone());
            }
        }
        self.published = Arc::new(Published { record: None, units });
        self.sequence += 1;
        self.reports.sequence = Some(self.sequence);
    }
}
