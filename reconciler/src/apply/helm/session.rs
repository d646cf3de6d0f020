//! Which releases a session works on: those of the delivery's HelmCharts, and those whose HelmChart left it.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::describe::{Content, is_chart};
use render::model::{CLUSTERNET_APPS_API_VERSION, DriftMode, FLEET_API_VERSION};
use render::{ObjectKey, UnitKey};
use tracing::info;

use super::manner::Manner;
use super::wanted::{Place, Wanted};
use super::{News, Order, Told};
use crate::apply::drift::Observed;
use crate::apply::gate::Gate;
use crate::apply::inventory::Entry;
use crate::apply::pass::Brought;
use crate::apply::removal::{self, Leaving};
use crate::apply::session::{Session, SessionError, Unit};
use crate::apply::{message, object, suspend};
use crate::wire::{Health, ObjectDrift, ObjectResult, ObjectState};

/// A HelmChart of a unit.
pub(in crate::apply) struct Chart {
    /// Its key.
    pub key: ObjectKey,
    /// The objects that must be there and healthy first, by its annotations.
    pub needs: Box<[ObjectKey]>,
    /// Whether it waits for them, or for what its unit needs.
    pub gate: Gate,
    /// Its annotation that leaves its release as it is.
    pub suspended_by: Option<&'static str>,
    /// By what its release is suspended now, in words for people.
    pub suspension: Option<String>,
    /// What it asks for; why it asks for nothing that can be done.
    wanted: Result<Arc<Wanted>, String>,
}

impl Chart {
    /// Reads a content; `None` when it is no HelmChart that can be read.
    pub(in crate::apply) fn of(content: &Content) -> Option<Self> {
        let (object, files) = match content {
            Content::Chart { object, files } => (object, Some(files.clone())),
            Content::Plain { object } => (object, None),
            Content::Encrypted { .. } => return None,
        };
        let key = render::describe::key_of(object).filter(is_chart)?;
        let wanted = Wanted::read(&key, object, files).map(Arc::new);
        Some(Self {
            needs: object::needs(object),
            gate: Gate::Open,
            suspended_by: suspend::annotation(object),
            suspension: None,
            key,
            wanted,
        })
    }

    /// Its key, in each group in which people may name it.
    pub(in crate::apply) fn names(&self) -> impl Iterator<Item = ObjectKey> + use<> {
        names(&self.key)
    }
}

/// A HelmChart's key, in each group in which people may name it.
pub(in crate::apply) fn names(chart: &ObjectKey) -> impl Iterator<Item = ObjectKey> + use<> {
    let ObjectKey { namespace, name, .. } = chart.clone();
    let groups = [FLEET_API_VERSION, CLUSTERNET_APPS_API_VERSION].into_iter();
    groups.map(move |group| ObjectKey::new(group, "HelmChart", &namespace, &name))
}

impl Unit {
    /// How objects of its releases are kept.
    fn manner(&self) -> Manner {
        Manner {
            drift: self.drift,
            ignore: self.policy.ignore.as_slice().into(),
        }
    }
}

impl Order {
    /// Whether a task has nothing new to do.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Keep(a, manner), Self::Keep(b, other)) => {
                manner == other && a.content == b.content && a.place == b.place && a.order == b.order
            }
            (Self::Remove(a), Self::Remove(b)) => a == b,
            _ => false,
        }
    }
}

impl Session {
    /// The HelmCharts of all units, each by the unit that may have it: who has it already, or the first.
    pub(in crate::apply) fn charts(&self) -> BTreeMap<&ObjectKey, (&UnitKey, &Chart)> {
        let mut charts: BTreeMap<&ObjectKey, (&UnitKey, &Chart)> = BTreeMap::new();
        for (unit_key, unit) in &self.units {
            for chart in &unit.charts {
                let has_it = self
                    .inventory
                    .get(&chart.key)
                    .is_some_and(|entry| entry.unit == *unit_key);
                if has_it || !charts.contains_key(&chart.key) {
                    charts.insert(&chart.key, (unit_key, chart));
                }
            }
        }
        charts
    }

    /// Notes every release that is about to be made, before it is: one that was made just before a crash is
    /// somebody's then.
    pub(in crate::apply) async fn intend_releases(&mut self, brought: &Brought) -> Result<(), SessionError> {
        let mut intents = Vec::new();
        for (key, (unit, chart)) in self.charts() {
            let Ok(wanted) = &chart.wanted else { continue };
            let before = self.inventory.get(key);
            let orphan = self.units.get(unit).is_some_and(|unit| unit.orphan);
            let is_noted = before
                .is_some_and(|entry| entry.unit == *unit && entry.orphan == orphan && !brought.is_other_lineage(entry));
            if is_noted {
                continue;
            }
            let entry = Entry {
                unit: unit.clone(),
                api_version: FLEET_API_VERSION.to_owned(),
                // A release has no UID. Where it is, is what tells it from others; that it is ours, its mark says.
                uid: before.map_or_else(|| Some(wanted.place.text()), |entry| entry.uid.clone()),
                applied: None,
                resource_version: None,
                lineage: before.map_or_else(String::new, |entry| entry.lineage.clone()),
                sequence: before.map_or(0, |entry| entry.sequence),
                orphan,
                replacing: false,
            };
            intents.push((key.clone(), entry));
        }
        if intents.is_empty() {
            return Ok(());
        }
        for (key, entry) in intents {
            self.inventory.put(key, brought.stamp(entry));
        }
        self.inventory
            .flush(&self.shards)
            .await
            .map_err(SessionError::Inventory)
    }

    /// Works on the releases of the delivery, and on those that are to go.
    pub(in crate::apply) fn keep_releases(&mut self, leaving: Leaving) {
        let Leaving { mut orders, mut held } = leaving;
        for (key, (unit, chart)) in self.charts() {
            let mut manner = self.units.get(unit).map(Unit::manner).unwrap_or_default();
            if chart.suspension.is_some() {
                manner.drift = DriftMode::Freeze;
            } else if self.holds_back(unit, chart).is_some() {
                held.insert(key.clone());
                continue;
            }
            if let (Ok(wanted), None) = (&chart.wanted, self.moved(chart)) {
                orders.insert(key.clone(), Order::Keep(wanted.clone(), manner));
            }
        }
        self.releases.keep(orders, &held);
    }

    /// Takes in what a release says, and whatever releases said already.
    pub(in crate::apply) fn released(&mut self, news: (ObjectKey, News)) -> Observed {
        let taken = self.releases.take(news);
        self.corrections.add(&taken.corrections);
        if !taken.followed.is_empty() {
            self.follow();
            self.releases.are_watched(&taken.followed);
        }
        Observed {
            is_news: true,
            asks_for_a_pass: taken.any_gone,
        }
    }

    /// Why nothing is released for a HelmChart now; what it has stays.
    fn holds_back(&self, unit: &UnitKey, chart: &Chart) -> Option<(ObjectState, String)> {
        let unit = self.units.get(unit)?;
        if unit.slots.iter().any(|slot| slot.sealed) {
            let words = "waits until the documents of its unit can be decrypted";
            return Some((ObjectState::Waiting, words.to_owned()));
        }
        match &chart.gate {
            Gate::Open => None,
            Gate::Waits(words) => Some((ObjectState::Waiting, words.clone())),
            Gate::Blocked(words) => Some((ObjectState::Blocked, words.clone())),
        }
    }

    /// Why a release cannot be where its HelmChart says now: it stands elsewhere, and its objects with it.
    fn moved(&self, chart: &Chart) -> Option<String> {
        let wanted = chart.wanted.as_ref().ok()?;
        let there = self.inventory.get(&chart.key)?.uid.as_deref()?;
        (there != wanted.place.text()).then(|| {
            format!(
                "its release is {there}, and a release does not move; hint: take the HelmChart out and let the release go first, or give it another name"
            )
        })
    }

    /// How the HelmCharts of a unit fare.
    pub(in crate::apply) fn release_results(&self, unit: &UnitKey) -> Vec<ObjectResult> {
        let owners = self.charts();
        let charts = self
            .units
            .get(unit)
            .map(|unit| unit.charts.as_slice())
            .unwrap_or_default();
        let each = charts.iter();
        each.map(
            |chart| match owners.get(&chart.key).filter(|(owner, _)| *owner != unit) {
                Some((owner, _)) => {
                    let words = format!("unit {owner} delivers it too");
                    result(&chart.key, ObjectState::Conflict, Health::Unknown, &words)
                }
                None => self.release_result(unit, chart),
            },
        )
        .collect()
    }

    /// How the HelmChart fares of the unit that has it.
    pub(in crate::apply) fn release_result(&self, unit: &UnitKey, chart: &Chart) -> ObjectResult {
        let result = |state, health, words: &str| result(&chart.key, state, health, words);
        let trouble = chart.wanted.as_ref().err().cloned().or_else(|| self.moved(chart));
        if let Some(words) = trouble {
            return result(ObjectState::Failed, Health::Unknown, &words);
        }
        let content = chart.wanted.as_ref().map_or("", |wanted| wanted.content.as_str());
        if let Some(words) = &chart.suspension {
            let told = self.releases.told(&chart.key);
            let health = told.map_or(Health::Unknown, |told| told.verdict.health);
            return result(ObjectState::Suspended, health, words);
        }
        // What was said of an earlier content says nothing of this one.
        match self.releases.told(&chart.key).filter(|told| told.content == content) {
            None => {
                let held = self.holds_back(unit, chart);
                let (state, words) = held.unwrap_or((ObjectState::Waiting, String::new()));
                result(state, Health::Unknown, &words)
            }
            Some(Told {
                state,
                verdict,
                message,
                ..
            }) => {
                let words = if message.is_empty() { &verdict.message } else { message };
                result(*state, verdict.health, words)
            }
        }
    }

    /// The objects of a unit's releases that are not as their manifests say, the first few; and how many more there are.
    pub(in crate::apply) fn release_drift(&self, key: &UnitKey, unit: &Unit) -> (Vec<ObjectDrift>, usize) {
        let (mut drift, mut more) = (Vec::new(), 0);
        if unit.charts.is_empty() {
            return (drift, more);
        }
        let owners = self.charts();
        let is_own = |chart: &&Chart| owners.get(&chart.key).is_some_and(|(owner, _)| *owner == key);
        for chart in unit.charts.iter().filter(is_own) {
            let Some(told) = self.releases.told(&chart.key) else {
                continue;
            };
            more += told.more;
            drift.extend(told.drift.iter().map(|object| ObjectDrift {
                chart: Some(chart.key.clone()),
                ..object.clone()
            }));
        }
        (drift, more)
    }

    /// Decides about a release whose HelmChart left the delivery, by its proof; what its task is to do.
    pub(in crate::apply) fn release_step(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        brought: &Brought,
    ) -> (removal::Step, Option<Order>) {
        if let Some(reason) = self.objection(key, entry, &self.evidence(brought)) {
            return (removal::Step::Keep(reason), None);
        }
        if entry.orphan {
            info!(object = %key, subscription = %entry.unit, "Orphaned a release.");
            return (removal::Step::Forget, None);
        }
        let Some(place) = entry.uid.as_deref().and_then(Place::parse) else {
            let words = "the inventory does not say which release it has";
            return (removal::Step::Keep(words.to_owned()), None);
        };
        let step = match self.releases.told(key) {
            Some(told) if told.gone => return (removal::Step::Forget, None),
            Some(told) if told.state == ObjectState::Kept => removal::Step::Keep(told.message.clone()),
            Some(told) if told.state == ObjectState::Removing => removal::Step::Removing(told.message.clone()),
            _ => removal::Step::Removing(String::new()),
        };
        (step, Some(Order::Remove(place)))
    }
}

fn result(chart: &ObjectKey, state: ObjectState, health: Health, words: &str) -> ObjectResult {
    ObjectResult {
        object: chart.clone(),
        state,
        health,
        message: message::shorten(words),
    }
}
