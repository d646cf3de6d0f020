//! Small fleets whose commits are as they were decided, and then are not.

use serde_json::json;

use super::*;
use crate::capacity::{Capacity, NodeGroup, Nodes, Resources};
use crate::fixture;
use crate::model::{
    Cluster, Dividing, Failover, Scheduling, Strategy, SuspendedClusters, Suspension, Taint, TaintEffect,
};
use crate::plan::{Memo, Reports, Snapshot, plan};
use crate::published::{Cause, RENDER_VERSION, ReleaseRecord};
use crate::release::{Observed, advance, release};
use crate::schedule::{Presence, Report};

fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).expect("forty hex digits")
}

/// A unit of one ConfigMap and one Deployment.
fn fleet(text: &str, scheduling: Scheduling, clusters: Vec<Cluster>) -> Fleet {
    with_replicas(5, text, scheduling, clusters)
}

fn with_replicas(replicas: u32, text: &str, scheduling: Scheduling, clusters: Vec<Cluster>) -> Fleet {
    let subscription = fixture::subscription(scheduling, vec![fixture::subscriber(&[], None)]);
    let base = fixture::base([
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "x"},
            "data": {"text": text}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "x"},
            "spec": {"replicas": replicas}}),
    ]);
    fixture::fleet(clusters, subscription, base)
}

fn clusters(names: &[&str]) -> Vec<Cluster> {
    names.iter().map(|name| fixture::cluster(name, &[])).collect()
}

/// Revisions with what they say, oldest first, and what was released in the end.
struct History {
    fleets: Vec<(Revision, Arc<Fleet>)>,
    released: Published,
    /// What was released before, and what was wanted.
    before: Published,
    rendered: Published,
    contents: BTreeMap<crate::Digest, Arc<Description>>,
}

impl History {
    fn of(fleets: Vec<Fleet>) -> Self {
        let digits = ['1', '2', '3'];
        let fleets = fleets.into_iter().zip(digits);
        let fleets: Vec<_> = fleets
            .map(|(fleet, digit)| (revision(digit), Arc::new(fleet)))
            .collect();
        let mut rendered = Published::default();
        let mut released = Published::default();
        let mut before = Published::default();
        let mut contents = BTreeMap::new();
        for (revision, fleet) in &fleets {
            let plan = planned_by(revision, fleet, &rendered, rooms());
            contents.extend(plan.contents);
            rendered.units = plan.units;
            let due = release(&rendered, &released, fleet.suspensions(), &Observed::default(), 0).advances;
            before = std::mem::take(&mut released);
            released = advance(&rendered, &before, due, 0);
            released.record = Some(ReleaseRecord {
                cause: Cause::SourceCommit,
                source: revision.clone(),
                sequence: Some(1),
                rendered: None,
                departed: Default::default(),
                orphaned: Default::default(),
                render_version: RENDER_VERSION,
            });
        }
        Self {
            fleets,
            released,
            before,
            rendered,
            contents,
        }
    }

    /// The files of the commit.
    fn files(&self) -> BTreeMap<String, String> {
        let mut files: BTreeMap<_, _> = self.released.record.iter().map(layout::release_file).collect();
        for (unit, placement) in &self.released.units {
            files.extend([layout::placement_file(unit, placement)]);
            for (name, variant) in &placement.variants {
                let folder = layout::unit_folder(unit, name);
                for (file, bytes) in layout::description_files(&self.contents[&variant.digest]) {
                    let text = String::from_utf8(bytes).expect("manifests are text");
                    files.insert(format!("{folder}/{file}"), text);
                }
            }
        }
        files
    }

    fn verdict(&self, files: BTreeMap<String, String>) -> Verdict {
        let said = layout::read(files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())));
        let verification = Verification::new(said.expect("it is readable"));
        let mut verification = verification.under_way(&self.before, &self.rendered);
        let unsettled = verification.unsettled();
        for revision in verification.revisions() {
            match self.fleets.iter().find(|(known, _)| *known == revision) {
                Some((_, fleet)) => verification.planned(&revision, &planned(&revision, fleet, &unsettled), fleet),
                None => verification.unknown(&revision, "it is not here"),
            }
        }
        let (revision, fleet) = self.fleets.last().expect("there is a revision");
        let plan = planned(revision, fleet, verification.expected());
        verification.decided(revision, &plan, fleet);
        verification.verdict(&SourceTree::from_files(revision.clone(), files))
    }

    /// Every released file is as it is made again.
    #[track_caller]
    fn check_same(&self) {
        assert_eq!(self.verdict(self.files()), Verdict::default());
    }

    /// After a change in the text of one file, these are the paths that differ.
    #[track_caller]
    fn check_found(&self, path: &str, from: &str, to: &str, expected: &[(&str, &str)]) {
        let mut files = self.files();
        let text = files.get_mut(path).expect("the file is there");
        assert!(text.contains(from), "{from:?} is not in {text}");
        *text = text.replace(from, to);
        let differing = self.verdict(files).differing;
        let differing: Vec<_> = differing
            .iter()
            .map(|(path, what)| (path.as_str(), what.as_str()))
            .collect();
        assert_eq!(differing, expected);
    }
}

fn planned(revision: &Revision, fleet: &Arc<Fleet>, previous: &Published) -> Plan {
    planned_by(revision, fleet, previous, Reports::default())
}

fn planned_by(revision: &Revision, fleet: &Arc<Fleet>, previous: &Published, reports: Reports) -> Plan {
    let snapshot = Snapshot {
        revision: revision.clone(),
        fleet: Arc::clone(fleet),
        reports,
        moves: Default::default(),
        chart_previews: Default::default(),
        previous: Arc::new(previous.clone()),
        now: 0,
    };
    plan(&snapshot, &mut Memo::default())
}

fn suspended(mut fleet: Fleet, cluster: &str, until: Option<i64>) -> Fleet {
    let suspension = Suspension {
        objects: Vec::new(),
        name: "held".to_owned(),
        unit: None,
        clusters: Some(SuspendedClusters {
            names: vec![fixture::cluster_name(cluster)],
            selector: None,
        }),
        reason: String::new(),
        until,
        file: "policies/held.yaml".into(),
        line: 1,
    };
    fleet.suspensions = vec![Arc::new(suspension)];
    fleet
}

fn replicated(text: &str) -> Fleet {
    fleet(text, Scheduling::Replication, clusters(&["a", "b"]))
}

const DIVIDING: Scheduling = Scheduling::Dividing(Dividing::Static);
const MAP: &str = "units/default/web/default/ConfigMap_x_a.yaml";
const PLACEMENT: &str = "placements/default/web.yaml";

#[test]
fn what_was_decided_over_several_revisions_is_made_again() {
    let divided = |text: &str| fleet(text, DIVIDING, clusters(&["a", "b"]));
    for history in [
        vec![replicated("1")],
        vec![replicated("1"), replicated("2"), replicated("2")],
        vec![replicated("1"), replicated("2"), replicated("1")],
        vec![divided("1"), divided("2")],
        vec![replicated("1"), divided("1")],
        vec![replicated("1"), fleet("1", Scheduling::Replication, clusters(&["a"]))],
        vec![
            replicated("1"),
            fleet("2", Scheduling::Replication, clusters(&["a", "b", "c"])),
        ],
    ] {
        History::of(history).check_same();
    }
}

#[test]
fn an_entry_that_is_held_at_an_older_revision_is_made_again_from_it() {
    let history = History::of(vec![replicated("1"), suspended(replicated("2"), "b", None)]);
    let unit = history.released.units.values().next().expect("there is a unit");
    assert_eq!(unit.variants.len(), 2, "b keeps its older content");
    history.check_same();
    let held = unit.variants.keys().find(|name| name.as_str() != "default");
    let path = format!("units/default/web/{}/ConfigMap_x_a.yaml", held.expect("it is held"));
    history.check_found(&path, "\"1\"", "\"7\"", &[(&path, "differs")]);
}

#[test]
fn whatever_somebody_changed_is_named() {
    let history = History::of(vec![replicated("1"), replicated("2")]);
    history.check_found(MAP, "\"2\"", "\"3\"", &[(MAP, "differs")]);
    history.check_found(PLACEMENT, "every cluster", "nobody", &[(PLACEMENT, "differs")]);
    let decides = format!("is not what {} decides for a and 1 more", revision('2'));
    // A content of another revision than it is said to be of.
    history.check_found(
        PLACEMENT,
        &revision('2').to_string(),
        &revision('1').to_string(),
        &[(PLACEMENT, "differs"), (PLACEMENT, &decides), (MAP, "differs")],
    );
    let decides = format!("is not what {} decides for b and 1 more", revision('2'));
    let does_not = format!("says of c what {} does not decide", revision('1'));
    history.check_found(
        PLACEMENT,
        "  b:",
        "  c:",
        &[(PLACEMENT, &decides), (PLACEMENT, &does_not)],
    );
}

#[test]
fn where_people_approve_an_older_entry_may_be_held_by_a_suspension_that_is_not_approved_yet() {
    let gated = |text: &str| {
        let mut fleet = replicated(text);
        fleet.spec.approval = Approval::Required;
        fleet
    };
    let mut history = History::of(vec![gated("1"), suspended(gated("2"), "b", None)]);
    history.check_same();
    // What was merged is older than the Suspension that held it.
    history.fleets[1].1 = Arc::new(gated("2"));
    let verdict = history.verdict(history.files());
    assert_eq!(verdict.differing, BTreeSet::new());
    assert_eq!(verdict.undecided.len(), 1, "{verdict:?}");
}

#[test]
fn files_in_no_decision_are_named_and_people_s_own_are_not() {
    let history = History::of(vec![replicated("1")]);
    let mut files = history.files();
    files.insert("README.md".to_owned(), "ours".to_owned());
    files.insert("units/default/web/default/extra.yaml".to_owned(), "a: b".to_owned());
    files.remove(MAP);
    let differing = history.verdict(files).differing;
    let expected = [
        (MAP.to_owned(), "is missing".to_owned()),
        (
            "units/default/web/default/extra.yaml".to_owned(),
            "is in no decision".to_owned(),
        ),
    ];
    assert_eq!(differing, BTreeSet::from(expected));
}

#[test]
fn what_is_of_a_revision_that_is_gone_is_not_decided() {
    let mut history = History::of(vec![replicated("1"), replicated("2")]);
    history.fleets.remove(0);
    let verdict = history.verdict(history.files());
    assert_eq!(verdict.differing, BTreeSet::new());
    assert_eq!(
        verdict.undecided,
        BTreeSet::from([(PLACEMENT.to_owned(), "it is not here".to_owned())])
    );
}

#[test]
fn replicas_are_shared_again_with_the_clusters_of_their_revision() {
    let one = fleet("1", DIVIDING, clusters(&["a", "b"]));
    let other = suspended(fleet("1", DIVIDING, clusters(&["a"])), "a", Some(1));
    let history = History::of(vec![one, other]);
    history.check_same();
    history.check_found(PLACEMENT, ": 3\n", ": 4\n", &[(PLACEMENT, "differs")]);
}

#[test]
fn replicas_that_were_shared_with_a_cluster_kept_in_spite_of_a_taint_are_not_decided() {
    let mut tainted = clusters(&["a", "b"]);
    tainted[1].taints.push(Taint {
        key: "old".to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    });
    let history = History::of(vec![
        fleet("1", DIVIDING, clusters(&["a", "b"])),
        with_replicas(7, "1", DIVIDING, tainted),
        suspended(fleet("1", DIVIDING, clusters(&["a"])), "a", None),
    ]);
    let verdict = history.verdict(history.files());
    assert_eq!(verdict.differing, BTreeSet::new());
    assert_eq!(verdict.undecided.len(), 1, "{verdict:?}");
}

/// Room for four replicas on a and for two on b.
fn rooms() -> Reports {
    let report = |name: &str, pods: i64| {
        let all = Resources::from([("pods", pods)]);
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
            at: 7,
            doubt: None,
        };
        (fixture::cluster_name(name), report)
    };
    Reports {
        clusters: [report("a", 4), report("b", 2)].into(),
        ..Reports::default()
    }
}

#[test]
fn replicas_that_were_divided_by_room_stand_without_what_was_reported_then() {
    let by_room = Scheduling::Dividing(Dividing::Dynamic(Strategy::Spread));
    let history = History::of(vec![fleet("1", by_room, clusters(&["a", "b"]))]);
    let placement = &history.files()[PLACEMENT];
    assert!(placement.contains("room"), "{placement}");
    history.check_same();
    let other = with_replicas(9, "1", by_room, clusters(&["a", "b"]));
    let mut forged = history.files();
    let changed = forged[PLACEMENT].replace("default", "other");
    forged.insert(PLACEMENT.to_owned(), changed);
    assert!(
        !history.verdict(forged).is_same(),
        "what revisions decide is still compared"
    );
    History::of(vec![fleet("1", by_room, clusters(&["a", "b"])), other]).check_same();
}

#[test]
fn what_others_took_over_is_made_again_without_knowing_who_was_silent() {
    let mut declared = fleet("1", DIVIDING, clusters(&["a", "b", "c"]));
    declared.spec.scheduling.failover = Some(Failover {
        after_seconds: 300,
        clusters_max: 1,
        per_seconds: 3_600,
        return_seconds: 600,
    });
    let mut history = History::of(vec![declared]);
    let heard = |name: &str| (fixture::cluster_name(name), Presence::HeardSince(-900));
    let silent = (fixture::cluster_name("c"), Presence::SilentSince(-300));
    let reports = Reports {
        presence: BTreeMap::from([heard("a"), heard("b"), silent]),
        ..Reports::default()
    };
    let (revision, fleet) = &history.fleets[0];
    history.released.units = planned_by(revision, fleet, &history.released, reports).units;
    let placement = &history.files()[PLACEMENT];
    assert!(
        placement.contains("lost:") && placement.contains("of c, which is silent since"),
        "{placement}"
    );
    history.check_same();
    let what = "is not what 1111111111111111111111111111111111111111 decides for a";
    history.check_found(PLACEMENT, ": 3\n", ": 4\n", &[(PLACEMENT, what)]);
}

#[test]
fn a_choice_of_clusters_stands_with_the_reasons_that_it_had() {
    let one_of = |text: &str| {
        let mut fleet = fleet(text, Scheduling::Replication, clusters(&["a", "b", "c"]));
        for unit in fleet.units.values_mut() {
            Arc::make_mut(&mut unit.subscription).placing.clusters.max = Some(1);
        }
        fleet
    };
    let history = History::of(vec![one_of("one")]);
    history.check_same();
    let unit = history.released.units.keys().next().expect("it is placed");
    let text = &history.files()[&layout::placement_path(unit)];
    assert!(text.contains("among the best: preferred 0"), "{text}");
}

#[test]
fn a_release_in_the_middle_of_a_move_is_made_again_and_no_other_number_is_taken_for_one() {
    let divided = |replicas: u32, names: &[&str]| with_replicas(replicas, "1", DIVIDING, clusters(names));
    // c waits until the others are healthy with what they get.
    let history = History::of(vec![divided(9, &["a", "b", "c"]), divided(9, &["a", "b"])]);
    let unit = history.released.units.values().next().expect("there is a unit");
    assert_eq!(unit.clusters.len(), 3, "c keeps what it has");
    assert!(!unit.awaited.is_empty(), "{unit:?}");
    history.check_same();
    let placement = &history.files()[PLACEMENT];
    for (from, to) in [(": 3\n", ": 7\n"), (": 5\n", ": 6\n"), ("  c:\n", "  d:\n")] {
        assert!(placement.contains(from), "{from:?} is not in {placement}");
        let mut files = history.files();
        files.insert(PLACEMENT.to_owned(), placement.replace(from, to));
        let differing = history.verdict(files).differing;
        assert!(!differing.is_empty(), "{to:?} in place of {from:?} is found");
    }
    // A forged number that rendered has too is none that the revision decides.
    let mut forged = history;
    for published in [&mut forged.released, &mut forged.rendered] {
        let unit = published.units.values_mut().next().expect("there is a unit");
        let mut clusters: BTreeMap<_, _> = (*unit.clusters).clone();
        let a = clusters.get_mut(&fixture::cluster_name("a")).expect("it is placed");
        let objects: Vec<_> = a.replicas.keys().cloned().collect();
        objects.into_iter().for_each(|object| {
            a.replicas.insert(object, 8);
        });
        unit.clusters = clusters.into();
    }
    let verdict = forged.verdict(forged.files());
    assert!(!verdict.differing.is_empty(), "{verdict:?}");
}

#[test]
fn from_whom_a_cluster_took_over_is_no_difference_once_the_other_left() {
    let mut history = History::of(vec![fleet("1", DIVIDING, clusters(&["a", "b"]))]);
    let unit = history.released.units.values_mut().next().expect("there is a unit");
    unit.moved_at = Some(7);
    let path = PLACEMENT;
    let files = history.files();
    let said = files[path].replace("weight 1 of 2\"", "weight 1 of 2, takes over 2 of c, which left\"");
    assert_ne!(said, files[path], "there is a reason to extend");
    let with = |text: String| {
        let mut files = files.clone();
        files.insert(path.to_owned(), text);
        history.verdict(files)
    };
    assert_eq!(with(said.clone()), Verdict::default());
    assert!(
        !with(said.replace("takes over", "was given")).is_same(),
        "another sentence is one"
    );
    assert!(!with(said.replace(": 3\n", ": 4\n")).is_same(), "another number is one");
}
