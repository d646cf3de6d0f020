//! Replicas by the room that clusters have.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::capacity::{Capacity, NodeGroup, Nodes, Resources, WorkloadPods};
use render::model::{Dividing, Predictor, Scheduling, SchedulingPolicy, Strategy};
use render::plan::Reports;
use render::predictor::{Outcome, Predicted, Question};
use render::published::{Placement, UnitPlacement};
use render::schedule::{Assignment, Report, schedule, workloads_of};
use render::{ClusterName, Digest, Fleet, ObjectKey, VariantName};
use serde_json::{Value, json};

use super::fleet::{cluster, everything, fleet, list, object, subscription, text};

/// As many pods as no cluster here has.
const PODS: i64 = 1 << 40;

/// A feed, with a place in each list for each cluster.
struct Feed {
    /// As upstream writes it, `apps/v1/Deployment/default/name`.
    name: String,
    /// `None` for one that has no replicas.
    wanted: Option<u64>,
    had: Vec<u64>,
    /// For so many more there is room; `None` where nobody knows.
    room: Vec<Option<u64>>,
}

impl Feed {
    fn key(&self) -> ObjectKey {
        render::describe::key_of(&self.value(0)).expect("the feed has apiVersion, kind and name")
    }

    /// The object. Each feed asks for a resource of its own, so that they take no room from one another.
    fn value(&self, index: usize) -> Value {
        let mut parts: Vec<&str> = self.name.split('/').collect();
        let (name, namespace, kind) = (parts.pop(), parts.pop(), parts.pop());
        let mut value = json!({
            "apiVersion": parts.join("/"), "kind": kind, "metadata": { "name": name, "namespace": namespace },
        });
        if let Some(wanted) = self.wanted {
            let requests = json!({ resource(index): "1" });
            value["spec"] = json!({
                "replicas": wanted,
                "template": { "spec": { "containers": [{ "name": "app", "resources": { "requests": requests } }] } },
            });
        }
        value
    }
}

fn resource(index: usize) -> String {
    format!("vectors.example.com/feed-{index}")
}

/// A unit of these feeds, which is placed already.
struct Case {
    policy: SchedulingPolicy,
    clusters: Vec<String>,
    feeds: Vec<Feed>,
}

impl Case {
    fn fleet(&self) -> Fleet {
        let clusters = self.clusters.iter().map(|name| cluster(name, BTreeMap::new()));
        let scheduling = Scheduling::Dividing(Dividing::Dynamic(Strategy::Spread));
        let mut unit = subscription(scheduling, vec![everything()]);
        unit.placing.policy = self.policy;
        let objects = self.feeds.iter().enumerate();
        let objects = objects.map(|(index, feed)| object(feed.value(index)));
        fleet(clusters.collect(), unit, objects.collect())
    }

    /// What a cluster says of its room, with the pods that it has; `None` where nobody knows.
    fn report(&self, fleet: &Fleet, place: usize) -> Option<Report> {
        let mut counted: Vec<WorkloadPods> = self
            .divided()
            .map(|(index, feed)| WorkloadPods {
                unit: fleet.units.keys().next().expect("the fleet has a unit").clone(),
                object: feed.key(),
                replicas: feed.had[place],
                requests: Resources::from([(resource(index).as_str(), 1), ("pods", 1)]),
                scheduled: feed.had[place],
                unschedulable: 0,
            })
            .collect();
        counted.sort();
        let mut node = NodeGroup {
            count: 1,
            free: Resources::from([("pods", PODS)]),
            ..NodeGroup::default()
        };
        for (index, feed) in self.divided() {
            node.free.set(
                &resource(index),
                i64::try_from(feed.room[place]?).expect("it is no large number"),
            );
        }
        node.allocatable = node.free.clone();
        for (number, pods) in counted.iter().enumerate().filter(|(_, pods)| pods.replicas > 0) {
            node.pods.insert(number, pods.replicas);
            node.allocatable.add(
                &pods.requests,
                i64::try_from(pods.replicas).expect("it is no large number"),
            );
        }
        Some(Report {
            capacity: Arc::new(Capacity {
                version: Capacity::VERSION,
                nodes: Nodes(vec![node]),
                workloads: counted,
                ..Capacity::default()
            }),
            at: 0,
            doubt: None,
        })
    }

    fn divided(&self) -> impl Iterator<Item = (usize, &Feed)> {
        self.feeds.iter().enumerate().filter(|(_, feed)| feed.wanted.is_some())
    }

    fn reports(&self, fleet: &Fleet) -> Reports {
        let known = self.clusters.iter().enumerate();
        let known = known.filter_map(|(place, name)| Some((named(name), self.report(fleet, place)?)));
        Reports {
            clusters: known.collect(),
            ..Reports::default()
        }
    }

    fn before(&self) -> UnitPlacement {
        let placement = |place: usize| Placement {
            variant: VariantName::default_variant(),
            replicas: self.divided().map(|(_, feed)| (feed.key(), feed.had[place])).collect(),
            drift: Default::default(),
            revision: render::Revision::parse("0".repeat(40)).expect("it is a valid revision"),
            reasons: Default::default(),
            inputs: Digest::of_bytes(b""),
            capacity: None,
            leaves_at: None,
        };
        let is_placed = |place: &usize| self.divided().any(|(_, feed)| feed.had[*place] > 0);
        let placed = (0..self.clusters.len()).filter(is_placed);
        UnitPlacement {
            clusters: placed
                .map(|place| (named(&self.clusters[place]), placement(place)))
                .collect(),
            ..UnitPlacement::default()
        }
    }

    fn assignments(&self, fleet: &Fleet, reports: &Reports) -> BTreeMap<ClusterName, Assignment> {
        let previous = fleet.units.keys().map(|unit| (unit.clone(), self.before())).collect();
        let (placements, _) = schedule(fleet, reports, &previous, 0);
        placements.into_values().next().unwrap_or_default().assignments
    }

    /// Clusters, and each feed's replicas on them, as a status of upstream says it.
    fn status(&self) -> Value {
        let fleet = self.fleet();
        let placed = self.assignments(&fleet, &self.reports(&fleet));
        let of = |feed: &Feed| -> Vec<u64> {
            let key = feed.key();
            placed
                .values()
                .filter_map(|assignment| assignment.replicas.get(&key).copied())
                .collect()
        };
        let replicas = self.feeds.iter().map(|feed| (feed.name.clone(), json!(of(feed))));
        json!({
            "bindingClusters": placed.keys().collect::<Vec<_>>(),
            "replicas": replicas.collect::<serde_json::Map<_, _>>(),
        })
    }
}

fn named(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("the vector's cluster has a valid name")
}

fn numbers(given: &Value) -> Vec<u64> {
    list(given).iter().filter_map(Value::as_u64).collect()
}

/// One feed's change, from nothing or from what is there.
pub(super) fn dynamic_divide(input: &Value, policy: SchedulingPolicy) -> Value {
    let deviation = input["deviation"].as_i64().expect("a deviation is a number");
    let counted = numbers(&input["max_available_or_current"]);
    let nothing = vec![0; counted.len()];
    let (had, room) = match deviation {
        0.. => (nothing, counted),
        _ => (counted, nothing),
    };
    let feed = Feed {
        name: "apps/v1/Deployment/default/app".to_owned(),
        wanted: had.iter().sum::<u64>().checked_add_signed(deviation),
        room: room.into_iter().map(Some).collect(),
        had: had.clone(),
    };
    let clusters = (0..had.len()).map(|place| format!("c{place:03}")).collect();
    let case = Case {
        policy,
        clusters,
        feeds: vec![feed],
    };
    let status = case.status();
    let now = numbers(&status["replicas"]["apps/v1/Deployment/default/app"]);
    let change = |(now, had): (u64, u64)| i128::from(now) - i128::from(had);
    let delta: Vec<_> = now.into_iter().zip(had).map(change).collect();
    json!({ "delta": delta })
}

/// A list's number for a cluster; 0 where the list ends before it.
fn number_for(status: &Value, feed: &str, cluster: &str, field: &str) -> Option<u64> {
    let place = list(&status["bindingClusters"])
        .iter()
        .position(|name| text(name) == cluster)?;
    Some(
        status[field][feed]
            .get(place)
            .and_then(Value::as_u64)
            .unwrap_or_default(),
    )
}

/// All clusters that either names.
fn clusters_of(first: &Value, second: &Value) -> Vec<String> {
    let names = [first, second]
        .into_iter()
        .flat_map(|status| list(&status["bindingClusters"]));
    let names: std::collections::BTreeSet<String> = names.map(text).collect();
    names.into_iter().collect()
}

pub(super) fn dynamic_assign(input: &Value, policy: SchedulingPolicy) -> Value {
    let (status, predicted) = (&input["status"], &input["predicted"]);
    let clusters = clusters_of(status, predicted);
    let desired = input["desired"].as_object().expect("feeds have wanted numbers");
    let feeds = desired.iter().map(|(name, wanted)| Feed {
        name: name.clone(),
        wanted: wanted.as_u64(),
        had: clusters
            .iter()
            .map(|cluster| number_for(status, name, cluster, "replicas").unwrap_or_default())
            .collect(),
        room: clusters
            .iter()
            .map(|cluster| number_for(predicted, name, cluster, "maxAvailable"))
            .collect(),
    });
    let feeds = feeds.collect();
    Case {
        policy,
        clusters,
        feeds,
    }
    .status()
}

/// What is added is the room that there is, and all of it is wanted.
pub(super) fn merge_targets(input: &Value, policy: SchedulingPolicy) -> Value {
    let (current, add) = (&input["current"], &input["add"]);
    let clusters = clusters_of(current, add);
    let names = [current, add]
        .into_iter()
        .filter_map(|status| status["replicas"].as_object());
    let names: std::collections::BTreeSet<&String> = names.flat_map(|feeds| feeds.keys()).collect();
    let feed = |name: &&String| {
        let of = |status: &Value| -> Vec<u64> {
            let number = |cluster: &String| number_for(status, name, cluster, "replicas").unwrap_or_default();
            clusters.iter().map(number).collect()
        };
        let (had, room) = (of(current), of(add));
        let wanted = had.iter().chain(&room).sum::<u64>();
        Feed {
            name: format!(
                "{}/default/{name}",
                if wanted > 0 { "apps/v1/Deployment" } else { "v1/Service" }
            ),
            wanted: (wanted > 0).then_some(wanted),
            had,
            room: room.into_iter().map(Some).collect(),
        }
    };
    let feeds = names.iter().map(feed).collect();
    let mut status = Case {
        policy,
        clusters,
        feeds,
    }
    .status();
    let full = status["replicas"].as_object().cloned().unwrap_or_default();
    let short = full.into_iter().map(|(name, replicas)| {
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        (name, replicas)
    });
    status["replicas"] = short.collect::<serde_json::Map<_, _>>().into();
    status
}

/// Upstream's outcome in the order of the clusters' names, in which it writes it in the end.
pub(super) fn by_name(expected: &Value) -> Value {
    let clusters = clusters_of(expected, &Value::Null);
    let feeds = expected["replicas"].as_object().into_iter().flatten();
    let sorted = feeds.map(|(name, replicas)| {
        let numbers = clusters
            .iter()
            .filter_map(|cluster| number_for(expected, name, cluster, "replicas"));
        let numbers = numbers.filter(|_| !list(replicas).is_empty());
        (name.clone(), json!(numbers.collect::<Vec<_>>()))
    });
    json!({ "replicas": sorted.collect::<serde_json::Map<_, _>>(), "bindingClusters": clusters })
}

/// The one is what clusters report, the other what their predictors say; each may know nothing, or not be there.
pub(super) fn predict_merge(input: &Value, policy: SchedulingPolicy) -> Value {
    let (reported, predicted) = (list(&input["plugin_a"]), list(&input["plugin_b"]));
    let count = reported.len().max(predicted.len());
    let feed = Feed {
        name: "apps/v1/Deployment/default/app".to_owned(),
        wanted: Some(1_000),
        had: vec![0; count],
        room: (0..count)
            .map(|place| reported.get(place).and_then(Value::as_u64))
            .collect(),
    };
    let case = Case {
        policy,
        clusters: (0..count).map(|place| format!("c{place:03}")).collect(),
        feeds: vec![feed],
    };
    let mut fleet = case.fleet();
    let mut reports = case.reports(&fleet);
    let key = case.feeds[0].key();
    let unit = fleet.units.values().next().expect("the fleet has a unit");
    let requirements = workloads_of(unit)[&key].requirements.clone();
    for (place, name) in case.clusters.iter().enumerate() {
        if reported.get(place).is_some_and(Value::is_null) {
            let doubt = Report {
                capacity: Arc::default(),
                at: 0,
                doubt: Some("its report is old".to_owned()),
            };
            reports.clusters.insert(named(name), doubt);
        }
        let Some(said) = predicted.get(place) else { continue };
        let cluster = fleet.clusters.get_mut(&named(name)).expect("it is in the fleet");
        cluster.predictor = Some(Predictor {
            url: "https://predictor.example.com".to_owned(),
            timeout_seconds: 20,
        });
        let question = Question::about(cluster, &requirements).expect("it has a predictor");
        let outcome = match said.as_u64() {
            Some(replicas) => Outcome::Replicas(replicas),
            None => Outcome::Trouble("it does not know".to_owned()),
        };
        let answers = reports.predicted.entry(named(name)).or_default();
        answers.insert(question.key(), Predicted { at: 0, outcome });
    }
    let room = |assignment: &Assignment| {
        let evidence = assignment.capacity.as_ref();
        evidence.and_then(|evidence| evidence.room.get(&key).copied())
    };
    let merged: Vec<_> = case.assignments(&fleet, &reports).values().map(room).collect();
    json!({ "merged": merged })
}
