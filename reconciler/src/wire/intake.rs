//! What a cluster was told and has: the newest believed envelope, and contents by digest.
//!
//! Plain data with checks; who keeps it over a restart (a journal, an object in the cluster) is the
//! caller's matter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::describe::{Description, InvalidDescription};
use render::model::SyncMode;
use render::{ClusterName, Digest};

use super::modes::held_after;
use super::{Accepted, Envelope, Held, Refusal, accept};
use crate::apply::{Desired, DesiredUnit};

/// The newest believed envelope, with the contents that arrived.
#[derive(Clone, Debug)]
pub struct Intake {
    cluster: ClusterName,
    held: Option<Held>,
    contents: BTreeMap<Digest, Arc<Description>>,
}

impl Intake {
    /// An intake that holds what a journal had, or nothing; contents are added one by one.
    pub fn new(cluster: ClusterName, held: Option<Held>) -> Self {
        Self {
            cluster,
            held,
            contents: BTreeMap::new(),
        }
    }

    /// The newest believed envelope.
    pub fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// Who applies, and what the hub may reach, as was told last; nothing told is Dual.
    pub fn mode(&self) -> SyncMode {
        self.held.as_ref().map(|held| held.mode).unwrap_or_default()
    }

    /// Takes an envelope when it is believed. `verify` is [`accept()`]'s.
    pub fn envelope(
        &mut self,
        envelope: &Envelope,
        verify: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Result<Accepted, Refusal> {
        let accepted = accept(&self.cluster, self.held.as_ref(), envelope, verify)?;
        let after = held_after(self.held.as_ref(), envelope);
        match (&accepted, &mut self.held) {
            (Accepted::New, _) => self.held = Some(after),
            // The mode is no part of what is released, and may be another without a new sequence.
            (Accepted::Same, Some(held)) => (held.mode, held.mode_source) = (after.mode, after.mode_source),
            (Accepted::Same, None) => {}
        }
        Ok(accepted)
    }

    /// The digests that the held list names and whose content is not here, sorted.
    pub fn missing(&self) -> Vec<Digest> {
        self.wanted()
            .into_iter()
            .filter(|digest| !self.contents.contains_key(digest))
            .collect()
    }

    /// Takes a content's bytes, when they are what their digest says.
    pub fn content(&mut self, digest: Digest, bytes: &[u8]) -> Result<(), InvalidDescription> {
        let description = Description::from_json(bytes, digest)?;
        self.contents.insert(digest, Arc::new(description));
        Ok(())
    }

    /// Takes a content whose digest was checked by whoever read it.
    pub fn trusted(&mut self, content: Arc<Description>) {
        self.contents.insert(content.digest, content);
    }

    /// The contents that are here.
    pub fn contents(&self) -> &BTreeMap<Digest, Arc<Description>> {
        &self.contents
    }

    /// Drops contents that no unit of the held list names, once nothing is missing; returns their digests.
    /// Until then the older contents stay, so that a unit whose new content never arrives can be told from
    /// one that has none.
    pub fn drop_unwanted(&mut self) -> Vec<Digest> {
        if !self.missing().is_empty() {
            return Vec::new();
        }
        let wanted = self.wanted();
        let unwanted: Vec<Digest> = self
            .contents
            .keys()
            .filter(|digest| !wanted.contains(digest))
            .copied()
            .collect();
        for digest in &unwanted {
            self.contents.remove(digest);
        }
        unwanted
    }

    /// What an applier should bring about; `None` before the first envelope. Units whose content is not
    /// here, or whose gates this build does not know, are left out and so left alone.
    pub fn desired(&self) -> Option<Desired> {
        let held = self.held.clone()?;
        let units = held
            .units
            .iter()
            .filter(|(_, unit)| unit.gates.is_empty())
            .filter_map(|(key, unit)| {
                let description = Arc::clone(self.contents.get(&unit.digest)?);
                Some((
                    key.clone(),
                    DesiredUnit {
                        description,
                        replicas: unit.replicas.clone(),
                        drift: unit.drift,
                    },
                ))
            });
        let units = units.collect();
        Some(Desired { held, units })
    }

    fn wanted(&self) -> BTreeSet<Digest> {
        let units = self.held.iter().flat_map(|held| held.units.values());
        units.map(|unit| unit.digest).collect()
    }
}
