//! What every answer is made with.

use std::sync::Arc;

use render::schedule::Reports;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::costs::Costs;
use super::store::Store;
use crate::hub::asking::Asking;
use crate::hub::engine::State as Known;
use crate::hub::peers::FirstWords;
use crate::hub::tally::Tally;
use crate::limits::API_WATCHES_MAX;

/// What every answer needs.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) store: Arc<Store>,
    pub(super) watches: Arc<Semaphore>,
    pub(super) shutdown: CancellationToken,
    /// Whether callers must have come under a name of this machine.
    pub(super) local_names: bool,
    /// Asks the hub to look at its repositories.
    pub(super) look_now: Arc<Notify>,
    /// Asks clusters; without it, none is.
    pub(super) asking: Option<Asking>,
    /// What the door for people counts.
    pub(super) tally: Arc<Tally>,
    /// Which other hubs are waited for.
    pub(super) first_words: Arc<FirstWords>,
    /// What is done at a time of what costs most.
    pub(super) costs: Arc<Costs>,
}

impl Context {
    /// `local_names`: whether callers come through TCP, where a web page may send a browser.
    pub(super) fn new(store: Arc<Store>, local_names: bool, shutdown: CancellationToken) -> Self {
        Self {
            store,
            watches: Arc::new(Semaphore::new(API_WATCHES_MAX)),
            shutdown,
            local_names,
            look_now: Arc::default(),
            asking: None,
            tally: Arc::default(),
            first_words: Arc::default(),
            costs: Arc::default(),
        }
    }

    /// The same, for callers who must or need not have come under a name of this machine.
    pub(super) fn local_names(self, local_names: bool) -> Self {
        Self { local_names, ..self }
    }

    /// The same, with what the door for people counts.
    pub(super) fn counting(self, tally: Arc<Tally>) -> Self {
        Self { tally, ..self }
    }

    /// The same, ready once other hubs have told.
    pub(super) fn after(self, first_words: Arc<FirstWords>) -> Self {
        Self { first_words, ..self }
    }

    /// The same, with a hub that looks when it is asked to.
    pub(super) fn looking(self, look_now: Arc<Notify>) -> Self {
        Self { look_now, ..self }
    }

    /// The same, with clusters that are asked what goes with objects.
    pub(super) fn asking(self, asking: Asking) -> Self {
        Self {
            asking: Some(asking),
            ..self
        }
    }

    /// Holds a place to explain something, for a test.
    #[cfg(test)]
    pub(super) fn explaining(&self, who: &str) -> crate::hub::places::Place<String> {
        let place = self
            .costs
            .explanation(&super::costs::Asker(who.to_owned()), &self.tally);
        place.expect("there is a place")
    }

    /// What room clusters have.
    pub(super) fn rooms(&self, state: &Known) -> Reports {
        let asking = self.asking.as_ref();
        asking.map_or_else(|| state.rooms(), |asking| asking.rooms(state))
    }
}
