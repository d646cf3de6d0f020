//! A cluster, the disk of its agent, and what came of a story there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::agent::{Agent, JOURNAL, Place};
use super::dice::Dice;
use super::story::{HOME, Say, THINGS, Thing, units};
use super::switch::{Side, Switch};
use super::witness::Ledger;
use crate::tests::applier::{api, stored};
use crate::{ApiServer, Fault, Requests};

/// How long a cluster may take to be as it was delivered, by a clock that goes by itself.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Where a process ends, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crash {
    /// The write, counted from one.
    pub(super) at: u64,
    pub(super) side: Side,
    /// Whether the disk loses what was not synced.
    pub(super) power: bool,
}

/// The world of one story.
pub(super) struct World {
    server: ApiServer,
    place: Place,
    ledger: Arc<Mutex<Ledger>>,
    /// Objects of somebody else: (kind, shelf, namespace, name) → UID.
    theirs: BTreeMap<(Thing, String), Value>,
    processes: usize,
    /// What happened, for a failing test.
    told: Vec<String>,
}

impl World {
    pub(super) async fn new(says: Vec<Say>, place: Place) -> Self {
        let ledger = Ledger {
            says,
            ..Ledger::default()
        };
        let mut world = Self {
            server: ApiServer::default(),
            place,
            ledger: Arc::new(Mutex::new(ledger)),
            theirs: BTreeMap::new(),
            processes: 0,
            told: Vec::new(),
        };
        for name in ["theirs", "copied"] {
            let thing = Thing { name, ..THINGS[0] };
            let mut object = thing.object(1);
            if name == "copied" {
                object["metadata"]["annotations"] = json!({"fleet.flotilla.dev/unit": "shop/u0"});
            }
            world.make_theirs(thing, object).await;
        }
        world
    }

    /// Runs a process until it ends at that write, or has nothing more to do.
    pub(super) async fn crash(&mut self, crash: Crash, dice: &mut Dice) {
        self.told.push(format!("{crash:?}"));
        let switch = Arc::new(Switch::at(Some((crash.at, crash.side))));
        self.server.faults().clear_all();
        if let Some(agent) = self.start(&switch, dice).await {
            tokio::select! {
                biased;
                () = switch.died() => {}
                () = self.tell(&agent, dice) => {}
            }
            self.told.push(format!("ended after {} writes", switch.count()));
            agent.end().await;
        }
        if let Place::Disk(disk) = &self.place
            && crash.power
        {
            disk.cut_power(dice);
        }
        if dice.happens(50) {
            self.revert();
        }
        self.assert_nothing_wrong();
    }

    /// Runs a process to the end of the story; how often it wrote.
    pub(super) async fn finish(&mut self, dice: &mut Dice) -> u64 {
        let switch = Arc::new(Switch::at(None));
        self.server.faults().clear_all();
        let agent = self.start(&switch, dice).await.expect("nothing ends it");
        self.tell(&agent, dice).await;
        self.until_as_said().await;
        agent.stop().await;
        switch.count()
    }

    /// Somebody takes back what was said last: it is in no later delivery. Whatever of it was begun must go.
    fn revert(&self) {
        let mut ledger = self.ledger();
        let Some(sent) = ledger.sent.last().copied() else {
            return;
        };
        let before = sent.checked_sub(2).map(|before| ledger.says[before].clone());
        let before = before.unwrap_or_default();
        let said = ledger.says[sent - 1].clone();
        if sent == ledger.says.len() {
            ledger.says.push(said.clone());
        }
        for say in &mut ledger.says[sent..] {
            say.retain(|thing, _| before.contains_key(thing) || !said.contains_key(thing));
            let has_home = say.contains_key(&HOME);
            say.retain(|thing, _| has_home || thing.namespace != HOME.name);
        }
    }

    async fn start(&mut self, switch: &Arc<Switch>, dice: &mut Dice) -> Option<Agent> {
        self.processes += 1;
        let name = format!("process-{}", self.processes);
        let agent = Agent::start(&name, &self.server, &self.place, Arc::clone(switch), &self.ledger).await?;
        self.told.push(format!("{name} holds {}", agent.held()));
        if dice.happens(40) {
            self.make_again(agent.held(), dice).await;
        }
        Some(agent)
    }

    /// Tells the rest of the story.
    async fn tell(&self, agent: &Agent, dice: &mut Dice) {
        if dice.happens(30) {
            // The hub is away for a while: the journal alone says what should be.
            tokio::time::sleep(Duration::from_secs(400)).await;
        }
        let count = self.ledger().says.len();
        let sent = self.ledger().sent.last().copied().unwrap_or(1);
        // The hub says what is newest by now; what came in between is never said.
        let mut number = if dice.happens(50) { sent + dice.below(3) } else { sent }.min(count);
        // Where a whole site was without power, the API server may be back later than the hub's newest word.
        // A journal there cannot be written then, and nothing is said to be taken.
        if dice.happens(50) && matches!(self.place, Place::Disk(_)) {
            self.server.faults().set(Fault::Unreachable, Requests::default());
        }
        loop {
            agent.take(number).await;
            self.server.faults().clear_all();
            if number == count {
                return;
            }
            match dice.below(4) {
                0 => {}
                1 | 2 => tokio::time::sleep(Duration::from_millis(dice.below(3_000) as u64)).await,
                _ => tokio::time::sleep(Duration::from_secs(60)).await,
            }
            number += 1;
        }
    }

    /// Somebody removes an object that the agent is about to remove, or has removed, and makes their own of
    /// that name.
    async fn make_again(&mut self, held: usize, dice: &mut Dice) {
        let gone: Vec<Thing> = {
            let ledger = self.ledger();
            let before = &ledger.says[..held];
            let after = &ledger.says[held.saturating_sub(1)..];
            let is_gone = |thing: &&Thing| {
                before.iter().any(|say| say.contains_key(*thing)) && after.iter().all(|say| !say.contains_key(*thing))
            };
            let may = THINGS
                .iter()
                .filter(|thing| thing.kind != "Namespace" && thing.namespace != HOME.name);
            may.filter(is_gone).copied().collect()
        };
        let Some(thing) = dice.one_of(&gone).copied().filter(|_| held > 0) else {
            return;
        };
        if self.theirs.keys().any(|(theirs, _)| *theirs == thing) {
            return;
        }
        self.told.push(format!("{thing:?} is made again"));
        let api = api(self.server.client(), thing.kind, thing.namespace);
        let _gone_already = api.delete(thing.name, &DeleteParams::default()).await;
        self.make_theirs(thing, thing.object(99)).await;
    }

    async fn make_theirs(&mut self, thing: Thing, object: Value) {
        let api = api(self.server.client(), thing.kind, thing.namespace);
        let made = api
            .patch(thing.name, &PatchParams::apply("somebody"), &Patch::Apply(&object))
            .await;
        let uid = made.expect("it is made").metadata.uid.expect("it has a UID");
        self.ledger().foreign.insert(uid.clone());
        self.theirs.insert((thing, uid), object);
    }

    /// What differs from what was said last.
    fn differences(&self) -> Vec<String> {
        let last = self.ledger().says.last().cloned().unwrap_or_default();
        let mut differences = Vec::new();
        for thing in &THINGS {
            let live = stored(&self.server, thing.shelf, thing.namespace, thing.name);
            let is_theirs = self.theirs.keys().any(|(theirs, _)| theirs == thing);
            match (last.get(thing), live) {
                (Some((_, value)), Some(live)) if thing.value(&live) == Some(*value) => {}
                (Some((_, value)), live) => differences.push(format!("{thing:?} is not at {value}: {live:?}")),
                (None, Some(live)) if !is_theirs => differences.push(format!("{thing:?} is left: {live}")),
                (None, _) => {}
            }
        }
        for ((thing, uid), object) in &self.theirs {
            let live = stored(&self.server, thing.shelf, thing.namespace, thing.name);
            let same = live
                .as_ref()
                .is_some_and(|live| live["metadata"]["uid"] == **uid && thing.value(live) == thing.value(object));
            if !same {
                differences.push(format!("{thing:?} of somebody else is not as it was: {live:?}"));
            }
        }
        differences
    }

    async fn until_as_said(&self) {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let mut differences = self.differences();
            differences.extend(self.inventory_differences());
            differences.extend(self.journal_differences());
            if differences.is_empty() {
                return;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "the cluster never came to be as said: {differences:#?}\n{:#?}\n{:#?}\n{:#?}",
                self.told,
                self.ledger(),
                self.inventory()
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Object → UID, as the inventory in the cluster says it.
    fn inventory(&self) -> BTreeMap<String, Value> {
        let shard = stored(&self.server, "configmaps.", "flotilla-system", "flotilla-inventory-00");
        let text = shard.map(|shard| shard["data"]["inventory.json"].as_str().unwrap_or_default().to_owned());
        let shard: Value = serde_json::from_str(&text.unwrap_or_else(|| "{}".to_owned())).expect("it is JSON");
        let units = shard["units"].as_object().into_iter().flatten();
        let entries = units.flat_map(|(unit, objects)| {
            let objects = objects.as_object().into_iter().flatten();
            objects.map(move |(key, entry)| (format!("{key} of {unit}"), entry.clone()))
        });
        entries.collect()
    }

    /// What differs between the inventory and what is there.
    fn inventory_differences(&self) -> Vec<String> {
        let last = self.ledger().says.last().cloned().unwrap_or_default();
        let uid = |thing: &Thing| {
            let live = stored(&self.server, thing.shelf, thing.namespace, thing.name);
            live.map(|live| live["metadata"]["uid"].clone())
        };
        let wanted: BTreeSet<_> = last
            .keys()
            .map(|thing| uid(thing).unwrap_or_default().to_string())
            .collect();
        let inventory = self.inventory();
        let noted: BTreeSet<_> = inventory.values().map(|entry| entry["uid"].to_string()).collect();
        let mut differences: Vec<String> = wanted
            .difference(&noted)
            .map(|uid| format!("{uid} is not noted"))
            .collect();
        // An object of ours that somebody replaced is remembered as kept, under the UID that it had.
        let replaced = |key: &str| {
            self.theirs
                .keys()
                .any(|(thing, _)| key.contains(&format!("/{} ", thing.name)))
        };
        let extra = inventory
            .iter()
            .filter(|(key, entry)| !wanted.contains(&entry["uid"].to_string()) && !replaced(key));
        differences.extend(extra.map(|(key, _)| format!("{key} is noted for nothing")));
        differences
    }

    /// Holds the world to the story.
    pub(super) fn check(&self) {
        self.assert_nothing_wrong();
        let differences = self.differences();
        assert!(differences.is_empty(), "{differences:#?}\n{:#?}", self.told);
    }

    /// What an ended process left behind does not stay: there is a head, an index, and one part for each unit.
    fn journal_differences(&self) -> Option<String> {
        let state = self.server.state();
        let secrets = state.list("secrets.", "flotilla-system");
        let parts = secrets.filter(|(key, _)| key.name.starts_with(JOURNAL)).count();
        let last = self.ledger().says.last().map(units).unwrap_or_default();
        let contents: BTreeSet<_> = last.values().map(|objects| json!(objects).to_string()).collect();
        let expected = match self.place {
            Place::Disk(_) => 0,
            Place::Cluster => 2 + contents.len(),
        };
        (parts != expected).then(|| format!("the journal has {parts} Secrets and not {expected}"))
    }

    fn assert_nothing_wrong(&self) {
        let wrong = self.ledger().wrong.clone();
        assert!(wrong.is_empty(), "wrong deletions: {wrong:#?}\n{:#?}", self.told);
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
