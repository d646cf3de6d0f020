//! What an applier knows of its cluster while it holds the lease: kinds, inventory, units, and which
//! objects were seen as they should be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use render::{ClusterName, Digest, ObjectKey, UnitKey};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::apply_set::ApplySets;
use super::decrypt::Decryption;
use super::discovery::Kinds;
use super::drift::{Drift, Tally};
use super::health::{Check, Verdict};
use super::helm::{News, Releases};
use super::inventory::{Inventory, InventoryError};
use super::lease::LeaseState;
use super::look::Looks;
use super::patience::Patience;
use super::request::{RequestError, bounded};
use super::status::Removal;
use super::unit::in_namespace;
use super::watch::{Watched, Watches};
use super::{ApplierOptions, Desired};
use crate::wire::Health;

pub(super) use super::unit::{Before, Outcome, Place, Slot, Unit, sent};

/// Work that stopped, since going on with other objects would be pointless.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// The API server is of no use right now.
    #[error("the API server does not work")]
    Server(#[source] RequestError),
    /// The inventory cannot be relied on; without it nothing new is applied.
    #[error("the inventory does not work")]
    Inventory(#[source] InventoryError),
    /// What should be applied cannot be relied on.
    #[error("{0}")]
    Prepare(String),
}

/// What makes a pass stop early: something newer, or no right to write.
pub(super) struct Interrupt {
    /// The newest desired state.
    pub desired: watch::Receiver<Option<Arc<Desired>>>,
    /// The lease.
    pub lease: watch::Receiver<LeaseState>,
    /// The end of it all.
    pub shutdown: CancellationToken,
}

impl Interrupt {
    /// Whether no further object should be begun.
    pub(super) fn is_raised(&self) -> bool {
        self.shutdown.is_cancelled() || !self.may_write() || self.desired.has_changed().unwrap_or(false)
    }

    /// Whether this process is the one that may write.
    pub(super) fn may_write(&self) -> bool {
        self.lease.borrow().is_held()
    }
}

/// What is known of the cluster.
pub(super) struct Session {
    pub(super) cluster: ClusterName,
    /// Since when no hub is heard of.
    pub(super) away: Option<watch::Receiver<Option<i64>>>,
    pub(super) client: Client,
    pub(super) shards: Api<ConfigMap>,
    /// Where the inventory is.
    pub(super) namespace: String,
    pub(super) apply_sets: ApplySets,
    pub(super) version: String,
    pub(super) kinds: Kinds,
    /// Whether a refusal hints that `kinds` is out of date.
    pub(super) doubts_kinds: bool,
    pub(super) inventory: Inventory,
    /// The sequence of what should be.
    pub(super) sequence: Option<u64>,
    /// Units whose content arrived.
    pub(super) units: BTreeMap<UnitKey, Unit>,
    /// Units whose content has not arrived.
    pub(super) missing: BTreeMap<UnitKey, Digest>,
    /// Whether what the delivery lacks stays, since the cluster leaves the fleet.
    pub(super) orphan: bool,
    /// Units that left and whose objects stay, whatever they said while they were here.
    pub(super) orphaned: BTreeSet<UnitKey>,
    /// Objects that were seen, by their keys in the cluster.
    pub(super) known: BTreeMap<ObjectKey, Known>,
    /// Objects of the inventory that the delivery lacks.
    pub(super) removals: BTreeMap<ObjectKey, Removal>,
    pub(super) looks: Looks,
    pub(super) patience: Patience,
    pub(super) watches: Watches,
    pub(super) decryption: Decryption,
    pub(super) releases: Releases,
    /// Objects whose replicas an autoscaler of the delivery sets.
    pub(super) scaled: BTreeSet<ObjectKey>,
    /// Field managers that count as earlier tools.
    pub(super) earlier: Arc<[String]>,
    /// What others did to our objects.
    pub(super) drift: Drift,
    /// How often it was put right.
    pub(super) corrections: Tally,
}

/// What reaches a session between two passes.
pub(super) enum Heard {
    /// A watch says something.
    Watched(Watched),
    /// A release does.
    Released((ObjectKey, News)),
}

/// What was last seen of an object.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Digest of the fields that we own; whoever changes one of them takes it from us, and this changes.
    pub fields: Option<Digest>,
    /// Its health.
    pub verdict: Verdict,
    /// Whether it was compared, or applied, since the last resync.
    pub fresh: bool,
}

impl Session {
    /// Reads what the cluster serves and what was applied there.
    pub(super) async fn begin(
        client: Client,
        options: &ApplierOptions,
        corrections: &Tally,
    ) -> Result<Self, SessionError> {
        let shards = Api::namespaced(client.clone(), &options.namespace);
        let version = bounded(client.apiserver_version())
            .await
            .map_err(SessionError::Server)?;
        let kinds = Kinds::discover(&client).await.map_err(SessionError::Server)?;
        let (inventory, others) = Inventory::load(&shards).await.map_err(SessionError::Inventory)?;
        let releases = Releases::new(client.clone(), &options.helm, options.resync);
        Ok(Self {
            cluster: options.cluster.clone(),
            away: options.away.clone(),
            client,
            shards,
            namespace: options.namespace.clone(),
            apply_sets: ApplySets::among(&others, &options.namespace),
            version: version.git_version,
            kinds,
            doubts_kinds: false,
            inventory,
            sequence: None,
            units: BTreeMap::new(),
            missing: BTreeMap::new(),
            orphan: false,
            orphaned: BTreeSet::new(),
            known: BTreeMap::new(),
            removals: BTreeMap::new(),
            looks: Looks::default(),
            patience: Patience::default(),
            watches: Watches::default(),
            decryption: Decryption::new(options),
            releases,
            scaled: BTreeSet::new(),
            earlier: options.earlier_managers.clone().into(),
            drift: Drift::default(),
            corrections: corrections.clone(),
        })
    }

    /// What a watch or a release says next. Cancel-safe.
    pub(super) async fn hear(&mut self) -> Option<Heard> {
        tokio::select! {
            biased;
            watched = self.watches.next() => watched.map(Heard::Watched),
            told = self.releases.next() => told.map(Heard::Released),
        }
    }

    /// From now on every object has to be compared again.
    pub(super) fn distrust(&mut self) {
        self.known.values_mut().for_each(|known| known.fresh = false);
        // Otherwise releases see to it by themselves.
        if self.watches.are_failing() {
            self.releases.doubt();
        }
    }

    /// Whatever was left as others made it is not as it should be any more, once the mode of its unit is another one.
    fn doubt_other_modes(&mut self, desired: &Desired) {
        for (key, unit) in &self.units {
            if desired.units.get(key).is_none_or(|next| next.drift == unit.drift) {
                continue;
            }
            for object in unit.keys() {
                self.inventory.note_version(object, None);
                if let Some(known) = self.known.get_mut(object) {
                    known.fresh = false;
                    known.fields = None;
                }
            }
        }
    }

    /// Takes over what should be; units that did not change keep what is known of them.
    pub(super) fn adopt(&mut self, desired: &Desired) {
        self.doubt_other_modes(desired);
        self.sequence = Some(desired.held.sequence);
        let mut before = std::mem::take(&mut self.units);
        let mut fresh = Vec::new();
        for (key, unit) in &desired.units {
            let same = |old: &Unit| old.digest == unit.description.digest && old.replicas == unit.replicas;
            match before.remove(key) {
                Some(mut kept) if same(&kept) => {
                    kept.drift = unit.drift;
                    kept.slots.iter_mut().for_each(|slot| slot.tried = false);
                    self.units.insert(key.clone(), kept);
                }
                changed => {
                    if let Some(changed) = &changed {
                        self.drift.begin_anew(changed.keys());
                    }
                    fresh.push((key, Unit::new(key, unit, &self.namespace)));
                    before.extend(changed.map(|changed| (key.clone(), changed)));
                }
            }
        }
        // An object may also have come from another unit.
        let mut manifests: BTreeMap<_, _> = before.values().flat_map(Unit::manifests).collect();
        for (key, mut unit) in fresh {
            for slot in &mut unit.slots {
                slot.before = manifests.remove(&slot.identity.key);
            }
            self.units.insert(key.clone(), unit);
        }
        self.scaled = self.units.values().flat_map(Unit::scaled).collect();
        self.orphan = desired.held.orphan;
        self.orphaned = desired.held.orphaned.keys().cloned().collect();
        let held = desired.held.units.iter();
        let missing = held.filter(|(key, _)| !desired.units.contains_key(*key));
        self.missing = missing.map(|(key, unit)| (key.clone(), unit.digest)).collect();
    }

    /// Finds out where objects belong. Two units cannot have one object: who has it keeps it.
    pub(super) fn resolve(&mut self) {
        let mut claims: BTreeMap<ObjectKey, UnitKey> = BTreeMap::new();
        for (unit_key, unit) in &mut self.units {
            unit.resolve(unit_key, &self.kinds);
            for key in unit.keys() {
                let owner = self.inventory.get(key).map(|entry| &entry.unit);
                if owner == Some(unit_key) || !claims.contains_key(key) {
                    claims.insert(key.clone(), unit_key.clone());
                }
            }
        }
        for (unit_key, unit) in &mut self.units {
            unit.yield_claims(unit_key, &claims);
        }
    }

    /// The rule that people wrote for an object's kind, in its unit.
    pub(super) fn check(&self, key: &ObjectKey) -> Option<&Check> {
        let unit = self.units.get(&self.inventory.get(key)?.unit)?;
        unit.checks.iter().find(|check| check.concerns(key))
    }

    /// What counts as an object's health when only the built-in rules have seen it: where people wrote a rule, what
    /// that said last, until it is looked at again.
    pub(super) fn unjudged(&mut self, key: &ObjectKey, verdict: Verdict) -> Verdict {
        if self.check(key).is_none() || verdict.health == Health::Terminating {
            return verdict;
        }
        self.looks.add(key);
        self.known
            .get(key)
            .map_or_else(Check::pending, |known| known.verdict.clone())
    }

    /// Whether some object's kind is not known.
    pub(super) fn has_unresolved(&self) -> bool {
        self.units
            .values()
            .flat_map(|unit| &unit.slots)
            .any(|slot| slot.is_unresolved())
    }

    /// Every key that the delivery may mean: an object whose kind is not known, or that is not sent, may be
    /// in a namespace or in none.
    pub(super) fn wanted(&self) -> BTreeSet<ObjectKey> {
        let mut wanted = BTreeSet::new();
        let mut vague = |key: &ObjectKey| {
            for namespace in ["", "default", &key.namespace] {
                wanted.insert(in_namespace(key, namespace));
            }
        };
        for unit in self.units.values() {
            let slots = unit.slots.iter().filter(|slot| slot.place.is_none());
            slots.for_each(|slot| vague(&slot.identity.key));
            unit.unfit.iter().for_each(|unfit| vague(&unfit.key));
            unit.charts.iter().for_each(|chart| vague(&chart.key));
        }
        wanted.extend(self.units.values().flat_map(Unit::keys).cloned());
        wanted
    }
}
