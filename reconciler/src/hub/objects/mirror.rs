//! A hub cluster as it was listed and written since: what differs from what should be there is written,
//! what should not be there is removed by proof, and statuses are told in batches.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};
use kube::Client;
use kube::api::ListParams;
use render::Digest;
use serde_json::Value;

use super::desired::{Desired, Release};
use super::kind::{Id, Kind};
use super::live::{Live, Verdict, covers};
use super::name;
use super::status::{Told, with_times};
use super::write::{self, Written};
use crate::apply::{RequestError, bounded};
use crate::limits::{APPLY_CONCURRENCY, DESCRIPTIONS_PAGE, OBJECT_STATUSES_MAX, OBJECTS_PAGE};

/// A hub cluster that cannot be written to.
#[derive(Debug, thiserror::Error)]
pub(super) enum MirrorError {
    /// It lacks a kind.
    #[error(
        "the hub cluster does not serve {plural} of {api_version}; apply Clusternet's CustomResourceDefinitions to it"
    )]
    NotServed {
        /// Which.
        plural: &'static str,
        /// See `plural`.
        api_version: &'static str,
    },
    /// It could not be listed.
    #[error("failed to list {plural} of the hub cluster")]
    List {
        /// Which.
        plural: &'static str,
        /// Why.
        #[source]
        source: RequestError,
    },
    /// It stopped to answer while it was written to.
    #[error("failed to write to the hub cluster")]
    Write(#[source] RequestError),
}

/// A hub cluster.
pub(super) struct Mirror {
    client: Client,
    live: BTreeMap<Id, Live>,
    /// Namespaces of others, which Subscriptions may stand in.
    shared: BTreeSet<Id>,
    /// Objects of others that have a name that is needed, and why they are others'.
    pub(super) foreign: BTreeMap<Id, String>,
    /// What the API server refused.
    pub(super) refused: BTreeMap<Id, String>,
    /// What should not be there, and why it stays.
    pub(super) kept: BTreeMap<Id, String>,
    /// Where the next batch of statuses begins.
    cursor: Option<Id>,
    /// Digest of what was told since the list. An API server that drops a field of it, since its kinds are of
    /// another version, is not told the same every second.
    told: BTreeMap<Id, Digest>,
}

impl Mirror {
    /// Lists what a hub cluster holds of ours. All of it, or nothing is known.
    pub(super) async fn list(client: Client, desired: &Desired, release: &Release) -> Result<Self, MirrorError> {
        let mut mirror = Self {
            client,
            live: BTreeMap::new(),
            shared: BTreeSet::new(),
            foreign: BTreeMap::new(),
            refused: BTreeMap::new(),
            kept: BTreeMap::new(),
            cursor: None,
            told: BTreeMap::new(),
        };
        for kind in Kind::ALL {
            mirror.list_kind(kind, desired, release).await?;
        }
        Ok(mirror)
    }

    async fn list_kind(&mut self, kind: Kind, desired: &Desired, release: &Release) -> Result<(), MirrorError> {
        let plural = kind.plural();
        let mut params = ListParams::default()
            .labels(&format!("{}={}", name::MODE, name::OBJECTS))
            .limit(match kind {
                Kind::Description => DESCRIPTIONS_PAGE,
                Kind::Namespace | Kind::ManagedCluster | Kind::Subscription | Kind::Base => OBJECTS_PAGE,
            });
        loop {
            let page = bounded(kind.everywhere(&self.client).list(&params)).await;
            let page = page.map_err(|source| match source.is_not_found() {
                true => MirrorError::NotServed {
                    plural,
                    api_version: kind.api_version(),
                },
                false => MirrorError::List { plural, source },
            })?;
            for object in &page.items {
                let metadata = &object.metadata;
                let namespace = metadata.namespace.clone().unwrap_or_default();
                let id = Id::new(kind, namespace, metadata.name.clone().unwrap_or_default());
                let wanted = desired.objects.get(&id);
                let bound = wanted.and_then(|wanted| wanted.bind(&id, &release.lineage, |of| self.uid(of)).ok());
                let wanted = bound.map(|bound| bound.whole());
                self.live.insert(id, Live::new(object, wanted.as_ref()));
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(()),
            }
        }
    }

    /// How many objects are there.
    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// The UID of an object of ours.
    fn uid(&self, id: &Id) -> Option<&str> {
        let live = self.live.get(id).filter(|live| live.objection().is_none());
        live.map(|live| live.uid.as_str())
    }

    /// Whether the namespace of an object is there for it.
    fn has_room(&self, id: &Id, desired: &Desired) -> bool {
        let namespace = Id::namespace(&id.namespace);
        id.kind == Kind::Namespace
            || self.uid(&namespace).is_some()
            || (!desired.cluster_namespaces.contains(&id.namespace) && self.shared.contains(&namespace))
    }

    /// Writes what differs, kind by kind. What needs an object that is not there is left for later.
    pub(super) async fn write(&mut self, desired: &Desired, release: &Release) -> Result<usize, MirrorError> {
        self.refused.clear();
        self.foreign.clear();
        let mut count = 0;
        for kind in Kind::ALL {
            let mut writes = Vec::new();
            for (id, wanted) in desired.objects.iter().filter(|(id, _)| id.kind == kind) {
                if !self.has_room(id, desired) {
                    continue;
                }
                let Ok(bound) = wanted.bind(id, &release.lineage, |of| self.uid(of)) else {
                    continue;
                };
                let live = self.live.get(id);
                if live.is_some_and(|live| live.objection().is_none() && live.is_as(&bound.digest)) {
                    continue;
                }
                let client = self.client.clone();
                writes.push(write::write(client, id.clone(), bound, release.clone(), live.cloned()));
            }
            let mut writes = stream::iter(writes).buffer_unordered(APPLY_CONCURRENCY);
            while let Some((id, written)) = writes.next().await {
                count += usize::from(matches!(written, Written::Ours(_)));
                self.note(id, written, desired)?;
            }
        }
        Ok(count)
    }

    fn note(&mut self, id: Id, written: Written, desired: &Desired) -> Result<(), MirrorError> {
        match written {
            Written::Ours(live) => {
                self.live.insert(id, *live);
            }
            Written::Foreign(_) if id.kind == Kind::Namespace && !desired.cluster_namespaces.contains(&id.name) => {
                self.shared.insert(id);
            }
            Written::Foreign(reason) => {
                self.foreign.insert(id, reason);
            }
            Written::Refused(message) => {
                self.refused.insert(id, message);
            }
            Written::Stopped(error) => return Err(MirrorError::Write(error)),
        }
        Ok(())
    }

    /// Removes what should not be there, as far as the proofs go. Namespaces stay: nobody can prove that
    /// nothing of others is in one.
    pub(super) async fn remove(&mut self, desired: &Desired, release: &Release) -> Result<usize, MirrorError> {
        self.kept.clear();
        if !desired.unreadable.is_empty() {
            return Ok(0);
        }
        let mut count = 0;
        for kind in Kind::ALL.into_iter().rev().filter(|kind| *kind != Kind::Namespace) {
            let mut removals = Vec::new();
            let unwanted = |id: &&Id| id.kind == kind && !desired.objects.contains_key(*id);
            for id in self.live.keys().filter(unwanted) {
                let live = &self.live[id];
                match live.verdict(release) {
                    Verdict::Remove => removals.push(write::remove(self.client.clone(), id.clone(), live.clone())),
                    Verdict::Removing => {}
                    Verdict::Keep(reason) => {
                        self.kept.insert(id.clone(), reason);
                    }
                }
            }
            let mut removals = stream::iter(removals).buffer_unordered(APPLY_CONCURRENCY);
            while let Some((id, removed)) = removals.next().await {
                match removed {
                    Ok(()) => {
                        self.live.remove(&id);
                        self.told.remove(&id);
                        count += 1;
                    }
                    Err(error) if error.is_general() => return Err(MirrorError::Write(error)),
                    Err(error) => {
                        self.refused.insert(id, error.line());
                    }
                }
            }
        }
        Ok(count)
    }

    /// Tells statuses that changed, at most one batch of them; whether there are more. What was not heard
    /// of yet keeps its status while `patient`.
    pub(super) async fn tell(
        &mut self,
        statuses: &BTreeMap<Id, Told>,
        patient: bool,
        now: &str,
    ) -> Result<bool, MirrorError> {
        let (batch, more) = self.batch(statuses, patient, now);
        self.cursor = batch.last().map(|(id, _, _)| id.clone()).filter(|_| more);
        let writes = batch
            .into_iter()
            .map(|(id, uid, status)| write::write_status(self.client.clone(), id, uid, status));
        let mut writes = stream::iter(writes.collect::<Vec<_>>()).buffer_unordered(APPLY_CONCURRENCY);
        while let Some((id, written)) = writes.next().await {
            match written {
                Ok(object) => {
                    let told = Live::new(&object, None);
                    if let Some(told) = statuses.get(&id) {
                        self.told.insert(id.clone(), Digest::of_value(&told.status));
                    }
                    if let Some(live) = self.live.get_mut(&id) {
                        *live = Live {
                            drifted: live.drifted,
                            ..told
                        };
                    }
                }
                Err(error) if error.is_general() => return Err(MirrorError::Write(error)),
                Err(error) => {
                    self.refused.insert(id, error.line());
                }
            }
        }
        Ok(more)
    }

    /// The next statuses that changed, from the cursor on and around.
    fn batch(&self, statuses: &BTreeMap<Id, Told>, patient: bool, now: &str) -> (Vec<(Id, String, Value)>, bool) {
        let after = |id: &Id| self.cursor.as_ref().is_none_or(|cursor| id > cursor);
        let rest = statuses.iter().filter(|(id, _)| after(id));
        let around = statuses.iter().filter(|(id, _)| !after(id));
        let mut batch = Vec::new();
        for (id, told) in rest.chain(around) {
            let Some(live) = self.live.get(id).filter(|live| live.objection().is_none()) else {
                continue;
            };
            if (!told.heard && patient && !live.status.is_null()) || self.refused.contains_key(id) {
                continue;
            }
            let status = with_times(&told.status, &live.status, now);
            let is_told = || self.told.get(id) == Some(&Digest::of_value(&told.status));
            if is_same(&live.status, &status) || is_told() {
                continue;
            }
            if batch.len() == OBJECT_STATUSES_MAX {
                return (batch, true);
            }
            batch.push((id.clone(), live.uid.clone(), status));
        }
        (batch, false)
    }
}

/// Whether a status says what is told, and no field beside it that was told before.
fn is_same(live: &Value, told: &Value) -> bool {
    let fields = |value: &Value| value.as_object().map_or(0, serde_json::Map::len);
    covers(live, told) && fields(live) == fields(told)
}

#[cfg(test)]
mod tests;
