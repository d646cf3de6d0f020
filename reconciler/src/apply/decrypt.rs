//! Opens a unit's encrypted documents before anything of the unit is sent: either all of them open, or nothing of the
//! unit is applied and it keeps what it has.
//!
//! What was opened lives until it is sent, at most for one pass; it is in no report, log or inventory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use render::describe::{CarriedStep, Content, key_of};
use render::localize::{Unfitting, apply_carried};
use render::{ObjectKey, UnitKey};

use super::ApplierOptions;
use super::keyring::{self, Keyring};
use super::session::{Outcome, Session, SessionError, Slot, Unit};
use super::sops::{self, Opened, SopsError};
use crate::computing::computing;
use crate::wire::ObjectState;

/// Why a document's object is not at hand.
#[derive(Debug, thiserror::Error)]
enum DecryptError {
    #[error("failed to decrypt it")]
    Sops(#[source] SopsError),
    #[error("failed to put its overrides in")]
    Override(#[source] Unfitting),
    #[error("it names another object once it is decrypted")]
    OtherObject,
}

/// What a pass decrypted, and where keys come from.
pub(super) struct Decryption {
    namespace: String,
    key_file: Option<PathBuf>,
    /// By unit and place among its slots.
    opened: BTreeMap<(UnitKey, usize), Opened>,
}

impl Decryption {
    pub(super) fn new(options: &ApplierOptions) -> Self {
        Self {
            namespace: options.namespace.clone(),
            key_file: options.age_key_file.clone(),
            opened: BTreeMap::new(),
        }
    }

    /// The object of a slot, once.
    pub(super) fn take(&mut self, unit: &UnitKey, slot: usize) -> Option<Opened> {
        self.opened.remove(&(unit.clone(), slot))
    }

    /// Drops what was not sent.
    pub(super) fn forget(&mut self) {
        self.opened.clear();
    }
}

impl Session {
    /// Decrypts what is to be sent of encrypted documents. Where there is none, nobody is asked for keys.
    pub(super) async fn open_documents(&mut self) -> Result<(), SessionError> {
        self.decryption.forget();
        let mut secrets = BTreeSet::new();
        for unit in self.units.values_mut() {
            unit.slots.iter_mut().for_each(|slot| slot.sealed = false);
            if unit.slots.iter().any(|slot| is_to_open(unit, slot)) {
                secrets.insert(unit.key_secret().to_owned());
            }
        }
        for secret in secrets {
            let Decryption {
                namespace, key_file, ..
            } = &self.decryption;
            let read = keyring::read(&self.client, namespace, &secret, key_file.as_deref()).await;
            let keyring = Arc::new(read.map_err(SessionError::Server)?);
            for (unit_key, unit) in self.units.iter_mut().filter(|(_, unit)| unit.key_secret() == secret) {
                let found = open_beside(sealed(unit), Arc::clone(&keyring)).await;
                for (slot, opened) in settle(unit, found) {
                    self.decryption.opened.insert((unit_key.clone(), slot), opened);
                }
            }
        }
        Ok(())
    }
}

impl Unit {
    /// The Secret that has the keys of its documents.
    fn key_secret(&self) -> &str {
        self.policy.decryption_secret.as_deref().unwrap_or(keyring::SECRET)
    }
}

/// Whether an encrypted document is to be sent, now or once its kind is known.
fn is_to_open(unit: &Unit, slot: &Slot) -> bool {
    let is_encrypted = matches!(unit.objects[slot.content], Content::Encrypted { .. });
    is_encrypted && !slot.yielded && !slot.is_settled()
}

/// The documents of a unit that are to be opened, by their slots.
fn sealed(unit: &Unit) -> Vec<(usize, Content)> {
    let slots = unit.slots.iter().enumerate();
    slots
        .filter(|(_, slot)| is_to_open(unit, slot))
        .map(|(index, slot)| (index, unit.objects[slot.content].clone()))
        .collect()
}

/// Opens them on another thread. Where whoever waits gives up, what was opened is wiped all the same.
async fn open_beside(sealed: Vec<(usize, Content)>, keyring: Arc<Keyring>) -> Vec<(usize, Result<Opened, String>)> {
    if sealed.is_empty() {
        return Vec::new();
    }
    computing(move || open_all(sealed, &keyring)).await
}

/// Opens them, each by itself; one that does not open gives the words for people.
fn open_all(sealed: Vec<(usize, Content)>, keyring: &Keyring) -> Vec<(usize, Result<Opened, String>)> {
    let open_one = |(index, content): (usize, Content)| {
        let Content::Encrypted {
            key,
            original,
            overrides,
        } = &content
        else {
            return None;
        };
        let opened = open(key, original, overrides, keyring);
        Some((index, opened.map_err(|error| words(&error, keyring))))
    };
    sealed.into_iter().filter_map(open_one).collect()
}

/// What was opened of a unit; where one does not open, says so at each object that is held back, and gives nothing.
fn settle(unit: &mut Unit, found: Vec<(usize, Result<Opened, String>)>) -> Vec<(usize, Opened)> {
    let mut opened = Vec::new();
    let mut failed = Vec::new();
    for (index, found) in found {
        match found {
            Ok(object) => opened.push((index, object)),
            Err(words) => failed.push((index, words)),
        }
    }
    let Some((first, _)) = failed.first() else {
        return opened;
    };
    let waits = format!("{} of its unit does not open", told(&unit.slots[*first].identity.key));
    for slot in &mut unit.slots {
        slot.sealed = true;
        if !slot.yielded && !slot.is_settled() {
            slot.outcome = Outcome::new(ObjectState::Blocked, waits.clone());
        }
    }
    for (index, message) in failed {
        unit.slots[index].outcome = Outcome::new(ObjectState::Failed, message);
    }
    Vec::new()
}

fn open(key: &ObjectKey, original: &str, overrides: &[CarriedStep], keyring: &Keyring) -> Result<Opened, DecryptError> {
    let mut opened = sops::open(original, &keyring.identities).map_err(DecryptError::Sops)?;
    apply_carried(opened.value_mut(), overrides).map_err(DecryptError::Override)?;
    if key_of(opened.value()).as_ref() == Some(key) {
        Ok(opened)
    } else {
        Err(DecryptError::OtherObject)
    }
}

/// The error, and what is lacking where that may be why.
fn words(error: &DecryptError, keyring: &Keyring) -> String {
    let mut words = crate::fault::line(error);
    if matches!(error, DecryptError::Sops(SopsError::NoIdentity { .. })) {
        for lack in &keyring.lacks {
            words = format!("{words}; {lack}");
        }
    }
    super::message::shorten(&words)
}

fn told(key: &ObjectKey) -> String {
    match key.namespace.as_str() {
        "" => format!("{} {}", key.kind, key.name),
        namespace => format!("{} {namespace}/{}", key.kind, key.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::computing::tests::is_elsewhere;

    #[test]
    fn documents_are_opened_beside_those_who_wait_for_sockets() {
        let sealed = |number| Content::Encrypted {
            key: ObjectKey {
                group: String::new(),
                kind: "Secret".to_owned(),
                namespace: "shop".to_owned(),
                name: "db".to_owned(),
            },
            original: format!("number: {number}").into(),
            overrides: Vec::new(),
        };
        let opening = |sealed| async move {
            let found = open_beside(sealed, Arc::default()).await;
            let failed = found.into_iter().map(|(slot, opened)| (slot, opened.is_err()));
            assert_eq!(failed.collect::<Vec<_>>(), [(3, true), (7, true)], "each by itself");
        };
        assert!(is_elsewhere(async { vec![(3, sealed(3)), (7, sealed(7))] }, opening));
    }
}
