mod bad_scheduling;
mod moves;
mod previews;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::fleet::{Base, ManifestObject, Unit};
use crate::model::{
    Choice, Cluster, DriftMode, Feed, FleetSpec, Override, OverrideFeed, OverrideKind, OverrideStep, OverrideStepType,
};
use crate::model::{Scheduling, Subscriber, Subscription, SyncMode};
use crate::name::{ClusterName, ObjectKey};
use crate::selector::LabelSelector;

fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).expect("forty hex digits")
}

fn cluster(name: &str) -> (ClusterName, Cluster) {
    let name = ClusterName::parse(name).expect("a valid cluster");
    let cluster = Cluster {
        drift: None,
        name: name.clone(),
        namespace: name.to_string(),
        labels: BTreeMap::from([("name".to_owned(), name.to_string())]),
        cluster_id: String::new(),
        taints: Vec::new(),
        sync_mode: SyncMode::Dual,
        public_keys: Vec::new(),
        kubeconfig_context: None,
        cluster_type: String::new(),
        elastic: None,
        predictor: None,
        deletion: crate::model::DeletionPolicy::Orphan,
        file: "clusters.yaml".into(),
        line: 1,
    };
    (name, cluster)
}

fn config_map(name: &str, value: &str) -> Arc<ManifestObject> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"},
        "data": {"value": value}});
    manifest(object)
}

fn manifest(value: Value) -> Arc<ManifestObject> {
    let key = crate::describe::key_of(&value).expect("the object names itself");
    Arc::new(ManifestObject {
        key,
        api_version: value["apiVersion"].as_str().expect("it has one").to_owned(),
        file: "feeds/app.yaml".into(),
        line: 1,
        digest: Digest::of_value(&value),
        value: Arc::new(value),
        original: None,
        chart: None,
    })
}

fn unit(key: &str, objects: Vec<Arc<ManifestObject>>) -> (UnitKey, Unit) {
    let key: UnitKey = key.parse().expect("a valid unit");
    let subscription = Subscription {
        apply: Default::default(),
        drift: None,
        key: key.clone(),
        scheduling: Scheduling::Replication,
        placing: Default::default(),
        subscribers: vec![Subscriber {
            cluster_affinity: Some(LabelSelector::default()),
            weight: None,
            replicas: Default::default(),
            sub_group: None,
        }],
        tolerations: Vec::new(),
        feeds: vec![Feed::Path {
            path: "feeds/**".to_owned(),
            exclude: Vec::new(),
        }],
        file: "subscription.yaml".into(),
        line: 1,
    };
    let base = Arc::new(Base::new(objects));
    (
        key,
        Unit {
            subscription: Arc::new(subscription),
            base,
            blocked: Vec::new(),
        },
    )
}

fn localization(cluster: &str, object: &str, patch: &str) -> Arc<Override> {
    let feed = OverrideFeed {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: "shop".to_owned(),
        name: object.to_owned(),
    };
    let step = OverrideStep {
        name: String::new(),
        step_type: OverrideStepType::JsonPatch,
        override_chart: false,
        value: patch.to_owned(),
        line: 3,
    };
    Arc::new(Override {
        kind: OverrideKind::Localization,
        namespace: cluster.to_owned(),
        name: object.to_owned(),
        priority: 500,
        feed,
        steps: vec![step],
        file: "localization.yaml".into(),
        line: 1,
    })
}

fn snapshot(digit: char, units: Vec<(UnitKey, Unit)>, overrides: Vec<Arc<Override>>, previous: &Plan) -> Snapshot {
    let fleet = Fleet {
        revision: revision(digit),
        spec: FleetSpec::default(),
        clusters: BTreeMap::from([cluster("a"), cluster("b"), cluster("c")]),
        units: units.into_iter().collect(),
        overrides,
        of_nothing: Vec::new(),
        suspensions: Vec::new(),
        prune_budgets: Vec::new(),
        access: Arc::default(),
        unreadable: Vec::new(),
    };
    Snapshot {
        revision: revision(digit),
        fleet: Arc::new(fleet),
        reports: Reports::default(),
        moves: Default::default(),
        chart_previews: Default::default(),
        previous: Arc::new(Published {
            record: None,
            units: previous.units.clone(),
        }),
        now: 0,
    }
}

fn planned(snapshot: &Snapshot) -> Plan {
    plan(snapshot, &mut Memo::default())
}

fn digest_at(plan: &Plan, unit: &str, cluster: &str) -> Option<Digest> {
    let unit = plan.units.get(&unit.parse::<UnitKey>().expect("a valid unit"))?;
    Some(
        unit.entry(&ClusterName::parse(cluster).expect("a valid cluster"))?
            .1
            .digest,
    )
}

const GOOD: &str = r#"[{"op": "replace", "path": "/data/value", "value": "local"}]"#;
const MISFIT: &str = r#"[{"op": "replace", "path": "/data/absent/deeper", "value": "x"}]"#;

#[test]
fn a_variant_is_rendered_once_per_set_of_overrides() {
    let plan = planned(&snapshot(
        '1',
        vec![unit("shop/web", vec![config_map("web", "1")])],
        vec![localization("b", "web", GOOD)],
        &Plan::default(),
    ));
    assert_eq!(plan.contents.len(), 2);
    assert_eq!(digest_at(&plan, "shop/web", "a"), digest_at(&plan, "shop/web", "c"));
    assert_ne!(digest_at(&plan, "shop/web", "a"), digest_at(&plan, "shop/web", "b"));
}

#[test]
fn one_bad_thing_blocks_itself() {
    let before = planned(&snapshot(
        '1',
        vec![
            unit("shop/web", vec![config_map("web", "1")]),
            unit("shop/db", vec![config_map("db", "1")]),
        ],
        vec![localization("b", "web", GOOD)],
        &Plan::default(),
    ));
    // The patch of cluster b no longer fits, and db is blocked by load; everything else moves on.
    let (key, mut db) = unit("shop/db", vec![config_map("db", "2"), config_map("new", "2")]);
    db.blocked
        .push(Finding::error("Unreadable", "feeds/db.yaml cannot be read"));
    let units = vec![unit("shop/web", vec![config_map("web", "2")]), (key, db)];
    let after = planned(&snapshot('2', units, vec![localization("b", "web", MISFIT)], &before));
    assert_ne!(
        digest_at(&after, "shop/web", "a"),
        digest_at(&before, "shop/web", "a"),
        "a moved on"
    );
    assert_eq!(
        digest_at(&after, "shop/web", "b"),
        digest_at(&before, "shop/web", "b"),
        "b kept its own"
    );
    assert_eq!(
        after.units.get(&"shop/db".parse().expect("valid")),
        before.units.get(&"shop/db".parse().expect("valid"))
    );
    let errors: Vec<_> = after.findings.iter().filter(|finding| finding.is_error()).collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!(errors[0].cluster.as_ref().map(ClusterName::as_str), Some("b"));
}

/// What revision 2 plans with these overrides, of which those `of_nothing` are, after revision 1 changed web on b.
fn after_a_change(overrides: Vec<Arc<Override>>, of_nothing: Vec<Arc<Override>>) -> (Plan, Plan) {
    let units = |value| vec![unit("shop/web", vec![config_map("web", value)])];
    let good = vec![localization("b", "web", GOOD)];
    let mut memo = Memo::default();
    let before = plan(&snapshot('1', units("1"), good, &Plan::default()), &mut memo);
    let mut second = snapshot('2', units("2"), overrides, &before);
    Arc::make_mut(&mut second.fleet).of_nothing = of_nothing;
    let after = plan(&second, &mut memo);
    assert_eq!(planned(&second), after, "a memo changes nothing");
    (before, after)
}

#[test]
fn a_cluster_keeps_what_an_override_made_whose_object_is_none_now() {
    let mut slip = localization("b", "web", GOOD);
    Arc::make_mut(&mut slip).feed.name = "wbe".to_owned();
    let (before, after) = after_a_change(vec![slip.clone()], vec![slip]);
    let same = |cluster| digest_at(&before, "shop/web", cluster) == digest_at(&after, "shop/web", cluster);
    assert!(same("b"), "b is held whole");
    assert!(!same("a") && !same("c"), "the others move on");
    let told: Vec<_> = after.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "localization.yaml:1: error: spec.feed: what is delivered was made with Localization b/web, which changes no \
          object now: it is kept (cluster b)\n  hint: correct its feed; to take back what it changes, remove the override"
        ]
    );
    assert!(after.findings[0].unit.is_some());
}

#[test]
fn an_override_that_is_removed_or_new_holds_nothing() {
    let (before, after) = after_a_change(Vec::new(), Vec::new());
    assert_ne!(digest_at(&before, "shop/web", "b"), digest_at(&after, "shop/web", "b"));
    assert_eq!(after.findings, []);
    let strange = localization("a", "strange", GOOD);
    let overrides = vec![strange.clone(), localization("b", "web", GOOD)];
    let (before, after) = after_a_change(overrides, vec![strange]);
    assert_ne!(digest_at(&before, "shop/web", "a"), digest_at(&after, "shop/web", "a"));
    assert_eq!(after.findings, []);
}

#[test]
fn same_snapshot_same_bytes() {
    let units = || vec![unit("shop/web", vec![config_map("web", "1"), config_map("x", "1")])];
    let first = snapshot('1', units(), vec![localization("b", "web", GOOD)], &Plan::default());
    let mut memo = Memo::default();
    let one = plan(&first, &mut memo);
    assert_eq!(plan(&first, &mut memo), one, "a warm memo changes nothing");
    // Another revision with equal content: the memo must not bring back the older stamp.
    let second = snapshot('2', units(), vec![localization("b", "web", GOOD)], &Plan::default());
    assert_eq!(plan(&second, &mut memo), planned(&second));
    // On top of what was published, an equal decision is equal to the byte, stamps and reasons included.
    let third = snapshot('3', units(), vec![localization("b", "web", GOOD)], &one);
    assert_eq!(planned(&third).units, one.units);
    assert!(deltas(&one.units, &planned(&third).units).is_empty());
}

#[test]
fn a_unit_that_left_the_fleet_leaves_the_plan_and_a_delta_says_so() {
    let before = planned(&snapshot(
        '1',
        vec![unit("shop/web", vec![config_map("web", "1")])],
        Vec::new(),
        &Plan::default(),
    ));
    let after = planned(&snapshot('2', Vec::new(), Vec::new(), &before));
    let deltas = deltas(&before.units, &after.units);
    assert_eq!(deltas.len(), 1);
    assert!(
        deltas[0]
            .clusters
            .iter()
            .all(|cluster| cluster.from.is_some() && cluster.to.is_none())
    );
}

#[test]
fn a_drift_mode_alone_is_a_change_of_the_clusters_that_it_is_for() {
    let units = || vec![unit("shop/web", vec![config_map("web", "1")])];
    let before = planned(&snapshot('1', units(), Vec::new(), &Plan::default()));
    let mut next = snapshot('2', units(), Vec::new(), &before);
    let mut fleet = next.fleet.as_ref().clone();
    let (first, cluster) = fleet.clusters.iter_mut().next().expect("there are clusters");
    let first = first.clone();
    cluster.drift = Some(DriftMode::Report);
    next.fleet = Arc::new(fleet);
    let after = planned(&next);
    let deltas = deltas(&before.units, &after.units);
    let changed: Vec<_> = deltas[0].clusters.iter().map(|delta| &delta.cluster).collect();
    assert_eq!(changed, [&first], "{deltas:?}");
    let modes = |share: &Option<Share>| share.as_ref().map(|share| share.drift);
    assert_eq!(modes(&deltas[0].clusters[0].from), Some(DriftMode::Correct));
    assert_eq!(modes(&deltas[0].clusters[0].to), Some(DriftMode::Report));
}

#[test]
fn objects_keep_their_key_through_the_plan() {
    let plan = planned(&snapshot(
        '1',
        vec![unit("shop/web", vec![config_map("web", "1")])],
        Vec::new(),
        &Plan::default(),
    ));
    let content = plan.contents.values().next().expect("one content");
    assert_eq!(content.objects[0].key, ObjectKey::new("v1", "ConfigMap", "shop", "web"));
}

#[test]
fn a_unit_that_no_message_could_carry_is_refused_and_the_last_good_one_stays() {
    let part = |number: usize, bytes: usize| config_map(&format!("part-{number}"), &"x".repeat(bytes));
    let large: Vec<_> = (0..9).map(|number| part(number, 7 << 20)).collect();
    let small = vec![part(0, 1)];
    let before = planned(&snapshot(
        '1',
        vec![unit("shop/web", small)],
        Vec::new(),
        &Plan::default(),
    ));
    let after = planned(&snapshot('2', vec![unit("shop/web", large)], Vec::new(), &before));
    assert_eq!(after.units, before.units, "it keeps its whole last good content");
    let told: Vec<_> = after
        .findings
        .iter()
        .map(|finding| (finding.reason.as_str(), finding.line))
        .collect();
    assert_eq!(told, [("UnitTooLarge", 1)]);
    assert!(
        after.findings[0]
            .message
            .starts_with("its 9 objects take 64 MiB, and one unit may take 60 MiB")
    );
}

#[test]
fn a_cluster_stands_in_for_another_only_where_some_are_taken() {
    let in_turn = |clusters: Choice| {
        let (key, mut unit) = unit("shop/web", vec![config_map("web", "1")]);
        let mut subscription = unit.subscription.as_ref().clone();
        subscription.placing.clusters = clusters;
        unit.subscription = Arc::new(subscription);
        let plan = planned(&snapshot('1', vec![(key.clone(), unit)], Vec::new(), &Plan::default()));
        plan.units[&key].in_turn
    };
    let (one, all) = (Some(1), Choice::default());
    assert!(in_turn(Choice {
        max: one,
        ..all.clone()
    }));
    assert!(
        !in_turn(Choice {
            min: one,
            ..all.clone()
        }),
        "they have to be enough, and each has it whole"
    );
    assert!(!in_turn(all));
}
