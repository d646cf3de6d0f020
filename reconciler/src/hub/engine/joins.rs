//! Clusters whose agents ask for registration with a token: which branches propose them, and that a person has to push
//! their files where the hub may not write to source.

use std::collections::BTreeMap;

use render::ClusterName;
use tunnel::PublicKey;

use super::{State, Write};
use crate::hub::publish::Registrations;

/// Who asks for registration, and what became of it.
#[derive(Clone, Debug, Default)]
pub struct Joins {
    /// Cluster → the key that its agent proved; `None` where this hub takes no tokens.
    pub wanted: Option<BTreeMap<ClusterName, PublicKey>>,
    /// Whether branches are proposed for them: the hub writes to the repository that people push to.
    pub is_proposing: bool,
    /// What is there, and what it was made for; `None` before the first look.
    done: Option<(BTreeMap<ClusterName, PublicKey>, Registrations)>,
}

impl Joins {
    /// Branches are as they were asked for.
    pub(super) fn proposed(&mut self, wanted: BTreeMap<ClusterName, PublicKey>, registrations: Registrations) {
        self.done = Some((wanted, registrations));
    }

    /// The branch that proposes a cluster's file.
    pub fn branch(&self, cluster: &ClusterName) -> Option<&str> {
        let (_, registrations) = self.done.as_ref()?;
        registrations.branches.get(cluster).map(String::as_str)
    }
}

impl State {
    /// Who asks for registration and is not registered.
    pub fn joining(&self) -> BTreeMap<ClusterName, PublicKey> {
        let wanted = self.joins.wanted.iter().flatten();
        wanted
            .filter(|(cluster, _)| !self.is_registered(cluster))
            .map(|(cluster, key)| (cluster.clone(), *key))
            .collect()
    }
}

/// Branches are due when others ask than those they were made for.
pub(super) fn due(state: &State) -> Option<Write> {
    // Nobody can be called unregistered before the fleet is known.
    let source = state.accepted.clone().filter(|_| state.fleet.is_some())?;
    if !state.joins.is_proposing || state.joins.wanted.is_none() {
        return None;
    }
    let wanted = state.joining();
    let is_done = state.joins.done.as_ref().is_some_and(|(done, _)| *done == wanted);
    (!is_done).then_some(Write::Registrations { source, wanted })
}
