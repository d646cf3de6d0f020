//! Predictions of charts: made beside the planner, at most as many at a time as helm may run, and remembered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use render::ClusterName;
use render::chart::{Capabilities, Preview, PreviewKey, PreviewMode, PreviewRequest, Previews};

use crate::apply::{HelmOptions, NoHelm, preview};
use crate::limits::PREVIEWS_MAX;

/// Makes predictions, and remembers them.
#[derive(Debug)]
pub struct Predictor {
    helm: HelmOptions,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    previews: BTreeMap<PreviewKey, Arc<Preview>>,
    /// Being made.
    making: BTreeMap<PreviewKey, ()>,
    no_helm: bool,
}

impl Predictor {
    /// One that knows nothing yet.
    pub fn new(helm: HelmOptions) -> Self {
        Self {
            helm,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a plan may look at.
    pub fn previews(&self, capabilities: BTreeMap<ClusterName, Arc<Capabilities>>) -> Previews {
        let known = self.known();
        let mode = if known.no_helm {
            PreviewMode::NoHelm
        } else {
            PreviewMode::On
        };
        Previews {
            mode,
            capabilities,
            known: known.previews.clone(),
        }
    }

    /// Takes up those of these that nobody makes yet.
    pub(super) fn take_up(&self, wanted: BTreeMap<PreviewKey, PreviewRequest>) -> Vec<(PreviewKey, PreviewRequest)> {
        let mut known = self.known();
        let known = &mut *known;
        // What was wanted last is wanted again as a rule; a fleet with more charts than this makes them anew.
        if known.previews.len() + wanted.len() > PREVIEWS_MAX {
            known.previews.clear();
        }
        let free = wanted.into_iter().filter(|(key, _)| !known.previews.contains_key(key));
        free.filter(|(key, _)| known.making.insert(*key, ()).is_none())
            .collect()
    }

    /// Makes one, and remembers it.
    pub async fn make(&self, key: PreviewKey, request: &PreviewRequest) {
        let made = preview(&self.helm, request).await;
        let mut known = self.known();
        known.making.remove(&key);
        match made {
            Ok(preview) => drop(known.previews.insert(key, Arc::new(preview))),
            Err(NoHelm) => known.no_helm = true,
        }
    }
}
