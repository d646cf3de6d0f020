//! Placing by room: Subscriptions that divide their replicas over clusters which said what nodes they have.
//!
//! A cluster has three kinds of nodes, and every Subscription goes to every cluster. Cold is a plan on nothing placed,
//! with loading and rendering left out: all of it is `render::schedule`. The others are whole plans of a hub that
//! planned before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use render::capacity::{Capacity, NodeGroup, Nodes, Resources};
use render::load::{LoadMemo, load_with};
use render::plan::{Memo, Reports, Snapshot, plan};
use render::schedule::{Report, schedule};
use render::{ClusterName, Fleet, Previous, Published, Revision, SourceTree};

use super::push::resident_mib;
use super::{Figures, percentile};

const REPEATS: usize = 3;
const CHANGES: usize = 11;
/// What was released is counted in every report, as it is seconds after a release.
const COUNTED: u64 = 1;

/// Measures all of it.
pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let square = World::new(1_000, 1_000)?;
    figures.print_ms("cold_1000x1000", square.cold()?)?;
    let mut hub = Hub::new(square)?;
    let mut times = Vec::new();
    for change in 0..CHANGES {
        times.push(hub.report(change * 83)?);
    }
    figures.print_ms("one_report", percentile(&mut times, 0.5).context("it was planned")?)?;
    let mut times = Vec::new();
    for change in 0..CHANGES {
        times.push(hub.subscription(change)?);
    }
    figures.print_ms(
        "one_subscription",
        percentile(&mut times, 0.5).context("it was planned")?,
    )?;
    figures.print("rss_1000x1000", resident_mib(std::process::id())?, "MiB")?;
    drop(hub);
    figures.print_ms("cold_10000x100", World::new(100, 10_000)?.cold()?)
}

/// A fleet and what its clusters said.
struct World {
    files: BTreeMap<String, String>,
    fleet: Arc<Fleet>,
    load: LoadMemo,
    reports: Reports,
    clusters: usize,
}

impl World {
    fn new(units: usize, clusters: usize) -> anyhow::Result<Self> {
        let mut files = BTreeMap::new();
        for cluster in 0..clusters {
            files.insert(format!("clusters/{cluster}.yaml"), cluster_file(cluster));
        }
        for unit in 0..units {
            files.extend(unit_files(unit, clusters));
        }
        let reports = Reports {
            clusters: (0..clusters)
                .map(|cluster| (name(cluster), report(cluster, 0)))
                .collect(),
            sequence: Some(COUNTED),
            ..Reports::default()
        };
        let mut world = Self {
            fleet: Arc::new(load_with(&tree(&files, 0), &Previous::default(), &mut LoadMemo::default()).0),
            files,
            load: LoadMemo::default(),
            reports,
            clusters,
        };
        world.load(0)?;
        Ok(world)
    }

    fn load(&mut self, revision: usize) -> anyhow::Result<()> {
        let (fleet, findings) = load_with(&tree(&self.files, revision), &Previous::default(), &mut self.load);
        let error = findings.iter().find(|finding| finding.is_error());
        ensure!(error.is_none(), "the fleet of a bench has an error: {error:?}");
        self.fleet = Arc::new(fleet);
        Ok(())
    }

    /// The median time of placing everything on nothing.
    fn cold(&self) -> anyhow::Result<Duration> {
        let mut times = Vec::new();
        for _ in 0..REPEATS {
            let started = Instant::now();
            let (placements, _) = schedule(&self.fleet, &self.reports, &BTreeMap::new(), 0);
            times.push(started.elapsed());
            let placed = placements.values().filter(|unit| unit.unplaced.is_empty()).count();
            ensure!(placed == self.fleet.units.len(), "{placed} units are placed whole");
        }
        percentile(&mut times, 0.5).context("it was placed")
    }
}

/// What a hub remembers from one plan to the next.
struct Hub {
    world: World,
    memo: Memo,
    published: Arc<Published>,
    revision: usize,
}

impl Hub {
    fn new(world: World) -> anyhow::Result<Self> {
        let mut hub = Self {
            world,
            memo: Memo::default(),
            published: Arc::default(),
            revision: 0,
        };
        hub.plan()?;
        // What is published is planned on once more, as after a decision.
        hub.plan()?;
        Ok(hub)
    }

    fn plan(&mut self) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let snapshot = Snapshot {
            revision: self.world.fleet.revision.clone(),
            fleet: Arc::clone(&self.world.fleet),
            reports: self.world.reports.clone(),
            moves: Default::default(),
            chart_previews: Default::default(),
            previous: Arc::clone(&self.published),
            now: 0,
        };
        let plan = plan(&snapshot, &mut self.memo);
        let time = started.elapsed();
        ensure!(plan.units.len() == self.world.fleet.units.len(), "every unit is placed");
        self.published = Arc::new(Published {
            record: None,
            units: plan.units,
        });
        Ok(time)
    }

    /// One cluster says something else.
    fn report(&mut self, cluster: usize) -> anyhow::Result<Duration> {
        let cluster = cluster % self.world.clusters;
        self.world.reports.clusters.insert(name(cluster), report(cluster, 1));
        self.plan()
    }

    /// One Subscription comes.
    fn subscription(&mut self, number: usize) -> anyhow::Result<Duration> {
        self.revision += 1;
        let unit = 1_000_000 + number;
        self.world.files.extend(unit_files(unit, self.world.clusters));
        self.world.load(self.revision)?;
        self.plan()
    }
}

fn name(cluster: usize) -> ClusterName {
    ClusterName::parse(format!("c{cluster:05}")).expect("it is a valid name")
}

fn tree(files: &BTreeMap<String, String>, revision: usize) -> SourceTree {
    let revision = Revision::parse(format!("{revision:040x}")).expect("forty hex digits");
    SourceTree::from_files(revision, files.clone())
}

fn cluster_file(cluster: usize) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {{name: {}, labels: {{region: r{}}}}}\n",
        name(cluster),
        cluster % 10
    )
}

/// As many replicas as there are clusters, of one workload.
fn unit_files(unit: usize, clusters: usize) -> [(String, String); 2] {
    let subscription = format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {{name: u{unit}, namespace: team}}
spec:
  schedulingStrategy: Dividing
  dividingScheduling: {{type: Dynamic, dynamicDividing: {{strategy: Spread}}}}
  subscribers: [{{clusterAffinity: {{}}}}]
  feeds: [{{path: 'feeds/{unit}.yaml'}}]
"
    );
    let milli = 100 + unit % 7 * 50;
    let workload = format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: w{unit}, namespace: team}}
spec:
  replicas: {clusters}
  template: {{spec: {{containers: [{{name: a, resources: {{requests: {{cpu: {milli}m, memory: 64Mi}}}}}}]}}}}
"
    );
    [
        (format!("subscriptions/{unit}.yaml"), subscription),
        (format!("feeds/{unit}.yaml"), workload),
    ]
}

/// Three kinds of nodes with room for thousands of replicas.
fn report(cluster: usize, busy: i64) -> Report {
    let group = |count: u64, cores: i64| {
        let all = Resources::from([("cpu", cores * 1_000), ("memory", cores << 33), ("pods", 250)]);
        let mut free = all.clone();
        free.set("cpu", cores * 1_000 - busy);
        NodeGroup {
            count,
            labels: [("zone".to_owned(), format!("z{}", cores % 3))].into(),
            allocatable: all,
            free,
            ..NodeGroup::default()
        }
    };
    let capacity = Capacity {
        version: Capacity::VERSION,
        sequence: Some(COUNTED),
        nodes: Nodes::grouped([group(40, 64), group(20 + cluster as u64 % 5, 32), group(10, 128)]),
        ..Capacity::default()
    };
    Report {
        capacity: Arc::new(capacity),
        at: 0,
        doubt: None,
    }
}
