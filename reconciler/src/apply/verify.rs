//! Compares what the inventory says was applied with what is there, kind by kind, without writing.
//!
//! An object is as it was left when its UID is the same, and either its resource version is, or the set of
//! fields that we own: whoever changes the value of one of them takes it over. The second holds only for
//! objects that this process applied, since only then it is known what they were left as.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use kube::Client;
use kube::api::{ListParams, ObjectMeta};
use render::model::DriftMode;
use render::{ObjectKey, UnitKey};

use super::discovery::ServedKind;
use super::health::{self, Verdict};
use super::inventory::Entry;
use super::pass::Brought;
use super::request::{RequestError, bounded};
use super::send::Seen;
use super::session::{Known, Outcome, Place, Session, SessionError};
use crate::limits::{APPLY_CONCURRENCY, LIST_PAGE_OBJECTS};
use crate::wire::{Health, ObjectState};

/// With no more objects of a kind in a namespace, they are asked for one by one: a list would give all
/// the others of that namespace too.
const ONE_BY_ONE_MAX: usize = 4;

/// The words of an object of a unit of which nothing is changed.
const FROZEN: &str = "nothing of it is changed while drift mode is Freeze";

/// Objects of one kind in one namespace.
struct Group {
    kind: Arc<ServedKind>,
    namespace: String,
    names: Vec<String>,
}

impl Session {
    /// Marks the objects that are as they were left.
    pub(super) async fn verify(&mut self, brought: &Brought) -> Result<(), SessionError> {
        let mut groups = Vec::new();
        for group in self.unverified() {
            groups.push(look(&self.client, group));
        }
        let mut found = stream::iter(groups).buffer_unordered(APPLY_CONCURRENCY);
        let mut seen = BTreeMap::new();
        while let Some(group) = found.next().await {
            match group {
                Ok(objects) => seen.extend(objects),
                Err(error) if error.is_general() => return Err(SessionError::Server(error)),
                // Then they are applied, which compares as well.
                Err(_) => {}
            }
        }
        drop(found);
        for (key, seen) in seen {
            self.compare(key, seen);
        }
        self.settle(brought);
        Ok(())
    }

    /// Objects that should be as they were left, and were not compared yet.
    fn unverified(&self) -> Vec<Group> {
        let mut groups: BTreeMap<(String, String, String), Group> = BTreeMap::new();
        for (unit_key, unit) in &self.units {
            for place in unit.slots.iter().filter_map(|slot| slot.place.as_ref()) {
                let entry = self.inventory.get(&place.key);
                let left = entry.is_some_and(|entry| was_left(entry, unit_key, place));
                if !left || self.known.get(&place.key).is_some_and(|known| known.fresh) {
                    continue;
                }
                let resource = &place.kind.resource;
                let namespace = place.key.namespace.clone();
                let id = (resource.api_version.clone(), resource.kind.clone(), namespace.clone());
                let group = groups.entry(id).or_insert_with(|| Group {
                    kind: place.kind.clone(),
                    namespace,
                    names: Vec::new(),
                });
                group.names.push(place.key.name.clone());
            }
        }
        groups.into_values().collect()
    }

    fn compare(&mut self, key: ObjectKey, seen: Seen) {
        let Some(entry) = self.inventory.get(&key) else {
            return;
        };
        let fields = self.known.get(&key).and_then(|known| known.fields);
        if !is_as_left(entry, fields, &seen) {
            return;
        }
        let reports = self
            .units
            .get(&entry.unit)
            .is_some_and(|unit| unit.drift == DriftMode::Report);
        self.inventory
            .note_version(&key, seen.resource_version.filter(|_| !reports));
        if seen.verdict.health != Health::Current {
            self.looks.add(&key);
        }
        let verdict = self.unjudged(&key, seen.verdict);
        let known = Known {
            fields: seen.fields,
            verdict,
            fresh: true,
        };
        self.known.insert(key, known);
    }

    /// Objects that are as they were left need nothing; others are to be sent.
    fn settle(&mut self, brought: &Brought) {
        let mut inherited = Vec::new();
        for (unit_key, unit) in &mut self.units {
            for slot in &mut unit.slots {
                let Some(place) = &slot.place else { continue };
                if unit.drift == DriftMode::Freeze {
                    slot.outcome = Outcome::new(ObjectState::Suspended, FROZEN);
                    continue;
                }
                let entry = self
                    .inventory
                    .get(&place.key)
                    .filter(|entry| was_left(entry, unit_key, place));
                let is_fresh = self.known.get(&place.key).is_some_and(|known| known.fresh);
                match entry.filter(|_| is_fresh) {
                    Some(entry) => {
                        slot.outcome = Outcome::applied();
                        if brought.is_other_lineage(entry) {
                            inherited.push((place.key.clone(), brought.stamp(entry.clone())));
                        }
                    }
                    None if matches!(slot.outcome.state, ObjectState::Applied | ObjectState::Suspended) => {
                        slot.outcome = Outcome::waiting("");
                    }
                    None => {}
                }
            }
        }
        // The new lineage has them too, and answers for them from now on.
        for (key, entry) in inherited {
            self.inventory.put(key, entry);
        }
    }
}

/// Whether this is what was last applied there, by this unit.
pub(super) fn was_left(entry: &Entry, unit: &UnitKey, place: &Place) -> bool {
    entry.unit == *unit && entry.uid.is_some() && entry.applied.as_ref() == Some(&place.digest)
}

/// Whether a live object is as it was left.
fn is_as_left(entry: &Entry, fields: Option<render::Digest>, seen: &Seen) -> bool {
    let same_version = entry.resource_version.is_some() && entry.resource_version == seen.resource_version;
    let same_fields = fields.is_some() && fields == seen.fields;
    entry.uid.is_some() && entry.uid == seen.uid && (same_version || same_fields)
}

async fn look(client: &Client, group: Group) -> Result<Vec<(ObjectKey, Seen)>, RequestError> {
    let resource = &group.kind.resource;
    let with_status = health::has_status(&resource.group, &resource.kind);
    if group.names.len() <= ONE_BY_ONE_MAX {
        return one_by_one(client, &group, with_status).await;
    }
    let api = group.kind.api(client, &group.namespace);
    // Others' objects of the kind are passed over page by page: what is kept goes with what is ours.
    let names: BTreeSet<&str> = group.names.iter().map(String::as_str).collect();
    let is_ours = |metadata: &ObjectMeta| metadata.name.as_deref().is_some_and(|name| names.contains(name));
    let key = |name: Option<String>| key(&group, name.unwrap_or_default());
    let mut params = ListParams::default().limit(LIST_PAGE_OBJECTS);
    let mut seen = Vec::new();
    loop {
        // Secrets and their like are not read when metadata will do.
        let next = if with_status {
            let page = bounded(api.list(&params)).await?;
            for object in page.items.into_iter().filter(|object| is_ours(&object.metadata)) {
                let object = group.kind.typed(object);
                seen.push((group.kind.key(&object), Seen::object(&object)));
            }
            page.metadata.continue_
        } else {
            let page = bounded(api.list_metadata(&params)).await?;
            let items = page.items.iter().filter(|item| is_ours(&item.metadata));
            seen.extend(items.map(|item| (key(item.metadata.name.clone()), plain(&item.metadata))));
            page.metadata.continue_
        };
        match next.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(seen),
        }
    }
}

async fn one_by_one(client: &Client, group: &Group, with_status: bool) -> Result<Vec<(ObjectKey, Seen)>, RequestError> {
    let api = group.kind.api(client, &group.namespace);
    let mut seen = Vec::new();
    for name in &group.names {
        let found = if with_status {
            bounded(api.get_opt(name)).await?.map(|object| Seen::object(&object))
        } else {
            let found = bounded(api.get_metadata_opt(name)).await?;
            found.map(|found| plain(&found.metadata))
        };
        seen.extend(found.map(|found| (key(group, name.clone()), found)));
    }
    Ok(seen)
}

/// An object of a kind whose health is never anything but Current.
pub(super) fn plain(metadata: &ObjectMeta) -> Seen {
    let verdict = if metadata.deletion_timestamp.is_some() {
        Verdict {
            health: Health::Terminating,
            message: "it is being deleted".to_owned(),
        }
    } else {
        Verdict {
            health: Health::Current,
            message: String::new(),
        }
    };
    Seen::new(metadata, verdict)
}

fn key(group: &Group, name: String) -> ObjectKey {
    ObjectKey {
        group: group.kind.resource.group.clone(),
        kind: group.kind.resource.kind.clone(),
        namespace: group.namespace.clone(),
        name,
    }
}

#[cfg(test)]
mod tests {
    use render::Digest;

    use super::*;

    fn entry() -> Entry {
        Entry {
            unit: UnitKey::new("shop", "web").expect("a valid unit"),
            api_version: "v1".to_owned(),
            uid: Some("uid-1".to_owned()),
            applied: Some("0123".to_owned()),
            resource_version: Some("7".to_owned()),
            lineage: "aaaa".to_owned(),
            sequence: 1,
            orphan: false,
            replacing: false,
        }
    }

    fn seen(uid: &str, version: &str, fields: &str) -> Seen {
        Seen {
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
            fields: Some(Digest::of_bytes(fields.as_bytes())),
            verdict: Verdict {
                health: Health::Current,
                message: String::new(),
            },
        }
    }

    #[test]
    fn an_object_is_as_it_was_left_by_its_version_or_by_our_fields() {
        let fields = Some(Digest::of_bytes(b"a"));
        assert!(is_as_left(&entry(), None, &seen("uid-1", "7", "a")));
        assert!(
            is_as_left(&entry(), fields, &seen("uid-1", "9", "a")),
            "others changed what is theirs"
        );
        assert!(
            !is_as_left(&entry(), fields, &seen("uid-1", "9", "b")),
            "a field of ours was taken"
        );
        assert!(
            !is_as_left(&entry(), None, &seen("uid-1", "9", "a")),
            "what it was left as is not known"
        );
        assert!(
            !is_as_left(&entry(), fields, &seen("uid-2", "7", "a")),
            "it is another object"
        );
        let never = Entry {
            uid: None,
            resource_version: None,
            ..entry()
        };
        assert!(!is_as_left(&never, None, &seen("uid-1", "7", "a")));
    }
}
