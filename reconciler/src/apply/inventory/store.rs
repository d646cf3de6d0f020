//! The shards of the inventory in their ConfigMaps, read whole and written when they changed.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use render::{ObjectKey, UnitKey};

use super::codec::{self, CodecError};
use super::{Entry, Needs};
use crate::apply::FIELD_MANAGER;
use crate::apply::request::{RequestError, bounded};
use crate::limits::INVENTORY_SHARD_ENTRIES_MAX;

/// Shards are named by it and a number.
const NAME_PREFIX: &str = "flotilla-inventory-";

/// The key of a shard's ConfigMap that holds its text.
const DATA_KEY: &str = "inventory.json";

/// The inventory could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(in crate::apply) enum InventoryError {
    /// The API server did not give the list of shards.
    #[error("failed to read the inventory")]
    Read(#[source] RequestError),
    /// The API server did not take a shard.
    #[error("failed to write inventory shard {shard}")]
    Write {
        /// Its name.
        shard: String,
        /// Why.
        #[source]
        source: RequestError,
    },
}

/// The inventory of one cluster. Nothing is written before [`Inventory::flush`].
pub(in crate::apply) struct Inventory {
    entries: BTreeMap<ObjectKey, Filed>,
    shards: BTreeMap<usize, Shard>,
    unreadable: Vec<String>,
    needs: Needs,
}

struct Filed {
    entry: Entry,
    shard: usize,
}

#[derive(Default)]
struct Shard {
    /// `None` while it does not exist.
    resource_version: Option<String>,
    keys: BTreeSet<ObjectKey>,
    changed: bool,
    /// An unreadable shard keeps its place and is never written.
    readable: bool,
}

impl Inventory {
    /// Reads every shard. Gives the ConfigMaps that are none, too.
    pub(in crate::apply) async fn load(api: &Api<ConfigMap>) -> Result<(Self, Vec<ConfigMap>), InventoryError> {
        // By name and not by label: a label that somebody removed must not hide a shard.
        let list = bounded(api.list(&ListParams::default()))
            .await
            .map_err(InventoryError::Read)?;
        let is_shard = |stored: &ConfigMap| {
            let name = stored.metadata.name.as_deref();
            name.is_some_and(|name| name.starts_with(NAME_PREFIX))
        };
        let (shards, others) = list.items.into_iter().partition(is_shard);
        Ok((Self::from_shards(shards), others))
    }

    /// One that nothing was written to.
    #[cfg(test)]
    pub(super) fn empty() -> Self {
        Self::from_shards(Vec::new())
    }

    fn from_shards(shards: Vec<ConfigMap>) -> Self {
        let mut inventory = Self {
            entries: BTreeMap::new(),
            shards: BTreeMap::new(),
            unreadable: Vec::new(),
            needs: Needs::default(),
        };
        for shard in shards {
            let name = shard.metadata.name.unwrap_or_default();
            let Some(number) = name.strip_prefix(NAME_PREFIX).and_then(|number| number.parse().ok()) else {
                continue;
            };
            let text = shard.data.as_ref().and_then(|data| data.get(DATA_KEY));
            let decoded = codec::decode(text.map(String::as_str));
            inventory.file(number, name, shard.metadata.resource_version, decoded);
        }
        inventory
    }

    fn file(
        &mut self,
        number: usize,
        name: String,
        resource_version: Option<String>,
        decoded: Result<(Vec<(ObjectKey, Entry)>, Needs), CodecError>,
    ) {
        let mut shard = Shard {
            resource_version,
            readable: decoded.is_ok(),
            ..Shard::default()
        };
        match decoded {
            Ok((entries, needs)) => {
                self.needs.units.extend(needs.units);
                self.needs.objects.extend(needs.objects);
                for (key, entry) in entries {
                    // Written twice by a repaired shard: the entry with a UID knows more.
                    if self.entries.get(&key).is_some_and(|filed| filed.entry.uid.is_some()) {
                        shard.changed = true;
                        continue;
                    }
                    if let Some(earlier) = self.entries.get(&key)
                        && let Some(other) = self.shards.get_mut(&earlier.shard)
                    {
                        other.changed |= other.keys.remove(&key);
                    }
                    shard.keys.insert(key.clone());
                    self.entries.insert(key, Filed { entry, shard: number });
                }
            }
            Err(error) => self.unreadable.push(format!("{name}: {error}")),
        }
        self.shards.insert(number, shard);
    }

    /// What keeps parts of it from being read; empty when all of it was. While it is not, nothing is
    /// removed from the cluster.
    pub(in crate::apply) fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    /// What is remembered of an object.
    pub(in crate::apply) fn get(&self, key: &ObjectKey) -> Option<&Entry> {
        self.entries.get(key).map(|filed| &filed.entry)
    }

    /// Every object that is remembered, sorted.
    pub(in crate::apply) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Entry)> {
        self.entries.iter().map(|(key, filed)| (key, &filed.entry))
    }

    /// Remembers an object.
    pub(in crate::apply) fn put(&mut self, key: ObjectKey, entry: Entry) {
        let number = match self.entries.get(&key) {
            Some(filed) if filed.entry == entry => return,
            Some(filed) => filed.shard,
            None => self.roomy_shard(),
        };
        let shard = self.shards.entry(number).or_default();
        shard.keys.insert(key.clone());
        shard.changed = true;
        self.entries.insert(key, Filed { entry, shard: number });
    }

    /// Notes the newest resource version of an object. That alone is no reason to write the shard: a
    /// version that is too old only costs one more look.
    pub(in crate::apply) fn note_version(&mut self, key: &ObjectKey, resource_version: Option<String>) {
        if let Some(filed) = self.entries.get_mut(key) {
            filed.entry.resource_version = resource_version;
        }
    }

    /// Who needs whom, of what is remembered.
    pub(in crate::apply) fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Remembers which units a unit needs.
    pub(in crate::apply) fn set_unit_needs(&mut self, unit: &UnitKey, needed: &[UnitKey]) {
        if self.needs.units.get(unit).map_or(&[][..], Vec::as_slice) == needed {
            return;
        }
        if needed.is_empty() {
            self.needs.units.remove(unit);
        } else {
            self.needs.units.insert(unit.clone(), needed.to_vec());
        }
        let with_unit = self.entries.values().filter(|filed| filed.entry.unit == *unit);
        let numbers: BTreeSet<_> = with_unit.map(|filed| filed.shard).collect();
        numbers.into_iter().for_each(|number| self.touch(number));
    }

    /// Remembers which objects an object needs.
    pub(in crate::apply) fn set_object_needs(&mut self, key: &ObjectKey, needed: &[ObjectKey]) {
        if self.needs.objects.get(key).map_or(&[][..], |known| known) == needed {
            return;
        }
        if needed.is_empty() {
            self.needs.objects.remove(key);
        } else {
            self.needs.objects.insert(key.clone(), needed.into());
        }
        if let Some(number) = self.entries.get(key).map(|filed| filed.shard) {
            self.touch(number);
        }
    }

    /// Forgets what is needed by units and objects of which nothing is left.
    pub(in crate::apply) fn forget_needs(&mut self) {
        let entries = &self.entries;
        self.needs.objects.retain(|key, _| entries.contains_key(key));
        if !self.needs.units.is_empty() {
            let units: BTreeSet<_> = entries.values().map(|filed| &filed.entry.unit).collect();
            self.needs.units.retain(|unit, _| units.contains(unit));
        }
    }

    fn touch(&mut self, number: usize) {
        if let Some(shard) = self.shards.get_mut(&number) {
            shard.changed = true;
        }
    }

    /// Forgets an object.
    pub(in crate::apply) fn remove(&mut self, key: &ObjectKey) {
        if let Some(filed) = self.entries.remove(key)
            && let Some(shard) = self.shards.get_mut(&filed.shard)
        {
            shard.keys.remove(key);
            shard.changed = true;
        }
    }

    /// The first shard with room, or a new one.
    fn roomy_shard(&mut self) -> usize {
        let roomy = |shard: &Shard| shard.readable && shard.keys.len() < INVENTORY_SHARD_ENTRIES_MAX;
        if let Some((number, _)) = self.shards.iter().find(|(_, shard)| roomy(shard)) {
            return *number;
        }
        let number = self.shards.last_key_value().map_or(0, |(last, _)| last + 1);
        let shard = Shard {
            readable: true,
            ..Shard::default()
        };
        self.shards.insert(number, shard);
        number
    }

    /// Writes the shards that changed, each only if nobody else wrote it since.
    pub(in crate::apply) async fn flush(&mut self, api: &Api<ConfigMap>) -> Result<(), InventoryError> {
        let mut writes = Vec::new();
        for (&number, shard) in self.shards.iter().filter(|(_, shard)| shard.changed) {
            writes.push(write(api, number, self.config_map(number, shard)));
        }
        let mut outcome = Ok(());
        for (number, written) in join_all(writes).await {
            match written {
                Ok(resource_version) => {
                    if let Some(shard) = self.shards.get_mut(&number) {
                        shard.resource_version = resource_version;
                        shard.changed = false;
                    }
                }
                Err(source) => {
                    let shard = shard_name(number);
                    outcome = Err(InventoryError::Write { shard, source });
                }
            }
        }
        outcome
    }

    fn config_map(&self, number: usize, shard: &Shard) -> ConfigMap {
        let entries = shard.keys.iter().filter_map(|key| self.entries.get_key_value(key));
        let text = codec::encode(entries.map(|(key, filed)| (key, &filed.entry)), &self.needs);
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(shard_name(number)),
                resource_version: shard.resource_version.clone(),
                ..ObjectMeta::default()
            },
            data: Some([(DATA_KEY.to_owned(), text)].into()),
            ..ConfigMap::default()
        }
    }
}

fn shard_name(number: usize) -> String {
    format!("{NAME_PREFIX}{number:02}")
}

async fn write(api: &Api<ConfigMap>, number: usize, shard: ConfigMap) -> (usize, Result<Option<String>, RequestError>) {
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let written = match (&shard.metadata.resource_version, &shard.metadata.name) {
        (Some(_), Some(name)) => bounded(api.replace(name, &params, &shard)).await,
        _ => bounded(api.create(&params, &shard)).await,
    };
    (number, written.map(|written| written.metadata.resource_version))
}

#[cfg(test)]
mod tests {
    use render::UnitKey;

    use super::*;

    fn entry(uid: Option<&str>) -> Entry {
        Entry {
            unit: UnitKey::new("shop", "web").expect("a valid unit"),
            api_version: "v1".to_owned(),
            uid: uid.map(str::to_owned),
            applied: None,
            resource_version: None,
            lineage: "aaaa".to_owned(),
            sequence: 3,
            orphan: false,
            replacing: false,
        }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("v1", "ConfigMap", "shop", name)
    }

    fn shard(number: usize, text: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(shard_name(number)),
                resource_version: Some("1".to_owned()),
                ..ObjectMeta::default()
            },
            data: Some([(DATA_KEY.to_owned(), text.to_owned())].into()),
            ..ConfigMap::default()
        }
    }

    #[test]
    fn a_broken_shard_is_named_kept_and_never_filled() {
        let good = codec::encode([(&key("a"), &entry(Some("uid-1")))], &Needs::default());
        let mut inventory = Inventory::from_shards(vec![shard(0, "{"), shard(1, &good)]);
        assert_eq!(inventory.unreadable().len(), 1, "the broken shard is named");
        assert!(inventory.get(&key("a")).is_some(), "the good shard is read");
        inventory.put(key("b"), entry(None));
        let changed: Vec<_> = inventory.shards.iter().filter(|(_, shard)| shard.changed).collect();
        assert_eq!(changed.len(), 1);
        assert_eq!(*changed[0].0, 1, "the broken shard is left as it is");
    }

    #[test]
    fn a_full_shard_makes_room_for_another() {
        let mut inventory = Inventory::from_shards(Vec::new());
        for number in 0..=INVENTORY_SHARD_ENTRIES_MAX {
            inventory.put(key(&format!("c{number}")), entry(None));
        }
        let sizes: Vec<_> = inventory.shards.values().map(|shard| shard.keys.len()).collect();
        assert_eq!(sizes, [INVENTORY_SHARD_ENTRIES_MAX, 1]);
    }

    #[test]
    fn an_entry_that_stands_twice_is_read_with_its_uid() {
        let intended = codec::encode([(&key("a"), &entry(None))], &Needs::default());
        let confirmed = codec::encode([(&key("a"), &entry(Some("uid-1")))], &Needs::default());
        for texts in [[&intended, &confirmed], [&confirmed, &intended]] {
            let shards = texts.iter().enumerate().map(|(number, text)| shard(number, text));
            let inventory = Inventory::from_shards(shards.collect());
            let uid = inventory.get(&key("a")).and_then(|entry| entry.uid.as_deref());
            assert_eq!(uid, Some("uid-1"));
        }
    }

    #[test]
    fn what_is_needed_is_written_with_whoever_needs_it_and_read_back() {
        let good = codec::encode([(&key("a"), &entry(Some("uid-1")))], &Needs::default());
        let mut inventory = Inventory::from_shards(vec![shard(0, &good)]);
        let (web, db): (UnitKey, UnitKey) = (
            "shop/web".parse().expect("a valid unit"),
            "infra/db".parse().expect("a valid unit"),
        );
        inventory.set_unit_needs(&web, std::slice::from_ref(&db));
        inventory.set_object_needs(&key("a"), &[key("b")]);
        assert!(inventory.shards[&0].changed);
        let again = Inventory::from_shards(vec![inventory.config_map(0, &inventory.shards[&0])]);
        assert_eq!(again.needs, inventory.needs);
        let mut again = again;
        again.set_unit_needs(&web, &[db]);
        again.set_object_needs(&key("a"), &[key("b")]);
        assert!(!again.shards[&0].changed, "what is known is not written again");
        again.remove(&key("a"));
        again.forget_needs();
        assert_eq!(again.needs, Needs::default());
    }

    #[test]
    fn what_did_not_change_is_not_written() {
        let text = codec::encode([(&key("a"), &entry(Some("uid-1")))], &Needs::default());
        let mut inventory = Inventory::from_shards(vec![shard(0, &text)]);
        inventory.put(key("a"), entry(Some("uid-1")));
        inventory.note_version(&key("a"), Some("9".to_owned()));
        assert!(inventory.shards.values().all(|shard| !shard.changed));
    }
}
