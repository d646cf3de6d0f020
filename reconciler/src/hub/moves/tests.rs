//! With a real repository: what a hub plans and writes, one commit of source after the other.

use std::sync::Arc;

use render::Published;
use render::capacity::{Capacity, NodeGroup, Nodes, Resources};
use render::published::{Cause, RENDER_VERSION, ReleaseRecord};
use render::schedule::{Report, Reports};

use super::*;
use crate::hub::engine::{Event, Planned, StateCommit, Write};
use crate::hub::keeper::Keeper;
use crate::hub::planner::{Known, Planner};
use crate::hub::publish::{Author, StateRefs, StateRepository};
use crate::hub::repository::fixture::Fixture;

/// A hub without clusters, over a repository with a unit that is divided by the room of two.
struct Hub {
    fixture: Fixture,
    planner: Planner,
    keeper: Arc<Keeper>,
    rendered: Option<StateCommit>,
    released: Option<StateCommit>,
    rebalanced: BTreeMap<UnitKey, Revision>,
}

const GROUP: &str = "fleet.flotilla.dev/v1alpha1";

impl Hub {
    fn new() -> Self {
        let fixture = Fixture::new();
        fixture.write(
            "fleet.yaml",
            format!("apiVersion: {GROUP}\nkind: Fleet\nmetadata: {{name: fleet}}\n"),
        );
        for name in ["a", "b"] {
            fixture.write(
                &format!("clusters/{name}.yaml"),
                format!("apiVersion: {GROUP}\nkind: ManagedCluster\nmetadata: {{name: {name}}}\n"),
            );
        }
        fixture.write(
            "subscriptions/shop/web.yaml",
            format!(
                "apiVersion: {GROUP}\nkind: Subscription\nmetadata: {{namespace: shop, name: web}}\nspec:\n  schedulingStrategy: Dividing\n  dividingScheduling: {{type: Dynamic, dynamicDividing: {{strategy: Spread}}}}\n  subscribers:\n    - clusterAffinity: {{}}\n  feeds:\n    - path: feeds/**\n"
            ),
        );
        replicas(&fixture, 4);
        fixture.commit("four");
        let source = Arc::new(Source::open(fixture.path(), "main").expect("it opens"));
        let state = StateRepository::open(fixture.path(), StateRefs::default(), Author::default(), &source);
        let keeper = Arc::new(Keeper::new(state.expect("it opens")));
        Self {
            planner: Planner::new(source, Some(Arc::clone(&keeper))),
            keeper,
            fixture,
            rendered: None,
            released: None,
            rebalanced: BTreeMap::new(),
        }
    }

    fn scale(&self, to: u64, message: &str) {
        replicas(&self.fixture, to);
        self.fixture.commit(message);
    }

    /// Plans the head with so many cores in each cluster.
    fn plan(&self, cores: [i64; 2]) -> Planned {
        let head = Revision::parse(self.fixture.head()).expect("git prints a commit");
        let known = Known {
            base: self.rendered.as_ref().map(|rendered| rendered.commit.clone()),
            previous: self
                .rendered
                .as_ref()
                .map(|rendered| Arc::clone(&rendered.published))
                .unwrap_or_default(),
            reports: reports(cores),
            rebalanced: self.rebalanced.clone(),
            ..Known::default()
        };
        self.planner.plan(&head, known).expect("it is readable")
    }

    /// As [`Self::plan`], and writes and releases what was planned.
    fn decide(&mut self, cores: [i64; 2]) -> Vec<u64> {
        let planned = self.plan(cores);
        let record = |sequence| ReleaseRecord {
            cause: Cause::SourceCommit,
            source: planned.fleet.revision.clone(),
            sequence,
            rendered: None,
            departed: BTreeMap::new(),
            orphaned: BTreeMap::new(),
            render_version: RENDER_VERSION,
        };
        let next = |sequence| Published {
            record: Some(record(sequence)),
            units: planned.plan.units.clone(),
        };
        let at = |commit: &Option<StateCommit>| commit.as_ref().map(|commit| commit.commit.clone());
        let rendered = Write::Rendered {
            parent: at(&self.rendered),
            next: next(None),
            contents: planned.plan.contents.clone(),
        };
        let Event::RenderedWritten(rendered) = self.keeper.write(rendered, 0) else {
            panic!("it is written");
        };
        self.rendered = Some(rendered);
        let released = Write::Released {
            parent: at(&self.released),
            next: next(Some(1)),
        };
        let Event::ReleasedWritten(released) = self.keeper.write(released, 0) else {
            panic!("it is written");
        };
        self.released = Some(released);
        shares(&planned)
    }
}

fn replicas(fixture: &Fixture, count: u64) {
    let pods = "{metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web, resources: {requests: {cpu: '1'}}}]}}";
    fixture.write(
        "feeds/web.yaml",
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec: {{replicas: {count}, selector: {{matchLabels: {{app: web}}}}, template: {pods}}}\n"
        ),
    );
}

fn reports(cores: [i64; 2]) -> Reports {
    let mut reports = Reports::default();
    for (name, cores) in ["a", "b"].into_iter().zip(cores) {
        let all = Resources::from([("cpu", cores * 1_000), ("pods", 110)]);
        let group = NodeGroup {
            count: 1,
            allocatable: all.clone(),
            free: all,
            ..NodeGroup::default()
        };
        let capacity = Capacity {
            version: Capacity::VERSION,
            nodes: Nodes(vec![group]),
            ..Capacity::default()
        };
        let report = Report {
            capacity: Arc::new(capacity),
            at: 0,
            doubt: None,
        };
        let name = render::ClusterName::parse(name).expect("a valid cluster");
        reports.clusters.insert(name, report);
    }
    reports
}

fn web() -> UnitKey {
    "shop/web".parse().expect("a valid unit")
}

fn shares(planned: &Planned) -> Vec<u64> {
    let unit = planned.plan.units.get(&web());
    let unit = unit.unwrap_or_else(|| panic!("it is placed: {:?}", planned.findings));
    unit.clusters
        .values()
        .map(|placement| placement.replicas.values().sum())
        .collect()
}

#[test]
fn a_revert_restores_exactly_the_shares_that_were() {
    let mut hub = Hub::new();
    let first = hub.decide([1, 3]);
    assert_eq!(first, [1, 3]);
    hub.scale(8, "eight");
    assert_eq!(hub.decide([9, 0]), [5, 3]);
    hub.fixture.git(&["revert", "--no-edit", "HEAD"]);
    let planned = hub.plan([9, 9]);
    let reasons = &planned.plan.units[&web()]
        .clusters
        .values()
        .next()
        .expect("it has one")
        .reasons;
    assert!(reasons[1].contains(", as it was at "), "{reasons:?}");
    assert_eq!(hub.decide([9, 9]), first);
    assert!(hub.plan([9, 9]).plan.recalls.is_empty(), "nothing more is looked for");
    // What was released since is no reason to forget it.
    hub.scale(8, "eight again");
    assert_eq!(hub.decide([9, 9]), [5, 3], "that was placed before as well");
}

#[test]
fn a_commit_may_have_units_placed_by_todays_room() {
    let mut hub = Hub::new();
    hub.decide([1, 3]);
    hub.scale(8, "eight");
    hub.decide([9, 0]);
    hub.scale(4, "four again\n\nReschedule: false");
    assert_eq!(shares(&hub.plan([9, 9])), [1, 3]);
    let findings = hub.plan([9, 9]).findings;
    assert!(
        findings.iter().all(|finding| finding.reason != "RescheduleUnclear"),
        "{findings:?}"
    );
    hub.scale(4, "four, in other words\n\nReschedule: yes");
    let planned = hub.plan([9, 9]);
    assert_eq!(shares(&planned), [1, 3]);
    let unclear = planned
        .findings
        .iter()
        .find(|finding| finding.reason == "RescheduleUnclear");
    let said = unclear.map(|finding| finding.message.as_str()).unwrap_or_default();
    assert!(
        said.contains("Reschedule: yes, which is neither true nor false"),
        "{said}"
    );
    hub.scale(4, "by what there is now\n\nReschedule: true");
    assert_eq!(shares(&hub.plan([9, 9])), [2, 2], "of 5 and 3, each loses its part");
}

#[test]
fn an_older_placement_is_found_behind_others_of_the_same_wish() {
    let mut hub = Hub::new();
    hub.decide([1, 3]);
    for count in [5, 6, 7] {
        hub.scale(count, "more");
        hub.decide([9, 0]);
    }
    hub.scale(4, "four again");
    let planned = hub.plan([9, 9]);
    assert_eq!(shares(&planned), [1, 3]);
    assert_eq!(shares(&hub.plan([9, 9])), [1, 3], "asked again, it is the same");
    // A wish that nobody had before is looked for once, and then in new commits alone.
    hub.scale(2, "two");
    let wanted = hub.plan([9, 9]).plan.recalls;
    let repository = hub.keeper.repository();
    assert_eq!(wanted.len(), 1);
    for _ in 0..2 {
        assert!(repository.remembered(&wanted).expect("readable").is_empty());
    }
    hub.decide([9, 9]);
    let found = hub.keeper.repository().remembered(&wanted).expect("readable");
    assert!(found.contains_key(&web()), "what was released since is found");
}

#[test]
fn a_history_that_cannot_be_read_is_told_and_holds_nothing_back() {
    let mut hub = Hub::new();
    hub.decide([1, 3]);
    let lost = hub.released.as_ref().expect("released").commit.clone();
    hub.scale(8, "eight");
    hub.decide([9, 0]);
    hub.scale(4, "four again");
    hub.fixture.lose(lost.as_str());
    let planned = hub.plan([9, 9]);
    assert_eq!(shares(&planned), [2, 2]);
    let found = planned
        .findings
        .iter()
        .find(|finding| finding.reason == "HistoryUnreadable");
    assert!(
        found.is_some_and(|found| found.message.contains("shop/web")),
        "{:?}",
        planned.findings
    );
}

#[test]
fn a_word_in_a_commit_places_a_unit_anew_and_counts_once() {
    let mut hub = Hub::new();
    hub.decide([1, 3]);
    assert_eq!(shares(&hub.plan([9, 9])), [1, 3], "a report alone moves nothing");
    hub.fixture
        .commit("spread it\n\nRebalance: shop/web\nRebalance: shop/gone");
    let planned = hub.plan([9, 9]);
    assert_eq!(planned.plan.rebalanced, BTreeSet::from([web()]));
    assert_ne!(shares(&planned), [1, 3]);
    let found = planned
        .findings
        .iter()
        .find(|finding| finding.reason == "RebalanceOfNothing");
    assert!(found.is_some_and(|found| found.message.contains("shop/gone, which names no unit")));
    let moved = hub.decide([9, 9]);
    assert_eq!(shares(&hub.plan([9, 1])), moved, "it was decided, and is over");
    // A word that moved nothing is over as well, for the units that it was about.
    hub.fixture.commit("and again\n\nRebalance: shop/*");
    let head = Revision::parse(hub.fixture.head()).expect("git prints a commit");
    assert_eq!(shares(&hub.plan([9, 9])), moved);
    hub.rebalanced.insert(web(), head);
    assert_eq!(shares(&hub.plan([9, 1])), moved);
    hub.fixture.commit("but this counts\n\nRebalance: shop/web");
    assert_ne!(shares(&hub.plan([9, 1])), moved);
}
