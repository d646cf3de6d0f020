//! Removes what the delivery lacks, in reverse order of stages, each object by its own proof.
//!
//! Within a unit, a stage waits until what was applied after it is gone: a finalizer of a custom resource
//! needs the controller that is removed after it.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use render::describe::is_chart;
use render::model::ANNOTATION_UNIT;
use render::model::DriftMode;
use render::{ObjectKey, UnitKey};
use serde_json::json;
use tracing::info;

use super::FIELD_MANAGER;
use super::discovery::Kinds;
use super::gate;
use super::helm::Order;
use super::inventory::{Entry, Needs};
use super::message;
use super::order::{Stage, stage};
use super::pass::Brought;
use super::prune::{self, Decision, Evidence, Live, Proof};
use super::request::{RequestError, bounded};
use super::session::{Interrupt, Session, SessionError, Unit};
use super::status::Removal;
use crate::limits::APPLY_CONCURRENCY;
use crate::wire::ObjectState;

/// What becomes of the releases that the delivery lacks.
#[derive(Default)]
pub(super) struct Leaving {
    /// What is done now.
    pub orders: BTreeMap<ObjectKey, Order>,
    /// Those that wait for something else that leaves before them.
    pub held: BTreeSet<ObjectKey>,
}

/// What came of one object, or one release.
pub(super) enum Step {
    Forget,
    Confirm(String),
    Removing(String),
    Stuck(String),
    Keep(String),
}

impl Session {
    /// Removes what the delivery lacks, as far as the proofs go.
    pub(super) async fn remove_unwanted(
        &mut self,
        brought: &Brought,
        interrupt: &Interrupt,
    ) -> Result<Leaving, SessionError> {
        self.removals.clear();
        let mut leaving = Leaving::default();
        let wanted = self.wanted();
        let entries = self.inventory.iter().filter(|(key, _)| !wanted.contains(*key));
        let unwanted = entries.map(|(key, entry)| {
            let orphan = self.stays(entry);
            (
                key.clone(),
                Entry {
                    orphan,
                    ..entry.clone()
                },
            )
        });
        let mut unwanted: BTreeMap<ObjectKey, Entry> = unwanted.collect();
        let needs = self.inventory.needs().by_every_name();
        // A release that is not reached goes on as it was told.
        leaving
            .held
            .extend(unwanted.keys().filter(|key| is_chart(key)).cloned());
        while !unwanted.is_empty() && !interrupt.is_raised() {
            let wave = wave(&unwanted, &needs);
            let mut staying = Vec::new();
            let (charts, objects): (Vec<_>, Vec<_>) = wave.into_iter().partition(is_chart);
            let mut steps = self.steps(&objects, &unwanted, brought).await?;
            for key in charts {
                let Some(entry) = unwanted.get(&key).cloned() else {
                    continue;
                };
                let (step, order) = self.release_step(&key, &entry, brought);
                leaving.held.remove(&key);
                leaving.orders.extend(order.map(|order| (key.clone(), order)));
                steps.push((key, entry, step));
            }
            for (key, entry, step) in steps {
                unwanted.remove(&key);
                if let Step::Removing(_) | Step::Stuck(_) = step {
                    staying.push((key.clone(), entry.unit.clone()));
                }
                self.take_step(key, entry, step);
            }
            self.hold(&mut unwanted, staying, &needs);
        }
        Ok(leaving)
    }

    /// Whether what is to leave stays as nobody's. What leaves a unit that stays is removed: the word is about the unit
    /// as a whole. It may have said it while it was here, or the delivery without it says it, which is newer.
    pub(super) fn stays(&self, entry: &Entry) -> bool {
        let said = entry.orphan || self.orphan || self.orphaned.contains(&entry.unit);
        said && !self.is_delivered(&entry.unit)
    }

    pub(super) fn is_delivered(&self, unit: &UnitKey) -> bool {
        self.units.contains_key(unit) || self.missing.contains_key(unit)
    }

    /// What is applied before something that is not gone yet waits for it, and so does what that needs: all of it, since
    /// what waits is not gone either.
    fn hold(&mut self, unwanted: &mut BTreeMap<ObjectKey, Entry>, staying: Vec<(ObjectKey, UnitKey)>, needs: &Needs) {
        let mut there = staying;
        let blocked: BTreeSet<_> = there.iter().map(|(_, unit)| unit.clone()).collect();
        for unit in &blocked {
            there.extend(self.keep_waiting(unwanted, &prune::waits_for(unit), |_, entry| entry.unit == *unit));
        }
        // Of each unit, the last turn of what waits.
        let mut turns: BTreeMap<UnitKey, (bool, Stage)> = BTreeMap::new();
        let mut seen: BTreeSet<UnitKey> = BTreeSet::new();
        while let Some((key, unit)) = there.pop() {
            for needed in needs.objects.get(&key).into_iter().flatten() {
                let words = format!("waits until {}, which needs it, is gone", gate::label(&key));
                if let Some(entry) = unwanted.remove(needed) {
                    there.push((needed.clone(), entry.unit.clone()));
                    self.waits(needed.clone(), entry, &words);
                }
            }
            let turn = turn(&key);
            if turns.get(&unit).is_none_or(|known| *known < turn) {
                turns.insert(unit.clone(), turn);
                let is_before = |other: &ObjectKey, entry: &Entry| entry.unit == unit && self::turn(other) < turn;
                there.extend(self.keep_waiting(unwanted, &prune::waits_for(&unit), is_before));
            }
            let mut units = Vec::from_iter(seen.insert(unit.clone()).then_some(unit));
            while let Some(unit) = units.pop() {
                for needed in needs.units.get(&unit).into_iter().flatten() {
                    let words = format!("waits until {unit}, which needs it, is gone");
                    there.extend(self.keep_waiting(unwanted, &words, |_, entry| entry.unit == *needed));
                    units.extend(seen.insert(needed.clone()).then(|| needed.clone()));
                }
            }
        }
    }

    /// Keeps such; which they are.
    fn keep_waiting(
        &mut self,
        unwanted: &mut BTreeMap<ObjectKey, Entry>,
        words: &str,
        such: impl Fn(&ObjectKey, &Entry) -> bool,
    ) -> Vec<(ObjectKey, UnitKey)> {
        let mut kept = Vec::new();
        for (key, entry) in unwanted.extract_if(.., |key, entry| such(key, entry)) {
            kept.push((key.clone(), entry.unit.clone()));
            self.waits(key, entry, words);
        }
        kept
    }

    fn waits(&mut self, key: ObjectKey, entry: Entry, words: &str) {
        let removal = Removal {
            message: words.to_owned(),
            unit: entry.unit,
            state: ObjectState::Removing,
        };
        self.removals.insert(key, removal);
    }

    fn take_step(&mut self, key: ObjectKey, entry: Entry, step: Step) {
        let (state, message) = match step {
            Step::Forget => {
                self.inventory.remove(&key);
                return;
            }
            Step::Confirm(uid) => {
                if let Some(own) = self.inventory.get(&key).cloned() {
                    let uid = Some(uid);
                    let replacing = false;
                    self.inventory.put(key.clone(), Entry { uid, replacing, ..own });
                }
                // A later pass removes it, with a whole proof.
                (ObjectState::Removing, "it is confirmed that it was applied".to_owned())
            }
            Step::Removing(message) => (ObjectState::Removing, message),
            Step::Stuck(message) => (ObjectState::Stuck, message),
            Step::Keep(message) => (ObjectState::Kept, message),
        };
        let unit = entry.unit;
        self.removals.insert(key, Removal { unit, state, message });
    }

    /// Decides about a wave of objects, and does it.
    async fn steps(
        &self,
        wave: &[ObjectKey],
        unwanted: &BTreeMap<ObjectKey, Entry>,
        brought: &Brought,
    ) -> Result<Vec<(ObjectKey, Entry, Step)>, SessionError> {
        let mut tasks = Vec::new();
        for (key, entry) in wave.iter().filter_map(|key| Some((key, unwanted.get(key)?))) {
            let evidence = self.evidence(brought);
            let objection = self.objection(key, entry, &evidence);
            tasks.push(step(&self.client, &self.kinds, key, entry, evidence, objection));
        }
        let mut steps = stream::iter(tasks).buffer_unordered(APPLY_CONCURRENCY);
        let mut done = Vec::new();
        while let Some(step) = steps.next().await {
            done.push(step.map_err(SessionError::Server)?);
        }
        Ok(done)
    }

    pub(super) fn evidence<'a>(&self, brought: &'a Brought) -> Evidence<'a> {
        Evidence {
            lineage: brought.lineage(),
            sequence: brought.sequence(),
            missing: self.missing.len(),
        }
    }

    pub(super) fn objection(&self, key: &ObjectKey, entry: &Entry, evidence: &Evidence<'_>) -> Option<String> {
        if self
            .units
            .get(&entry.unit)
            .is_some_and(|unit| unit.drift == DriftMode::Freeze)
        {
            return Some("nothing of its unit is changed while drift mode is Freeze".to_owned());
        }
        if !self.inventory.unreadable().is_empty() {
            return Some("parts of the inventory cannot be read".to_owned());
        }
        if self.units.get(&entry.unit).is_some_and(Unit::is_sealed) {
            return Some(format!(
                "unit {} keeps what it has until its documents open",
                entry.unit
            ));
        }
        if let Some(reason) = self.suspended(key, &entry.unit) {
            return Some(reason);
        }
        if let Some(reason) = prune::objection(key, entry, evidence) {
            return Some(reason);
        }
        if entry.orphan {
            return None;
        }
        let others = self
            .inventory
            .iter()
            .map(|(other, _)| other)
            .filter(|other| *other != key);
        let plural = |other: &ObjectKey| {
            let api_version = &self.inventory.get(other)?.api_version;
            Some(self.kinds.find_any(api_version, &other.kind)?.resource.plural.clone())
        };
        let dependant = prune::dependant(key, others, plural)?;
        Some(format!("{dependant} still needs it"))
    }
}

/// Of each unit, the objects of its last stage, without what others that leave still need.
fn wave(unwanted: &BTreeMap<ObjectKey, Entry>, needs: &Needs) -> Vec<ObjectKey> {
    let last = last_stages(unwanted);
    if needs.units.is_empty() && needs.objects.is_empty() {
        return last;
    }
    let leaving: BTreeSet<_> = unwanted.values().map(|entry| &entry.unit).collect();
    let of_units = leaving.iter().filter_map(|unit| needs.units.get(*unit)).flatten();
    let needed_units: BTreeSet<_> = of_units.collect();
    let of_objects = unwanted.keys().filter_map(|key| needs.objects.get(key));
    let needed: BTreeSet<_> = of_objects.flat_map(|needed| needed.iter()).collect();
    let with_releases: BTreeSet<_> = unwanted
        .iter()
        .filter(|(key, _)| is_chart(key))
        .map(|(_, entry)| &entry.unit)
        .collect();
    let before_releases = before_releases(unwanted, needs);
    let is_free = |key: &ObjectKey, unit: &UnitKey| {
        !needed_units.contains(unit)
            && !needed.contains(key)
            // A release needs its namespace, and what its hooks use, until it is gone.
            && (is_chart(key) || !with_releases.contains(unit) || before_releases.contains(key))
    };
    // An object that is needed by one of an earlier stage goes before its own stage would say.
    let free = unwanted.iter().filter(|(key, entry)| is_free(key, &entry.unit));
    let wave = last_stages(&free.map(|(key, entry)| (key.clone(), entry.clone())).collect());
    // Those that need each other in a circle, as an older content may have had it, go by their stages.
    if wave.is_empty() { last } else { wave }
}

/// What needs a release, by itself or by what it needs.
fn before_releases<'a>(unwanted: &'a BTreeMap<ObjectKey, Entry>, needs: &Needs) -> BTreeSet<&'a ObjectKey> {
    let mut before: BTreeSet<_> = unwanted.keys().filter(|key| is_chart(key)).collect();
    let mut known = 0;
    while known < before.len() {
        known = before.len();
        let needing = unwanted.keys().filter(|key| {
            let needed = needs.objects.get(*key).into_iter().flatten();
            needed.into_iter().any(|needed| before.contains(needed))
        });
        let needing: Vec<_> = needing.collect();
        before.extend(needing);
    }
    before
}

/// When it leaves, among those of its unit: the last first, releases before everything.
fn turn(key: &ObjectKey) -> (bool, Stage) {
    (is_chart(key), stage(key))
}

fn last_stages(unwanted: &BTreeMap<ObjectKey, Entry>) -> Vec<ObjectKey> {
    let mut last: BTreeMap<&UnitKey, (bool, Stage)> = BTreeMap::new();
    for (key, entry) in unwanted {
        let stage = turn(key);
        last.entry(&entry.unit)
            .and_modify(|last| *last = stage.max(*last))
            .or_insert(stage);
    }
    let is_last = |key: &ObjectKey, entry: &Entry| last.get(&entry.unit) == Some(&turn(key));
    unwanted
        .iter()
        .filter(|(key, entry)| is_last(key, entry))
        .map(|(key, _)| key.clone())
        .collect()
}

async fn step(
    client: &Client,
    kinds: &Kinds,
    key: &ObjectKey,
    entry: &Entry,
    evidence: Evidence<'_>,
    objection: Option<String>,
) -> Result<(ObjectKey, Entry, Step), RequestError> {
    let step = match objection {
        Some(reason) => Step::Keep(reason),
        None => remove(client, kinds, key, entry, &evidence).await?,
    };
    Ok((key.clone(), entry.clone(), step))
}

async fn remove(
    client: &Client,
    kinds: &Kinds,
    key: &ObjectKey,
    entry: &Entry,
    evidence: &Evidence<'_>,
) -> Result<Step, RequestError> {
    let live = match live(client, kinds, key, entry).await {
        Ok(live) => live,
        Err(error) if error.is_general() => return Err(error),
        Err(error) => return Ok(Step::Keep(message::shorten(&error.line()))),
    };
    match prune::decide(key, entry, evidence, &live) {
        Decision::Forget => Ok(Step::Forget),
        Decision::Confirm { uid } => Ok(Step::Confirm(uid)),
        Decision::Removing(going) => Ok(match going.stuck(jiff::Timestamp::now().as_second()) {
            Some(message) => Step::Stuck(message),
            None => Step::Removing("it is being deleted".to_owned()),
        }),
        Decision::Orphan { uid, resource_version } => orphan(client, kinds, key, entry, uid, resource_version).await,
        Decision::Keep(reason) => Ok(Step::Keep(reason)),
        Decision::Remove { uid, resource_version } => delete(client, kinds, key, entry, uid, resource_version).await,
    }
}

async fn live(client: &Client, kinds: &Kinds, key: &ObjectKey, entry: &Entry) -> Result<Live, RequestError> {
    let Some(kind) = kinds.find_any(&entry.api_version, &key.kind) else {
        return Ok(Live::Unknown(kinds.absence(&entry.api_version, &key.kind)));
    };
    if kind.namespaced == key.namespace.is_empty() {
        return Ok(Live::Unknown(
            "its kind was namespaced when it was applied, and is not now, or the reverse".to_owned(),
        ));
    }
    let found = bounded(kind.api(client, &key.namespace).get_metadata_opt(&key.name)).await?;
    Ok(found.map_or(Live::Gone, |found| Live::Present(Proof::of(&found.metadata))))
}

async fn delete(
    client: &Client,
    kinds: &Kinds,
    key: &ObjectKey,
    entry: &Entry,
    uid: String,
    resource_version: String,
) -> Result<Step, RequestError> {
    let Some(kind) = kinds.find_any(&entry.api_version, &key.kind) else {
        return Ok(Step::Keep(kinds.absence(&entry.api_version, &key.kind)));
    };
    // Exactly the object that was looked at: another one of that name, or a newer state of it, stays.
    let preconditions = Preconditions {
        uid: Some(uid),
        resource_version: Some(resource_version),
    };
    let params = DeleteParams::background().preconditions(preconditions);
    match bounded(kind.api(client, &key.namespace).delete(&key.name, &params)).await {
        Ok(deleted) => {
            info!(object = %key, subscription = %entry.unit, "Removed object.");
            // An object in the answer is one that is still there, held by finalizers or its own grace.
            Ok(deleted
                .left()
                .map_or(Step::Forget, |_| Step::Removing("it is being deleted".to_owned())))
        }
        Err(error) if error.is_not_found() => Ok(Step::Forget),
        Err(error) if error.code() == Some(409) => Ok(Step::Removing("it changed while it was looked at".to_owned())),
        Err(error) if error.is_general() => Err(error),
        Err(error) => Ok(Step::Removing(message::shorten(&error.line()))),
    }
}

/// Takes our marks off an object that stays. Its fields stay as they are, and so does who set them: whoever takes it
/// over does that by force or by name, as with any other object.
async fn orphan(
    client: &Client,
    kinds: &Kinds,
    key: &ObjectKey,
    entry: &Entry,
    uid: String,
    resource_version: String,
) -> Result<Step, RequestError> {
    let Some(kind) = kinds.find_any(&entry.api_version, &key.kind) else {
        return Ok(Step::Keep(kinds.absence(&entry.api_version, &key.kind)));
    };
    // Exactly the object that was looked at, as with a deletion.
    let patch = json!({"metadata": {
        "uid": uid,
        "resourceVersion": resource_version,
        "annotations": {ANNOTATION_UNIT: null},
    }});
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let api = kind.api(client, &key.namespace);
    match bounded(api.patch_metadata(&key.name, &params, &Patch::Merge(&patch))).await {
        Ok(_) => {
            info!(object = %key, subscription = %entry.unit, "Orphaned object.");
            Ok(Step::Forget)
        }
        Err(error) if error.is_not_found() => Ok(Step::Forget),
        Err(error) if error.code() == Some(409) => Ok(Step::Removing("it changed while it was looked at".to_owned())),
        Err(error) if error.is_general() => Err(error),
        Err(error) => Ok(Step::Removing(message::shorten(&error.line()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(unit: &str) -> Entry {
        Entry {
            unit: unit.parse().expect("a valid unit"),
            api_version: "v1".to_owned(),
            uid: None,
            applied: None,
            resource_version: None,
            lineage: String::new(),
            sequence: 0,
            orphan: false,
            replacing: false,
        }
    }

    #[test]
    fn what_others_need_leaves_after_them() {
        let unit = |name: &str| name.parse::<UnitKey>().expect("a valid unit");
        let key = |name: &str| ObjectKey::new("v1", "ConfigMap", "shop", name);
        let objects = [
            ("a", "infra/db"),
            ("b", "shop/api"),
            ("c", "shop/web"),
            ("d", "shop/web"),
        ];
        let mut unwanted: BTreeMap<_, _> = objects.iter().map(|(name, unit)| (key(name), entry(unit))).collect();
        let units = BTreeMap::from([
            (unit("shop/web"), vec![unit("shop/api"), unit("infra/gone")]),
            (unit("shop/api"), vec![unit("infra/db")]),
        ]);
        let objects = BTreeMap::from([(key("d"), Box::from([key("c")]))]);
        let needs = Needs { units, objects };
        for expected in ["d", "c", "b", "a"] {
            assert_eq!(wave(&unwanted, &needs), [key(expected)]);
            unwanted.remove(&key(expected));
        }
        let circle = BTreeMap::from([(unit("a/a"), vec![unit("b/b")]), (unit("b/b"), vec![unit("a/a")])]);
        let both: BTreeMap<_, _> = [("a", "a/a"), ("b", "b/b")]
            .map(|(name, unit)| (key(name), entry(unit)))
            .into();
        let needs = Needs {
            units: circle,
            objects: BTreeMap::new(),
        };
        assert_eq!(wave(&both, &needs).len(), 2, "a circle keeps nothing for ever");
    }

    #[test]
    fn a_release_leaves_after_what_needs_it_and_before_the_rest_of_its_unit() {
        let unit = |name: &str| name.parse::<UnitKey>().expect("a valid unit");
        let key = |name: &str| ObjectKey::new("apps/v1", "Deployment", "shop", name);
        let chart = |name: &str| ObjectKey::new("apps.clusternet.io/v1alpha1", "HelmChart", "shop", name);
        let objects = [
            (chart("broker"), "infra/base"),
            (chart("database"), "infra/base"),
            (key("hooks"), "infra/base"),
            (key("client"), "infra/base"),
            (key("web"), "shop/web"),
        ];
        let mut unwanted: BTreeMap<_, _> = objects.map(|(key, unit)| (key, entry(unit))).into();
        let named = ObjectKey::new("fleet.flotilla.dev/v1alpha1", "HelmChart", "shop", "broker");
        let needs = Needs {
            units: BTreeMap::from([(unit("shop/web"), vec![unit("infra/base")])]),
            objects: BTreeMap::from([
                (key("client"), Box::from([named])),
                (chart("broker"), Box::from([chart("database")])),
            ]),
        };
        let needs = needs.by_every_name();
        for expected in [
            key("web"),
            key("client"),
            chart("broker"),
            chart("database"),
            key("hooks"),
        ] {
            assert_eq!(wave(&unwanted, &needs), std::slice::from_ref(&expected));
            unwanted.remove(&expected);
        }
        let circle = Needs {
            units: BTreeMap::new(),
            objects: BTreeMap::from([
                (chart("broker"), Box::from([key("client")])),
                (key("client"), Box::from([chart("broker")])),
            ]),
        };
        let both: BTreeMap<_, _> = [chart("broker"), key("client")]
            .map(|key| (key, entry("infra/base")))
            .into();
        assert_eq!(
            wave(&both, &circle),
            [chart("broker")],
            "a circle goes as if nobody needed anybody"
        );
    }

    #[test]
    fn each_unit_loses_its_last_stage_first() {
        let namespace = ObjectKey::new("v1", "Namespace", "", "shop");
        let config = ObjectKey::new("v1", "ConfigMap", "shop", "a");
        let workload = ObjectKey::new("apps/v1", "Deployment", "shop", "a");
        let other = ObjectKey::new("v1", "ConfigMap", "other", "a");
        let mut unwanted: BTreeMap<_, _> = [&namespace, &config, &workload]
            .map(|key| (key.clone(), entry("shop/web")))
            .into();
        unwanted.insert(other.clone(), entry("other/web"));
        assert_eq!(last_stages(&unwanted), [other.clone(), workload.clone()]);
        unwanted.remove(&workload);
        unwanted.remove(&other);
        assert_eq!(last_stages(&unwanted), std::slice::from_ref(&config));
        unwanted.remove(&config);
        assert_eq!(last_stages(&unwanted), [namespace]);
    }
}
