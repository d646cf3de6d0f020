mod predicted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::chart::Previews;
use crate::fixture::{base, cluster, cluster_name, fleet, subscriber, subscription};
use crate::fleet::{Fleet, Unit};
use crate::model::{ApplyPolicy, DeletionPolicy, Scheduling, SuspendedClusters, Suspension};
use crate::name::UnitKey;
use crate::plan::{Memo, Reports, plan};
use crate::published::Published;
use crate::selector::LabelSelector;

/// A fleet of clusters a and b with these units on both, each with ConfigMaps of these names.
fn declared(units: &[(&str, &[&str])]) -> Fleet {
    let clusters = [cluster("a", &[("env", "one")]), cluster("b", &[("env", "two")])];
    let nobody = subscription(Scheduling::Replication, Vec::new());
    let mut fleet = fleet(clusters, nobody, base([]));
    fleet.units = units.iter().map(|(key, objects)| unit(key, objects, &[])).collect();
    fleet
}

/// A unit for the clusters that have these labels.
fn unit(key: &str, objects: &[&str], labels: &[(&str, &str)]) -> (UnitKey, Unit) {
    let key: UnitKey = key.parse().expect("a valid unit");
    let mut declared = subscription(Scheduling::Replication, vec![subscriber(labels, None)]);
    declared.key = key.clone();
    declared.file = format!("subscriptions/{}.yaml", key.name()).into();
    let object = |name: &&str| {
        let (namespace, name) = name.split_once('/').unwrap_or(("shop", name));
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})
    };
    let unit = Unit {
        subscription: Arc::new(declared),
        base: Arc::new(base(objects.iter().map(object))),
        blocked: Vec::new(),
    };
    (key, unit)
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("c{index:02}")).collect()
}

/// What was planned and published, with every content that was ever made.
#[derive(Default)]
struct World {
    published: Arc<Published>,
    contents: BTreeMap<Digest, Arc<Holdings>>,
    budgets: Vec<Arc<PruneBudget>>,
    allowed: BTreeSet<PruneAllowance>,
    exceeded: Vec<Exceeded>,
    previews: Previews,
}

impl World {
    /// Plans a fleet and publishes the outcome. Gives the findings as `unit reason`.
    fn push(&mut self, fleet: Fleet) -> Vec<String> {
        let findings = self.planned(fleet);
        findings
            .iter()
            .map(|finding| {
                let unit = finding.unit.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{unit} {}", finding.reason)
            })
            .collect()
    }

    fn planned(&mut self, fleet: Fleet) -> Vec<crate::Finding> {
        let snapshot = Snapshot {
            revision: fleet.revision.clone(),
            fleet: Arc::new(fleet),
            reports: Reports::default(),
            moves: Default::default(),
            chart_previews: self.previews.clone(),
            previous: Arc::clone(&self.published),
            now: 0,
        };
        let mut plan = plan(&snapshot, &mut Memo::default());
        let holdings = |digest: &Digest| self.contents.get(digest).cloned();
        let evidence = Evidence {
            budgets: &self.budgets,
            allowed: &self.allowed,
            holdings: &holdings,
        };
        let exceeded = guard(&snapshot, &mut plan, &evidence);
        self.exceeded = exceeded;
        for (digest, content) in &plan.contents {
            self.contents.insert(*digest, Arc::new(Holdings::of(content)));
        }
        let target = Published {
            record: None,
            units: plan.units,
        };
        // What is held must be released as it stands, or the hub would release for ever.
        let (held, observed) = (crate::suspend::Suspensions::none(), crate::release::Observed::default());
        let due = crate::release::release(&target, &self.published, held, &observed, 0);
        let released = crate::release::advance(&target, &self.published, due.advances, 0);
        assert_eq!(
            crate::release::release(&target, &released, held, &observed, 0).advances,
            []
        );
        self.published = Arc::new(target);
        plan.findings
    }

    /// What a unit has on a cluster: names of its objects.
    fn has(&self, unit: &str, cluster: &str) -> Vec<String> {
        let unit = self
            .published
            .units
            .get(&unit.parse::<UnitKey>().expect("a valid unit"));
        let entry = unit.and_then(|unit| unit.entry(&cluster_name(cluster)));
        let content = entry.and_then(|(_, variant)| self.contents.get(&variant.digest));
        let objects = content.iter().flat_map(|content| &content.objects);
        objects.map(|object| object.name.clone()).collect()
    }

    fn allow(&mut self) {
        self.allowed = self.exceeded.iter().map(|list| list.allowance.clone()).collect();
    }
}

const NONE: &[&str] = &[];

#[test]
fn of_two_units_with_one_object_the_one_that_has_it_goes_on_and_the_other_keeps_what_it_had() {
    let mut world = World::default();
    assert_eq!(world.push(declared(&[("t/a", &["x"]), ("t/b", &["y"])])), NONE);
    let both = declared(&[("t/a", &["x", "new"]), ("t/b", &["x", "z"])]);
    assert_eq!(world.push(both), ["t/b ObjectClaimedTwice"]);
    for cluster in ["a", "b"] {
        assert_eq!(world.has("t/a", cluster), ["new", "x"], "who has it goes on");
        assert_eq!(
            world.has("t/b", cluster),
            ["y"],
            "the newcomer keeps all of what it had"
        );
    }
    // The one that had it lets go: the other one takes it, and nothing was removed meanwhile.
    assert_eq!(world.push(declared(&[("t/a", &["new"]), ("t/b", &["x", "z"])])), NONE);
    assert_eq!(world.has("t/b", "a"), ["x", "z"]);
}

#[test]
fn an_object_that_two_new_units_want_goes_to_neither_and_both_files_are_named() {
    let mut world = World::default();
    let findings = world.planned(declared(&[("t/a", &["x"]), ("t/b", &["x", "y"])]));
    let told: Vec<_> = findings
        .iter()
        .map(|finding| format!("{}:{} {}", finding.file, finding.line, finding.message))
        .collect();
    let said = |own: &str, other: &str| {
        format!(
            "subscriptions/{own}.yaml:1 ConfigMap shop/x would be delivered to cluster a and 1 other by t/{own} \
             (subscriptions/{own}.yaml:1) and by t/{other} (subscriptions/{other}.yaml:1): both keep what they had"
        )
    };
    assert_eq!(told, [said("a", "b"), said("b", "a")]);
    assert_eq!(world.has("t/a", "a"), NONE);
}

#[test]
fn one_object_is_one_object_whether_its_default_namespace_is_written_or_not() {
    let mut world = World::default();
    world.push(declared(&[("t/a", &["default/x"])]));
    let mut fleet = declared(&[("t/a", &["default/x"])]);
    let (key, mut other) = unit("t/b", NONE, &[]);
    let bare = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    other.base = Arc::new(base([bare]));
    fleet.units.insert(key, other);
    assert_eq!(world.push(fleet), ["t/b ObjectClaimedTwice"]);
}

#[test]
fn units_that_share_an_object_on_different_clusters_are_no_rivals() {
    let mut world = World::default();
    let mut fleet = declared(&[]);
    fleet.units = [
        unit("t/a", &["x"], &[("env", "one")]),
        unit("t/b", &["x"], &[("env", "two")]),
    ]
    .into();
    assert_eq!(world.push(fleet), NONE);
    assert_eq!(
        (world.has("t/a", "a"), world.has("t/b", "b")),
        (vec!["x".to_owned()], vec!["x".to_owned()])
    );
}

#[test]
fn a_renamed_unit_hands_its_objects_over_in_one_commit() {
    let mut world = World::default();
    let many = names(20);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    world.push(declared(&[("t/old", &many)]));
    world.budgets = vec![budget(Some(0), None, None)];
    assert_eq!(
        world.push(declared(&[("t/new", &many)])),
        NONE,
        "nothing leaves the cluster"
    );
    assert_eq!((world.has("t/old", "a").len(), world.has("t/new", "a").len()), (0, 20));
}

#[test]
fn an_object_never_leaves_its_unit_for_one_that_is_held() {
    let mut world = World::default();
    world.push(declared(&[("t/a", &["x", "stays"]), ("t/b", &["y"])]));
    // It moves to b, which is held by an Error of its own in the same commit.
    let mut fleet = declared(&[("t/a", &["stays"]), ("t/b", &["x", "y"])]);
    let error = crate::Finding::error("Broken", "something else is wrong with it");
    fleet
        .units
        .get_mut(&"t/b".parse::<UnitKey>().expect("valid"))
        .expect("it is there")
        .blocked = vec![error];
    assert_eq!(world.push(fleet), ["t/a ObjectMoveHeld"]);
    assert_eq!(world.has("t/a", "a"), ["stays", "x"], "it stays where it is");
    // Once the other one is right again, both go on.
    assert_eq!(world.push(declared(&[("t/a", &["stays"]), ("t/b", &["x", "y"])])), NONE);
    assert_eq!(
        (world.has("t/a", "a"), world.has("t/b", "a")),
        (vec!["stays".to_owned()], vec!["x".to_owned(), "y".to_owned()])
    );
}

#[test]
fn an_object_never_leaves_its_unit_for_one_that_is_suspended() {
    let mut world = World::default();
    world.push(declared(&[("t/a", &["x", "stays"]), ("t/b", &["y"])]));
    let mut fleet = declared(&[("t/a", &["stays"]), ("t/b", &["x", "y"])]);
    fleet.suspensions = vec![Arc::new(Suspension {
        name: "held".to_owned(),
        unit: Some("t/b".parse().expect("a valid unit")),
        clusters: Some(SuspendedClusters {
            names: vec![cluster_name("a")],
            selector: None,
        }),
        objects: Vec::new(),
        reason: String::new(),
        until: None,
        file: "policies/held.yaml".into(),
        line: 1,
    })];
    assert_eq!(world.push(fleet), ["t/a ObjectMoveHeld"]);
    assert_eq!(world.has("t/a", "a"), ["stays", "x"]);
    assert_eq!(world.has("t/a", "b"), ["stays"], "where nothing is suspended it moves");
    assert_eq!(world.push(declared(&[("t/a", &["stays"]), ("t/b", &["x", "y"])])), NONE);
    assert_eq!(world.has("t/a", "a"), ["stays"]);
}

fn budget(objects_max: Option<u64>, percent_max: Option<u64>, clusters: Option<SuspendedClusters>) -> Arc<PruneBudget> {
    Arc::new(PruneBudget {
        name: "small".to_owned(),
        unit: None,
        clusters,
        objects_max,
        percent_max,
        file: "policies/small.yaml".into(),
        line: 1,
    })
}

#[test]
fn what_goes_beyond_a_budget_stays_until_exactly_that_list_is_allowed() {
    let mut world = World::default();
    world.push(declared(&[("t/a", &["x", "y", "z"]), ("t/b", &["other"])]));
    world.budgets = vec![budget(Some(3), None, None)];
    let less = || declared(&[("t/a", &["x"]), ("t/b", &["other", "more"])]);
    let findings = world.planned(less());
    let [finding] = &findings[..] else {
        panic!("one finding, and not {findings:#?}")
    };
    assert_eq!(
        finding.message,
        "4 objects would go from cluster a and 1 other, such as ConfigMap shop/y; PruneBudget small \
         (policies/small.yaml:1) allows 3 objects"
    );
    let (first, others) = (finding.cluster.as_ref(), &finding.also_on[..]);
    assert_eq!(
        (first, others),
        (Some(&cluster_name("a")), &[cluster_name("b")][..]),
        "both are held"
    );
    let word = world.exceeded[0].allowance.text();
    assert!(word.starts_with("4 "), "{word}");
    assert!(
        finding.hint.ends_with(&format!("Allow-Prune: {word}")),
        "{}",
        finding.hint
    );
    assert_eq!(world.has("t/a", "a"), ["x", "y", "z"]);
    assert_eq!(world.has("t/b", "a"), ["more", "other"], "what loses nothing goes on");
    // Another list of as many is not allowed by it.
    world.allow();
    assert_eq!(
        world.push(declared(&[("t/a", &["y"]), ("t/b", &["other", "more"])])),
        ["t/a PruneBudgetExceeded"]
    );
    assert_eq!(world.push(less()), NONE);
    assert_eq!(
        (world.has("t/a", "a"), world.has("t/a", "b")),
        (vec!["x".to_owned()], vec!["x".to_owned()])
    );
}

#[test]
fn a_share_of_what_is_there_may_go_and_no_more() {
    let mut world = World::default();
    let many = names(10);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    world.push(declared(&[("t/a", &many)]));
    world.budgets = vec![budget(None, Some(10), None)];
    assert_eq!(world.push(declared(&[("t/a", &many[1..])])), NONE, "one of ten is 10 %");
    assert_eq!(
        world.push(declared(&[("t/a", &many[2..])])),
        ["t/a PruneBudgetExceeded"],
        "one of nine is more"
    );
}

#[test]
fn a_removed_subscription_counts_as_much_as_removed_objects() {
    let mut world = World::default();
    world.push(declared(&[("t/a", &["x", "y"]), ("t/b", &["z"])]));
    world.budgets = vec![budget(Some(1), None, None)];
    assert_eq!(world.push(declared(&[("t/b", &["z"])])), ["t/a PruneBudgetExceeded"]);
    assert_eq!(
        world.has("t/a", "b"),
        ["x", "y"],
        "a unit whose Subscription is gone stays too"
    );
    assert_eq!(
        world.push(declared(&[("t/b", &["z"])])),
        ["t/a PruneBudgetExceeded"],
        "and goes on to"
    );
    world.allow();
    assert_eq!(world.push(declared(&[("t/b", &["z"])])), NONE);
    assert_eq!(world.has("t/a", "b"), NONE);
}

#[test]
fn a_budget_is_about_the_clusters_and_units_that_it_names() {
    let mut world = World::default();
    let selector = LabelSelector {
        match_labels: [("env".to_owned(), "two".to_owned())].into(),
        match_expressions: Vec::new(),
    };
    world.push(declared(&[("t/a", &["x", "y"])]));
    let two = SuspendedClusters {
        names: Vec::new(),
        selector: Some(selector),
    };
    world.budgets = vec![budget(Some(0), None, Some(two))];
    assert_eq!(world.push(declared(&[("t/a", &["x"])])), ["t/a PruneBudgetExceeded"]);
    assert_eq!(world.has("t/a", "a"), ["x"], "nothing was said of the other cluster");
    assert_eq!(world.has("t/a", "b"), ["x", "y"]);
}

#[test]
fn what_stays_as_nobodys_is_not_counted() {
    let mut world = World::default();
    let orphans = || {
        let mut fleet = declared(&[]);
        let (key, mut unit) = unit("t/a", &["x", "y"], &[]);
        Arc::make_mut(&mut unit.subscription).apply = ApplyPolicy {
            deletion: DeletionPolicy::Orphan,
            ..ApplyPolicy::default()
        };
        fleet.units = [(key, unit)].into();
        fleet
    };
    world.push(orphans());
    world.budgets = vec![budget(Some(0), None, None)];
    assert_eq!(world.push(declared(&[])), NONE);
    assert_eq!(world.has("t/a", "a"), NONE);
}

#[test]
fn a_unit_that_would_lose_all_that_it_has_and_stay_is_asked_for_a_word() {
    let mut world = World::default();
    let before = names(10);
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    world.push(declared(&[("t/a", &before), ("t/few", &["x"])]));
    assert_eq!(
        world.push(declared(&[("t/a", &["else"]), ("t/few", &["y"])])),
        ["t/a PruneBudgetExceeded"],
        "few objects are renamed every day"
    );
    assert_eq!(
        (world.has("t/a", "a").len(), world.has("t/few", "a")),
        (10, vec!["y".to_owned()])
    );
    world.allow();
    assert_eq!(world.push(declared(&[("t/a", &["else"]), ("t/few", &["y"])])), NONE);
    // To lose some of them, or to leave the cluster, is a wish that nobody types by mistake.
    assert_eq!(world.push(declared(&[("t/few", &["y"])])), NONE);
}

#[test]
fn what_cannot_be_read_is_kept() {
    let mut world = World::default();
    world.push(declared(&[("t/a", &["x", "y"])]));
    world.contents.clear();
    assert_eq!(
        world.push(declared(&[("t/a", &["x"])])),
        ["t/a ContentUnreadable", "t/a ContentUnreadable"],
        "once for each cluster"
    );
}

proptest::proptest! {
    /// Whatever three units declare of six objects, push after push, and whoever of them is broken: an object that
    /// some unit wants, and that was there, is with exactly one of them.
    #[test]
    fn no_object_that_is_wanted_goes_or_has_two_units(
        pushes in proptest::collection::vec(proptest::array::uniform3((0_u8..64, proptest::bool::weighted(0.2))), 1..6),
    ) {
        let keys = ["t/a", "t/b", "t/c"];
        let mut world = World::default();
        for push in pushes {
            let objects = |bits: u8| -> Vec<String> {
                (0..6).filter(|bit| bits & (1 << bit) != 0).map(|bit| format!("o{bit}")).collect()
            };
            let wanted: Vec<Vec<String>> = push.iter().map(|(bits, _)| objects(*bits)).collect();
            let mut fleet = declared(&[]);
            for ((key, (_, broken)), wanted) in keys.iter().zip(&push).zip(&wanted) {
                let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
                let (key, mut unit) = unit(key, &names, &[]);
                if *broken {
                    unit.blocked = vec![crate::Finding::error("Broken", "something is wrong with it").unit(&key)];
                }
                fleet.units.insert(key, unit);
            }
            let before: BTreeSet<String> = keys.iter().flat_map(|key| world.has(key, "a")).collect();
            world.planned(fleet);
            let after: Vec<String> = keys.iter().flat_map(|key| world.has(key, "a")).collect();
            let distinct: BTreeSet<&String> = after.iter().collect();
            proptest::prop_assert_eq!(distinct.len(), after.len(), "an object has one unit: {:?}", &after);
            for object in wanted.iter().flatten().filter(|object| before.contains(*object)) {
                proptest::prop_assert!(after.contains(object), "{} is wanted, was there, and is gone", object);
            }
        }
    }
}
